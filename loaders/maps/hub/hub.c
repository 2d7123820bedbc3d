// SPDX-License-Identifier: Apache-2.0
/* hub: see the header. hub_client.c has one client and what waits for it. */
#include "loaders/maps/hub/hub_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <linux/types.h>

#include "probes/lib/tables.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define CLIENTS_MAX  64
#define PACKET_BYTES 32768 /* closed before it grows larger, but for one message that is */

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
		hub_client_greet(c);
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
		hub_client_clear(c);
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
		hub_client_write(c);
	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		hub_client_read(c);
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
	hub_client_greet(c);
	if (h->open)
		hub_client_seed(c);
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

/* A socket file that nobody answers at is a leftover. */
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

size_t hub_clients(const struct hub *h)
{
	return h->n;
}

static void print_packet(struct hub *h, const struct strbuf *b)
{
	struct mapspack_msg m;
	size_t pos = 0;

	while (h->ops.print && !h->dumping && mapspack_next(b->buf, b->len, &pos, &m) == 1)
		h->ops.print(h->ops.ctx, &m);
}

/* fd: sent with it (borrowed); -1: none. */
static void send_packet(struct hub *h, struct strbuf *b, int fd)
{
	size_t n_fds = fd >= 0;

	if (!b->len)
		return;
	print_packet(h, b);
	if (h->dumping)
		hub_client_send(h->dumping, b->buf, b->len, &fd, n_fds, true);
	else
		for (struct client *c = h->clients; c; c = c->next)
			if (c->seeded)
				hub_client_send(c, b->buf, b->len, &fd, n_fds, false);
	strbuf_reset(b);
}

void hub_flush(struct hub *h)
{
	send_packet(h, h->dumping ? &h->dump : &h->packet, -1);
}

void hub_emit(struct hub *h, uint32_t type, const void *fixed, const char *const *str)
{
	struct strbuf *b = h->dumping ? &h->dump : &h->packet;
	struct strbuf one = STRBUF_INIT;

	if ((!h->open || h->muted) && !h->dumping)
		return;
	mapspack_add(&one, type, fixed, str);
	if (b->len + one.len > PACKET_BYTES)
		hub_flush(h);
	if (one.len <= MP_PACKET_MAX)
		strbuf_add(b, one.buf, one.len);
	strbuf_release(&one);
}

void hub_emit_index(struct hub *h, const struct mp_index *m, const char *key, const char *reason,
		    int fd)
{
	struct strbuf *b = h->dumping ? &h->dump : &h->packet;
	const char *str[] = {key, reason};

	hub_flush(h);
	mapspack_add(b, MP_INDEX, m, str);
	send_packet(h, b, fd);
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

		h->ops.dump(h->ops.ctx); /* nobody is seeded yet: only printed */
		hub_emit(h, MP_SEEDED, &seeded, NULL);
		hub_flush(h);
	}
	for (struct client *c = h->clients; c; c = c->next)
		hub_client_seed(c);
	hub_sweep(h);
}

void hub_reseed_all(struct hub *h, uint64_t time_ns, uint64_t records)
{
	hub_flush(h);
	if (h->ops.print) {
		struct mp_lost lost = {.time_ns = time_ns, .records = records};
		struct strbuf b = STRBUF_INIT;

		mapspack_add(&b, MP_LOST, &lost, NULL);
		print_packet(h, &b);
		strbuf_release(&b);
	}
	for (struct client *c = h->clients; c; c = c->next)
		if (c->seeded && !c->lost)
			hub_client_reseed(c, time_ns, records);
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
