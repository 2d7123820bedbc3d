/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/write/commit/commit_rows.h"

#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/model/fact_sql.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/commit/commit_dict.h"

/* --- samples --- */

static int order_by_key(const void *a, const void *b)
{
	const struct commit_order *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

void commit_samples(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	sqlite3_stmt *st;

	if (b->n_rows > c->cap_order) {
		c->cap_order = b->cap_rows;
		c->order = mem_realloc(c->order, c->cap_order * sizeof(*c->order));
	}
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++) {
		c->order[i] =
			(struct commit_order){.ts = b->rows[i].ts - c->seg->t0,
					      .n = b->rows[i].n,
					      .row = commit_series(c, b->rows[i].series, runs)};
		commit_sum(c, b->rows[i].series, b->rows[i].n);
	}
	st = b->n_rows ? commit_stmt(c, ST_SAMPLE) : NULL;
	if (!st)
		return;
	qsort(c->order, b->n_rows, sizeof(*c->order), order_by_key);
	for (uint32_t i = 0; i < b->n_rows && c->rc == SQLITE_OK; i++) {
		sqlite3_bind_int64(st, 1, c->order[i].ts);
		sqlite3_bind_int64(st, 2, c->order[i].row);
		sqlite3_bind_int64(st, 3, (sqlite3_int64)c->order[i].n);
		commit_step(c, st, NULL);
	}
}

void commit_loss(struct commit *c, int64_t ts, int64_t run, const char *reason, uint64_t n)
{
	sqlite3_stmt *st = commit_stmt(c, ST_LOSS);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, reason);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)n);
	commit_step(c, st, NULL);
}

void commit_cost(struct commit *c, const struct batch_cost *x, int64_t run)
{
	sqlite3_stmt *st = commit_stmt(c, ST_COST);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	bind_str(st, 3, x->program);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)x->cost.cpu_ns);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)x->cost.runs);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->cost.rss_bytes);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)x->cost.private_bytes);
	sqlite3_bind_int64(st, 8, (sqlite3_int64)x->cost.map_bytes);
	commit_step(c, st, NULL);
}

void commit_unwound(struct commit *c, const struct batch_unwound *x, int64_t run)
{
	uint32_t exe = commit_text(c, x->exe), image = commit_image(c, x->image);
	sqlite3_stmt *st = commit_stmt(c, ST_UNWOUND);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, exe);
	sqlite3_bind_int64(st, 4, image);
	sqlite3_bind_int64(st, 5, x->reason);
	sqlite3_bind_int64(st, 6, (sqlite3_int64)x->n);
	commit_step(c, st, NULL);
}

void commit_end(struct commit *c, const struct batch_end *x, int64_t run)
{
	uint32_t comm = commit_text(c, x->comm), container = commit_container(c, x->container);
	sqlite3_stmt *st = commit_stmt(c, ST_END);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, comm);
	sqlite3_bind_int64(st, 4, container);
	sqlite3_bind_int64(st, 5, x->how);
	sqlite3_bind_int64(st, 6, x->status);
	sqlite3_bind_int64(st, 7, (sqlite3_int64)x->n);
	commit_step(c, st, NULL);
}

/* --- amounts, in the file's order --- */

static int amount_by_key(const void *a, const void *b)
{
	const struct commit_amount *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index; /* of a gauge the last one holds */
}

/* `base` as hist_encode has it. */
static void bind_hist_of(sqlite3_stmt *st, int at, unsigned base, const struct hist *h,
			 struct strbuf *text)
{
	if (hist_encode(h, base, text))
		sqlite3_bind_text(st, at, text->buf, (int)text->len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}

static void put_amount(struct commit *c, enum commit_stmt how, const struct commit_amount *o,
		       const struct amount_row *r)
{
	sqlite3_stmt *st = commit_stmt(c, how);
	struct strbuf hist = STRBUF_INIT;

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, o->ts);
	sqlite3_bind_int64(st, 2, o->row);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)r->n);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)r->value);
	sqlite3_bind_int64(st, 5, (sqlite3_int64)r->max);
	bind_hist_of(st, 6, 0, &r->hist, &hist);
	commit_step(c, st, NULL);
	sqlite3_bind_null(st, 6);
	strbuf_release(&hist);
}

static void put_amount_error(struct commit *c, const struct commit_amount *o,
			     const struct amount_row *r)
{
	sqlite3_stmt *st;

	if (!r->n_variance && !r->value_variance)
		return;
	st = commit_stmt(c, ST_AMOUNT_ERROR);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, o->ts);
	sqlite3_bind_int64(st, 2, o->row);
	sqlite3_bind_int64(st, 3, (sqlite3_int64)r->n_variance);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)r->value_variance);
	commit_step(c, st, NULL);
}

/* Of a gauge the last one holds: only a new row counts. */
static void commit_gauge(struct commit *c, const struct commit_amount *o,
			 const struct amount_row *r)
{
	put_amount(c, ST_GAUGE, o, r);
	if (c->rc == SQLITE_OK && sqlite3_changes(c->seg->db))
		commit_sum(c, r->series, 1);
	else
		put_amount(c, ST_GAUGE_AGAIN, o, r);
}

static void commit_amount(struct commit *c, const struct commit_amount *o,
			  const struct amount_row *r)
{
	if (r->gauge) {
		commit_gauge(c, o, r);
		return;
	}
	put_amount(c, ST_AMOUNT, o, r);
	put_amount_error(c, o, r);
	commit_sum(c, r->series, r->n);
}

static void commit_rate(struct commit *c, const struct batch_rate *x, const struct commit_run *runs)
{
	uint32_t process = commit_process(c, x->process);
	sqlite3_stmt *st = commit_stmt(c, ST_RATE);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, runs[x->run - 1].row);
	sqlite3_bind_int64(st, 2, process);
	sqlite3_bind_int64(st, 3, x->ts - c->seg->t0);
	sqlite3_bind_int64(st, 4, (sqlite3_int64)x->bytes);
	commit_step(c, st, NULL);
}

static void commit_note(struct commit *c, const struct batch_note *x, const struct commit_run *runs)
{
	uint32_t process = commit_process(c, x->process), value = commit_text(c, x->value);
	sqlite3_stmt *st = commit_stmt(c, ST_NOTE);

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, runs[x->run - 1].row);
	sqlite3_bind_int64(st, 2, process);
	bind_str(st, 3, x->key);
	sqlite3_bind_int64(st, 4, value);
	commit_step(c, st, NULL);
}

void commit_amounts(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	const struct amounts *a = &b->amounts;

	for (uint32_t i = 0; i < b->n_rates && c->rc == SQLITE_OK; i++)
		commit_rate(c, &b->rates[i], runs);
	for (uint32_t i = 0; i < b->n_notes && c->rc == SQLITE_OK; i++)
		commit_note(c, &b->notes[i], runs);
	if (a->n > c->cap_amount) {
		c->cap_amount = a->cap;
		c->amount = mem_realloc(c->amount, c->cap_amount * sizeof(*c->amount));
	}
	for (uint32_t i = 0; i < a->n && c->rc == SQLITE_OK; i++)
		c->amount[i] =
			(struct commit_amount){.ts = a->rows[i].ts - c->seg->t0,
					       .index = i,
					       .row = commit_series(c, a->rows[i].series, runs)};
	if (c->rc != SQLITE_OK || !a->n)
		return;
	qsort(c->amount, a->n, sizeof(*c->amount), amount_by_key);
	for (uint32_t i = 0; i < a->n && c->rc == SQLITE_OK; i++)
		commit_amount(c, &c->amount[i], &a->rows[c->amount[i].index]);
}

/* --- waits --- */

static const enum commit_stmt stmt_of[WAIT_ROW_TABLES] = {
	[WAIT_ROW_WAIT] = ST_WAIT,       [WAIT_ROW_WAKE] = ST_WAKE,
	[WAIT_ROW_CULPRIT] = ST_CULPRIT, [WAIT_ROW_THROTTLE] = ST_THROTTLE,
	[WAIT_ROW_STEAL] = ST_STEAL,     [WAIT_ROW_ON] = ST_WAIT_ON,
	[WAIT_ROW_SLOWED] = ST_SLOWED,
};

/* Slots are counted from `base` on. */
static void bind_hist(sqlite3_stmt *st, int at, unsigned base, unsigned first,
		      const uint32_t *counts, size_t n, struct strbuf *text)
{
	struct hist h = {0};

	if (counts)
		hist_add(&h, base + first, counts, n);
	bind_hist_of(st, at, base, &h, text);
	hist_release(&h);
}

/* The keys of a row, behind ts and whose it is; returns where its numbers begin. */
static int bind_keys(sqlite3_stmt *st, const struct wait_row *r, uint32_t by, uint32_t stack,
		     uint32_t text)
{
	switch (r->table) {
	case WAIT_ROW_WAIT:
		sqlite3_bind_int64(st, 3, r->class);
		sqlite3_bind_int64(st, 4, r->flags);
		return 5;
	case WAIT_ROW_WAKE:
		sqlite3_bind_int64(st, 3, r->class);
		sqlite3_bind_int64(st, 4, by);
		sqlite3_bind_int64(st, 5, r->flags);
		sqlite3_bind_int64(st, 6, stack);
		return 7;
	case WAIT_ROW_ON:
		sqlite3_bind_int64(st, 3, r->class);
		sqlite3_bind_int64(st, 4, text);
		sqlite3_bind_int64(st, 5, by);
		sqlite3_bind_int64(st, 6, stack);
		return 7;
	case WAIT_ROW_CULPRIT:
		sqlite3_bind_int64(st, 3, by);
		sqlite3_bind_int64(st, 4, r->class);
		return 5;
	default:
		return 3;
	}
}

static void commit_wait_row(struct commit *c, const struct wait_row *r,
			    const struct commit_run *runs)
{
	bool of_run = r->table == WAIT_ROW_THROTTLE || r->table == WAIT_ROW_STEAL ||
		      r->table == WAIT_ROW_SLOWED;
	uint32_t text = of_run                  ? commit_text(c, r->task) :
			r->table == WAIT_ROW_ON ? commit_text(c, r->flags) :
						  0;
	uint32_t task = of_run ? 0 : commit_task(c, r->task, runs);
	uint32_t by = commit_task(c, r->by, runs), stack = commit_stack(c, r->stack);
	sqlite3_stmt *st = commit_stmt(c, stmt_of[r->table]);
	cleanup_strbuf struct strbuf hist = STRBUF_INIT;
	int at, last;

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2,
			   of_run ? (sqlite3_int64)runs[r->run - 1].row : (sqlite3_int64)task);
	at = bind_keys(st, r, by, stack, text);
	if (r->table == WAIT_ROW_THROTTLE)
		sqlite3_bind_int64(st, at++, text);
	last = sqlite3_bind_parameter_count(st) - (r->table == WAIT_ROW_WAIT);
	for (int i = 0; i < 3 && at <= last; i++)
		sqlite3_bind_int64(st, at++, (sqlite3_int64)r->value[i]);
	if (r->table == WAIT_ROW_WAIT)
		bind_hist_of(st, at, 0, &r->sum, &hist);
	commit_step(c, st, NULL);
	if (r->table == WAIT_ROW_WAIT)
		sqlite3_bind_null(st, at);
}

void commit_waits(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < b->waits.n && c->rc == SQLITE_OK; i++)
		commit_wait_row(c, &b->waits.rows[i], runs);
}

/* --- requests --- */

static void commit_request_row(struct commit *c, const struct request_row *r, int64_t run)
{
	const int at = r->part ? 11 : 10, numbers = r->part ? 3 : REQUEST_ROW_NUMBERS;
	cleanup_strbuf struct strbuf hist = STRBUF_INIT;
	uint32_t text[4], process = commit_process(c, r->process);
	sqlite3_stmt *st;

	for (int i = 0; i < 4; i++)
		text[i] = commit_text(c, r->text[i]);
	st = commit_stmt(c, r->part ? ST_REQUEST_PHASE : ST_REQUEST);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, process);
	sqlite3_bind_int64(st, 4, r->side);
	for (int i = 0; i < 4; i++)
		sqlite3_bind_int64(st, 5 + i, text[i]);
	sqlite3_bind_int64(st, 9, r->result);
	if (r->part)
		sqlite3_bind_int64(st, 10, r->part);
	for (int i = 0; i < numbers; i++)
		sqlite3_bind_int64(st, at + i, (sqlite3_int64)r->value[i]);
	bind_hist(st, at + numbers, HIST_FINE, r->first_step, r->steps, r->n_steps, &hist);
	commit_step(c, st, NULL);
	sqlite3_bind_null(st, at + numbers);
}

void commit_requests(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < b->requests.n && c->rc == SQLITE_OK; i++) {
		const struct request_row *r = &b->requests.rows[i];

		commit_request_row(c, r, runs[r->run - 1].row);
		if (!r->part)
			commit_sum_of(c, r->run, COMMIT_SUM_FACTS, r->value[0]);
	}
}

/* --- facts: their statements come from the declarations, at their first use --- */

_Static_assert(ST_N + FACT_TABLES_MAX <= SEGMENT_STMTS, "room for the statements");

static sqlite3_stmt *fact_stmt(struct commit *c, const struct fact *f)
{
	int at = ST_N + (int)facts_index(f);
	cleanup_strbuf struct strbuf sql = STRBUF_INIT;
	sqlite3_stmt *st;

	if (c->rc != SQLITE_OK)
		return NULL;
	if (!c->seg->stmt[at])
		fact_insert_sql(f, &sql);
	st = segment_stmt(c->seg, at, strbuf_str(&sql));
	if (!st)
		commit_fail(c, sqlite3_errcode(c->seg->db));
	return st;
}

static int64_t value_row(struct commit *c, enum fact_type type, int64_t value,
			 const struct commit_run *runs)
{
	switch (type) {
	case FACT_TEXT:
		return commit_text(c, (uint32_t)value);
	case FACT_PROCESS:
		return commit_process(c, (uint32_t)value);
	case FACT_SERIES:
		return commit_series(c, (uint32_t)value, runs);
	case FACT_CONTAINER:
		return commit_container(c, (uint32_t)value);
	default:
		return value;
	}
}

static void commit_fact(struct commit *c, const struct factrows *rows, const struct factrow *r,
			const struct commit_run *runs)
{
	const struct fact *f = r->fact;
	const int64_t *value = rows->values + r->first;
	int64_t out[FACT_COLUMNS_MAX];
	sqlite3_stmt *st;

	for (uint32_t i = 0; i < f->n; i++) /* before the statement is in use */
		out[i] = r->set >> i & 1 ? value_row(c, f->columns[i].type, *value++, runs) : 0;
	st = fact_stmt(c, f);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, runs[r->run - 1].row);
	for (uint32_t i = 0; i < f->n; i++) {
		if (r->set >> i & 1 || f->columns[i].type != FACT_NUMBER)
			sqlite3_bind_int64(st, (int)i + 3, out[i]);
		else
			sqlite3_bind_null(st, (int)i + 3);
	}
	commit_step(c, st, NULL);
	if (!f->beside)
		commit_sum_of(c, r->run, COMMIT_SUM_FACTS, 1);
}

void commit_facts(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < b->facts.n && c->rc == SQLITE_OK; i++)
		commit_fact(c, &b->facts, &b->facts.rows[i], runs);
}
