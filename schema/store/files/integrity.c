/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/integrity.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/store/files/readonly.h"

#define TABLES_MAX 256
#define NAME_MAX_  64

static bool sqlite_says_so(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool ok = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &st, NULL) == SQLITE_OK &&
		  sqlite3_step(st) == SQLITE_ROW &&
		  !strcmp((const char *)sqlite3_column_text(st, 0) ?: "", "ok");

	sqlite3_finalize(st);
	return ok;
}

/* All rows with all columns: each column is decoded once. */
static bool table_is_sound(sqlite3 *db, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT * FROM \"%w\"", table);
	sqlite3_stmt *st = NULL;
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = SQLITE_OK;
	sqlite3_finalize(st);
	sqlite3_free(sql);
	return rc == SQLITE_DONE;
}

static bool columns_are_sound(sqlite3 *db)
{
	char names[TABLES_MAX][NAME_MAX_];
	sqlite3_stmt *st = NULL;
	bool sound = true;
	int n = 0, rc;

	rc = sqlite3_prepare_v2(db, "SELECT name FROM packed_table", -1, &st, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW && n < TABLES_MAX) {
		snprintf(names[n++], NAME_MAX_, "%s",
			 (const char *)sqlite3_column_text(st, 0) ?: "");
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	for (int i = 0; sound && i < n; i++)
		sound = table_is_sound(db, names[i]);
	return sound && rc == SQLITE_DONE;
}

bool integrity_holds(const char *path)
{
	struct err e = {0};
	sqlite3 *db;
	bool sound;

	if (readonly_open(path, &db, &e))
		return false;
	sound = sqlite_says_so(db) && columns_are_sound(db);
	sqlite3_close(db);
	return sound;
}
