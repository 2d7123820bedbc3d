/* SPDX-License-Identifier: Apache-2.0 */
/* amount_totals: amounts of a range, summed by series; for gauges, their values at its end. Of a
 * range in parts one walk, in order of time: when a part ends, its sums are reported. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

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

/* Rows of amount_error_row, in order of time. */
struct errors {
	struct row_scan scan;
	bool open, waiting; /* a row was read that is of a later part: */
	int64_t ts;
	uint32_t series;
	double n_variance, value_variance;
};

struct summing {
	struct row_scan scan;
	struct errors errors;
	struct amount_sum *sums; /* of the series that have amounts; [0] is unused */
	size_t n, cap;
	uint32_t *place; /* by series: its sum; 0: none */
	struct standing standing;
	bool *here;             /* by process: has an amount within the part */
	int64_t first;          /* of the part, UTC */
	size_t part;            /* the one at hand */
	int64_t part_from, end; /* relative to t0: what begins at `end` is of a later one */
	bool gauge, no_hist;
	int (*each)(void *ctx, const struct store_total *t);
	void *ctx;
	int told;
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

/* In order of series. Then sums of the part are over; the values of gauges stay. */
static void sums_tell(struct summing *x)
{
	const struct store_segment *s = x->scan.s;

	qsort(x->sums + 1, x->n - 1, sizeof(*x->sums), sum_order);
	for (size_t i = 1; i < x->n; i++) {
		const struct amount_sum *sum = &x->sums[i];
		const struct reading_task *t = row_scan_task(&x->scan, sum->series);
		struct store_total total = {
			.part = (uint32_t)x->part,
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

		x->place[sum->series] = (uint32_t)i;
		if (!x->told && sum_counts(x, sum))
			x->told = x->each(x->ctx, &total);
	}
}

static void sums_clear(struct summing *x)
{
	if (x->gauge) {
		memset(x->here, 0, x->scan.s->dict.n_processes * sizeof(*x->here));
		return;
	}
	for (size_t i = 1; i < x->n; i++) {
		x->place[x->sums[i].series] = 0;
		hist_release(&x->sums[i].hist);
	}
	x->n = 1;
}

/* ---- how far estimates may lie off: of files and kinds that have any ---- */

#define US2_NS2 1e6 /* square nanoseconds of a square microsecond */

static int errors_open(struct errors *r, struct store_segment *s, const struct store_query *q,
		       struct err *e)
{
	int64_t first, last;
	int rc;

	if ((q->kind != STORE_KIND_OFFCPU && q->kind != STORE_KIND_RUNQUEUE) ||
	    !sql_number(s->db,
			"SELECT EXISTS (SELECT 1 FROM pragma_table_info('amount_error_row'))", 0) ||
	    !store_segment_has(s, "amount_error_row"))
		return 0;
	rc = row_scan_begin(&r->scan, s, q, e);
	if (rc)
		return rc;
	row_scan_range(s, q, &first, &last);
	if (!row_scan_columns(&r->scan, "amount_error_row",
			      "ts, series, n_variance, value_variance", first, last))
		rc = row_scan_prepare(
			&r->scan,
			"SELECT ts, series, n_variance, value_variance FROM amount_error_row WHERE ts BETWEEN ?1 AND ?2",
			e);
	r->open = !rc;
	return rc;
}

static int error_next(struct errors *r)
{
	size_t row;
	int64_t v[4];
	int rc = r->scan.st ? sqlite3_step(r->scan.st) : row_scan_column(&r->scan, &row);

	if (rc != SQLITE_ROW)
		return rc;
	for (int i = 0; i < 4; i++)
		v[i] = r->scan.st ? sqlite3_column_int64(r->scan.st, i) :
				    packedread_number(&r->scan.columns, i, row);
	r->ts = v[0];
	r->series = v[1] > 0 && v[1] <= UINT32_MAX ? (uint32_t)v[1] : 0;
	r->n_variance = fmax(0, (double)v[2]);
	r->value_variance = fmax(0, (double)v[3]) * US2_NS2;
	return rc;
}

static void error_take(struct summing *x, struct errors *r)
{
	struct amount_sum *sum;

	if (!r->series || r->series >= x->scan.s->n_series || r->ts < x->part_from ||
	    !row_scan_takes(&r->scan, r->series, r->ts))
		return;
	sum = sum_of(x, r->series);
	sum->n_variance += r->n_variance;
	sum->value_variance += r->value_variance;
}

/* Those of the part. SQLITE_DONE, or an error of SQLite's. */
static int errors_add(struct summing *x)
{
	struct errors *r = &x->errors;
	int rc = r->open ? SQLITE_ROW : SQLITE_DONE;

	while (rc == SQLITE_ROW) {
		rc = r->waiting ? SQLITE_ROW : error_next(r);
		r->waiting = rc == SQLITE_ROW && r->ts >= x->end;
		if (rc != SQLITE_ROW || r->waiting)
			break;
		error_take(x, r);
	}
	return rc == SQLITE_ROW ? SQLITE_DONE : rc;
}

/* ---- parts ---- */

static void part_begin(struct summing *x, size_t part)
{
	const struct store_segment *s = x->scan.s;

	x->part = part;
	x->part_from = part ? row_scan_part_end(&x->scan, part - 1) : INT64_MIN;
	x->end = row_scan_part_end(&x->scan, part);
	if (part)
		x->first = s->t0 + x->part_from;
}

static int part_end(struct summing *x)
{
	int rc = errors_add(x);

	if (rc == SQLITE_DONE)
		sums_tell(x);
	sums_clear(x);
	return rc;
}

/* Those before this row's are over. SQLITE_ROW, or an error of SQLite's. */
static int parts_end(struct summing *x, int64_t ts)
{
	int rc = SQLITE_DONE;

	if (ts < x->end || x->end == INT64_MAX)
		return SQLITE_ROW;
	rc = part_end(x);
	while (ts >= x->end && x->end != INT64_MAX)
		part_begin(x, x->part + 1);
	return rc == SQLITE_DONE ? SQLITE_ROW : rc;
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

/* All rows. SQLITE_DONE, or an error of SQLite's: of amounts, or *of_errors. */
static int sum_rows(struct summing *x, int *of_errors)
{
	struct amount_seen a;
	int rc = SQLITE_DONE;

	*of_errors = SQLITE_DONE;
	while (!x->told && (rc = amount_scan_next(&x->scan, &a)) == SQLITE_ROW) {
		*of_errors = parts_end(x, a.ts - x->scan.s->t0);
		if (*of_errors != SQLITE_ROW)
			return SQLITE_DONE;
		sum_one(x, &a);
	}
	*of_errors = SQLITE_DONE;
	if (!x->told && rc == SQLITE_DONE)
		*of_errors = part_end(x);
	return x->told ? SQLITE_DONE : rc;
}

int amount_totals(struct store_segment *s, const struct store_query *q,
		  int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	const struct store_kind_info *k = store_kind_info(q->kind);
	struct summing x = {.gauge = k && k->class == STORE_GAUGE,
			    .no_hist = q->no_hist,
			    .each = each,
			    .ctx = ctx};
	int64_t last;
	const struct store_dict *d;
	int rc = store_segment_tasks(s, &d, e), of_errors = SQLITE_DONE, failed;

	/* to find nothing among all amounts takes as long as to sum them */
	if (rc || !k || !(store_run_kinds(s, q->run) & 1u << q->kind))
		return rc;
	rc = store_segment_series(s, &d, e);
	if (rc)
		return rc;
	rc = amount_scan_open(&x.scan, s, q, e);
	if (rc)
		return rc;
	failed = errors_open(&x.errors, s, q, e);
	row_scan_range(s, q, &x.first, &last);
	x.first = x.first == INT64_MIN ? x.first : x.first + s->t0;
	summing_init(&x, s);
	part_begin(&x, 0);
	rc = failed ? SQLITE_DONE : sum_rows(&x, &of_errors);
	summing_release(&x);
	if (x.errors.open) {
		const int closed = row_scan_close(&x.errors.scan, of_errors, failed ? NULL : e);

		failed = failed ? failed : closed;
	}
	rc = row_scan_close(&x.scan, rc, failed ? NULL : e);
	return failed ? failed : rc ? rc : x.told;
}
