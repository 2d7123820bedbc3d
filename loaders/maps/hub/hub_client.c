// SPDX-License-Identifier: Apache-2.0
/* hub_client: one client, and what waits for it. Nobody is waited for. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/types.h>

#include "loaders/maps/hub/hub_parts.h"
#include "probes/lib/tables.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define QUEUE_BYTES (16u << 20) /* a client, beyond its seed */
#define QUEUE_FDS   256

static void packet_free(struct packet *p)
{
	for (size_t i = 0; i < p->n_fds; i++)
		close(p->fds[i]);
	free(p);
}

void hub_client_clear(struct client *c)
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
	c->dead = true; /* freed in hub_sweep: its pointer may still stand in an epoll batch */
}

static int send_one(int sock, const void *data, size_t len, const int *fds, size_t n_fds)
{
	char control[CMSG_SPACE(MP_FDS_MAX * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (n_fds) {
		struct cmsghdr *cm;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, n_fds * sizeof(int));
	}
	return sendmsg(sock, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static bool would_block(int code)
{
	return code == -EAGAIN || code == -ENOBUFS || code == -ETOOMANYREFS;
}

static void client_overflow(struct client *c)
{
	hub_client_clear(c);
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
			break; /* a client that misses one says so */
		p->n_fds++;
	}
	return p;
}

void hub_client_send(struct client *c, const void *data, size_t len, const int *fds, size_t n_fds,
		     bool seed)
{
	struct packet *p;
	int rc;

	if (c->dead || (c->lost && !seed))
		return;
	rc = c->head ? -EAGAIN : send_one(c->fd, data, len, fds, n_fds);
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

/* Before all else, and before the seed is there: who we are, and the maps that its programs are
 * loaded with. */
void hub_client_greet(struct client *c)
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
	hub_client_send(c, b.buf, b.len, NULL, 0, true);
	if (h->tables) {
		strbuf_reset(&b);
		mapspack_add(&b, MP_TABLES, &tables, NULL);
		hub_client_send(c, b.buf, b.len, h->tables, MP_TABLES_N, true);
	}
	strbuf_release(&b);
}

void hub_client_seed(struct client *c)
{
	struct hub *h = c->hub;
	struct mp_head seeded = {0};

	if (c->watches)
		return;
	hub_flush(h); /* what came before belongs to the others */
	h->dumping = c;
	h->ops.dump(h->ops.ctx);
	hub_emit(h, MP_SEEDED, &seeded, NULL);
	hub_flush(h);
	h->dumping = NULL;
	c->seeded = true;
}

void hub_client_reseed(struct client *c, uint64_t time_ns, uint64_t records)
{
	struct mp_lost lost = {.time_ns = time_ns, .records = records};
	struct strbuf b = STRBUF_INIT;

	c->lost = false;
	mapspack_add(&b, MP_LOST, &lost, NULL);
	hub_client_send(c, b.buf, b.len, NULL, 0, true);
	strbuf_release(&b);
	hub_client_seed(c);
}

void hub_client_write(struct client *c)
{
	while (c->head) {
		struct packet *p = c->head;
		int rc = send_one(c->fd, p->data, p->len, p->fds, p->n_fds);

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
		hub_client_reseed(c, c->lost_ns, 0);
	client_poll(c);
}

void hub_client_read(struct client *c)
{
	char buf[4096];
	ssize_t n;

	while ((n = recv(c->fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0) {
		struct mapspack_msg m;
		size_t pos = 0;

		while (mapspack_next(buf, (size_t)n, &pos, &m) == 1)
			if (m.type == MP_WANT_INDEX)
				c->hub->ops.want(c->hub->ops.ctx, m.m.want.id, m.m.want.flags);
			else if (m.type == MP_HURRY)
				c->hub->ops.hurry(c->hub->ops.ctx);
			else if (m.type == MP_BOOKS)
				c->books = true;
	}
	if (n == 0 || (errno != EAGAIN && errno != EINTR))
		client_drop(c);
}
