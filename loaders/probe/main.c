/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde-probe: any probe that a person names. This file connects the common loop of loaders/lib/bpf
 * with the family's parts: `asked` finds what was asked for, `hooks` runs it, `rows` stores what it
 * saw, `pace` says what it may cost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/run/epochs.h"
#include "loaders/lib/sandbox/confine.h"
#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/probe/asked.h"
#include "loaders/probe/hooks.h"
#include "loaders/probe/list.h"
#include "loaders/probe/pace.h"
#include "loaders/probe/rows.h"
#include "probes/lib/stack.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define LOOK_NS  (NSEC_PER_SEC / 4) /* between two looks at what probes cost */
#define BRISK    10000              /* events a second from which on the ring is read often */
#define BRISK_NS (NSEC_PER_SEC / 10)

static struct probe_opts {
	struct option_list probes;
} opts;

static const struct option probe_options[] = {
	{"probe", 0, OPTION_LIST, "SPEC",
	 "what to record (sonde-probe(8)); may be given again, and | divides several",
	 OPTION_AT(struct probe_opts, probes), .max = ASKED_MOST},
	{0}};

struct away {
	int64_t since_ns; /* 0: it is in its place */
	int64_t until_ns;
	int64_t off_ns; /* how long it was away in this epoch, up to since_ns */
	bool told;
};

struct probe {
	struct asked asked;
	struct hooks hooks;
	struct rows rows;
	struct epochs epochs;
	struct pace pace[ASKED_MOST];
	struct away away[ASKED_MOST];
	uint64_t hits[ASKED_MOST]; /* at the last look at rates */
	int64_t rates_ns;
	uint64_t stacks_lost;
};

/* ---- what it costs ---- */

static void put_back(struct probe *p, size_t i, int64_t now_ns)
{
	struct away *a = &p->away[i];
	struct err e = {0};

	a->off_ns += now_ns - a->since_ns;
	a->since_ns = 0;
	if (!hook_attach(&p->hooks.v[i], &e))
		return;
	log_warn("%s: it is not tried again for a minute", e.what);
	a->since_ns = now_ns;
	a->until_ns = now_ns + 60 * NSEC_PER_SEC;
}

static void take_away(struct probe *p, size_t i, int64_t now_ns, int64_t until_ns)
{
	struct away *a = &p->away[i];

	hook_detach(&p->hooks.v[i]);
	a->since_ns = clock_boot_ns();
	a->until_ns = until_ns;
	if (!a->told)
		log_warn(
			"probe %s costs more than %.0f %% of a CPU: it is away for %.1f s, and so again and again; view probes has off_us",
			p->asked.v[i].spec.name, PACE_SHARE * 100,
			(double)(until_ns - now_ns) / 1e9);
	a->told = true;
}

static void cost_look(struct probe *p, size_t i, int64_t now_ns)
{
	struct away *a = &p->away[i];
	struct probe_counts c;
	int64_t until;

	hook_counts(&p->hooks.v[i], &c);
	if (a->since_ns) {
		if (now_ns < a->until_ns)
			return;
		put_back(p, i, now_ns);
		p->pace[i].at_ns = now_ns;
		return;
	}
	if (now_ns - p->pace[i].at_ns < LOOK_NS)
		return;
	until = pace_look(&p->pace[i], now_ns, pace_spent(c.runs, 0, p->asked.v[i].price_ns));
	if (until)
		take_away(p, i, now_ns, until);
}

static void rates_look(struct probe *p, int64_t now_ns)
{
	if (now_ns - p->rates_ns < NSEC_PER_SEC)
		return;
	for (size_t i = 0; i < p->hooks.n; i++) {
		struct probe_counts c;

		hook_counts(&p->hooks.v[i], &c);
		hook_every(&p->hooks.v[i], pace_every(c.hits - p->hits[i], now_ns - p->rates_ns,
						      p->asked.v[i].plan.rate));
		p->hits[i] = c.hits;
	}
	p->rates_ns = now_ns;
}

/* ---- epochs ---- */

static void epoch_store(struct probe *p, struct family_host *h, int64_t until_ns)
{
	int64_t off[ASKED_MOST], now = p->epochs.ended_ns;

	hooks_read(&p->hooks);
	for (size_t i = 0; i < p->hooks.n; i++) {
		struct away *a = &p->away[i];

		off[i] = a->off_ns + (a->since_ns && a->since_ns < now ? now - a->since_ns : 0);
		a->off_ns = 0;
		if (a->since_ns && a->since_ns < now)
			a->since_ns = now;
	}
	rows_store(&p->rows, &p->hooks, h, p->epochs.number, epochs_utc(&p->epochs, h), until_ns,
		   off);
	epochs_stored(&p->epochs);
}

static bool is_brisk(const struct probe *p)
{
	uint64_t rate = 0;

	for (size_t i = 0; i < p->asked.n; i++)
		rate += p->asked.v[i].plan.rate;
	return rate >= BRISK;
}

static void probe_poll(void *state, struct family_host *h, int64_t now_ns)
{
	struct probe *p = state;
	int64_t next;

	if (!p->rates_ns)
		p->rates_ns = now_ns;
	for (size_t i = 0; i < p->hooks.n; i++) {
		if (!p->pace[i].at_ns)
			p->pace[i].at_ns = now_ns;
		cost_look(p, i, now_ns);
	}
	rates_look(p, now_ns);
	hooks_read(&p->hooks);
	switch (epochs_step(&p->epochs, h, now_ns)) {
	case EPOCHS_END:
		epochs_over(&p->epochs, h, now_ns, hooks_epoch_end(&p->hooks));
		break;
	case EPOCHS_STORE:
		epoch_store(p, h, p->epochs.ended_ns);
		break;
	case EPOCHS_WAIT:
		break;
	}
	next = epochs_next(&p->epochs, h, now_ns);
	if (next > now_ns + (is_brisk(p) ? BRISK_NS : LOOK_NS))
		next = now_ns + (is_brisk(p) ? BRISK_NS : LOOK_NS);
	h->next_ns = next;
}

static void probe_detach(void *state)
{
	hooks_detach(&((struct probe *)state)->hooks);
}

static void probe_last_read(void *state, struct family_host *h, int64_t patience_ns)
{
	struct probe *p = state;
	int64_t now;

	probe_detach(state);
	now = clock_boot_ns();
	if (!p->epochs.begun_ns)
		p->epochs.begun_ns = now;
	hostmaps_await(h->maps, now + patience_ns / 2);
	if (p->epochs.ended_ns)
		epoch_store(p, h, p->epochs.ended_ns);
	epochs_over(&p->epochs, h, now, hooks_epoch_end(&p->hooks));
	epoch_store(p, h, 0);
}

/* ---- the family ---- */

static void hit_taken(void *ctx, const struct probe_event *ev, size_t size)
{
	rows_hold(ctx, ev, size);
}

static int probe_needs(struct err *e)
{
	struct asked asked;
	int rc;

	if (!opts.probes.n) {
		err_set(e, -EINVAL, EXIT_USAGE, "family probe records what --probe names");
		err_fix(e,
			"sudo sonde record --probe exec    for sonded: probes = exec in sonde.conf    or see: sonde probes");
		return -EINVAL;
	}
	rc = asked_find(&asked, &opts.probes, e);
	asked_release(&asked);
	return rc;
}

static int probe_open(const struct family_config *c, void **state, struct bpf_object **obj,
		      struct err *e)
{
	static const char *any[] = {"exec"}; /* of --check, to which none need be given */
	const struct option_list check = {.items = any, .n = 1};
	struct probe *p = mem_alloc(sizeof(*p));
	int err;

	memset(p, 0, sizeof(*p));
	rows_init(&p->rows);
	err = asked_find(&p->asked, opts.probes.n ? &opts.probes : &check, e);
	if (!err)
		err = hooks_open(&p->hooks, c, &p->asked, hit_taken, &p->rows, e);
	if (err) {
		asked_release(&p->asked);
		rows_release(&p->rows);
		free(p);
		return err;
	}
	*state = p;
	*obj = hooks_object(&p->hooks);
	return 0;
}

static int probe_attach(void *state, struct err *e)
{
	return hooks_attach(&((struct probe *)state)->hooks, e);
}

static int probe_ring_fd(void *state)
{
	return hooks_stack_fd(&((struct probe *)state)->hooks);
}

static int probe_late_fd(void *state)
{
	return hooks_late_fd(&((struct probe *)state)->hooks);
}

static int probe_record_amount(void *state, const void *record, size_t size, uint64_t *n)
{
	const struct stack_event *ev = record;

	if (size < sizeof(*ev) || ev->n_kernel > STACK_KERNEL_MAX || ev->n_user > STACK_USER_MAX ||
	    size < sizeof(*ev) + ((size_t)ev->n_kernel + ev->n_user) * sizeof(__u64))
		return -EBADMSG;
	*n = rows_stack_amount(&((struct probe *)state)->hooks, ev);
	return 0;
}

static void probe_store_record(void *state, struct family_host *h, const struct stack_event *record,
			       size_t size, struct naming_result *named)
{
	(void)size;
	if (record)
		rows_stack(&((struct probe *)state)->hooks, h, record, named);
}

static uint64_t probe_period_ns(void *state)
{
	(void)state;
	return 0;
}

static const char *probe_clock(void *state)
{
	const struct probe *p = state;

	return p->asked.n == 1 ? p->asked.v[0].spec.name : "probes";
}

static void probe_tally(void *state, struct family_tally *out)
{
	const struct probe *p = state;
	struct sample_tally stacks;

	hooks_tally(&p->hooks, &stacks);
	*out = (struct family_tally){.seen = stacks.seen,
				     .lost = stacks.ring_full,
				     .no_room = stacks.no_room,
				     .unfollowed = stacks.unfollowed};
	for (size_t i = 0; i < p->hooks.n; i++) {
		struct probe_counts c;
		uint64_t lost;

		hook_counts(&p->hooks.v[i], &c);
		lost = c.ring_full + c.busy + p->rows.lost[i];
		lost += i ? hook_missed(&p->hooks.v[i]) : 0; /* the first one's the loop counts */
		out->lost += lost;
		out->no_room += c.unfollowed;
		out->seen += lost + c.unfollowed;
	}
}

static void probe_close(void *state)
{
	struct probe *p = state;

	hooks_close(&p->hooks);
	rows_release(&p->rows);
	asked_release(&p->asked);
	free(p);
}

static const struct family probe_family = {
	.name = "probe",
	.no_scripts = true,
	.summary = "record any tracepoint, system call, function or USDT probe, with its arguments",
	.options = {probe_options, &opts},
	.keeps = CONFINE_LOADS,
	.needs = probe_needs,
	.open = probe_open,
	.attach = probe_attach,
	.poll = probe_poll,
	.last_read = probe_last_read,
	.ring_fd = probe_ring_fd,
	.late_fd = probe_late_fd,
	.record_amount = probe_record_amount,
	.store_record = probe_store_record,
	.period_ns = probe_period_ns,
	.clock = probe_clock,
	.tally = probe_tally,
	.detach = probe_detach,
	.close = probe_close,
};

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--list"))
		return list_main(argc, argv);
	return family_main(&probe_family, argc, argv);
}
