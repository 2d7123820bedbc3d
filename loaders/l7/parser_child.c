// SPDX-License-Identifier: Apache-2.0
/* parser_child: the side without rights: from the ring to what is said. */
#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "loaders/l7/parser.h"
#include "loaders/l7/ring.h"
#include "loaders/l7/streams.h"
#include "loaders/lib/sandbox/sandbox.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define FD_SOCKET 3
#define FD_RING   4
#define FD_WANTS  5
#define BUSY_MS   25
#define QUIET_MS  100

struct child {
	struct ring ring;
	struct streams *streams;
	struct saying saying;
	uint64_t n;           /* records since this was last looked at */
	bool over;
};

/* Who hears no more is gone, and so are we. */
static void say(void *ctx, const void *message, size_t size)
{
	struct child *c = ctx;

	while (!c->over && write(FD_SOCKET, message, size) != (ssize_t)size)
		c->over = errno != EINTR;
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

	return bpf_obj_get_info_by_fd(FD_RING, &info, &len) ? -errno : ring_open(&c->ring, FD_RING, info.max_entries);
}

static void flushed(struct child *c)
{
	struct said x = {.what = SAID_FLUSHED};
	const char *const none[SAID_TEXTS] = {0};

	saying_add(&c->saying, &x, none, NULL);
	saying_flush(&c->saying);
}

static void asked(struct child *c)
{
	struct parser_ask q = {0};
	ssize_t n = read(FD_SOCKET, &q, sizeof(q));

	if (n < (ssize_t)offsetof(struct parser_ask, gone)) {
		c->over = n >= 0 || errno != EINTR;
		return;
	}
	streams_clock(c->streams, q.offset_ns);
	if (q.what == PARSER_SAY) {
		streams_say(c->streams, q.now_ns, false);
	} else if (q.what == PARSER_GONE) {
		for (uint32_t i = 0; i < q.n && i < PARSER_GONE_MOST; i++)
			streams_gone(c->streams, q.gone[2 * i], q.gone[2 * i + 1], q.now_ns);
	} else if (q.what == PARSER_END) {
		ring_read(&c->ring, record, c);
		streams_end(c->streams, q.now_ns);
		flushed(c);
		c->over = true;
	}
}

static void run(struct child *c)
{
	int wait = QUIET_MS;

	while (!c->over) {
		struct pollfd f = {.fd = FD_SOCKET, .events = POLLIN};
		int ready = poll(&f, 1, wait);
		int64_t now = clock_boot_ns();

		c->n = 0;
		ring_read(&c->ring, record, c);
		wait = c->n ? BUSY_MS : QUIET_MS;
		streams_take(c->streams, now);
		if (ready > 0)
			asked(c);
	}
}

int parser_main(int argc, char **argv)
{
	struct child *c = mem_alloc(sizeof(*c));
	long bucket = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
	struct l7_want *wants;
	struct err e = {0};

	wants = mmap(NULL, L7_WANTS * sizeof(*wants), PROT_READ | PROT_WRITE, MAP_SHARED, FD_WANTS, 0);
	if (bucket <= 0 || bucket > 3600 || wants == MAP_FAILED || ring_take(c))
		return EXIT_RUNTIME;
	c->saying = (struct saying){.send = say, .ctx = c};
	c->streams = streams_new(wants, &c->saying, (uint32_t)bucket, clock_boot_offset_ns());
	if (sandbox_enter(SANDBOX_STAYS, &e))
		return err_report(&e, "sonde-l7");
	run(c);
	return 0;
}
