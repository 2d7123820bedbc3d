/* SPDX-License-Identifier: Apache-2.0 */
/* amounts: sums of amounts in memory. Sums stop at the largest number that SQLite holds. */
#include "schema/store/write/amounts.h"

#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

void amounts_release(struct amounts *a)
{
	for (uint32_t i = 0; i < a->n; i++)
		hist_release(&a->rows[i].hist);
	free(a->rows);
	idmap_release(&a->at);
	*a = (struct amounts){0};
}

size_t amounts_bytes(const struct amounts *a)
{
	return a->cap * sizeof(*a->rows) + a->at.cap * sizeof(*a->at.slots) + a->hist_bytes;
}

static uint64_t plus(uint64_t a, uint64_t b)
{
	return b > INT64_MAX || a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void row_add(struct amounts *a, struct amount_row *r, const struct store_amount *x)
{
	a->hist_bytes -= hist_bytes(&r->hist);
	if (r->gauge) { /* the last one holds */
		r->n = r->value = r->max = r->n_variance = r->value_variance = 0;
		hist_release(&r->hist);
	}
	r->n = plus(r->n, x->n);
	r->value = plus(r->value, x->value);
	r->n_variance = plus(r->n_variance, x->n_variance);
	r->value_variance = plus(r->value_variance, x->value_variance);
	if (x->max > r->max)
		r->max = x->max > INT64_MAX ? INT64_MAX : x->max;
	if (x->hist)
		hist_add(&r->hist, x->first_slot, x->hist, x->n_hist);
	a->hist_bytes += hist_bytes(&r->hist);
}

uint64_t amounts_add(struct amounts *a, const struct amount_row *key, const struct store_amount *x)
{
	uint64_t hash = hash_u64((uint64_t)key->ts, key->series), at,
		 events = key->gauge ? 1 : x->n;
	struct amount_row *r = NULL;

	if (idmap_get(&a->at, hash, &at) && a->rows[at].ts == key->ts &&
	    a->rows[at].series == key->series)
		r = &a->rows[at];
	if (!r) {
		mem_grow(a->rows, a->n, a->cap);
		r = &a->rows[a->n];
		*r = (struct amount_row){
			.ts = key->ts, .series = key->series, .run = key->run, .gauge = key->gauge};
		idmap_set(&a->at, hash, a->n++);
	}
	row_add(a, r, x);
	r->events += events;
	return events;
}

uint64_t amounts_events(const struct amounts *a, uint32_t run)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < a->n; i++)
		n += !run || a->rows[i].run == run ? a->rows[i].events : 0;
	return n;
}
