/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals: samples of a range, summed by series or by time. One pass over the rows, in the file's
 * order, with arrays by series id: a million rows take a fifth of a second. Amounts:
 * amount_totals.c.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/files/span.h"
#include "schema/store/read/row_scan.h"
#include "schema/store/read/timeline.h"

typedef int totals_each(void *ctx, const struct store_total *t);

struct totals {
	struct row_scan scan;
	struct sum {
		uint64_t n, value;
	} * sums;          /* by series, of the part at hand */
	uint64_t *touched; /* bit a series: its sum is not 0 */
	size_t part;
	int64_t part_ends; /* ts relative to t0; what begins there is of the next part */
	totals_each *each;
	void *ctx;
	int told;
};

static void tell_sum(struct totals *x, size_t series)
{
	struct row_scan *p = &x->scan;
	const struct reading_task *t = row_scan_task(p, (uint32_t)series);
	struct sum *sum = &x->sums[series];
	struct store_total total = {
		.part = (uint32_t)x->part,
		.series = (uint32_t)series,
		.run = t->run,
		.task = p->s->series_task[series],
		.process = t->process,
		.stack = p->s->series_stack[series],
		.tid = t->tid,
		.thread = t->thread,
		.labels = t->labels ? t->labels : "",
		.n = sum->n,
		.value = sum->value,
	};

	*sum = (struct sum){0};
	if (!total.n || x->told)
		return;
	if (p->state[series] == SERIES_PLAIN)
		total.value = total.n * choice_period(&p->s->choice_runs[t->run], 0);
	total.whole_n = total.n;
	total.whole_value = total.value;
	x->told = x->each(x->ctx, &total);
}

/* In order of series; then all is 0 again. */
static void tell_sums(struct totals *x)
{
	for (size_t k = 0; k <= x->scan.s->n_series / 64; k++) {
		for (uint64_t left = x->touched[k]; left; left &= left - 1)
			tell_sum(x, k * 64 + (size_t)__builtin_ctzll(left));
		x->touched[k] = 0;
	}
}

static void sum_rows(struct totals *x, const struct samples *c)
{
	struct row_scan *p = &x->scan;

	for (size_t i = 0; i < c->n; i++) {
		const struct sample_row *r = &c->rows[i];
		uint8_t state = p->state[r->series];

		if (r->ts >= x->part_ends && x->part_ends != INT64_MAX)
			tell_sums(x);
		for (; r->ts >= x->part_ends && x->part_ends != INT64_MAX;
		     x->part_ends = row_scan_part_end(p, x->part))
			x->part++;
		if (state != SERIES_PLAIN) {
			if (!row_scan_takes(p, r->series, r->ts))
				continue;
			if (p->state[r->series] != SERIES_PLAIN)
				x->sums[r->series].value +=
					r->n *
					choice_period(row_scan_run(p, r->series), r->ts + p->s->t0);
		}
		x->sums[r->series].n += r->n;
		x->touched[r->series / 64] |= 1ull << r->series % 64;
	}
}

static int sample_totals(struct store_segment *s, const struct store_query *q, totals_each *each,
			 void *ctx, struct err *e)
{
	struct totals x = {.each = each, .ctx = ctx};
	struct samples c;
	int rc = row_scan_open_samples(&x.scan, s, q, &c, e);

	if (rc)
		return rc;
	x.part_ends = row_scan_part_end(&x.scan, 0);
	x.sums = mem_array(s->n_series, sizeof(*x.sums));
	x.touched = mem_array(s->n_series / 64 + 1, sizeof(*x.touched));
	while (!x.told && (rc = samples_next(&c)) == SQLITE_ROW)
		sum_rows(&x, &c);
	if (rc == SQLITE_DONE)
		tell_sums(&x);
	free(x.sums);
	free(x.touched);
	row_scan_release(&x.scan);
	rc = samples_close(&c, rc, e);
	return rc ? rc : x.told;
}

int store_totals(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	bool kept;
	int rc;

	if (q->tags && s->day)
		return reading_refuse_day(s, e);
	if (q->tags)
		return request_totals(s, q, each, ctx, e);
	rc = kept_totals(s, q, each, ctx, &kept, e);
	if (rc || kept)
		return rc;
	if (s->day)
		return reading_refuse_day(s, e);
	return (q->kind == STORE_KIND_CPU ? sample_totals : amount_totals)(s, q, each, ctx, e);
}

/* --- by time --- */

int store_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		   int (*each)(void *ctx, int64_t from_ns, uint32_t process, uint64_t value),
		   void *ctx, struct err *e)
{
	if (s->day)
		return reading_refuse_day(s, e);
	return (q->kind == STORE_KIND_CPU ? sample_timeline : amount_timeline)(
		s, q, step_s ? step_s : 1, each, ctx, e);
}

/* --- losses --- */

#define EDGES "(program IN ('" STORE_COST_START "', '" STORE_COST_END "'))"
#define OWN   "SELECT sum(iif(" EDGES ", 0, cpu_ns)), sum(iif(" EDGES ", cpu_ns, 0)) FROM "

static int own_cost_add(struct store_segment *s, sqlite3_stmt *st, struct store_own_cost *sum,
			struct err *e)
{
	int rc = sqlite3_step(st);

	if (rc == SQLITE_ROW) {
		sum->cpu_ns += (uint64_t)sqlite3_column_int64(st, 0);
		sum->edges_ns += (uint64_t)sqlite3_column_int64(st, 1);
		rc = sqlite3_step(st);
	}
	return reading_finish(s, st, rc, e);
}

int store_own_cost(struct store_segment *s, int64_t from_ns, int64_t to_ns,
		   struct store_own_cost *sum, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	sqlite3_stmt *st = reading_prepare(
		s, s->day ? OWN "day_cost" : OWN "cost_row WHERE ts BETWEEN ?1 AND ?2", e);
	int64_t first, last;

	if (!st)
		return e && e->code ? e->code : -EIO;
	row_scan_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	return own_cost_add(s, st, sum, e);
}

int store_own_cost_of(struct store_segment *s, int64_t token, struct store_own_cost *sum,
		      struct err *e)
{
	sqlite3_stmt *st = reading_prepare(
		s,
		OWN
		"run_cost WHERE run IN (SELECT id FROM run WHERE iif(recording, recording, token) = ?1)",
		e);

	if (!st)
		return e && e->code ? e->code : -EIO;
	sqlite3_bind_int64(st, 1, token);
	return own_cost_add(s, st, sum, e);
}

/* Of a range that has all of it. */
#define DAY_LOSSES                                                                             \
	"SELECT l.run, reason, n, first + t0.value, last + t0.value + coalesce(r.bucket_s, 1)" \
	" FROM day_loss l JOIN meta t0 ON t0.key = 't0' LEFT JOIN run r ON r.id = l.run"       \
	" ORDER BY l.run, reason"

int store_losses(struct store_segment *s, int64_t from_ns, int64_t to_ns,
		 int (*each)(void *ctx, const struct store_loss_row *l), void *ctx, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	sqlite3_stmt *st = reading_prepare(
		s,
		s->day ?
			DAY_LOSSES :
			"SELECT l.run, reason, sum(n), min(ts) + t0.value, max(ts) + t0.value + coalesce(r.bucket_s, 1)"
			" FROM loss_row l JOIN meta t0 ON t0.key = 't0' LEFT JOIN run r ON r.id = l.run"
			" WHERE ts BETWEEN ?1 AND ?2"
			" GROUP BY l.run, reason ORDER BY l.run, reason",
		e);
	int64_t first, last;
	int told = 0;
	int rc;

	if (!st)
		return e && e->code ? e->code : -EIO;
	row_scan_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *reason = (const char *)sqlite3_column_text(st, 1);
		struct store_loss_row l = {.run = sqlite3_column_int64(st, 0),
					   .reason = reason ? reason : "",
					   .n = (uint64_t)sqlite3_column_int64(st, 2),
					   .from_ns = sqlite3_column_int64(st, 3) * NSEC_PER_SEC,
					   .to_ns = sqlite3_column_int64(st, 4) * NSEC_PER_SEC};

		told = each(ctx, &l);
		if (told) {
			rc = SQLITE_DONE;
			break;
		}
	}
	rc = reading_finish(s, st, rc, e);
	return rc ? rc : told;
}
