/* SPDX-License-Identifier: Apache-2.0 */
/*
 * askrows: the rows that a segment has to an SQL statement about a selection's range. ?1 is the
 * first second of the range, ?2 the last. A segment whose schema is older than what the statement
 * asks for has none.
 */
#ifndef SONDE_TOOLS_ASKROWS_H
#define SONDE_TOOLS_ASKROWS_H

#include <sqlite3.h>

#include "schema/base/err.h"
#include "schema/store/read/reader.h"
#include "tools/select/select.h"

/* `row` is called for each; `path` is the segment's, for the error (EXIT_STORE). Of an archive only
 * the views that the statement names are made: all of them take longer than many an answer. */
int askrows(const struct selection *sel, struct store_segment *seg, const char *path,
	    const char *sql, void (*row)(void *ctx, sqlite3_stmt *st), void *ctx, struct err *e);

/* The same of rows that are summed over the range (store_segment_sums), one table or two: `sql`
 * asks tables NAME_sum. table NULL: none, and it asks tables alone. Where there are no sums `rows`
 * is asked. */
struct askrows_sums {
	const char *table[2], *sql;
};
int askrows_summed(const struct selection *sel, struct store_segment *seg, const char *path,
		   const struct askrows_sums *sums, const char *rows,
		   void (*row)(void *ctx, sqlite3_stmt *st), void *ctx, struct err *e);

struct askrows_part {
	const char *sql;
	void (*row)(void *ctx, sqlite3_stmt *st);
	void *ctx;
	struct askrows_sums sums; /* as askrows_summed takes them; {0}: there are no sums */
	const char *table; /* the table that all its rows are of: where that has none it is not
			      asked; NULL: it is asked anyway */
};
/* Asks each segment of the selection each of `n` parts in turn; `*dict` is the segment's dictionary
 * meanwhile; `dict` may be NULL. */
int askrows_each(const struct selection *sel, const struct store_dict **dict,
		 const struct askrows_part *parts, size_t n, struct err *e);

/* The same where `row` only adds up, so that it may hear a day's sums in place of its segments',
 * one part after the other (schema/store/read/days.h). */
int askrows_each_day(const struct selection *sel, const struct store_dict **dict,
		     const struct askrows_part *parts, size_t n, struct err *e);
/* Has the segment all tables of the statement? A day may not: then its segments are asked. */
bool askrows_may(struct store_segment *seg, const char *sql);
/* Calls `ask` for each segment that `part` is read in place of. */
struct store_part;
int askrows_segments(const struct selection *sel, const struct store_part *part,
		     int (*ask)(void *ctx, struct store_segment *seg, const char *path,
				struct err *e),
		     void *ctx, struct err *e);

/* Of a row of table run, in ns: the time that rows WHERE ts BETWEEN ?1 AND ?2 of it are of, which
 * is that of the buckets that begin in the range, each whole. What is divided by it is a rate. */
#define ASKROWS_COUNTED_FROM "max(from_ns, (?1 + bucket_s - 1) / bucket_s * bucket_s * 1000000000)"
#define ASKROWS_COUNTED_TO   "min(to_ns, (?2 / bucket_s + 1) * bucket_s * 1000000000)"

/* Text of a column, borrowed as SQLite lends it; "" for NULL. */
const char *askrows_text(sqlite3_stmt *st, int column);

#endif
