/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-l7: the requests that programs make and answer. This file connects the common loop of
 * loaders/lib/bpf with the family's parts: hooks has the BPF programs, the parser (a process
 * without rights) reads their records and sends what it found, store_rows stores it.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/store_rows.h"
#include "loaders/l7/hooks.h"
#include "loaders/l7/parser.h"
#include "loaders/l7/tls/javaagents.h"
#include "loaders/l7/tls/tls.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/bpf/load/leftout.h"
#include "loaders/lib/bpf/load/tracefs.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define POLL_NS       (NSEC_PER_SEC / 4)
#define ANSWER_NS     (NSEC_PER_SEC / 10) /* the parser has answered by then */
#define WRITE_NS      (1 * NSEC_PER_SEC)
#define REST_NS       (10 * NSEC_PER_SEC) /* between questions to a parser that has nothing */
#define SWEEP_NS      (2 * NSEC_PER_SEC)
#define SWEEP_MOST_NS (30 * NSEC_PER_SEC)
#define SWEEP_PART    1000 /* reading descriptors takes at most 1/1000 of the time */
#define STARTS        100  /* of parsers, at most */

struct l7 {
	struct hooks hooks;
	struct parser parser;
	struct tls *tls;
	struct javaagents agents;
	struct store_rows rows;
	struct family_host *h; /* of the current call */
	struct parser_ask gone;
	int64_t asked_ns, swept_ns, sweep_took_ns;
	int64_t sweep_rest_ns; /* least time between sweeps while no records come */
	uint64_t unseen_bytes, records, swept_records; /* records: so far; at the last sweep */
	uint64_t asked_records;                        /* when the parser was asked last */
	int64_t heard_ns; /* records came, or it had something to say */
	bool started, full, shed;
};

static struct l7_opts {
	bool tls_off;
	const char *java_dir;
} opts = {.java_dir = JAVAAGENTS_DIR};

static void message_take(void *ctx, const struct message *x)
{
	struct l7 *l = ctx;

	if (l->tls && x->kind == MSG_BYTES && x->bytes->count.blind &&
	    !strcmp(x->text[MSG_PROTOCOL], "tls"))
		tls_unread(l->tls, x->about->process.tgid);
	store_rows_put(&l->rows, l->h, x);
}

/* Reads the parser, starts it or another one. true: it had sent something. */
static bool parser_keep(struct l7 *l, uint32_t bucket_s)
{
	struct err e = {0};
	size_t n = 0;
	int err;

	if (l->started && parser_read(&l->parser, message_take, l, &n))
		return n;
	if (l->started)
		log_warn("l7: the parser ended; requests in flight are counted as blind");
	if (l->started && l->parser.starts >= STARTS)
		return n;
	err = l->started ? parser_again(&l->parser, &e) :
			   parser_start(&l->parser, hooks_ring(&l->hooks), hooks_wants(&l->hooks),
					bucket_s, &e);
	if (err)
		log_warn("l7: %s", e.what);
	if (l->started)
		store_rows_restart(&l->rows, l->h, clock_boot_ns());
	l->started = true;
	hooks_parser(&l->hooks, (uint32_t)l->parser.pid);
	return n;
}

/* ---- closed sockets ---- */

static void gone_send(struct l7 *l)
{
	l->gone.what = PARSER_GONE;
	l->gone.now_ns = clock_boot_ns();
	l->gone.offset_ns = l->h->offset_ns;
	if (l->gone.n)
		parser_ask(&l->parser, &l->gone);
	l->gone.n = 0;
}

static void gone(void *ctx, uint64_t sk, uint64_t ino)
{
	struct l7 *l = ctx;

	l->gone.gone[2 * l->gone.n] = sk;
	l->gone.gone[2 * l->gone.n + 1] = ino;
	if (++l->gone.n == PARSER_GONE_MOST)
		gone_send(l);
}

/* While no records come, few sockets close: the interval doubles each time. */
static void sweep(struct l7 *l, int64_t now_ns)
{
	int64_t every = l->sweep_took_ns * SWEEP_PART, begin = clock_cpu_ns();

	if (l->records != l->swept_records)
		l->sweep_rest_ns = 0;
	every = every < SWEEP_NS ? SWEEP_NS : every;
	every = every < l->sweep_rest_ns ? l->sweep_rest_ns : every;
	every = every > SWEEP_MOST_NS ? SWEEP_MOST_NS : every;
	if (now_ns - l->swept_ns < every)
		return;
	l->sweep_rest_ns = l->records == l->swept_records ? 2 * every : 0;
	l->swept_records = l->records;
	l->swept_ns = now_ns;
	if (hooks_sweep(&l->hooks, gone, l) < 0)
		log_debug("l7: descriptors cannot be read");
	gone_send(l);
	l->sweep_took_ns = clock_cpu_ns() - begin;
}

/* ---- bytes that no record has ---- */

static void unseen(struct l7 *l, int64_t now_ns)
{
	struct l7_tally t;
	uint64_t bytes;

	hooks_tally(&l->hooks, &t);
	l->records = t.records;
	bytes = t.unseen_bytes + t.no_room_bytes;
	if (bytes > l->unseen_bytes)
		store_rows_unseen(&l->rows, l->h, bytes - l->unseen_bytes, now_ns);
	l->unseen_bytes = bytes;
	if (t.no_room && !l->full)
		log_warn("l7: too many open connections; the traffic of some is not read");
	l->full = l->full || t.no_room;
	if (t.lost + t.shed && !l->shed)
		log_warn(
			"l7: traffic exceeds capacity; some connections are skipped for a while and counted as lost and blind");
	l->shed = l->shed || t.lost + t.shed;
}

/* Nothing has come for longer than a bucket lasts, and the parser had nothing to say: it is not
 * woken each second. What it says of connections that go on without a byte is late by REST_NS. */
static bool is_resting(struct l7 *l, const struct family_host *h, bool sent, int64_t now_ns)
{
	struct l7_tally t;

	hooks_tally(&l->hooks, &t);
	if (sent || t.records != l->asked_records || !l->heard_ns)
		l->heard_ns = now_ns;
	l->asked_records = t.records;
	return now_ns - l->heard_ns > (h->bucket_s + 2) * NSEC_PER_SEC &&
	       now_ns - l->asked_ns < REST_NS && !l->rows.unresolved.n;
}

static void l7_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct l7 *l = state;
	bool sent;

	l->h = h;
	h->next_ns = now_ns + POLL_NS;
	hooks_alive(&l->hooks, (uint64_t)now_ns);
	if (!hostmaps_seeded(h->maps) && now_ns - l->asked_ns < 5 * NSEC_PER_SEC && l->started)
		return;
	sent = parser_keep(l, h->bucket_s);
	if (!opts.tls_off && !leftout_is("tls_site"))
		tls_poll(l->tls, h, now_ns);
	if (!opts.tls_off)
		javaagents_poll(&l->agents, opts.java_dir, hooks_object(&l->hooks),
				hooks_agents(&l->hooks), now_ns);
	if (now_ns - l->asked_ns < WRITE_NS) {
		if (!sent) /* it sends when asked; before that only if it has much (wake_fd) */
			h->next_ns = l->asked_ns + WRITE_NS;
		l->heard_ns = sent ? now_ns : l->heard_ns;
		return;
	}
	h->next_ns = now_ns + WRITE_NS;
	if (is_resting(l, h, sent, now_ns))
		return;
	h->next_ns = now_ns + ANSWER_NS;
	store_rows_fresh(&l->rows);
	store_rows_unresolved(&l->rows, h, now_ns);
	store_rows_health(&l->rows, h, now_ns);
	parser_ask(&l->parser, &(struct parser_ask){.what = PARSER_WRITE,
						    .now_ns = now_ns,
						    .offset_ns = h->offset_ns});
	sweep(l, now_ns);
	unseen(l, now_ns);
	l->asked_ns = now_ns;
}

static void l7_detach(void *state)
{
	struct l7 *l = state;
	struct taps tls = {0};

	tls_detach(l->tls, &tls);
	hooks_detach(&l->hooks, &tls);
}

static void l7_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct l7 *l = state;

	l->h = h;
	l7_detach(l);
	parser_keep(l, h->bucket_s);
	l->swept_ns = 0; /* sockets closed by now count as closed, not as cut off by the end */
	sweep(l, clock_boot_ns());
	if (!parser_end(&l->parser, h->offset_ns, patience_ns, message_take, l))
		log_warn("l7: the parser did not send everything in time; the rest is not counted");
	store_rows_unresolved(&l->rows, h, INT64_MAX);
	unseen(l, clock_boot_ns());
	if (l->rows.unknown)
		log_warn(
			"l7: %llu requests are of processes that had ended before anything but their pid was known: [unknown]",
			(unsigned long long)l->rows.unknown);
}

/* ---- the family ---- */

static int l7_needs(struct err *e)
{
	cleanup_fd int events = tracefs_open(e);

	return events < 0 ? events : 0;
}

static int l7_open(const struct family_config *c, void **state, struct bpf_object **obj,
		   struct err *e)
{
	struct l7 *l = mem_alloc(sizeof(*l));
	int err = hooks_open(&l->hooks, c, e);

	if (err) {
		free(l);
		return err;
	}
	parser_init(&l->parser);
	l->parser.has_ring = c->fine_s;
	l->tls = tls_new(hooks_object(&l->hooks));
	l->rows.whos_fd = hooks_whos(&l->hooks);
	*state = l;
	*obj = hooks_object(&l->hooks);
	return 0;
}

static int l7_attach(void *state, struct err *e)
{
	struct l7 *l = state;

	int err = hooks_attach(&l->hooks, e);

	if (!err)
		hooks_alive(&l->hooks, (uint64_t)clock_boot_ns());
	return err;
}

static void l7_tally(void *state, struct family_tally *out)
{
	struct l7 *l = state;
	struct l7_tally t;

	hooks_tally(&l->hooks, &t);
	*out = (struct family_tally){.seen = t.lost + t.shed + t.no_room + t.tls_no_room,
				     .lost = t.lost + t.shed,
				     .no_room = t.no_room + t.tls_no_room,
				     .helper_cpu_ns = parser_cpu_ns(&l->parser),
				     .helper = (uint32_t)l->parser.pid};
}

static void l7_reduce(void *state, uint32_t step)
{
	hooks_reduce(&((struct l7 *)state)->hooks, step);
}

static int l7_wake_fd(void *state)
{
	struct l7 *l = state;

	return l->parser.more_fd;
}

static const char *l7_clock(void *state)
{
	(void)state;
	return "system calls that move bytes";
}

static void l7_check(struct check *c, uint32_t freq)
{
	(void)freq;
	if (hooks_tells_came())
		check_add(c, "queues", CHECK_OK, NULL,
			  "time that requests wait in the socket is measured");
	else
		check_add(c, "queues", CHECK_WARN, "kernel 6.3 or later (sk_data_ready)",
			  "time that requests wait in the socket is not measured");
}

static void l7_close(void *state)
{
	struct l7 *l = state;

	l7_detach(l);
	parser_release(&l->parser);
	tls_free(l->tls);
	javaagents_release(&l->agents);
	hooks_close(&l->hooks);
	store_rows_release(&l->rows);
	free(l);
}

static const struct option l7_options[] = {
	{"tls", 0, OPTION_ENUM, "on|off",
	 "probes in TLS libraries, to read requests inside TLS (default on)",
	 OPTION_AT(struct l7_opts, tls_off)},
	{"java-dir", 0, OPTION_STRING, "DIR",
	 "where sonde-java notes the programs with its agent (default " JAVAAGENTS_DIR ")",
	 OPTION_AT(struct l7_opts, java_dir)},
	{0}};

static const struct family l7_family = {
	.name = "l7",
	.keeps = CONFINE_EXECS | CONFINE_LOADS,
	.fine_s = 1,
	.options = {l7_options, &opts},
	.summary = "record requests between programs: operations, latency and failures",
	.needs = l7_needs,
	.open = l7_open,
	.attach = l7_attach,
	.poll = l7_poll,
	.last_read = l7_last_read,
	.wake_fd = l7_wake_fd,
	.clock = l7_clock,
	.tally = l7_tally,
	.reduce = l7_reduce,
	.detach = l7_detach,
	.close = l7_close,
	.check = l7_check,
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], PARSER_OPTION))
		return parser_main(argc, argv);
	return family_main(&l7_family, argc, argv);
}
