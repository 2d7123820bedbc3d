/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_scan: one walk over the rows of a range, in the file's order, that knows which series are
 * asked for and which run a bucket is taken from (choice). Not for other rooms.
 */
#ifndef SONDE_STORE_READ_ROW_SCAN_H
#define SONDE_STORE_READ_ROW_SCAN_H

#include "schema/store/packed/read.h"
#include "schema/store/read/reading.h"
#include "schema/store/read/samples.h"

/* What to do with a row of a series. PLAIN: count it; its run has one period, which can be applied
 * at the end. */
enum { SERIES_NEW = 0, SERIES_OUT, SERIES_PLAIN, SERIES_PERIODS, SERIES_CHOSEN };

struct row_scan {
	struct store_segment *s;
	const struct store_query *q;
	struct choice choice;
	uint8_t *state;          /* by series: is it wanted, and does each row need a decision */
	uint8_t *by_task;        /* the same, of its task */
	struct sqlite3_stmt *st; /* NULL: they are columns */
	struct packedread columns;
	int64_t first, last; /* of the columns' rows: wanted, ts relative to t0 */
	size_t block, at, n; /* at: of the block's n rows the next one; n 0: it is not decoded */
};

/* Rows whose bucket begins inside [from, to): ts relative to t0. */
void row_scan_range(const struct store_segment *s, const struct store_query *q, int64_t *first,
		    int64_t *last);
/* Where part `part` of the query ends: the ts of the first row that is not its own, relative to t0.
 * INT64_MAX: of the last one. */
int64_t row_scan_part_end(const struct row_scan *p, size_t part);
/* `sql` gives (series, n, ts, ...) for ?1 <= ts <= ?2. */
int row_scan_open(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		  const char *sql, struct err *e);
/* The rows of an archive's table in those columns, of which the first is ts: true, and
 * row_scan_column goes over them; false: they are no columns. After a row_scan_begin. */
bool row_scan_columns(struct row_scan *p, const char *table, const char *columns, int64_t first,
		      int64_t last);
/* Which row of p->columns' block is next: SQLITE_ROW, SQLITE_DONE, or an error of SQLite's. */
int row_scan_column(struct row_scan *p, size_t *row);
/* The same for what needs no series: row_scan_of_task alone says what counts. */
int row_scan_begin_tasks(struct row_scan *p, struct store_segment *s, const struct store_query *q,
			 struct err *e);
/* What to do with the rows of a task. */
uint8_t row_scan_of_task(struct row_scan *p, uint32_t task);
int row_scan_begin(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		   struct err *e);
/* The same where row_scan_begin did the first half. */
int row_scan_prepare(struct row_scan *p, const char *sql, struct err *e);
int row_scan_close(struct row_scan *p, int rc, struct err *e);
/* The same over the samples of the range, which are in `c`: end with row_scan_release and
 * samples_close. */
int row_scan_open_samples(struct row_scan *p, struct store_segment *s, const struct store_query *q,
			  struct samples *c, struct err *e);
void row_scan_release(struct row_scan *p);
/* Is this row (a series that there is) to be counted? */
bool row_scan_takes(struct row_scan *p, uint32_t series, int64_t ts);
const struct choice_run *row_scan_run(const struct row_scan *p, uint32_t series);
static inline const struct reading_task *row_scan_task(const struct row_scan *p, uint32_t series)
{
	return &p->s->tasks[p->s->series_task[series]];
}

#endif
