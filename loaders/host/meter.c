// SPDX-License-Identifier: Apache-2.0
#include "loaders/host/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "loaders/lib/bpf/family.h"
#include "schema/base/mem.h"
#include "schema/store/facts.h"

#define THINGS_MAX 65536

struct meter_thing {
	uint64_t identity, round;
	struct fact_row last;    /* as the store has it */
	int64_t stored_ns;       /* 0: never */
	bool fresh, young;       /* nothing was remembered of it yet; and then: it began at 0 */
	UT_hash_handle hh;
	char key[];
};

bool meter_difference(const struct fact *f, const struct fact_row *last, bool since, const struct fact_row *now, struct fact_row *out)
{
	bool moved = !last;

	*out = (struct fact_row){0};
	for (int i = 0; i < (int)f->n; i++) {
		bool had = last && fact_has(last, i);
		int64_t n = now->v[i].number, before = had ? last->v[i].number : 0;

		if (f->columns[i].type != FACT_NUMBER || !fact_has(now, i))
			continue;
		if (f->columns[i].role == FACT_GAUGE) {
			fact_put(out, i, (uint64_t)n);
			moved |= !had || n != before;
		} else if ((had || (since && !last)) && n >= before) {
			fact_put(out, i, (uint64_t)(n - before));
			moved |= n > before;
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

	HASH_ITER(hh, m->things, t, next)
		drop(m, t);
}

/* The store may ask once or twice for all ids anew. */
static bool put(struct meter *m, const struct meter_round *r, struct fact_row *row, meter_names names, void *ctx)
{
	int rc = -ESTALE;

	for (int i = 0; i < 3 && rc == -ESTALE; i++)
		rc = names(ctx, row) ? store_fact(r->h->store, r->h->run, r->utc_ns, m->fact, row) : -ENOENT;
	r->h->added += rc == 0;
	r->h->refused += rc == -ESTALE;
	return !rc;
}

/* What the next difference is to: counters that this reading has not are still those of the one before. */
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

void meter_take(struct meter *m, const struct meter_round *r, const struct meter_reading *x, meter_names names, void *ctx)
{
	size_t len = strlen(x->key);
	struct meter_thing *t;
	bool young, moved, due;
	struct fact_row row;

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
	due = m->idle_ns && (!t->stored_ns || r->now_ns - t->stored_ns >= m->idle_ns);
	if (r->h && (moved || due)) {
		if (!put(m, r, &row, names, ctx))
			return;
		t->stored_ns = r->now_ns;
	}
	if (t->fresh)
		t->last = (struct fact_row){0};
	if (t->fresh || r->h)
		remember(m->fact, &t->last, &x->row);
	t->fresh = false;
}

void meter_end(struct meter *m)
{
	struct meter_thing *t, *next;

	HASH_ITER(hh, m->things, t, next)
		if (t->round != m->round)
			drop(m, t);
	m->round++;
	m->begun = true;
}
