/* SPDX-License-Identifier: Apache-2.0 */
/*
 * round: one target brought up to date.
 *
 *  1. What is sent is settled: buckets that are ROUND_BEHIND_S older than the newest one of the
 *     store.
 *  2. It goes in ranges of ROUND_RANGE_S (rows, to whom is far behind, of ROUND_ROWS_S: a file is
 *     asked for each of them), all tables of a range before the cursor moves on. What is not taken
 *     is sent again from the range's begin to the same end, which the cursor keeps before the first
 *     try: points, spans and profiles of a range then are the same again, and rows have ids, by
 *     which the receiver drops doubles.
 *  3. A new target begins `backfill` before the newest bucket. What retention removed before it was
 *     sent is missed_s of the cursor. So does one whose cursor is more than ROUND_AHEAD_S ahead of
 *     the newest bucket: the clock was wrong, and what was stored then is gone.
 */
#ifndef SONDE_PUSH_ROUND_H
#define SONDE_PUSH_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "export/push/http.h"
#include "export/push/target.h"
#include "schema/base/strbuf.h"

#define ROUND_BEHIND_S 60
#define ROUND_RANGE_S  60
#define ROUND_ROWS_S   300
#define ROUND_BUCKET_S 10 /* the longest that any row is of */
#define ROUND_AHEAD_S  86400
/* after so long another target has its turn; a range that was begun is ended */
#define ROUND_TURN_S 30

struct round_where {
	const char *store, *state; /* folders */
};

/* -EAGAIN: the receiver did not take it; *retry_s as of http_post. *more: its turn is over, or this
 * program is to end, and there is more to send. */
int round_send(const struct round_where *w, const struct target *t, struct http *h,
	       uint32_t *retry_s, bool *more, struct err *e);
/* CREATE TABLE of all tables, as the newest file of the store has their views. */
int round_schema(const char *store, const char *database, struct strbuf *out, struct err *e);

#endif
