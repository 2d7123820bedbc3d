/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals: samples of a range, summed by series or by time. One pass over the rows, in the file's order, with arrays by
 * series id: a million rows take a fifth of a second. Which run a bucket is taken from is decided by choice.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/reading.h"

/* What is to be done with a row of a series. PLAIN: count it; its run has one period, which can wait to the end. */
enum { SERIES_NEW = 0, SERIES_OUT, SERIES_PLAIN, SERIES_PERIODS, SERIES_CHOSEN };

struct pass {
	struct store_segment *s;
	const struct store_query *q;
	struct choice choice;
	uint8_t *state;     /* by series: is it wanted, and does each row need a decision */
	sqlite3_stmt *st;
};

/* Rows whose bucket begins inside [from, to): ts relative to t0. */
static void range_of(const struct store_segment *s, const struct store_query *q, int64_t *first, int64_t *last)
{
	*first = q->from_ns <= 0 ? INT64_MIN : (q->from_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC - s->t0;
	*last = q->to_ns == INT64_MAX ? INT64_MAX : (q->to_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC - s->t0 - 1;
}

static int pass_open(struct pass *p, struct store_segment *s, const struct store_query *q, struct err *e)
{
	const struct store_dict *d;
	int64_t first, last;
	int rc = store_segment_dict(s, &d, e);

	*p = (struct pass){.s = s, .q = q};
	if (rc)
		return rc;
	p->st = reading_prepare(s, "SELECT series, n, ts FROM sample WHERE ts BETWEEN ?1 AND ?2", e);
	if (!p->st)
		return e && e->code ? e->code : -EIO;
	range_of(s, q, &first, &last);
	sqlite3_bind_int64(p->st, 1, first);
	sqlite3_bind_int64(p->st, 2, last);
	choice_init(&p->choice, s->choice_runs, d->n_runs, d->n_processes);
	for (size_t i = 1; i < s->n_tasks; i++)
		choice_has(&p->choice, s->tasks[i].run, s->tasks[i].process);
	if (q->whole_to_ns)
		choice_window(&p->choice, q->whole_from_ns, q->whole_to_ns);
	else
		choice_window(&p->choice, q->from_ns, q->to_ns);
	p->state = mem_array(s->n_series, 1);
	return 0;
}

static int pass_close(struct pass *p, int rc, struct err *e)
{
	choice_release(&p->choice);
	free(p->state);
	return reading_finish(p->s, p->st, rc, e);
}

/* First row of a series: is it asked for? */
static uint8_t series_state(const struct pass *p, uint32_t series)
{
	const struct reading_task *t = &p->s->tasks[p->s->series_task[series]];
	const struct store_query *q = p->q;
	const struct choice_run *r = &p->s->choice_runs[t->run];

	if (!t->run || !t->process || t->kind != q->kind || (q->run && q->run != t->run))
		return SERIES_OUT;
	if (q->want && !q->want(q->ctx, &p->s->processes[t->process], t->thread, t->tid))
		return SERIES_OUT;
	if (!q->run && !r->alone)
		return SERIES_CHOSEN;
	return r->n_periods > 1 ? SERIES_PERIODS : SERIES_PLAIN;
}

/* Is this row to be counted? */
static inline bool pass_takes(struct pass *p, uint32_t series, int64_t ts)
{
	const struct reading_task *t;

	if (p->state[series] == SERIES_NEW)
		p->state[series] = series_state(p, series);
	if (p->state[series] != SERIES_CHOSEN)
		return p->state[series] != SERIES_OUT;
	t = &p->s->tasks[p->s->series_task[series]];
	return choice_takes(&p->choice, t->run, t->process, ts + p->s->t0);
}

static const struct choice_run *series_run(const struct pass *p, uint32_t series)
{
	return &p->s->choice_runs[p->s->tasks[p->s->series_task[series]].run];
}

struct sum {
	uint64_t samples, cpu_ns;
};

static int sum_rows(struct pass *p, struct sum *sums)
{
	const size_t n_series = p->s->n_series;
	int rc;

	while ((rc = sqlite3_step(p->st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(p->st, 0);
		sqlite3_int64 n = sqlite3_column_int64(p->st, 1);
		int64_t ts;

		if (series <= 0 || (size_t)series >= n_series || n <= 0)
			continue;
		if (p->state[series] == SERIES_PLAIN) {
			sums[series].samples += (uint64_t)n;
			continue;
		}
		ts = sqlite3_column_int64(p->st, 2);
		if (!pass_takes(p, (uint32_t)series, ts))
			continue;
		sums[series].samples += (uint64_t)n;
		if (p->state[series] != SERIES_PLAIN)
			sums[series].cpu_ns += (uint64_t)n * choice_period(series_run(p, (uint32_t)series), ts + p->s->t0);
	}
	return rc;
}

static int tell_sums(struct pass *p, const struct sum *sums, int (*each)(void *ctx, const struct store_total *t),
		     void *ctx)
{
	int rc = 0;

	for (size_t i = 1; i < p->s->n_series && !rc; i++) {
		const struct reading_task *t = &p->s->tasks[p->s->series_task[i]];
		struct store_total total = {
			.run = t->run, .process = t->process, .stack = p->s->series_stack[i], .tid = t->tid,
			.thread = t->thread, .samples = sums[i].samples, .cpu_ns = sums[i].cpu_ns,
		};

		if (!total.samples)
			continue;
		if (p->state[i] == SERIES_PLAIN)
			total.cpu_ns = total.samples * choice_period(&p->s->choice_runs[t->run], 0);
		rc = each(ctx, &total);
	}
	return rc;
}

int store_totals(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e)
{
	struct pass p;
	struct sum *sums;
	int rc = pass_open(&p, s, q, e);
	int told = 0;

	if (rc)
		return rc;
	sums = mem_array(s->n_series, sizeof(*sums));
	rc = sum_rows(&p, sums);
	if (rc == SQLITE_DONE)
		told = tell_sums(&p, sums, each, ctx);
	free(sums);
	rc = pass_close(&p, rc, e);
	return rc ? rc : told;
}

/* --- by time --- */

struct strip {
	uint64_t *cpu_ns;   /* by process */
	uint32_t *touched;
	size_t n_touched;
	int64_t step;       /* start, seconds since 1970 */
	int (*each)(void *ctx, int64_t from_ns, uint32_t process, uint64_t cpu_ns);
	void *ctx;
};

static int strip_tell(struct strip *x)
{
	int rc = 0;

	for (size_t i = 0; i < x->n_touched; i++) {
		uint32_t process = x->touched[i];

		if (!rc)
			rc = x->each(x->ctx, x->step * NSEC_PER_SEC, process, x->cpu_ns[process]);
		x->cpu_ns[process] = 0;
	}
	x->n_touched = 0;
	return rc;
}

static int strip_rows(struct pass *p, struct strip *x, uint32_t step_s, int *told)
{
	int rc;

	while (!*told && (rc = sqlite3_step(p->st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(p->st, 0);
		sqlite3_int64 n = sqlite3_column_int64(p->st, 1);
		int64_t ts = sqlite3_column_int64(p->st, 2);
		int64_t at = ts + p->s->t0;
		uint64_t cpu_ns;
		uint32_t process;

		if (series <= 0 || (size_t)series >= p->s->n_series || n <= 0 || !pass_takes(p, (uint32_t)series, ts))
			continue;
		at -= at % step_s;
		if (at != x->step)
			*told = strip_tell(x);
		x->step = at;
		process = p->s->tasks[p->s->series_task[series]].process;
		cpu_ns = (uint64_t)n * choice_period(series_run(p, (uint32_t)series), ts + p->s->t0);
		if (cpu_ns && !x->cpu_ns[process])
			x->touched[x->n_touched++] = process;
		x->cpu_ns[process] += cpu_ns;
	}
	return *told ? SQLITE_DONE : rc;
}

int store_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		   int (*each)(void *ctx, int64_t from_ns, uint32_t process, uint64_t cpu_ns), void *ctx,
		   struct err *e)
{
	struct strip x = {.each = each, .ctx = ctx};
	struct pass p;
	int told = 0;
	int rc = pass_open(&p, s, q, e);

	if (rc)
		return rc;
	x.cpu_ns = mem_array(s->dict.n_processes, sizeof(*x.cpu_ns));
	x.touched = mem_array(s->dict.n_processes, sizeof(*x.touched));
	rc = strip_rows(&p, &x, step_s ? step_s : 1, &told);
	if (rc == SQLITE_DONE && !told)
		told = strip_tell(&x);
	free(x.cpu_ns);
	free(x.touched);
	rc = pass_close(&p, rc, e);
	return rc ? rc : told;
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
	range_of(s, &q, &first, &last);
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
	range_of(s, &q, &first, &last);
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
