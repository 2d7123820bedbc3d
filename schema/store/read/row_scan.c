/* SPDX-License-Identifier: Apache-2.0 */
/* row_scan: which rows count. */
#include "schema/store/read/row_scan.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/files/readonly.h"

void row_scan_range(const struct store_segment *s, const struct store_query *q, int64_t *first,
		    int64_t *last)
{
	*first = q->from_ns <= 0 ? INT64_MIN :
				   (q->from_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC - s->t0;
	*last = q->to_ns > INT64_MAX - NSEC_PER_SEC ?
			INT64_MAX :
			(q->to_ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC - s->t0 - 1;
}

int64_t row_scan_part_end(const struct row_scan *p, size_t part)
{
	struct store_query to = {.to_ns = INT64_MAX};
	int64_t first, last;

	if (part + 1 >= p->q->n_parts)
		return INT64_MAX;
	to.to_ns = p->q->part_to_ns[part];
	row_scan_range(p->s, &to, &first, &last);
	return last + 1;
}

int row_scan_begin_tasks(struct row_scan *p, struct store_segment *s, const struct store_query *q,
			 struct err *e)
{
	const struct store_dict *d;
	int rc = store_segment_tasks(s, &d, e);

	*p = (struct row_scan){.s = s, .q = q};
	if (rc)
		return rc;
	choice_init(&p->choice, s->choice_runs, d->n_runs, d->n_processes);
	for (size_t i = 0; s->day && i < d->n_runs; i++)
		s->choice_runs[i].alone = true; /* of each of its files that is so */
	for (size_t i = 1; i < s->n_tasks; i++)
		choice_has(&p->choice, s->tasks[i].run, s->tasks[i].process);
	if (q->whole_to_ns)
		choice_window(&p->choice, q->whole_from_ns, q->whole_to_ns);
	else
		choice_window(&p->choice, q->from_ns, q->to_ns);
	p->by_task = mem_array(s->n_tasks, 1);
	return 0;
}

int row_scan_begin(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		   struct err *e)
{
	const struct store_dict *d;
	int rc = store_segment_series(s, &d, e);

	*p = (struct row_scan){.s = s, .q = q};
	if (!rc)
		rc = row_scan_begin_tasks(p, s, q, e);
	if (!rc)
		p->state = mem_array(s->n_series, 1);
	return rc;
}

void row_scan_release(struct row_scan *p)
{
	packedread_release(&p->columns);
	choice_release(&p->choice);
	free(p->state);
	free(p->by_task);
}

int row_scan_prepare(struct row_scan *p, const char *sql, struct err *e)
{
	int64_t first, last;

	p->st = reading_prepare(p->s, sql, e);
	if (!p->st) {
		row_scan_release(p);
		return e && e->code ? e->code : -EIO;
	}
	row_scan_range(p->s, p->q, &first, &last);
	sqlite3_bind_int64(p->st, 1, first);
	sqlite3_bind_int64(p->st, 2, last);
	return 0;
}

int row_scan_open(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		  const char *sql, struct err *e)
{
	int rc = row_scan_begin(p, s, q, e);

	return rc ? rc : row_scan_prepare(p, sql, e);
}

bool row_scan_columns(struct row_scan *p, const char *table, const char *columns, int64_t first,
		      int64_t last)
{
	if (!p->s->archived || !packedread_open(&p->columns, p->s->db, table, columns))
		return false;
	p->first = first;
	p->last = last;
	p->block = packedtable_block_of(&p->columns.t, first);
	return true;
}

/* The block that p->block is: SQLITE_DONE: the range has no such block. */
static int block_decode(struct row_scan *p)
{
	const struct packedtable *t = &p->columns.t;
	int rc;

	if (p->block >= t->n_blocks || (t->range && t->range[p->block].first > p->last))
		return SQLITE_DONE;
	rc = packedread_block(&p->columns, p->block);
	if (rc)
		return rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
	p->n = p->columns.c[0]->n;
	p->at = 0;
	return SQLITE_ROW;
}

int row_scan_column(struct row_scan *p, size_t *row)
{
	for (;;) {
		int rc = p->n ? SQLITE_ROW : block_decode(p);

		if (rc != SQLITE_ROW)
			return rc;
		for (; p->at < p->n; p->at++) {
			const int64_t ts = p->columns.c[0]->numbers[p->at];

			if (ts < p->first || ts > p->last)
				continue;
			*row = p->at++;
			return SQLITE_ROW;
		}
		packedtable_release(&p->columns.t, p->block++);
		p->n = 0;
	}
}

int row_scan_open_samples(struct row_scan *p, struct store_segment *s, const struct store_query *q,
			  struct samples *c, struct err *e)
{
	int64_t first, last;
	int rc = row_scan_begin(p, s, q, e);

	if (rc)
		return rc;
	row_scan_range(s, q, &first, &last);
	rc = samples_open(c, s, first, last, e);
	if (rc)
		row_scan_release(p);
	return rc;
}

int row_scan_close(struct row_scan *p, int rc, struct err *e)
{
	row_scan_release(p);
	return reading_finish(p->s, p->st, rc, e);
}

/* First row of a task: is it asked for? */
static uint8_t task_state(const struct row_scan *p, const struct reading_task *t)
{
	const struct store_query *q = p->q;
	const struct choice_run *r = &p->s->choice_runs[t->run];

	if (!t->run || !t->process || t->kind != q->kind || (q->run && q->run != t->run))
		return SERIES_OUT;
	if (q->want && !q->want(q->ctx, &p->s->processes[t->process], t->thread, t->tid))
		return SERIES_OUT;
	if (q->want_labels && !q->want_labels(q->ctx, t->labels ? t->labels : ""))
		return SERIES_OUT;
	if (!q->run && !r->alone)
		return SERIES_CHOSEN;
	return r->n_periods > 1 ? SERIES_PERIODS : SERIES_PLAIN;
}

uint8_t row_scan_of_task(struct row_scan *p, uint32_t task)
{
	if (p->by_task[task] == SERIES_NEW)
		p->by_task[task] = task_state(p, &p->s->tasks[task]);
	return p->by_task[task];
}

/* The series of a thread are many, and all asked for, or none is. */
bool row_scan_takes(struct row_scan *p, uint32_t series, int64_t ts)
{
	const struct reading_task *t;

	if (p->state[series] == SERIES_NEW)
		p->state[series] = row_scan_of_task(p, p->s->series_task[series]);
	if (p->state[series] != SERIES_CHOSEN)
		return p->state[series] != SERIES_OUT;
	t = &p->s->tasks[p->s->series_task[series]];
	return choice_takes(&p->choice, t->run, t->process, ts + p->s->t0);
}

const struct choice_run *row_scan_run(const struct row_scan *p, uint32_t series)
{
	return &p->s->choice_runs[p->s->tasks[p->s->series_task[series]].run];
}

/* --- columns for others --- */

struct store_columns {
	struct row_scan scan;
	size_t row;
};

int64_t store_columns_number(const struct store_columns *c, int column)
{
	return packedread_number(&c->scan.columns, column, c->row);
}

const char *store_columns_text(const struct store_columns *c, int column)
{
	return packedread_text(&c->scan.columns, column, c->row);
}

bool store_columns_each(struct store_segment *s, const char *table, const char *columns,
			int64_t first_s, int64_t last_s,
			int (*row)(void *ctx, int64_t ts, const struct store_columns *c), void *ctx,
			int *rc, struct err *e)
{
	struct store_columns c = {.scan = {.s = s}};
	int step, told = 0;

	if (s->day || !reading_alone(s) ||
	    !row_scan_columns(&c.scan, table, columns, first_s - s->t0, last_s - s->t0))
		return false;
	while (!told && (step = row_scan_column(&c.scan, &c.row)) == SQLITE_ROW)
		told = row(ctx, c.scan.columns.c[0]->numbers[c.row] + s->t0, &c);
	packedread_release(&c.scan.columns);
	*rc = told ? told : step == SQLITE_DONE ? 0 : readonly_refused(s->path, s->db, step, e);
	return true;
}
