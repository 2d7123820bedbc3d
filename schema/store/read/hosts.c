/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A temporary view hides the file's table of the same name, but not inside the file's own views. So
 * those are created again as temporary views, too. (An archive's are always temporary.)
 */
#include "schema/store/read/hosts.h"

#include <sqlite3.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/packed/module.h"

static bool wanted;

void store_name_hosts(bool on)
{
	wanted = on;
}

bool store_names_hosts(void)
{
	return wanted;
}

char *hosts_of(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	const char *host = NULL;
	char *copy;

	if (!wanted)
		return NULL;
	if (sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'host'", -1, &st, NULL) ==
		    SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		host = (const char *)sqlite3_column_text(st, 0);
	copy = mem_strdup(host && *host ? host : "unknown");
	sqlite3_finalize(st);
	for (char *p = copy; *p; p++)
		if (*p == '/') /* which ends the host's name */
			*p = '-';
	return copy;
}

static int name_containers(sqlite3 *db, const char *host)
{
	struct strbuf columns cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	char *sql;
	int rc = sqlite3_prepare_v2(
		db, "SELECT name FROM pragma_table_info('container', 'main') ORDER BY cid", -1, &st,
		NULL);

	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		char *column =
			!strcmp(name, "name") ?
				sqlite3_mprintf(
					"%Q || '/' || iif(name = '', substr(runtime_id, 1, 12), name) AS name",
					host) :
				sqlite3_mprintf("\"%w\"", name);

		strbuf_addf(&columns, "%s%s", columns.len ? ", " : "", column ? column : "");
		sqlite3_free(column);
	}
	sqlite3_finalize(st);
	if (rc != SQLITE_OK || !columns.len)
		return rc;
	sql = sqlite3_mprintf("CREATE TEMP VIEW container AS SELECT %s FROM main.container",
			      strbuf_str(&columns));
	rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

static int make_views(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT sql FROM main.sqlite_master WHERE type = 'view'",
				    -1, &st, NULL);

	if (rc != SQLITE_OK)
		return rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = packed_view(db, (const char *)sqlite3_column_text(st, 0));
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int hosts_name(sqlite3 *db, const char *host)
{
	int rc;

	sqlite3_exec(db, "PRAGMA query_only=0", NULL, NULL, NULL);
	rc = name_containers(db, host);
	if (rc == SQLITE_OK)
		rc = make_views(db);
	sqlite3_exec(db, "PRAGMA query_only=1", NULL, NULL, NULL);
	return rc;
}
