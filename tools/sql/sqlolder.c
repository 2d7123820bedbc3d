/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sql/sqlolder.h"

#include <ctype.h>
#include <string.h>

#include "schema/base/strbuf.h"
#include "schema/store/files/migrate.h"

#define WINDOW "win_"

/* Without the marks of windows. */
static void plain_add(struct strbuf *out, const char *sql)
{
	for (const char *at = sql; *at; at++) {
		const bool begins = at == sql || (!isalnum((unsigned char)at[-1]) && at[-1] != '_');

		if (begins && !strncasecmp(at, WINDOW, strlen(WINDOW)))
			at += strlen(WINDOW) - 1;
		else
			strbuf_addch(out, *at);
	}
}

/* An empty store of the newest schema; NULL: there is no memory for one. */
static sqlite3 *newest_open(void)
{
	sqlite3 *db = NULL;

	if (sqlite3_open(":memory:", &db) == SQLITE_OK && migrate_apply(db, 0) == SQLITE_OK)
		return db;
	sqlite3_close(db);
	return NULL;
}

bool sqlolder(sqlite3 *db, const char *sql, int *version)
{
	struct strbuf plain cleanup_strbuf = STRBUF_INIT;
	sqlite3 *newest;
	sqlite3_stmt *st = NULL;
	bool understood;

	*version = migrate_version(db);
	if (*version <= 0 || *version >= migrate_known())
		return false;
	newest = newest_open();
	if (!newest)
		return false;
	plain_add(&plain, sql);
	understood =
		sqlite3_prepare_v2(newest, strbuf_str(&plain), -1, &st, NULL) == SQLITE_OK && st;
	sqlite3_finalize(st);
	sqlite3_close(newest);
	return understood;
}
