/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/hub/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "loaders/lib/host/maps/mapspack.h"
#include "probes/lib/tables.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/file/fdpass.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

struct packet {
	struct packet *next;
	size_t len;
	int fds[MP_FDS_MAX]; /* sent with it, owned */
	size_t n_fds;
	bool seed;
	char data[];
};

struct client {
	struct client *next;
	struct hub *hub;
	int fd;
	bool owner, watches, seeded, lost, dead, books;
	struct mp_cost_share share;
	uint32_t events; /* epoll's */
	struct packet *head, **tail;
	size_t queued, queued_fds;
	uint64_t lost_ns;
};

struct hub {
	struct hub_ops ops;
	int epoll_fd, listen_fd;
	const int *tables;
	uint32_t generation;
	bool degraded, open, orphaned, muted;
	char *path;
	struct client *clients;
	size_t n;
	struct mp_cost_share shared; /* of the whole, as far as it is in some client's share */
	struct strbuf packet;        /* to all */
	struct client *dumping;      /* not NULL: only for this client */
	struct strbuf dump;
};

static void client_clear(struct client *c);
static void client_send(struct client *c, const void *data, size_t len, const int *fds,
			size_t n_fds, bool seed);
static void client_greet(struct client *c);
static void client_seed(struct client *c);
static void client_reseed(struct client *c, uint64_t time_ns, uint64_t records);
static void client_write(struct client *c);
static void client_read(struct client *c);

#define CLIENTS_MAX 64
#define PACKET_BYTES                                                                \
	32768 /* flush before a packet grows larger; a single message may exceed it \
	       */

struct hub *hub_new(const struct hub_ops *ops, int epoll_fd, const int *tables, uint32_t generation)
{
	struct hub *h = mem_alloc(sizeof(*h));

	h->ops = *ops;
	h->epoll_fd = epoll_fd;
	h->listen_fd = -1;
	h->tables = tables;
	h->generation = generation;
	return h;
}

void hub_degrade(struct hub *h)
{
	h->degraded = true;
	h->tables = NULL;
	h->generation = 0;
	for (struct client *c = h->clients; c; c = c->next)
		client_greet(c);
}

static void hub_sweep(struct hub *h)
{
	for (struct client **p = &h->clients; *p;) {
		struct client *c = *p;

		if (!c->dead) {
			p = &c->next;
			continue;
		}
		*p = c->next;
		h->n--;
		if (c->owner)
			h->orphaned = true;
		epoll_ctl(h->epoll_fd, EPOLL_CTL_DEL, c->fd, NULL);
		close(c->fd);
		client_clear(c);
		free(c);
	}
}

bool hub_ready(struct hub *h, void *ptr, uint32_t events)
{
	struct client *c = h->clients;

	while (c && c != ptr)
		c = c->next;
	if (!c)
		return false;
	if (events & EPOLLOUT)
		client_write(c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		client_read(c);
	hub_sweep(h);
	return true;
}

static int may_talk(int fd)
{
	struct ucred cred = {0};
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return -errno;
	return cred.uid == 0 || cred.uid == geteuid() ? 0 : -EPERM;
}

static void add(struct hub *h, int fd, bool owner)
{
	struct client *c;
	struct epoll_event ev;
	int bytes = 1 << 20;

	if (h->n >= CLIENTS_MAX) {
		close(fd);
		return;
	}
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	c = mem_alloc(sizeof(*c));
	c->hub = h;
	c->fd = fd;
	c->owner = owner;
	c->watches = owner && h->listen_fd >= 0;
	c->tail = &c->head;
	c->next = h->clients;
	c->events = EPOLLIN | EPOLLRDHUP;
	ev = (struct epoll_event){.events = c->events, .data.ptr = c};
	epoll_ctl(h->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
	h->clients = c;
	h->n++;
	client_greet(c);
	if (h->open)
		client_seed(c);
}

void hub_own(struct hub *h, int fd)
{
	add(h, fd, true);
}

void hub_accept(struct hub *h)
{
	int fd = accept4(h->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	if (may_talk(fd)) {
		log_warn("refused a connection of another user");
		close(fd);
		return;
	}
	add(h, fd, false);
}

/* A socket file without a listener is a leftover. */
static int remove_stale(const struct sockaddr_un *addr)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct stat st;

	if (lstat(addr->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	if (!connect(fd, (const void *)addr, sizeof(*addr)) || errno == EAGAIN)
		return -EADDRINUSE;
	return unlink(addr->sun_path) ? -errno : 0;
}

int hub_listen(struct hub *h, const char *path, struct err *e)
{
	cleanup_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	mode_t old;
	int rc;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(e, -ENAMETOOLONG, EXIT_USAGE, "the socket's path is too long: %s",
			       path);
	strcpy(addr.sun_path, path);
	rc = remove_stale(&addr);
	if (rc == -EADDRINUSE) {
		err_set(e, rc, EXIT_USAGE, "another sonde-maps answers at %s", path);
		err_fix(e, "end it, or give another --socket");
		return rc;
	}
	old = umask(0177);
	if (!rc && bind(fd, (void *)&addr, sizeof(addr)))
		rc = -errno;
	umask(old);
	if (!rc && listen(fd, 16))
		rc = -errno;
	if (rc)
		return err_set(e, rc, EXIT_RUNTIME, "cannot listen at %s: %s", path, strerror(-rc));
	h->path = mem_strdup(path);
	h->listen_fd = take_fd(&fd);
	return h->listen_fd;
}

bool hub_orphaned(const struct hub *h)
{
	return h->orphaned;
}

static void print_packet(struct hub *h, const char *data, size_t len)
{
	struct mapspack_msg m;
	size_t pos = 0;

	while (h->ops.print && !h->dumping && mapspack_next(data, len, &pos, &m) == 1)
		h->ops.print(h->ops.ctx, &m);
}

/* The first `len` bytes; what is behind them stays. fd: sent with it (borrowed); -1: none. */
static void send_packet(struct hub *h, struct strbuf *b, size_t len, int fd)
{
	size_t n_fds = fd >= 0;

	if (!len)
		return;
	print_packet(h, b->buf, len);
	if (h->dumping)
		client_send(h->dumping, b->buf, len, &fd, n_fds, true);
	else
		for (struct client *c = h->clients; c; c = c->next)
			if (c->seeded)
				client_send(c, b->buf, len, &fd, n_fds, false);
	memmove(b->buf, b->buf + len, b->len - len);
	b->len -= len;
}

static struct strbuf *packet_of(struct hub *h)
{
	return h->dumping ? &h->dump : &h->packet;
}

void hub_flush(struct hub *h)
{
	send_packet(h, packet_of(h), packet_of(h)->len, -1);
}

void hub_emit(struct hub *h, uint32_t type, const void *fixed, const char *const *str)
{
	struct strbuf *b = packet_of(h);
	size_t before = b->len;

	if ((!h->open || h->muted) && !h->dumping)
		return;
	mapspack_add(b, type, fixed, str);
	if (b->len > PACKET_BYTES)
		send_packet(h, b, before, -1);
	if (b->len > MP_PACKET_MAX)
		strbuf_reset(b); /* the one message: no packet has room for it */
}

void hub_emit_index(struct hub *h, const struct mp_index *m, const char *key, const char *reason,
		    int fd)
{
	struct strbuf *b = packet_of(h);
	const char *str[] = {key, reason};

	hub_flush(h);
	mapspack_add(b, MP_INDEX, m, str);
	send_packet(h, b, b->len, fd);
}

void hub_mute(struct hub *h, bool mute)
{
	hub_flush(h);
	h->muted = mute;
}

void hub_open(struct hub *h)
{
	h->open = true;
	if (h->ops.print) {
		struct mp_head seeded = {0};

		h->ops.dump(h->ops.ctx); /* no client is seeded yet: this only prints */
		hub_emit(h, MP_SEEDED, &seeded, NULL);
		hub_flush(h);
	}
	for (struct client *c = h->clients; c; c = c->next)
		client_seed(c);
	hub_sweep(h);
}

void hub_reseed_all(struct hub *h, uint64_t time_ns, uint64_t records)
{
	hub_flush(h);
	if (h->ops.print) {
		struct mp_lost lost = {.time_ns = time_ns, .records = records};
		struct strbuf b = STRBUF_INIT;

		mapspack_add(&b, MP_LOST, &lost, NULL);
		print_packet(h, b.buf, b.len);
		strbuf_release(&b);
	}
	for (struct client *c = h->clients; c; c = c->next)
		if (c->seeded && !c->lost)
			client_reseed(c, time_ns, records);
	hub_sweep(h);
}

void hub_free(struct hub *h)
{
	if (!h)
		return;
	for (struct client *c = h->clients; c; c = c->next)
		c->dead = true;
	hub_sweep(h);
	if (h->listen_fd >= 0) {
		close(h->listen_fd);
		unlink(h->path);
	}
	free(h->path);
	strbuf_release(&h->packet);
	strbuf_release(&h->dump);
	free(h);
}

#define QUEUE_BYTES (16u << 20) /* a client, beyond its seed */
#define QUEUE_FDS   256

static void packet_free(struct packet *p)
{
	for (size_t i = 0; i < p->n_fds; i++)
		close(p->fds[i]);
	free(p);
}

/* what waits for it */
static void client_clear(struct client *c)
{
	while (c->head) {
		struct packet *p = c->head;

		c->head = p->next;
		packet_free(p);
	}
	c->tail = &c->head;
	c->queued = c->queued_fds = 0;
}

static void client_poll(struct client *c)
{
	uint32_t want = EPOLLIN | EPOLLRDHUP | (c->head || c->lost ? EPOLLOUT : 0u);
	struct epoll_event ev = {.events = want, .data.ptr = c};

	if (want != c->events && !c->dead)
		epoll_ctl(c->hub->epoll_fd, EPOLL_CTL_MOD, c->fd, &ev);
	c->events = want;
}

static void client_drop(struct client *c)
{
	c->dead = true; /* hub_sweep frees it: an epoll batch may still contain its pointer */
}

static bool would_block(int code)
{
	return code == -EAGAIN || code == -ENOBUFS || code == -ETOOMANYREFS;
}

static void client_overflow(struct client *c)
{
	client_clear(c);
	c->lost = true;
	c->lost_ns = (uint64_t)clock_boot_ns();
}

static struct packet *packet_new(const void *data, size_t len, const int *fds, size_t n_fds,
				 bool seed)
{
	struct packet *p = mem_alloc(sizeof(*p) + len);

	p->len = len;
	p->seed = seed;
	memcpy(p->data, data, len);
	for (size_t i = 0; i < n_fds; i++) {
		p->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
		if (p->fds[i] < 0)
			break; /* the client reports a missing one */
		p->n_fds++;
	}
	return p;
}

/* Sends at once if possible, else queues; fds are borrowed. `seed`: no limit on the queue. A client
 * that reads too slowly loses everything in its queue, and gets MP_LOST. */
static void client_send(struct client *c, const void *data, size_t len, const int *fds,
			size_t n_fds, bool seed)
{
	struct packet *p;
	int rc;

	if (c->dead || (c->lost && !seed))
		return;
	rc = c->head ? -EAGAIN : fdpass_send(c->fd, data, len, fds, n_fds, MSG_DONTWAIT);
	if (!rc)
		return;
	if (!would_block(rc)) {
		client_drop(c);
		return;
	}
	if (!seed && (c->queued + len > QUEUE_BYTES || c->queued_fds + n_fds > QUEUE_FDS)) {
		client_overflow(c);
		client_poll(c);
		return;
	}
	p = packet_new(data, len, fds, n_fds, seed);
	*c->tail = p;
	c->tail = &p->next;
	c->queued += seed ? 0 : len;
	c->queued_fds += seed ? 0 : p->n_fds;
	client_poll(c);
}

/* The first packets of each client, before the seed is complete: the version, and the maps that its
 * programs are loaded with. */
static void client_greet(struct client *c)
{
	struct hub *h = c->hub;
	struct mp_hello hello = {.version = MP_VERSION,
				 .generation = h->generation,
				 .pid = getpid(),
				 .flags = (h->degraded ? MP_HELLO_DEGRADED : 0u) |
					  (h->tables ? MP_HELLO_TABLES : 0u)};
	struct mp_tables tables = {.version = TABLES_VERSION, .generation = h->generation};
	struct strbuf b = STRBUF_INIT;

	mapspack_add(&b, MP_HELLO, &hello, NULL);
	client_send(c, b.buf, b.len, NULL, 0, true);
	if (h->tables) {
		strbuf_reset(&b);
		mapspack_add(&b, MP_TABLES, &tables, NULL);
		client_send(c, b.buf, b.len, h->tables, MP_TABLES_N, true);
	}
	strbuf_release(&b);
}

static void client_seed(struct client *c)
{
	struct hub *h = c->hub;
	struct mp_head seeded = {0};

	if (c->watches)
		return;
	hub_flush(h); /* earlier messages are for the other clients */
	h->dumping = c;
	h->ops.dump(h->ops.ctx);
	hub_emit(h, MP_SEEDED, &seeded, NULL);
	hub_flush(h);
	h->dumping = NULL;
	c->seeded = true;
}

/* after a loss */
static void client_reseed(struct client *c, uint64_t time_ns, uint64_t records)
{
	struct mp_lost lost = {.time_ns = time_ns, .records = records};
	struct strbuf b = STRBUF_INIT;

	c->lost = false;
	mapspack_add(&b, MP_LOST, &lost, NULL);
	client_send(c, b.buf, b.len, NULL, 0, true);
	strbuf_release(&b);
	client_seed(c);
}

/* the socket accepts more */
static void client_write(struct client *c)
{
	while (c->head) {
		struct packet *p = c->head;
		int rc = fdpass_send(c->fd, p->data, p->len, p->fds, p->n_fds, MSG_DONTWAIT);

		if (would_block(rc))
			return;
		if (rc) {
			client_drop(c);
			return;
		}
		c->head = p->next;
		if (!c->head)
			c->tail = &c->head;
		c->queued -= p->seed ? 0 : p->len;
		c->queued_fds -= p->seed ? 0 : p->n_fds;
		packet_free(p);
	}
	if (c->lost)
		client_reseed(c, c->lost_ns, 0);
	client_poll(c);
}

/* a request, or the end of the connection */
static void client_read(struct client *c)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		struct mapspack_msg m;
		size_t pos = 0;

		while (mapspack_next(buf, (size_t)n, &pos, &m) == 1)
			if (m.type == MP_WANT_INDEX)
				c->hub->ops.want(c->hub->ops.ctx, &m.m.want);
			else if (m.type == MP_WANT_ARGS)
				c->hub->ops.want_args(c->hub->ops.ctx, &m.m.want_args);
			else if (m.type == MP_WANT_NAMES)
				c->hub->ops.want_names(c->hub->ops.ctx, &m.m.want_names);
			else if (m.type == MP_HURRY)
				c->hub->ops.hurry(c->hub->ops.ctx);
			else if (m.type == MP_BOOKS)
				c->books = true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		client_drop(c);
}

/* One client's share of the growth from `*shared` to `whole`; `*shared` grows by all shares. (The
 * CPU time of a child that has just exited may be missing from `whole` for a moment: then there is
 * nothing to share.) */
static uint64_t part_of(uint64_t whole, uint64_t *shared, uint64_t sharers)
{
	uint64_t part = whole > *shared ? (whole - *shared) / sharers : 0;

	*shared += part * sharers;
	return part;
}

static uint64_t sharers_of(const struct hub *h)
{
	uint64_t n = 0;

	for (const struct client *c = h->clients; c; c = c->next)
		n += c->books && !c->dead;
	return n;
}

static void share(struct hub *h, const struct mp_cost *m, uint64_t sharers)
{
	struct mp_cost_share part = {
		.cpu_ns = part_of(m->cpu_ns, &h->shared.cpu_ns, sharers),
		.index_cpu_ns = part_of(m->index_cpu_ns, &h->shared.index_cpu_ns, sharers),
		.bpf_ns = part_of(m->bpf_ns, &h->shared.bpf_ns, sharers),
		.bpf_runs = part_of(m->bpf_runs, &h->shared.bpf_runs, sharers)};

	for (struct client *c = h->clients; c; c = c->next) {
		if (!c->books)
			continue;
		c->share.cpu_ns += part.cpu_ns;
		c->share.index_cpu_ns += part.index_cpu_ns;
		c->share.bpf_ns += part.bpf_ns;
		c->share.bpf_runs += part.bpf_runs;
	}
}

static void print(struct hub *h, const struct mp_cost *m)
{
	struct mapspack_msg msg = {.type = MP_COST};

	msg.m.cost = *m;
	if (h->ops.print)
		h->ops.print(h->ops.ctx, &msg);
}

void hub_emit_cost(struct hub *h, const struct mp_cost *m)
{
	bool tells = h->open && !h->muted; /* else only to an owner that watches */
	uint64_t sharers = sharers_of(h);
	struct strbuf b = STRBUF_INIT;

	hub_flush(h);
	if (sharers)
		share(h, m, sharers);
	if (tells)
		print(h, m);
	for (struct client *c = h->clients; c; c = c->next) {
		struct mp_cost own = *m;

		if (!c->watches && !(tells && c->seeded))
			continue;
		own.share = c->share;
		own.sharers = sharers;
		mapspack_add(&b, MP_COST, &own, NULL);
		client_send(c, b.buf, b.len, NULL, 0, false);
		strbuf_reset(&b);
	}
	strbuf_release(&b);
}
