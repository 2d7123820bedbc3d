/* SPDX-License-Identifier: Apache-2.0 */
/* amount_totals: amounts of a range, summed by series; for gauges, their values at its end. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/model/hist.h"
#include "schema/store/model/sql.h"
#include "schema/store/read/timeline.h"

struct amount_sum {
	uint32_t series;
	uint64_t n, value, max;
	double whole_n, whole_value, n_variance, value_variance;
	struct hist hist;
};

struct summing {
	struct row_scan scan;
	struct amount_sum *sums; /* of the series that have amounts; [0] is unused */
	size_t n, cap;
	uint32_t *place; /* by series: its sum; 0: none */
	struct standing standing;
	bool *here; /* by process: has an amount within the range */
	int64_t first;
	bool gauge, no_hist;
};

static struct amount_sum *sum_of(struct summing *x, uint32_t series)
{
	uint32_t *place = &x->place[series];

	if (!*place) {
		mem_grow(x->sums, x->n, x->cap);
		x->sums[x->n] = (struct amount_sum){.series = series};
		*place = (uint32_t)x->n++;
	}
	return &x->sums[*place];
}

static void sum_one(struct summing *x, const struct amount_seen *a)
{
	struct amount_sum *s = sum_of(x, a->series);

	if (x->gauge) {
		standing_take(&x->standing, &x->scan, a->series);
		if (a->ts >= x->first)
			x->here[row_scan_task(&x->scan, a->series)->process] = true;
		hist_release(&s->hist);
		*s = (struct amount_sum){.series = a->series};
	}
	s->n += a->n;
	s->value += a->value;
	s->whole_n += (double)a->n * a->scale;
	s->whole_value += (double)a->value * a->scale;
	s->max = a->max > s->max ? a->max : s->max;
	if (a->hist && !x->no_hist)
		(void)hist_read(&s->hist, a->hist, a->hist_len, 0);
}

static bool sum_counts(const struct summing *x, const struct amount_sum *sum)
{
	if (!sum->n && !sum->value)
		return false;
	return !x->gauge || (x->here[row_scan_task(&x->scan, sum->series)->process] &&
			     standing_has(&x->standing, &x->scan, sum->series));
}

static int sum_order(const void *a, const void *b)
{
	const struct amount_sum *x = a, *y = b;

	return (x->series > y->series) - (x->series < y->series);
}

/* In order of series. No more is summed. */
static int sums_tell(struct summing *x, int (*each)(void *ctx, const struct store_total *t),
		     void *ctx)
{
	const struct store_segment *s = x->scan.s;
	int rc = 0;

	qsort(x->sums, x->n, sizeof(*x->sums), sum_order);
	for (size_t i = 1; i < x->n && !rc; i++) {
		const struct amount_sum *sum = &x->sums[i];
		const struct reading_task *t = row_scan_task(&x->scan, sum->series);
		struct store_total total = {
			.series = sum->series,
			.run = t->run,
			.task = s->series_task[sum->series],
			.process = t->process,
			.stack = s->series_stack[sum->series],
			.tid = t->tid,
			.label = s->series_label[sum->series],
			.thread = t->thread,
			.labels = t->labels ? t->labels : "",
			.n = sum->n,
			.value = sum->value,
			.whole_n = (uint64_t)llround(sum->whole_n),
			.whole_value = (uint64_t)llround(sum->whole_value),
			.max = sum->max,
			.n_variance = sum->n_variance,
			.value_variance = sum->value_variance,
			.hist = sum->hist.n ? &sum->hist : NULL,
		};

		if (sum_counts(x, sum))
			rc = each(ctx, &total);
	}
	return rc;
}

#define US2_NS2 1e6 /* square nanoseconds of a square microsecond */

/* How far estimates may lie off: of files and kinds that have any. */
static int errors_add(struct summing *x, struct store_segment *s, const struct store_query *q,
		      struct err *e)
{
	struct row_scan scan;
	int rc;

	if ((q->kind != STORE_KIND_OFFCPU && q->kind != STORE_KIND_RUNQUEUE) ||
	    !sql_number(s->db,
			"SELECT EXISTS (SELECT 1 FROM pragma_table_info('amount_error_row'))", 0) ||
	    !store_segment_has(s, "amount_error_row"))
		return 0;
	rc = row_scan_open(
		&scan, s, q,
		"SELECT series, n_variance, ts, value_variance FROM amount_error_row WHERE ts BETWEEN ?1 AND ?2",
		e);
	if (rc)
		return rc;
	while ((rc = sqlite3_step(scan.st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(scan.st, 0);
		struct amount_sum *sum;

		if (series <= 0 || (size_t)series >= s->n_series ||
		    !row_scan_takes(&scan, (uint32_t)series, sqlite3_column_int64(scan.st, 2)))
			continue;
		sum = sum_of(x, (uint32_t)series);
		sum->n_variance += fmax(0, sqlite3_column_double(scan.st, 1));
		sum->value_variance += fmax(0, sqlite3_column_double(scan.st, 3)) * US2_NS2;
	}
	return row_scan_close(&scan, rc, e);
}

static void summing_init(struct summing *x, const struct store_segment *s)
{
	x->place = mem_array(s->n_series, sizeof(*x->place));
	mem_grow(x->sums, x->n, x->cap);
	x->sums[x->n++] = (struct amount_sum){0};
	x->here = mem_array(s->dict.n_processes, sizeof(*x->here));
	standing_init(&x->standing, s);
}

static void summing_release(struct summing *x)
{
	for (size_t i = 0; i < x->n; i++)
		hist_release(&x->sums[i].hist);
	free(x->sums);
	free(x->place);
	free(x->here);
	standing_release(&x->standing);
}

int amount_totals(struct store_segment *s, const struct store_query *q,
		  int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	const struct store_kind_info *k = store_kind_info(q->kind);
	struct summing x = {.gauge = k && k->class == STORE_GAUGE, .no_hist = q->no_hist};
	struct amount_seen a;
	int64_t last;
	const struct store_dict *d;
	int rc = store_segment_tasks(s, &d, e), told = 0, failed = 0;

	/* to find nothing among all amounts takes as long as to sum them */
	if (rc || !k || !(store_run_kinds(s, q->run) & 1u << q->kind))
		return rc;
	rc = store_segment_series(s, &d, e);
	if (rc)
		return rc;
	rc = amount_scan_open(&x.scan, s, q, e);
	if (rc)
		return rc;
	row_scan_range(s, q, &x.first, &last);
	x.first = x.first == INT64_MIN ? x.first : x.first + s->t0;
	summing_init(&x, s);
	while ((rc = amount_scan_next(&x.scan, &a)) == SQLITE_ROW)
		sum_one(&x, &a);
	if (rc == SQLITE_DONE)
		failed = errors_add(&x, s, q, e);
	if (rc == SQLITE_DONE && !failed)
		told = sums_tell(&x, each, ctx);
	summing_release(&x);
	rc = row_scan_close(&x.scan, rc, failed ? NULL : e);
	return failed ? failed : rc ? rc : told;
}
