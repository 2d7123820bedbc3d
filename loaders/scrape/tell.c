/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks are named by their addresses, as in every family: an address lies within a call, and is
 * stored as the return address behind it, so that the same place is the same frame as in a sample.
 */
#include "loaders/scrape/tell.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/naming.h"
#include "probes/lib/stack.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/store/write/writer.h"

#define TRIES 3

static const struct kinds {
	const char *name;
	enum store_kind counter, gauge; /* 0: it has none */
	int count_at, stand_at;         /* where their two values begin */
} KINDS[WIRE_ASKS] = {
	[WIRE_ASK_INDEX] = {"index", 0, 0, 0, 0},
	[WIRE_ASK_CPU] = {"cpu", STORE_KIND_GOCPU, 0, 0, 0},
	[WIRE_ASK_HEAP] = {"heap", STORE_KIND_GOALLOC, STORE_KIND_GOINUSE, 0, 2},
	[WIRE_ASK_GOROUTINE] = {"goroutine", 0, STORE_KIND_GOROUTINE, 0, 0},
	[WIRE_ASK_BLOCK] = {"block", STORE_KIND_GOBLOCK, 0, 0, 0},
	[WIRE_ASK_MUTEX] = {"mutex", STORE_KIND_GOMUTEX, 0, 0, 0},
};

const char *tell_name(enum wire_ask ask)
{
	return ask < WIRE_ASKS ? KINDS[ask].name : NULL;
}

struct telling {
	struct goprog *p;
	struct profile *x;
	const struct kinds *kinds;
	struct family_host *h;
	struct hostmaps_process *hp;
	int64_t time_ns; /* boot clock */
	uint64_t frames[WIRE_DEPTH];
};

static int64_t utc(const struct telling *t)
{
	return t->time_ns + t->h->offset_ns;
}

static struct stack_event event_of(const struct telling *t)
{
	struct stack_event ev = {.time_ns = hostmaps_watermark(t->h->maps),
				 .start_ns = t->hp->start_ns,
				 .tgid = t->hp->tgid,
				 .tid = t->hp->tgid,
				 .exec_id = t->hp->exec_id,
				 .end = STACK_END_ROOT};

	strncpy(ev.thread, t->hp->comm, sizeof(ev.thread) - 1);
	return ev;
}

/* *stack: of the store. */
static void name(struct telling *t, const uint64_t *addresses, uint32_t n, uint32_t *stack)
{
	struct stack_event ev = event_of(t);
	struct naming_result named;

	for (uint32_t i = 0; i < n; i++)
		t->frames[i] = (addresses[i] & ~(FRAME_IMAGE | FRAME_EXACT | FRAME_SCRIPT)) + 1;
	ev.n_user = (uint16_t)n;
	naming_stack(t->h->naming, &ev, t->frames, &named);
	t->p->process = named.process;
	t->p->epoch = store_epoch(t->h->store);
	*stack = named.stack;
}

static uint32_t series(const struct telling *t, uint32_t stack, enum store_kind kind)
{
	return kind ? store_series(t->h->store, t->h->run, t->p->process, "", 0, stack, kind) : 0;
}

static void series_make(struct telling *t, struct kept *k)
{
	uint32_t stack;

	if (k->epoch && k->epoch == store_epoch(t->h->store))
		return;
	name(t, k->frames, k->n, &stack);
	k->counter = series(t, stack, t->kinds->counter);
	k->gauge = series(t, stack, t->kinds->gauge);
	k->epoch = store_epoch(t->h->store);
}

/* ---- CPU profiles ---- */

static void sample_tell(struct telling *t, const struct fetch *f, const struct fetch_stack *s)
{
	const struct store_amount a = {.n = s->values[0], .value = s->values[1]};
	int err = -ESTALE;

	for (int i = 0; a.n && i < TRIES && err == -ESTALE; i++) {
		uint32_t stack;

		name(t, f->frames + s->frames, s->n, &stack);
		err = store_amount(t->h->store, series(t, stack, t->kinds->counter), utc(t), &a);
	}
	if (a.n && !err)
		t->h->added += a.n;
	else if (a.n)
		t->h->refused += a.n;
}

static void samples_tell(struct telling *t, const struct fetch *f)
{
	t->time_ns = f->asked_ns + f->end.duration_ns / 2;
	if (t->time_ns > clock_boot_ns())
		t->time_ns = f->asked_ns;
	for (uint32_t i = 0; i < f->n; i++)
		sample_tell(t, f, &f->stacks[i]);
}

/* ---- cumulative profiles and gauges ---- */

static struct kept *kept_of(struct profile *x, const uint64_t *frames, uint32_t n)
{
	struct kept *k;

	HASH_FIND(hh, x->kept, frames, n * sizeof(*frames), k);
	if (k || HASH_COUNT(x->kept) >= WIRE_STACKS_MAX)
		return k;
	k = mem_alloc(sizeof(*k) + n * sizeof(*frames));
	k->n = n;
	memcpy(k->frames, frames, n * sizeof(*frames));
	HASH_ADD_KEYPTR(hh, x->kept, k->frames, n * sizeof(*frames), k);
	return k;
}

/* Samples of one stack (their labels differ) are one. */
static void keep(struct profile *x, const struct fetch *f)
{
	x->readings++;
	x->left_out = f->end.left_out;
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fetch_stack *s = &f->stacks[i];
		struct kept *k = kept_of(x, f->frames + s->frames, s->n);

		if (!k) {
			x->left_out++;
			continue;
		}
		if (k->reading != x->readings)
			memset(k->now, 0, sizeof(k->now));
		k->reading = x->readings;
		for (int v = 0; v < WIRE_VALUES; v++)
			k->now[v] += s->values[v];
	}
}

static uint64_t more(uint64_t now, uint64_t told)
{
	return now > told ? now - told : 0;
}

static void counter_tell(struct telling *t, struct kept *k)
{
	const uint64_t *now = k->now + t->kinds->count_at;
	const struct store_amount a = {.n = more(now[0], k->told[0]),
				       .value = more(now[1], k->told[1])};
	int err = -ESTALE;

	for (int i = 0; (a.n || a.value) && i < TRIES && err == -ESTALE; i++) {
		series_make(t, k);
		err = store_amount(t->h->store, k->counter, utc(t), &a);
		if (err == -ESTALE)
			k->epoch = 0;
	}
	if (err || (!a.n && !a.value))
		return; /* with the next answer */
	t->h->added += a.n;
	k->told[0] += a.n;
	k->told[1] += a.value;
}

static void counters_tell(struct telling *t)
{
	bool is_base = !t->p->from_begin && !t->x->has_base;
	struct kept *k, *next;

	HASH_ITER (hh, t->x->kept, k, next) {
		if (k->reading != t->x->readings)
			continue;
		if (is_base)
			memcpy(k->told, k->now + t->kinds->count_at, sizeof(k->told));
		else
			counter_tell(t, k);
	}
	t->x->has_base = true;
}

/* Stacks that differ within a line are one series, and a gauge's amount replaces the one before: so
 * they are added up first. */
static struct gauge *gauge_of(struct profile *x, uint32_t id)
{
	uint64_t at;

	if (!idmap_get(&x->gauge_of, id, &at)) {
		mem_grow(x->gauges, x->n_gauges, x->cap_gauges);
		at = x->n_gauges++;
		x->gauges[at] = (struct gauge){.series = id};
		idmap_set(&x->gauge_of, id, at);
	}
	return &x->gauges[at];
}

/* false: ids have become void meanwhile. */
static bool gauges_sum(struct telling *t)
{
	struct profile *x = t->x;
	struct kept *k, *next;

	for (uint32_t i = 0; i < x->n_gauges; i++)
		x->gauges[i].n = x->gauges[i].value = 0;
	HASH_ITER (hh, x->kept, k, next) {
		const uint64_t *now = k->now + t->kinds->stand_at;
		bool there = k->reading == x->readings && now[0];
		struct gauge *g;

		if (!there && !k->stands)
			continue;
		series_make(t, k);
		if (x->gauges_epoch != store_epoch(t->h->store))
			return false;
		g = gauge_of(x, k->gauge);
		g->n += there ? now[0] : 0;
		g->value += there ? now[t->kinds->stand_at ? 1 : 0] : 0;
	}
	return true;
}

static int gauge_tell(struct telling *t, struct gauge *g, uint64_t segment)
{
	const struct store_amount a = {.n = g->n, .value = g->value};
	int err;

	if (g->segment == segment ? g->n == g->told_n && g->value == g->told_value :
				    g->segment && !g->n)
		return 0;
	err = store_amount(t->h->store, g->series, utc(t), &a);
	if (err)
		return err;
	t->h->added++;
	g->told_n = g->n;
	g->told_value = g->value;
	g->segment = segment;
	return 0;
}

static bool gauges_tell(struct telling *t)
{
	uint64_t segment = store_gauge_epoch(t->h->store) + 1;
	struct profile *x = t->x;

	if (x->gauges_epoch != store_epoch(t->h->store)) {
		x->n_gauges = 0;
		idmap_clear(&x->gauge_of);
		x->gauges_epoch = store_epoch(t->h->store);
	}
	if (!gauges_sum(t))
		return false;
	for (uint32_t i = 0; i < x->n_gauges; i++)
		if (gauge_tell(t, &x->gauges[i], segment))
			return false;
	return true;
}

/* A stack that has gone is dropped after that is stored, unless it has counts. */
static void standing_end(struct telling *t)
{
	struct kept *k, *next;

	HASH_ITER (hh, t->x->kept, k, next) {
		k->stands = k->reading == t->x->readings && k->now[t->kinds->stand_at];
		if (!k->stands && !t->kinds->counter) {
			HASH_DEL(t->x->kept, k);
			free(k);
		}
	}
}

/* A gauge is valid as long as its process reports something: so each reading stores an empty amount
 * without a stack. */
static void alive_tell(struct telling *t)
{
	struct store_writer *w = t->h->store;

	if (t->p->process && t->p->epoch == store_epoch(w) &&
	    !store_amount(w, series(t, store_stack(w, NULL, 0), t->kinds->gauge), utc(t),
			  &(struct store_amount){0}))
		t->h->added++;
}

static void standing_tell(struct telling *t)
{
	bool told = false;

	for (int i = 0; i < TRIES && !told; i++)
		told = gauges_tell(t);
	if (!told)
		return; /* the next answer is stored in full */
	alive_tell(t);
	standing_end(t);
}

void tell_answer(struct goprog *p, struct profile *x, const struct fetch *f, struct family_host *h,
		 struct hostmaps_process *hp)
{
	struct telling t = {.p = p,
			    .x = x,
			    .kinds = &KINDS[f->ask],
			    .h = h,
			    .hp = hp,
			    .time_ns = clock_boot_ns()};
	bool named;

	if (f->ask == WIRE_ASK_CPU) {
		x->readings++;
		x->left_out = f->end.left_out;
		samples_tell(&t, f);
		return;
	}
	keep(x, f);
	named = goprog_named(p, t.time_ns); /* else it is stored with the next answer: with lines */
	if (t.kinds->counter && (named || !x->has_base))
		counters_tell(&t);
	if (t.kinds->gauge && named)
		standing_tell(&t);
}

/* ---- notes ---- */

static void note(const struct family_host *h, const struct goprog *p, const char *key,
		 const char *value)
{
	store_process_note(h->store, h->run, p->process, key, value);
}

#define ADDRESS_MAX 120

static void address_text(const struct goprog *p, char out[ADDRESS_MAX])
{
	char host[INET6_ADDRSTRLEN];

	if (*p->at.path) {
		snprintf(out, ADDRESS_MAX, "%s", p->at.path);
		return;
	}
	inet_ntop(p->at.v6 ? AF_INET6 : AF_INET, p->at.address, host, sizeof(host));
	snprintf(out, ADDRESS_MAX, p->at.v6 ? "[%s]:%u" : "%s:%u", host, p->at.port);
}

static void profile_text(const struct profile *x, char out[120])
{
	if (x->reason[0])
		snprintf(out, 120, "not read: %s", x->reason);
	else if (x->left_out)
		snprintf(out, 120, "complete except for %llu stacks beyond the limit",
			 (unsigned long long)x->left_out);
	else
		snprintf(out, 120, "%s", x->readings ? "read" : "");
}

static uint64_t state_hash(const struct goprog *p)
{
	uint64_t hash = hash_str(hash_u64(HASH_SEED, p->answers), p->reason);
	char text[120];

	for (int i = WIRE_ASK_CPU; i < WIRE_ASKS; i++) {
		profile_text(&p->profiles[i], text);
		hash = hash_str(hash, text);
	}
	return hash | 1;
}

static void notes_write(const struct family_host *h, const struct goprog *p)
{
	char text[120], address[ADDRESS_MAX] = "";

	if (p->answers)
		address_text(p, address);
	note(h, p, "version", p->go.version);
	note(h, p, "state", p->answers ? "asked" : "not asked");
	note(h, p, "reason", p->answers ? "" : p->reason);
	note(h, p, "address", address);
	note(h, p, "refused",
	     p->answers || p->found != GOPROG_OFFERS || !p->listens ?
		     "" :
		     p->reason); /* sonde status tells */
	for (int i = WIRE_ASK_CPU; i < WIRE_ASKS; i++) {
		profile_text(&p->profiles[i], text);
		note(h, p, KINDS[i].name, text);
	}
}

void tell_state(struct goprog *p, struct family_host *h, struct hostmaps_process *hp)
{
	struct telling t = {.p = p, .h = h, .hp = hp};
	uint64_t segment = store_gauge_epoch(h->store) + 1, hash = state_hash(p);
	uint32_t stack;

	if (!p->answers && !p->reason[0])
		return;
	if (p->told == hash && p->told_segment == segment)
		return;
	if (!p->process || p->epoch != store_epoch(h->store))
		name(&t, NULL, 0, &stack);
	notes_write(h, p);
	p->told = hash;
	p->told_segment = segment;
}
