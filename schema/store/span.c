/* SPDX-License-Identifier: Apache-2.0 */
/* span: see the header. */
#include "schema/store/span.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/facts/fact.h"
#include "schema/store/reading.h"

/* Of what was found and of what a table has. */
static int64_t further(sqlite3 *db, const char *table, const char *edge, int64_t found)
{
	char sql[96]; /* not min() and max(): for these SQLite reads all rows of a virtual table */
	int64_t x;

	snprintf(sql, sizeof(sql), "SELECT ts FROM %s ORDER BY ts %s LIMIT 1", table, !strcmp(edge, "max") ? "DESC" : "");
	x = reading_number(db, sql, INT64_MIN);
	return x != INT64_MIN && (found == INT64_MIN || (x < found) != !strcmp(edge, "max")) ? x : found;
}

/* The first or last bucket of anything that was counted, seconds since t0; INT64_MIN: nothing was. */
static int64_t edge_of(sqlite3 *db, const char *edge)
{
	static const char *const tables[] = {"sample", "amount", "wait_row"};
	int64_t found = INT64_MIN;

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		found = further(db, tables[i], edge, found);
	if (reading_number(db, "SELECT EXISTS (SELECT 1 FROM run_count WHERE kind = 0)", 0)) /* rows of facts */
		for (size_t i = 0; FACTS[i]; i++)
			found = further(db, FACTS[i]->table, edge, found);
	return found;
}

bool span_read(sqlite3 *db, int64_t *first, int64_t *last)
{
	*first = edge_of(db, "min");
	*last = edge_of(db, "max");
	return *first != INT64_MIN;
}

bool span_noted(sqlite3 *db, int64_t *first, int64_t *last)
{
	*first = reading_number(db, "SELECT value FROM meta WHERE key = 'first_ts'", INT64_MIN);
	*last = reading_number(db, "SELECT value FROM meta WHERE key = 'last_ts'", INT64_MIN);
	return *first != INT64_MIN;
}

int span_note(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int64_t first, last;
	int rc;

	if (!span_read(db, &first, &last))
		return SQLITE_OK;
	rc = sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO meta(key, value) VALUES('first_ts', ?1), ('last_ts', ?2)", -1, &st, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	sqlite3_step(st);
	return sqlite3_finalize(st);
}
