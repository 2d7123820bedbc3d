/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hist: histograms by powers of two, and their stored form.
 *
 * counts[i] is how many values lay in [2^i, 2^(i+1)); counts[0] holds 0 too. 64 of them hold every uint64.
 * Stored as a JSON list that plain sqlite3 reads with json_each: [k, c, c, ...]: c for [2^k, 2^(k+1)) and on from there.
 *   1. The first number is at most 63, and no count goes past [2^63, 2^64).
 *   2. Numbers are decimal, without sign or fraction, at most 2^63 - 1; blanks may stand between tokens.
 *   3. [] and what breaks these rules is no histogram.
 */
#ifndef SONDE_STORE_MODEL_HIST_H
#define SONDE_STORE_MODEL_HIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define HIST_SLOTS 64
#define HIST_WIDE  512 /* of lists in the same form whose steps are others (store/write/requests.h) */

/* Which slot a value belongs to. */
unsigned hist_slot(uint64_t value);
/* Appends the stored form; false, and nothing appended, if all are 0. */
bool hist_encode(const uint64_t counts[HIST_SLOTS], struct strbuf *out);
bool hist_encode_wide(const uint64_t counts[HIST_WIDE], struct strbuf *out);
/* Adds what the text says to counts, saturating; false if it is no histogram (counts may then hold a part). */
bool hist_add(uint64_t counts[HIST_SLOTS], const char *text, size_t len);
/* The value below which a share `q` (0..1) lies, interpolated within its slot; 0 if it is empty. */
double hist_quantile(const uint64_t counts[HIST_SLOTS], double q);

struct sqlite3;
/* The SQL function hist_sum(a, b) for writers: two stored ones of the same steps added; NULL is nothing. A SQLite code. */
int hist_register(struct sqlite3 *db);

#endif
