/* SPDX-License-Identifier: Apache-2.0 */
/* commit_waits: what a batch has of store/write/waits.h. */
#include "schema/store/write/transaction.h"
#include "schema/store/model/hist.h"
#include "schema/store/read/stacktree.h"

static const enum commit_stmt stmt_of[WAIT_ROW_TABLES] = {
	[WAIT_ROW_WAIT] = ST_WAIT, [WAIT_ROW_WAKE] = ST_WAKE, [WAIT_ROW_CULPRIT] = ST_CULPRIT,
	[WAIT_ROW_THROTTLE] = ST_THROTTLE, [WAIT_ROW_STEAL] = ST_STEAL, [WAIT_ROW_ON] = ST_WAIT_ON,
	[WAIT_ROW_SLOWED] = ST_SLOWED,
};

static void bind_hist(sqlite3_stmt *st, int at, const struct wait_row *r, struct strbuf *text)
{
	uint64_t counts[HIST_SLOTS] = {0};

	for (size_t i = 0; r->hist && i < r->n_hist && i < HIST_SLOTS; i++)
		counts[i] = r->hist[i];
	if (r->hist && hist_encode(counts, text))
		sqlite3_bind_text(st, at, text->buf, (int)text->len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, at);
}

/* The keys of a row, behind ts and whose it is; returns where its numbers begin. */
static int bind_keys(sqlite3_stmt *st, const struct wait_row *r, uint32_t by, uint32_t stack, uint32_t text)
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

static void commit_waitrow(struct commit *c, const struct wait_row *r, const struct commit_run *runs)
{
	bool of_run = r->table == WAIT_ROW_THROTTLE || r->table == WAIT_ROW_STEAL || r->table == WAIT_ROW_SLOWED;
	uint32_t text = of_run ? commit_text(c, r->task) : r->table == WAIT_ROW_ON ? commit_text(c, r->flags) : 0;
	uint32_t task = of_run ? 0 : commit_task(c, r->task, runs);
	uint32_t by = commit_task(c, r->by, runs), stack = r->stack ? stacktree_put(c, r->stack) : 0;
	sqlite3_stmt *st = commit_stmt(c, stmt_of[r->table]);
	cleanup_strbuf struct strbuf hist = STRBUF_INIT;
	int at, last;

	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, of_run ? (sqlite3_int64)runs[r->run - 1].row : (sqlite3_int64)task);
	at = bind_keys(st, r, by, stack, text);
	if (r->table == WAIT_ROW_THROTTLE)
		sqlite3_bind_int64(st, at++, text);
	last = sqlite3_bind_parameter_count(st) - (r->table == WAIT_ROW_WAIT);
	for (int i = 0; i < 3 && at <= last; i++)
		sqlite3_bind_int64(st, at++, (sqlite3_int64)r->value[i]);
	if (r->table == WAIT_ROW_WAIT)
		bind_hist(st, at, r, &hist);
	commit_step(c, st, NULL);
	if (r->table == WAIT_ROW_WAIT)
		sqlite3_bind_null(st, at);
}

void commit_waits(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < b->waits.n && c->rc == SQLITE_OK; i++)
		commit_waitrow(c, &b->waits.rows[i], runs);
}
