/* SPDX-License-Identifier: Apache-2.0 */
/* commit_facts: what a batch has of store/write/facts.h. The statements come from the declarations, at their first use. */
#include "schema/store/write/transaction.h"

_Static_assert(ST_N + FACT_TABLES_MAX <= SEGMENT_STMTS, "room for the statements");

static sqlite3_stmt *fact_stmt(struct commit *c, const struct fact *f)
{
	int at = ST_N + (int)facts_index(f);
	cleanup_strbuf struct strbuf sql = STRBUF_INIT;
	sqlite3_stmt *st;

	if (c->rc != SQLITE_OK)
		return NULL;
	if (!c->seg->stmt[at])
		facts_insert_sql(f, &sql);
	st = segment_stmt(c->seg, at, strbuf_str(&sql));
	if (!st)
		c->rc = sqlite3_errcode(c->seg->db);
	return st;
}

static int64_t value_row(struct commit *c, enum fact_type type, int64_t value, const struct commit_run *runs)
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

static void commit_fact(struct commit *c, const struct factrows *rows, const struct factrow *r, const struct commit_run *runs)
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
