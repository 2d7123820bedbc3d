/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/run/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/bpf/family.h"
#include "schema/base/mem.h"
#include "schema/store/write/facts.h"

#define THINGS_MAX 65536

struct meter_thing {
	uint64_t identity, round;
	struct fact_row last; /* as in the store */
	int64_t stored_ns;    /* 0: never */
	bool fresh, young;    /* new: nothing is known of it yet; young: its counters began at 0 */
	UT_hash_handle hh;
	char key[];
};

static enum meter_move counter_move(const struct fact_column *c, int64_t n)
{
	if (!n)
		return METER_STILL;
	if (c->role == FACT_TALLY || (!strcmp(c->unit, "us") && n < METER_LITTLE_US) ||
	    (!strcmp(c->unit, "bytes") && n < METER_LITTLE_BYTES))
		return METER_LITTLE;
	return METER_MOVED;
}

static enum meter_move gauge_move(const struct fact_column *c, int64_t n, int64_t before)
{
	int64_t by = n > before ? n - before : before - n;

	if (!by)
		return METER_STILL;
	return !strcmp(c->unit, "bytes") && (by < 1 << 20 || by < before / 32) ? METER_LITTLE :
										 METER_MOVED;
}

enum meter_move meter_difference(const struct fact *f, const struct fact_row *last, bool since,
				 const struct fact_row *now, struct fact_row *out)
{
	enum meter_move moved = last ? METER_STILL : METER_MOVED, m;

	*out = (struct fact_row){0};
	for (int i = 0; i < (int)f->n; i++) {
		bool had = last && fact_has(last, i);
		int64_t n = now->v[i].number, before = had ? last->v[i].number : 0;

		if (f->columns[i].type != FACT_NUMBER || !fact_has(now, i))
			continue;
		if (f->columns[i].role == FACT_GAUGE) {
			fact_put(out, i, (uint64_t)n);
			m = had ? gauge_move(&f->columns[i], n, before) : METER_LITTLE;
			moved = m > moved ? m : moved;
		} else if (had && n < before) {
			moved = METER_MOVED; /* so that the next difference starts here */
		} else if (!had && !(since && !last)) {
			moved = METER_MOVED; /* starts here */
		} else {
			fact_put(out, i, (uint64_t)(n - before));
			m = counter_move(&f->columns[i], n - before);
			moved = m > moved ? m : moved;
		}
	}
	return moved;
}

static void drop(struct meter *m, struct meter_thing *t)
{
	HASH_DEL(m->things, t);
	free(t);
}

void meter_release(struct meter *m)
{
	struct meter_thing *t, *next;

	HASH_ITER (hh, m->things, t, next)
		drop(m, t);
}

/* The store may ask for new ids once or twice. */
bool meter_put(const struct fact *f, const struct meter_round *r, struct fact_row *row,
	       meter_names names, void *ctx)
{
	int rc = -ESTALE;

	for (int i = 0; i < 3 && rc == -ESTALE; i++)
		rc = names(ctx, row) ? store_fact(r->h->store, r->h->run, r->utc_ns, f, row) :
				       -ENOENT;
	if (f->beside) /* such rows do not count as events (schema/facts/fact.h) */
		return !rc;
	r->h->added += rc == 0;
	r->h->refused += rc == -ESTALE;
	return !rc;
}

/* What the next difference starts from: counters that this reading lacks keep their previous value.
 */
static void remember(const struct fact *f, struct fact_row *last, const struct fact_row *now)
{
	uint64_t gauges = 0;

	for (uint32_t i = 0; i < f->n; i++) {
		if (now->set >> i & 1)
			last->v[i] = now->v[i];
		gauges |= f->columns[i].role == FACT_GAUGE ? 1ull << i : 0;
	}
	last->set = (last->set & ~gauges) | now->set;
}

static struct meter_thing *thing_new(struct meter *m, const char *key, size_t len)
{
	struct meter_thing *t;

	if (HASH_COUNT(m->things) >= THINGS_MAX)
		return NULL;
	t = mem_alloc(sizeof(*t) + len + 1);
	memcpy(t->key, key, len + 1);
	t->fresh = true;
	HASH_ADD(hh, m->things, key, len, t);
	return t;
}

void meter_take(struct meter *m, const struct meter_round *r, const struct meter_reading *x,
		meter_names names, void *ctx)
{
	size_t len = strlen(x->key);
	struct meter_thing *t;
	enum meter_move moved;
	struct fact_row row;
	bool young, due;
	int64_t every;

	HASH_FIND(hh, m->things, x->key, len, t);
	young = m->begun && (t ? t->fresh ? t->young : t->identity != x->identity : x->young);
	if (!t)
		t = thing_new(m, x->key, len);
	if (!t)
		return;
	t->round = m->round;
	t->fresh |= t->identity != x->identity;
	t->identity = x->identity;
	t->young = young;
	moved = meter_difference(m->fact, t->fresh ? NULL : &t->last, young, &x->row, &row);
	every = moved == METER_MOVED  ? 0 :
		moved == METER_LITTLE ? m->little_ns :
		m->idle_ns            ? m->idle_ns :
					INT64_MAX;
	due = !t->stored_ns || r->now_ns - t->stored_ns >= every;
	if (r->h && due) {
		if (every == INT64_MAX || !meter_put(m->fact, r, &row, names, ctx))
			return;
		t->stored_ns = r->now_ns;
	}
	if (t->fresh)
		t->last = (struct fact_row){0};
	if (t->fresh || (r->h && due))
		remember(m->fact, &t->last, &x->row);
	t->fresh = false;
}

void meter_keep(struct meter *m, const char *key)
{
	struct meter_thing *t;

	HASH_FIND(hh, m->things, key, strlen(key), t);
	if (t)
		t->round = m->round;
}

const struct fact_row *meter_last(const struct meter *m, const char *key, uint64_t identity)
{
	struct meter_thing *t;

	HASH_FIND(hh, m->things, key, strlen(key), t);
	return t && !t->fresh && t->identity == identity ? &t->last : NULL;
}

void meter_end(struct meter *m)
{
	struct meter_thing *t, *next;

	HASH_ITER (hh, m->things, t, next)
		if (t->round != m->round)
			drop(m, t);
	m->round++;
	m->begun = true;
}
