/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_sums: what an archive keeps of its samples and amounts (packed/sample_sums.h), instead of
 * the rows. They say nothing of series, so the dictionary is read without these.
 */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/store/files/readonly.h"
#include "schema/store/model/hist.h"
#include "schema/store/packed/sample_sums.h"
#include "schema/store/read/timeline.h"

/* Is each wanted row of a task counted as it is? Then sums are what the rows come to. `periods`:
 * though its run changed its period meanwhile. */
static bool all_count(struct row_scan *p, bool periods)
{
	for (uint32_t i = 1; i < p->s->n_tasks; i++) {
		const uint8_t state = row_scan_of_task(p, i);

		if (state != SERIES_OUT && state != SERIES_PLAIN &&
		    !(periods && state == SERIES_PERIODS))
			return false;
	}
	return true;
}

/* 1: p->columns are those of the table; 0: they cannot be read, and nothing is open. */
static int open_sums(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		     const char *table, const char *columns, bool periods, struct err *e)
{
	int rc = row_scan_begin_tasks(p, s, q, e);

	if (rc)
		return rc;
	if (all_count(p, periods) && packedread_open(&p->columns, s->db, table, columns))
		return 1;
	row_scan_release(p);
	return 0;
}

/* Closes it. `rc` as packedread_block's. */
static int close_sums(struct row_scan *p, int rc, struct err *e)
{
	struct store_segment *s = p->s;

	row_scan_release(p);
	return rc ? readonly_refused(s->path, s->db, rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT,
				     e) :
		    0;
}

/* The task of a row that is wanted; 0: it is not. */
static uint32_t task_at(struct row_scan *p, int column, size_t row)
{
	const int64_t task = packedread_number(&p->columns, column, row);

	return task > 0 && (uint64_t)task < p->s->n_tasks &&
			       row_scan_of_task(p, (uint32_t)task) != SERIES_OUT ?
		       (uint32_t)task :
		       0;
}

static uint64_t number_at(const struct row_scan *p, int column, size_t row)
{
	const int64_t v = packedread_number(&p->columns, column, row);

	return v > 0 ? (uint64_t)v : 0;
}

static struct store_total total_of(const struct row_scan *p, uint32_t task)
{
	const struct reading_task *t = &p->s->tasks[task];

	return (struct store_total){.task = task,
				    .run = t->run,
				    .process = t->process,
				    .tid = t->tid,
				    .thread = t->thread,
				    .labels = t->labels ? t->labels : ""};
}

typedef int totals_each(void *ctx, const struct store_total *t);
typedef int totals_tell(struct row_scan *p, totals_each *each, void *ctx);

/* Rows of a task are one behind the other. */
static int tell_samples(struct row_scan *p, totals_each *each, void *ctx)
{
	const struct store_segment *s = p->s;
	struct store_total total = {0};
	uint64_t period = 0;
	int told = 0;

	for (size_t i = 0; i < p->columns.c[0]->n && !told; i++) {
		const uint32_t task = task_at(p, 0, i);
		const uint64_t n = number_at(p, 2, i), stack = number_at(p, 1, i);

		if (!task || !n)
			continue;
		if (total.task != task) {
			total = total_of(p, task);
			period = choice_period(&s->choice_runs[total.run], 0);
		}
		total.stack =
			s->has_stacks ? s->tree.node[stack < s->tree.n_stacks ? stack : 0] : 0;
		total.n = total.whole_n = n;
		total.value = total.whole_value = n * period;
		told = each(ctx, &total);
	}
	return told;
}

static int tell_amounts(struct row_scan *p, totals_each *each, void *ctx)
{
	int told = 0;

	for (size_t i = 0; i < p->columns.c[0]->n && !told; i++) {
		const uint32_t task = task_at(p, 0, i);
		struct store_total total;

		if (!task)
			continue;
		total = total_of(p, task);
		total.n = number_at(p, 1, i);
		total.value = number_at(p, 2, i);
		total.whole_n = (uint64_t)llround((double)total.n);
		total.whole_value = (uint64_t)llround((double)total.value);
		if (total.n || total.value)
			told = each(ctx, &total);
	}
	return told;
}

#define US2_NS2 1e6 /* square nanoseconds of a square microsecond */

static int tell_waits(struct row_scan *p, totals_each *each, void *ctx)
{
	int told = 0;

	for (size_t i = 0; i < p->columns.c[0]->n && !told; i++) {
		const uint32_t task = task_at(p, 0, i);
		const uint64_t stack = number_at(p, 1, i);
		const char *text = p->q->no_hist || !task ? "" : packedread_text(&p->columns, 8, i);
		struct hist hist = {0};
		struct store_total total;

		if (!task)
			continue;
		total = total_of(p, task);
		total.stack = p->s->has_stacks ?
				      p->s->tree.node[stack < p->s->tree.n_stacks ? stack : 0] :
				      0;
		total.label = (uint32_t)number_at(p, 2, i);
		total.n = total.whole_n = number_at(p, 3, i);
		total.value = total.whole_value = number_at(p, 4, i);
		total.max = number_at(p, 5, i);
		total.n_variance = (double)number_at(p, 6, i);
		total.value_variance = (double)number_at(p, 7, i) * US2_NS2;
		if (*text)
			(void)hist_read(&hist, text, strlen(text), 0);
		total.hist = hist.n ? &hist : NULL;
		if (total.n || total.value)
			told = each(ctx, &total);
		hist_release(&hist);
	}
	return told;
}

/* All rows of the table that is open, which is closed. */
static int tell_all(struct row_scan *p, totals_tell *tell, totals_each *each, void *ctx,
		    struct err *e)
{
	int rc = 0, told = 0;

	for (size_t k = 0; !rc && !told && k < p->columns.t.n_blocks; k++) {
		rc = packedread_block(&p->columns, k);
		if (!rc)
			told = tell(p, each, ctx);
		packedtable_release(&p->columns.t, k);
	}
	rc = close_sums(p, rc, e);
	return rc ? rc : told;
}

/* Waits by stack, of a day. */
static int day_waits(struct store_segment *s, const struct store_query *q, totals_each *each,
		     void *ctx, struct err *e)
{
	const struct store_dict *d;
	struct row_scan p;
	int rc = store_segment_tasks(s, &d, e);

	if (rc || !(store_run_kinds(s, q->run) & 1u << q->kind))
		return rc;
	if ((q->kind != STORE_KIND_OFFCPU && q->kind != STORE_KIND_RUNQUEUE) || q->n_parts ||
	    !reading_sums_whole(s, q))
		return reading_refuse_day(s, e);
	rc = open_sums(&p, s, q, WAIT_STACK_SUM,
		       "task, stack, label, n, value, max, n_variance, value_variance, hist", false,
		       e);
	if (rc <= 0)
		return rc ? rc : reading_refuse_day(s, e);
	return tell_all(&p, tell_waits, each, ctx, e);
}

int kept_totals(struct store_segment *s, const struct store_query *q, totals_each *each, void *ctx,
		bool *kept, struct err *e)
{
	const bool samples = q->kind == STORE_KIND_CPU;
	struct row_scan p;
	int rc;

	*kept = false;
	if (s->day && q->by == STORE_BY_LABEL) {
		*kept = true;
		return day_waits(s, q, each, ctx, e);
	}
	if (s->day && !store_segment_has(s, samples ? SAMPLE_SUM : AMOUNT_SUM) &&
	    !store_segment_has(s, samples ? "sample" : "amount")) {
		*kept = true;
		return 0;
	}
	if (q->by == STORE_BY_SERIES || q->n_parts || !s->archived ||
	    (!samples && (q->by != STORE_BY_THREAD || !sample_sums_adds_up(q->kind))) ||
	    !reading_sums_whole(s, q))
		return 0;
	rc = samples ? open_sums(&p, s, q, SAMPLE_SUM, "task, stack, n", false, e) :
		       open_sums(&p, s, q, AMOUNT_SUM, "task, n, value", false, e);
	if (rc <= 0)
		return rc;
	*kept = true;
	return tell_all(&p, samples ? tell_samples : tell_amounts, each, ctx, e);
}

/* ---- by time ---- */

static void put_steps(struct row_scan *p, struct timeline *x)
{
	const struct store_segment *s = p->s;

	for (size_t i = 0; i < p->columns.c[0]->n; i++) {
		const int64_t ts = p->columns.c[0]->numbers[i];
		const uint32_t task = task_at(p, 1, i);
		uint64_t period;

		if (ts < p->first || ts > p->last || !task)
			continue;
		period = p->q->count ?
				 1 :
				 choice_period(&s->choice_runs[s->tasks[task].run], ts + s->t0);
		if (period)
			timeline_put(x, ts + s->t0, s->tasks[task].process,
				     (double)number_at(p, 2, i) * (double)period);
	}
}

int kept_timeline(struct store_segment *s, const struct store_query *q, struct timeline *x,
		  bool *kept, struct err *e)
{
	struct row_scan p;
	int rc;

	*kept = false;
	if (!s->archived || !reading_sums_any(s))
		return 0;
	rc = open_sums(&p, s, q, SAMPLE_TIME_SUM, "ts, task, n", true, e);
	if (rc <= 0)
		return rc;
	*kept = true;
	rc = 0;
	row_scan_range(s, q, &p.first, &p.last);
	timeline_begin(x, s);
	for (size_t k = packedtable_block_of(&p.columns.t, p.first);
	     !rc && k < p.columns.t.n_blocks &&
	     (!p.columns.t.range || p.columns.t.range[k].first <= p.last);
	     k++) {
		rc = packedread_block(&p.columns, k);
		if (!rc)
			put_steps(&p, x);
		packedtable_release(&p.columns.t, k);
	}
	timeline_end(x, !rc);
	rc = close_sums(&p, rc, e);
	return rc ? rc : x->told;
}
