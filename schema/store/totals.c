/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals: samples of a range, summed by series or by time. One pass over the rows, in the file's order, with arrays by
 * series id: a million rows take a fifth of a second. Amounts: amount_totals.c.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/pass.h"
#include "schema/store/strip.h"

struct sum {
	uint64_t n, value;
};

static void sum_rows(struct pass *p, const struct samples *c, struct sum *sums)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct sample_row *r = &c->rows[i];

		if (p->state[r->series] == SERIES_PLAIN) {
			sums[r->series].n += r->n;
			continue;
		}
		if (!pass_takes(p, r->series, r->ts))
			continue;
		sums[r->series].n += r->n;
		if (p->state[r->series] != SERIES_PLAIN)
			sums[r->series].value += r->n * choice_period(pass_run(p, r->series), r->ts + p->s->t0);
	}
}

static int tell_sums(struct pass *p, const struct sum *sums, int (*each)(void *ctx, const struct store_total *t),
		     void *ctx)
{
	int rc = 0;

	for (size_t i = 1; i < p->s->n_series && !rc; i++) {
		const struct reading_task *t = &p->s->tasks[p->s->series_task[i]];
		struct store_total total = {
			.run = t->run, .process = t->process, .stack = p->s->series_stack[i], .tid = t->tid,
			.thread = t->thread, .n = sums[i].n, .value = sums[i].value,
		};

		if (!total.n)
			continue;
		if (p->state[i] == SERIES_PLAIN)
			total.value = total.n * choice_period(&p->s->choice_runs[t->run], 0);
		total.whole_n = total.n;
		total.whole_value = total.value;
		rc = each(ctx, &total);
	}
	return rc;
}

static int sample_totals(struct store_segment *s, const struct store_query *q,
			 int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	struct samples c;
	struct pass p;
	struct sum *sums;
	int rc = pass_open_samples(&p, s, q, &c, e), told = 0;

	if (rc)
		return rc;
	sums = mem_array(s->n_series, sizeof(*sums));
	while ((rc = samples_next(&c)) == SQLITE_ROW)
		sum_rows(&p, &c, sums);
	if (rc == SQLITE_DONE)
		told = tell_sums(&p, sums, each, ctx);
	free(sums);
	pass_release(&p);
	rc = samples_close(&c, rc, e);
	return rc ? rc : told;
}

int store_totals(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	return (q->kind == STORE_KIND_CPU ? sample_totals : amount_totals)(s, q, each, ctx, e);
}

/* --- by time --- */

int store_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		   int (*each)(void *ctx, int64_t from_ns, uint32_t process, uint64_t value), void *ctx, struct err *e)
{
	return (q->kind == STORE_KIND_CPU ? sample_timeline : amount_timeline)(s, q, step_s ? step_s : 1, each, ctx, e);
}

/* --- losses --- */

int store_losses(struct store_segment *s, int64_t from_ns, int64_t to_ns,
		 int (*each)(void *ctx, const struct store_loss_row *l), void *ctx, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	sqlite3_stmt *st = reading_prepare(s, "SELECT run, reason, sum(n) FROM loss_row WHERE ts BETWEEN ?1 AND ?2"
					      " GROUP BY run, reason ORDER BY run, reason", e);
	int64_t first, last;
	int told = 0;
	int rc;

	if (!st)
		return e && e->code ? e->code : -EIO;
	pass_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *reason = (const char *)sqlite3_column_text(st, 1);
		struct store_loss_row l = {.run = sqlite3_column_int64(st, 0), .reason = reason ? reason : "",
					   .n = (uint64_t)sqlite3_column_int64(st, 2)};

		told = each(ctx, &l);
		if (told) {
			rc = SQLITE_DONE;
			break;
		}
	}
	rc = reading_finish(s, st, rc, e);
	return rc ? rc : told;
}

/* --- how stacks end --- */

enum { REASON_COMPLETE = 1, REASON_GONE = 14 }; /* unwinding_reason */

static const char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s ? s : "";
}

int store_endings(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		  int (*each)(void *ctx, const struct store_ending_row *r), void *ctx, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns};
	int64_t first, last;
	sqlite3_stmt *st;
	int told = 0, rc;

	if (!reading_number(s->db, "SELECT count(*) FROM sqlite_master WHERE name = 'unwound_row'", 0))
		return 0; /* older than the table */
	st = reading_prepare(s, "SELECT u.run, t.value, i.name, coalesce(w.words, 'reason ' || u.reason), u.reason, sum(u.n)"
				" FROM unwound_row u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image"
				" LEFT JOIN unwinding_reason w ON w.reason = u.reason"
				" WHERE u.ts BETWEEN ?1 - 59 AND ?2 AND (?3 = 0 OR u.run = ?3)"
				" GROUP BY u.run, t.value, i.name, u.reason", e);
	if (!st)
		return e && e->code ? e->code : -EIO;
	pass_range(s, &q, &first, &last);
	sqlite3_bind_int64(st, 1, first < -(1ll << 40) ? -(1ll << 40) : first);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_bind_int64(st, 3, run);
	while (!told && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct store_ending_row r = {.run = sqlite3_column_int64(st, 0), .executable = column(st, 1),
					     .module = column(st, 2), .reason = column(st, 3),
					     .complete = sqlite3_column_int(st, 4) == REASON_COMPLETE,
					     .gone = sqlite3_column_int(st, 4) == REASON_GONE, .n = (uint64_t)sqlite3_column_int64(st, 5)};

		told = each(ctx, &r);
	}
	rc = reading_finish(s, st, told ? SQLITE_DONE : rc, e);
	return rc ? rc : told;
}
