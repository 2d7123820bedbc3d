/* SPDX-License-Identifier: Apache-2.0 */
/* commit_requests: what a batch has of store/write/requests.h. */
#include "schema/store/write/transaction.h"
#include "schema/store/model/hist.h"

static void commit_requestrow(struct commit *c, const struct request_row *r, int64_t run)
{
	cleanup_strbuf struct strbuf hist = STRBUF_INIT;
	uint64_t steps[HIST_WIDE] = {0};
	uint32_t text[4], process = commit_process(c, r->process);
	sqlite3_stmt *st;

	for (int i = 0; i < 4; i++)
		text[i] = commit_text(c, r->text[i]);
	st = commit_stmt(c, ST_REQUEST);
	if (!st)
		return;
	sqlite3_bind_int64(st, 1, r->ts - c->seg->t0);
	sqlite3_bind_int64(st, 2, run);
	sqlite3_bind_int64(st, 3, process);
	sqlite3_bind_int64(st, 4, r->side);
	for (int i = 0; i < 4; i++)
		sqlite3_bind_int64(st, 5 + i, text[i]);
	sqlite3_bind_int64(st, 9, r->result);
	for (int i = 0; i < REQUEST_ROW_NUMBERS; i++)
		sqlite3_bind_int64(st, 10 + i, (sqlite3_int64)r->value[i]);
	for (size_t i = 0; i < r->n_steps && i < HIST_WIDE; i++)
		steps[i] = r->steps ? r->steps[i] : 0;
	if (hist_encode_wide(steps, &hist))
		sqlite3_bind_text(st, 10 + REQUEST_ROW_NUMBERS, hist.buf, (int)hist.len, SQLITE_STATIC);
	else
		sqlite3_bind_null(st, 10 + REQUEST_ROW_NUMBERS);
	commit_step(c, st, NULL);
	sqlite3_bind_null(st, 10 + REQUEST_ROW_NUMBERS);
}

void commit_requests(struct commit *c, const struct batch *b, const struct commit_run *runs)
{
	for (uint32_t i = 0; i < b->requests.n && c->rc == SQLITE_OK; i++) {
		const struct request_row *r = &b->requests.rows[i];

		commit_requestrow(c, r, runs[r->run - 1].row);
		commit_sum_of(c, r->run, COMMIT_SUM_FACTS, r->value[0]);
	}
}
