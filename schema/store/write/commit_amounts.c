/* SPDX-License-Identifier: Apache-2.0 */
/* commit_amounts: the amounts of a batch, in the file's order, the rates that they were sampled at, and notes on processes. */
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/write/transaction.h"
#include "schema/store/model/hist.h"

static int amount_by_key(const void *a, const void *b)
{
	const struct commit_amount *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index; /* of a gauge the last one holds */
}

static void put_amount(struct commit *c, enum commit_stmt how, const struct commit_amount *o, const struct amount_row *r)
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
	if (r->hist && hist_encode(r->hist, &hist))
		sqlite3_bind_text(st, 6, hist.buf, (int)hist.len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, 6);
	commit_step(c, st, NULL);
	sqlite3_bind_null(st, 6);
	strbuf_release(&hist);
}

/* Of a gauge the last one holds: only a new row counts. */
static void commit_gauge(struct commit *c, const struct commit_amount *o, const struct amount_row *r)
{
	put_amount(c, ST_GAUGE, o, r);
	if (c->rc == SQLITE_OK && sqlite3_changes(c->seg->db))
		commit_sum(c, r->series, 1);
	else
		put_amount(c, ST_GAUGE_AGAIN, o, r);
}

static void commit_amount(struct commit *c, const struct commit_amount *o, const struct amount_row *r)
{
	if (r->gauge) {
		commit_gauge(c, o, r);
		return;
	}
	put_amount(c, ST_AMOUNT, o, r);
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
		c->amount[i] = (struct commit_amount){.ts = a->rows[i].ts - c->seg->t0, .index = i,
						      .row = commit_series(c, a->rows[i].series, runs)};
	if (c->rc != SQLITE_OK || !a->n)
		return;
	qsort(c->amount, a->n, sizeof(*c->amount), amount_by_key);
	for (uint32_t i = 0; i < a->n && c->rc == SQLITE_OK; i++)
		commit_amount(c, &c->amount[i], &a->rows[c->amount[i].index]);
}
