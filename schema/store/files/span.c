/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/span.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/fact.h"
#include "schema/store/model/sql.h"

enum edge { EDGE_FIRST, EDGE_LAST };

static bool has_table(sqlite3 *db, const char *name)
{
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM sqlite_master WHERE name = '%s'", name);
	return sql_number(db, sql, 0) != 0;
}

/* *found: of what was found and of what a table has; an older schema has fewer tables. */
static int further(sqlite3 *db, const char *table, enum edge edge, int64_t *found)
{
	char sql[96]; /* not min() and max(): for these SQLite reads all rows of a virtual table */
	sqlite3_stmt *st = NULL;
	int64_t x;
	int rc;

	snprintf(sql, sizeof(sql), "SELECT ts FROM %s ORDER BY ts%s LIMIT 1", table,
		 edge == EDGE_LAST ? " DESC" : "");
	rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	else if (rc == SQLITE_ERROR && !has_table(db, table))
		rc = SQLITE_DONE;
	if (rc == SQLITE_ROW) {
		x = sqlite3_column_int64(st, 0);
		if (*found == INT64_MIN || (x < *found) != (edge == EDGE_LAST))
			*found = x;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* The first or last bucket of anything that was counted, seconds since t0. */
static int edge_of(sqlite3 *db, enum edge edge, int64_t *found)
{
	static const char *const tables[] = {"sample", "amount", "wait_row", "request_row",
					     "request_running_row"};
	bool facts = sql_number(db, "SELECT EXISTS (SELECT 1 FROM run_count WHERE kind = 0)",
				0); /* rows of facts */
	int rc = SQLITE_OK;

	*found = INT64_MIN;
	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(tables); i++)
		rc = further(db, tables[i], edge, found);
	for (size_t i = 0; rc == SQLITE_OK && facts && FACTS[i]; i++)
		rc = further(db, FACTS[i]->table, edge, found);
	return rc;
}

int span_read(sqlite3 *db, int64_t *first, int64_t *last)
{
	int rc = edge_of(db, EDGE_FIRST, first);

	return rc == SQLITE_OK ? edge_of(db, EDGE_LAST, last) : rc;
}

bool span_noted(sqlite3 *db, int64_t *first, int64_t *last)
{
	*first = sql_number(db, "SELECT value FROM meta WHERE key = 'first_ts'", INT64_MIN);
	*last = sql_number(db, "SELECT value FROM meta WHERE key = 'last_ts'", INT64_MIN);
	return *first != INT64_MIN;
}

int span_note(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int64_t first, last;
	int rc;

	rc = span_read(db, &first, &last);
	if (rc != SQLITE_OK || first == INT64_MIN)
		return rc;
	rc = sqlite3_prepare_v2(
		db,
		"INSERT OR REPLACE INTO meta(key, value) VALUES('first_ts', ?1), ('last_ts', ?2)",
		-1, &st, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_step(st);
	return sqlite3_finalize(st);
}
