/* SPDX-License-Identifier: Apache-2.0 */
/* facts: stores rows of the facts that schema/facts declares. Each row counts as one event of its
 * run, except rows of supplementary tables (fact.beside). */
#ifndef SONDE_STORE_WRITE_FACTS_H
#define SONDE_STORE_WRITE_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"

struct store_writer;

/* A row for the bucket that holds `utc_ns`: counters are differences and add up, of gauges the last
 * one holds. 0, -ESTALE as in writer.h, -EINVAL: no such run, or a key is missing. Texts are
 * copied. A number past FACTS_MOST is left out, and counted as lost, reason "range". */
int store_fact(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct fact *f,
	       const struct fact_row *row);
/* The same into the ring alone (commit/fine.h), at its step. It is no event of the store. -EINVAL:
 * the run has no ring. */
int store_fact_fine(struct store_writer *w, uint32_t run, int64_t utc_ns, const struct fact *f,
		    const struct fact_row *row);

#define FACTS_MOST (1ll << 60) /* sums of a few such numbers stay within SQLite's integers */

/* --- for the rooms of the store --- */

/* The place of `f` in FACTS[]. */
uint32_t facts_index(const struct fact *f);

/* The rows of a batch: numbers unchanged; texts and references as indexes in the batch's
 * dictionary. */
struct factrow {
	int64_t ts; /* start of the bucket, seconds since 1970 */
	const struct fact *fact;
	uint64_t set;
	uint32_t run;
	uint32_t first; /* of factrows.values: those that are set, in order */
};

struct factrows {
	struct factrow *rows;
	uint32_t n, cap;
	int64_t *values;
	uint32_t n_values, cap_values;
};

void factrows_release(struct factrows *f);
size_t factrows_bytes(const struct factrows *f);
/* Rows of one run; 0: of all. */
uint64_t factrows_events(const struct factrows *f, uint32_t run);

#endif
