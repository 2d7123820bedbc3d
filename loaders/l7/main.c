// SPDX-License-Identifier: Apache-2.0
/*
 * sonde-l7: requests, as programs make and answer them. This file is the family's translation
 * between the common loop of loaders/lib/bpf and its parts: hooks has the programs, the parser (a
 * process without rights) reads what they tell and says what it found, book puts that into the
 * store.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/store_rows.h"
#include "loaders/l7/hooks.h"
#include "loaders/l7/parser.h"
#include "loaders/l7/tls/tls.h"
#include "loaders/lib/bpf/start/check.h"
#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/bpf/load/programs.h"
#include "loaders/lib/sandbox/confine.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define POLL_NS       (NSEC_PER_SEC / 4)
#define ANSWER_NS     (NSEC_PER_SEC / 10) /* what was asked for is read so long after */
#define SAY_NS        (1 * NSEC_PER_SEC)
#define SWEEP_NS      (2 * NSEC_PER_SEC)
#define SWEEP_MOST_NS (30 * NSEC_PER_SEC)
#define SWEEP_PART    1000 /* the reading of descriptors has one in so many of the time */
#define STARTS        100  /* of parsers: one that dies again and again finds an end */

struct l7 {
	struct hooks hooks;
	struct parser parser;
	struct tls *tls;
	struct store_rows book;
	struct family_host *h; /* of the call at hand */
	struct parser_ask gone;
	int64_t said_ns, swept_ns, sweep_took_ns,
		sweep_rest_ns;                         /* rest: of one that found nothing new */
	uint64_t unseen_bytes, records, swept_records; /* records: so far; of then */
	bool started, full, shed;
};

static bool tls_off; /* --tls */

static void hear(void *ctx, const struct heard *x)
{
	struct l7 *l = ctx;

	if (l->tls && x->s->what == SAID_BYTES && x->s->number[SAID_BLIND] &&
	    !strcmp(x->text[SAID_PROTOCOL], "tls"))
		tls_unread(l->tls, x->s->who.tgid);
	store_rows_put(&l->book, l->h, x);
}

/* true: it had something to say. */
static bool parser_keep(struct l7 *l, uint32_t bucket_s)
{
	struct err e = {0};
	size_t n = 0;
	int err;

	if (l->started && parser_read(&l->parser, hear, l, &n))
		return n;
	if (l->started)
		log_warn("l7: the parser ended: what was under way is blind");
	if (l->started && l->parser.starts >= STARTS)
		return n;
	err = l->started ? parser_again(&l->parser, &e) :
			   parser_start(&l->parser, hooks_ring(&l->hooks), hooks_wants(&l->hooks),
					bucket_s, &e);
	if (err)
		log_warn("l7: %s", e.what);
	l->started = true;
	hooks_parser(&l->hooks, (uint32_t)l->parser.pid);
	return n;
}

/* ---- sockets that are gone ---- */

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

/* Where nothing is told, little ends: then twice as long each time. */
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

/* ---- what nobody told ---- */

static void unseen(struct l7 *l, int64_t now_ns)
{
	struct l7_tally t;
	uint64_t bytes;

	hooks_tally(&l->hooks, &t);
	l->records = t.records;
	bytes = t.unseen_bytes + t.no_room_bytes + t.tls_unknown_bytes;
	if (bytes > l->unseen_bytes)
		store_rows_unseen(&l->book, l->h, bytes - l->unseen_bytes, now_ns);
	l->unseen_bytes = bytes;
	if (t.no_room && !l->full)
		log_warn(
			"l7: more connections are open than there is room for: what some of them say is not read");
	l->full = l->full || t.no_room;
	if (t.lost + t.shed && !l->shed)
		log_warn(
			"l7: more is said than can be read: some connections are not read for a while, which is told as lost and blind");
	l->shed = l->shed || t.lost + t.shed;
}

static void l7_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct l7 *l = state;
	bool said;

	l->h = h;
	h->next_ns = now_ns + POLL_NS;
	hooks_alive(&l->hooks, (uint64_t)now_ns);
	if (!hostmaps_seeded(h->maps) && now_ns - l->said_ns < 5 * NSEC_PER_SEC && l->started)
		return;
	said = parser_keep(l, h->bucket_s);
	if (!tls_off)
		tls_poll(l->tls, h, now_ns);
	if (now_ns - l->said_ns < SAY_NS) {
		if (!said) /* it says something when it is asked; where it is much, it calls */
			h->next_ns = l->said_ns + SAY_NS;
		return;
	}
	h->next_ns = now_ns + ANSWER_NS;
	store_rows_fresh(&l->book);
	store_rows_unresolved(&l->book, h, now_ns);
	parser_ask(&l->parser, &(struct parser_ask){.what = PARSER_SAY,
						    .now_ns = now_ns,
						    .offset_ns = h->offset_ns});
	sweep(l, now_ns);
	unseen(l, now_ns);
	l->said_ns = now_ns;
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
	l->swept_ns = 0; /* what has ended by now has, and is not cut off by us */
	sweep(l, clock_boot_ns());
	if (!parser_end(&l->parser, h->offset_ns, patience_ns, hear, l))
		log_warn(
			"l7: the parser did not say all that it had in time: what is missing was not counted");
	store_rows_unresolved(&l->book, h, INT64_MAX);
	unseen(l, clock_boot_ns());
}

/* ---- the family ---- */

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
	l->tls = tls_new(hooks_object(&l->hooks));
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
	*out = (struct family_tally){.seen = t.lost + t.shed,
				     .lost = t.lost + t.shed,
				     .helper_cpu_ns = parser_cpu_ns(&l->parser),
				     .helper = (uint32_t)l->parser.pid};
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
			  "how long requests lie in their socket before they are read is measured");
	else
		check_add(
			c, "queues", CHECK_WARN, "a kernel from 6.3 on tells when bytes come",
			"how long requests lie in their socket before they are read is not measured (no sk_data_ready)");
	if (!programs_iterates("task_file"))
		check_add(c, "descriptors", CHECK_WARN,
			  "a kernel that accepts BPF iterators over files", HOOKS_NO_SWEEP);
}

static void l7_close(void *state)
{
	struct l7 *l = state;

	l7_detach(l);
	parser_release(&l->parser);
	tls_free(l->tls);
	hooks_close(&l->hooks);
	store_rows_release(&l->book);
	free(l);
}

static const struct option l7_options[] = {
	{"tls", 0, OPTION_ENUM, "on|off",
	 "probes in TLS libraries, for what is said inside TLS (default on)",
	 .size = sizeof(tls_off)},
	{0}};

static const struct family l7_family = {
	.name = "l7",
	.keeps = CONFINE_EXECS | CONFINE_LOADS,
	.options = {l7_options, &tls_off},
	.summary = "requests: what programs ask one another, how long it takes, and what fails",
	.open = l7_open,
	.attach = l7_attach,
	.poll = l7_poll,
	.last_read = l7_last_read,
	.wake_fd = l7_wake_fd,
	.clock = l7_clock,
	.tally = l7_tally,
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
