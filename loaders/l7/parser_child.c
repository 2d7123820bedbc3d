/* SPDX-License-Identifier: Apache-2.0 */
/* The parser's main loop, without rights: from the ring to messages. */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/l7/outbox.h"
#include "loaders/l7/parser.h"
#include "loaders/l7/ring.h"
#include "loaders/l7/streams.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define FD_SOCKET 3
#define FD_RING   4
#define FD_WANTS  5
#define FD_MORE   6
#define BUSY_MS   25
#define CALM_MS   100 /* after at most CALM records */
#define CALM      256
#define QUIET_MS  1000 /* after none; a ring that fills up wakes us (l7/data.bpf.h: 5) */
#define LAST_MS   200  /* at the end, for probes that are still writing a record */

struct child {
	struct ring ring;
	int woken; /* epoll's descriptor: readable when a probe wakes us, not while the ring has
		      data */
	struct streams *streams;
	struct message_writer writer;
	struct outbox outbox;
	uint64_t n; /* records of this turn */
	bool over;
};

/* If the loader has closed the socket, this process ends, too. */
static void packet_send(void *ctx, const void *packet, size_t size)
{
	const uint64_t one = 1;
	struct child *c = ctx;

	if (c->over)
		return;
	outbox_put(&c->outbox, packet, size);
	c->over = outbox_send(&c->outbox, FD_SOCKET) < 0;
	if (c->outbox.n && write(FD_MORE, &one, sizeof(one)) < 0 && errno != EAGAIN)
		c->over = true;
	while (!c->over && outbox_full(&c->outbox)) {
		poll(&(struct pollfd){.fd = FD_SOCKET, .events = POLLOUT}, 1, -1);
		c->over = outbox_send(&c->outbox, FD_SOCKET) < 0;
	}
}

static void record(void *ctx, const void *data, size_t size)
{
	struct child *c = ctx;

	c->n++;
	streams_record(c->streams, data, size);
}

static int ring_take(struct child *c)
{
	struct bpf_map_info info = {0};
	uint32_t len = sizeof(info);

	return bpf_obj_get_info_by_fd(FD_RING, &info, &len) ?
		       -errno :
		       ring_open(&c->ring, FD_RING, info.max_entries);
}

/* The ring is readable while anything is in it. Edge-triggered, it only signals when a probe has
 * filled another part of it (l7/data.bpf.h: 5). */
static int woken_open(struct child *c)
{
	struct epoll_event on = {.events = EPOLLIN | EPOLLET};

	c->woken = epoll_create1(EPOLL_CLOEXEC);
	return c->woken < 0 || epoll_ctl(c->woken, EPOLL_CTL_ADD, FD_RING, &on) ? -errno : 0;
}

static void flushed(struct child *c)
{
	struct msg_head x;

	message_write(&c->writer, MSG_FLUSHED, &x, NULL);
	message_flush(&c->writer);
	while (!c->over && c->outbox.n) {
		poll(&(struct pollfd){.fd = FD_SOCKET, .events = POLLOUT}, 1, -1);
		c->over = outbox_send(&c->outbox, FD_SOCKET) < 0;
	}
}

/* Reads the ring until it is empty: a probe may still be writing a record. */
static void ring_last(struct child *c)
{
	ring_read(&c->ring, record, c);
	for (int i = 0; i < LAST_MS && !ring_empty(&c->ring); i++) {
		poll(NULL, 0, 1);
		ring_read(&c->ring, record, c);
	}
}

static void asked(struct child *c)
{
	struct parser_ask q = {0};
	ssize_t n = read(FD_SOCKET, &q, sizeof(q));

	if (n < (ssize_t)offsetof(struct parser_ask, gone)) {
		c->over = n >= 0 || (errno != EINTR && errno != EAGAIN);
		return;
	}
	streams_clock(c->streams, q.offset_ns);
	if (q.what == PARSER_WRITE) {
		streams_write(c->streams, q.now_ns, false);
	} else if (q.what == PARSER_GONE) {
		for (uint32_t i = 0; i < q.n && i < PARSER_GONE_MOST; i++)
			streams_gone(c->streams, q.gone[2 * i], q.gone[2 * i + 1], q.now_ns);
	} else if (q.what == PARSER_END) {
		ring_last(c);
		streams_end(c->streams, q.now_ns);
		flushed(c);
		c->over = true;
	}
}

static void run(struct child *c)
{
	int wait = QUIET_MS;

	while (!c->over) {
		struct pollfd f[2] = {
			{.fd = FD_SOCKET, .events = (short)(POLLIN | (c->outbox.n ? POLLOUT : 0))},
			{.fd = c->woken, .events = POLLIN}};
		int ready = poll(f, 2, wait);
		int64_t now = clock_boot_ns();
		struct epoll_event was;

		if (ready > 0 && f[1].revents)
			epoll_wait(c->woken, &was, 1, 0);
		c->n = 0;
		ring_read(&c->ring, record, c);
		wait = c->n > CALM                                               ? BUSY_MS :
		       c->n || streams_held(c->streams) || !ring_empty(&c->ring) ? CALM_MS :
										   QUIET_MS;
		streams_take(c->streams, now);
		if (ready > 0 && f[0].revents & POLLOUT)
			c->over = c->over || outbox_send(&c->outbox, FD_SOCKET) < 0;
		if (ready > 0 && f[0].revents & (POLLIN | POLLHUP | POLLERR))
			asked(c);
	}
}

int parser_main(int argc, char **argv)
{
	struct child *c = mem_alloc(sizeof(*c));
	long bucket = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	struct l7_want *wants;
	struct err e = {0};

	wants = mmap(NULL, L7_WANT_ENTRIES * sizeof(*wants), PROT_READ | PROT_WRITE, MAP_SHARED,
		     FD_WANTS, 0);
	if (bucket <= 0 || bucket > 3600 || wants == MAP_FAILED || ring_take(c) || woken_open(c))
		return EXIT_RUNTIME;
	c->writer = (struct message_writer){.send = packet_send, .ctx = c};
	fcntl(FD_SOCKET, F_SETFL, O_NONBLOCK);
	c->streams = streams_new(wants, &c->writer, (uint32_t)bucket, clock_boot_offset_ns());
	if (argc > 3 && !strcmp(argv[3], PARSER_RING))
		streams_ring(c->streams);
	if (sandbox_enter(SANDBOX_STAYS, &e))
		return err_report(&e, "sonde-l7");
	run(c);
	streams_free(c->streams);
	outbox_release(&c->outbox);
	free(c);
	return 0;
}
