/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: what is behind store_timeline, and the reading of amounts that it shares with
 * store_totals. Not for other rooms. */
#ifndef SONDE_STORE_READ_TIMELINE_H
#define SONDE_STORE_READ_TIMELINE_H

#include "schema/store/read/row_scan.h"

typedef int timeline_each(void *ctx, int64_t from_ns, uint32_t process, uint64_t value);
int sample_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		    timeline_each *each, void *ctx, struct err *e);
int amount_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		    timeline_each *each, void *ctx, struct err *e);
int amount_totals(struct store_segment *s, const struct store_query *q,
		  int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e);

/* request_totals.c: where q->tags says so. */
int request_totals(struct store_segment *s, const struct store_query *q,
		   int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e);

/* kept_sums.c: what an archive keeps, where it says the same as the rows; else *kept is false, and
 * there was no call. */
int kept_totals(struct store_segment *s, const struct store_query *q,
		int (*each)(void *ctx, const struct store_total *t), void *ctx, bool *kept,
		struct err *e);
struct timeline;
int kept_timeline(struct store_segment *s, const struct store_query *q, struct timeline *x,
		  bool *kept, struct err *e);

/* Values by process and step. Rows come in order of time, so one step is held at a time. */
struct timeline {
	double *value; /* by process */
	bool *is_touched;
	uint32_t *touched;
	size_t n_touched;
	int64_t step, end; /* of the one that is held, seconds since 1970 */
	uint32_t step_s;
	bool stands;   /* a gauge: values stay from step to step */
	int64_t first; /* steps before this are not told; seconds since 1970 */
	int told;
	timeline_each *each;
	void *ctx;
};
void timeline_begin(struct timeline *x, const struct store_segment *s);
/* Frees it. `all`: and tells the last step before. */
void timeline_end(struct timeline *x, bool all);
void timeline_step(struct timeline *x, int64_t ts);

/* The process has `more` in the bucket at ts. */
static inline void timeline_put(struct timeline *x, int64_t ts, uint32_t process, double more)
{
	if (ts >= x->end || ts < x->step)
		timeline_step(x, ts);
	x->value[process] += more;
	if (ts >= x->first && !x->is_touched[process]) {
		x->is_touched[process] = true;
		x->touched[x->n_touched++] = process;
	}
}

/* One row of amounts that counts; negative numbers of a damaged file are 0. */
struct amount_seen {
	uint32_t series;
	int64_t ts; /* seconds since 1970 */
	uint64_t n, value, max;
	double scale;     /* the factors that scale n and value to whole numbers */
	const char *hist; /* NULL: none; borrowed until the next one */
	size_t hist_len;
};
/* Amounts of q->kind. Of a gauge also those before the range. */
int amount_scan_open(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		     struct err *e);
/* SQLITE_ROW with *out, else SQLITE_DONE or an error of SQLite's. */
int amount_scan_next(struct row_scan *p, struct amount_seen *out);

/* Gauges: the current values, by process. All values of a process come from the run that stored one
 * last. */
struct standing {
	struct standing_process {
		uint32_t run, round;
	} * process;
	uint32_t *round; /* by series: valid if it is its process's */
	uint32_t *alike; /* by task: the first one of the same run, process, thread and kind */
	uint32_t *holds; /* by task of `alike`: the one of those whose values hold */
};
void standing_init(struct standing *g, const struct store_segment *s);
void standing_release(struct standing *g);
/* This series has a new amount. true: it is the first one that its run stored of the process, or
 * that it stored since it began a new dictionary, which repeats tasks and stores all values again:
 * so all earlier values are void. */
bool standing_take(struct standing *g, const struct row_scan *p, uint32_t series);
bool standing_has(const struct standing *g, const struct row_scan *p, uint32_t series);

#endif
