/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/archive/day_rows.h"

#include <errno.h>

int day_rows_open(struct day_rows *r, sqlite3 *db, const char *table, const char *columns)
{
	char *sql;
	int rc;

	r->st = NULL;
	r->block = r->at = r->n = 0;
	if (packedread_open(&r->columns, db, table, columns))
		return SQLITE_OK;
	sql = sqlite3_mprintf("SELECT %s FROM \"%w\"", columns, table);
	rc = sql ? sqlite3_prepare_v2(db, sql, -1, &r->st, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

static int block_read(struct day_rows *r)
{
	int rc;

	if (r->n)
		packedtable_release(&r->columns.t, r->block++);
	r->n = 0;
	if (r->block >= r->columns.t.n_blocks)
		return SQLITE_DONE;
	rc = packedread_block(&r->columns, r->block);
	if (rc)
		return rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT;
	r->at = 0;
	r->n = r->columns.c[0]->n;
	return SQLITE_ROW;
}

int day_rows_next(struct day_rows *r)
{
	if (r->st)
		return sqlite3_step(r->st);
	if (r->n && ++r->at < r->n)
		return SQLITE_ROW;
	return block_read(r);
}

int64_t day_rows_number(const struct day_rows *r, int i)
{
	return r->st ? sqlite3_column_int64(r->st, i) : packedread_number(&r->columns, i, r->at);
}

const char *day_rows_text(const struct day_rows *r, int i)
{
	const char *text = r->st ? (const char *)sqlite3_column_text(r->st, i) :
				   packedread_text(&r->columns, i, r->at);

	return text ? text : "";
}

int day_rows_close(struct day_rows *r, int rc)
{
	if (r->st)
		sqlite3_finalize(r->st);
	else
		packedread_release(&r->columns);
	r->st = NULL;
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
