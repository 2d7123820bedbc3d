/* SPDX-License-Identifier: Apache-2.0 */
/* packing: see the header. */
#include "schema/store/packing.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/hoursums.h"
#include "schema/store/packorder.h"
#include "schema/store/packtable.h"
#include "schema/store/reading.h"

/* With the places of the columns by which their rows are in order, the first of which is a number. */
static const char *const TABLES[][2] = {
	{"text", "1"}, {"source", "1"}, {"function", "1"}, {"frame", "1"}, {"stack", "1"}, {"process", "1"}, {"task", "1"},
	{"series", "1"}, {"sample", "1, 2"}, {"rare_row", "1, 2, 3, 4, 5, 6"},
};
#define N_TABLES (sizeof(TABLES) / sizeof(TABLES[0]))

static const char *const VIEWS[][2] = {
	{"cpu_samples", "hour_samples"}, {"functions_top", "hour_functions"}, {"lines_top", "hour_lines"},
};
#define N_VIEWS (sizeof(VIEWS) / sizeof(VIEWS[0]))

static int exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

bool packing_is_packed(sqlite3 *db)
{
	return reading_number(db, "SELECT EXISTS (SELECT 1 FROM packed_table)", 0) != 0; /* an older schema has no such table */
}

bool packing_pays(sqlite3 *db)
{
	int64_t bytes = reading_number(db, "SELECT page_size * page_count FROM pragma_page_size, pragma_page_count", 0);
	int64_t rows = 0;

	for (size_t i = 0; i < N_TABLES; i++) {
		char *sql = sqlite3_mprintf("SELECT count(*) FROM %s", TABLES[i][0]);

		rows += sql ? reading_number(db, sql, 0) : 0;
		sqlite3_free(sql);
	}
	return rows * PACKING_ROW_BYTES > bytes / 2 &&
	       !reading_number(db, "SELECT EXISTS (SELECT 1 FROM amount) + EXISTS (SELECT 1 FROM wait_row) + EXISTS (SELECT 1 FROM wake_row)", 0);
}

static int view_by_hour(sqlite3 *db, const char *view, const char *by_hour)
{
	return packtable_exec(db, sqlite3_mprintf("INSERT INTO packed_view(name, sql) SELECT name, sql FROM sqlite_master WHERE name = %Q;"
					     "DROP VIEW %s; CREATE VIEW %s AS SELECT * FROM %s", view, view, view, by_hour));
}

static int pack_tables(sqlite3 *db, const struct packorder *o)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_TABLES; i++)
		rc = packtable_pack(db, TABLES[i][0], TABLES[i][1], o);
	return rc;
}

/* Names while they are rows (migration 19). */
#define NAME_ENDINGS                                                                                                   \
	"INSERT INTO run_ending(run, executable, module, reason, n) SELECT u.run, coalesce(t.value, ''), coalesce(i.name, '')," \
	" u.reason, sum(u.n) FROM run_unwound u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image GROUP BY 1, 2, 3, 4"

int packing_pack(sqlite3 *db, const struct packorder *o)
{
	int rc = hoursums_fill(db);

	if (rc == SQLITE_OK)
		rc = exec(db, NAME_ENDINGS);

	if (rc == SQLITE_OK && o)
		rc = sqlite3_create_function(db, "sonde_number", 2, SQLITE_UTF8, (void *)o, packtable_number, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = pack_tables(db, o);
	if (o)
		sqlite3_create_function(db, "sonde_number", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL);
	for (size_t i = 0; rc == SQLITE_OK && i < N_VIEWS; i++)
		rc = view_by_hour(db, VIEWS[i][0], VIEWS[i][1]);
	return rc;
}

/* --- and back --- */

/* The text of one row's last column, and the number before it; NULL: no such row. Nothing is being read after it: a table
 * that is to be dropped may not be. */
static char *text_of(sqlite3 *db, const char *sql, const char *name, int64_t *number)
{
	sqlite3_stmt *st = NULL;
	char *out = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 1)) {
		*number = sqlite3_column_int64(st, 0);
		out = mem_strdup((const char *)sqlite3_column_text(st, 1));
	}
	sqlite3_finalize(st);
	return out;
}

static int unpack_tables(sqlite3 *db)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_TABLES; i++) {
		int64_t rows = 0;
		char *sql = text_of(db, "SELECT rows, sql FROM packed_table WHERE name = ?1", TABLES[i][0], &rows);

		if (sql)
			rc = rows > 0 && rows <= COLUMN_MAX ? packtable_unpack(db, TABLES[i][0], (size_t)rows, sql) : SQLITE_CORRUPT;
		free(sql);
	}
	return rc;
}

static int unpack_views(sqlite3 *db)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_VIEWS; i++) {
		int64_t none;
		char *sql = text_of(db, "SELECT 0, sql FROM packed_view WHERE name = ?1", VIEWS[i][0], &none);

		if (sql)
			rc = packtable_exec(db, sqlite3_mprintf("DROP VIEW %s; %s", VIEWS[i][0], sql));
		free(sql);
	}
	return rc;
}

#define FORGET "DELETE FROM packed_table; DELETE FROM packed_view; DELETE FROM hour_row; DELETE FROM hour_place; DELETE FROM hour_who;" \
	       "DELETE FROM run_ending"

int packing_unpack(sqlite3 *db, bool *any)
{
	bool there = packing_is_packed(db);
	int rc;

	if (any)
		*any = there;
	if (!there)
		return SQLITE_OK;
	rc = unpack_tables(db);
	if (rc == SQLITE_OK)
		rc = unpack_views(db);
	return rc == SQLITE_OK ? exec(db, FORGET) : rc;
}
