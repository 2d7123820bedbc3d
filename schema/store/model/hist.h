/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist: how values spread, log-linear, and the stored form.
 *
 *   1. A step is one number each below 8, then an eighth of a power of two: 8 to 15 have one each,
 *      16 to 31 two numbers each, and so on. To take a step's middle is wrong by 6 % at most.
 *      HIST_STEPS of them hold every uint64.
 *   2. A slot is a place in a list: 0 to 63 are [2^i, 2^(i+1)), slot 0 with 0, as programs before
 *      schema 31 counted; from HIST_FINE on are the steps. One list may have both, where two such
 *      programs wrote into one bucket.
 *   3. Stored as a JSON list that plain sqlite3 reads with json_each: [k, c, c, ...]: c in slot k
 *      and on from there. In table request_row, which never had powers of two, k is a step: what
 *      is read there has HIST_FINE as its `base`, all else 0.
 *   4. No count is beyond the last slot. Numbers are decimal, without sign or fraction, at most
 *      2^63 - 1; blanks between tokens are allowed. [] and what breaks these rules is no
 *      histogram.
 */
#ifndef SONDE_STORE_MODEL_HIST_H
#define SONDE_STORE_MODEL_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define HIST_STEPS 512
#define HIST_FINE  64 /* the slot of step 0 */
#define HIST_SLOTS (HIST_FINE + HIST_STEPS)

/* Which step a value belongs to, and its slot. */
unsigned hist_step(uint64_t value);
static inline unsigned hist_slot(uint64_t value)
{
	return HIST_FINE + hist_step(value);
}

struct hist { /* {0}: nothing counted. Only the slots from the first one to the last that was
		 counted take memory */
	uint64_t *count;
	uint16_t first, n;
};
void hist_release(struct hist *h);
/* The same of one from the heap, which may be NULL. */
void hist_free(struct hist *h);
static inline size_t hist_bytes(const struct hist *h)
{
	return h->n * sizeof(*h->count);
}
/* counts[i] more in slot first + i, saturating; what is beyond the last slot is left out. */
void hist_add(struct hist *h, unsigned first, const uint32_t *counts, size_t n);
void hist_merge(struct hist *h, const struct hist *more);
/* Adds what the text says; false if it is no histogram (*h may then hold a part). */
bool hist_read(struct hist *h, const char *text, size_t len, unsigned base);
/* Appends the stored form; false, and nothing appended, if nothing was counted. */
bool hist_encode(const struct hist *h, unsigned base, struct strbuf *out);
/* How many were counted. */
uint64_t hist_total(const struct hist *h);
/* The value below which a share `q` (0..1) lies: a step's middle; interpolated where it is of a
 * power of two; 0 if it is empty. */
double hist_quantile(const struct hist *h, double q);

struct sqlite3;
/* The SQL function hist_sum(a, b) for writers: two stored ones of one base added; NULL is nothing.
 * A SQLite code. */
int hist_register(struct sqlite3 *db);

#endif
