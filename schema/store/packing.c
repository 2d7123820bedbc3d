/* SPDX-License-Identifier: Apache-2.0 */
/* packing: see the header. */
#include "schema/store/packing.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/packorder.h"
#include "schema/store/packtable.h"
#include "schema/store/reading.h"

/* With the places of the columns by which their rows are in order, the first of which is a number. */
static const char *const TABLES[][2] = {
	{"text", "1"}, {"source", "1"}, {"function", "1"}, {"frame", "1"}, {"stack", "1"}, {"process", "1"}, {"task", "1"},
	{"series", "1"}, {"sample", "1, 2"},
};
#define PACKING_ROWS_LEAST 100 /* fewer take a page, which columns would take too */
#define N_TABLES (sizeof(TABLES) / sizeof(TABLES[0]))

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
	return rows * PACKING_ROW_BYTES > bytes / 2;
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
	"INSERT OR REPLACE INTO run_ending(run, executable, module, reason, n) SELECT u.run, coalesce(t.value, ''), coalesce(i.name, '')," \
	" u.reason, sum(u.n) FROM run_unwound u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image GROUP BY 1, 2, 3, 4"

/* Of each run's last hour. */
#define COUNT_NAMED                                                                                                    \
	"INSERT OR REPLACE INTO run_named(run, samples, named) SELECT run, sum(n), sum(iif(named, n, 0)) FROM (SELECT t.run, x.n, r.function > 0 AS named," \
	" x.ts, max(x.ts) OVER (PARTITION BY t.run) AS last FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task"  \
	" LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frame r ON r.id = k.leaf) WHERE ts > last - 3600 GROUP BY run"

/* --- any tables --- */

struct names {
	char (*name)[PACKING_NAME_MAX];
	size_t n, cap;
};

/* The first column of all rows; what is longer than a name may be is none of ours. */
static int names_of(sqlite3 *db, const char *sql, struct names *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		rc = SQLITE_OK;
		if (!name || strlen(name) >= PACKING_NAME_MAX)
			continue;
		mem_grow(out->name, out->n, out->cap);
		snprintf(out->name[out->n++], PACKING_NAME_MAX, "%s", name);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Those whose columns are numbers and texts, the first one a number by which their rows are in order. */
#define PACKABLE                                                                                                          \
	"SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND m.name NOT LIKE 'sqlite@_%' ESCAPE '@'" \
	" AND m.name NOT IN ('meta', 'packed_table', 'packed_column', 'run_named', 'run_ending')"                         \
	" AND NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE type NOT IN ('INTEGER', 'TEXT'))"                 \
	" AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE cid = 0 AND type = 'INTEGER' AND pk <= 1"              \
	" AND (pk = 1 OR NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE pk > 0)))"
/* By the key, or all columns where there is none. */
#define ORDER                                                                                                             \
	"SELECT group_concat(n, ', ') FROM (SELECT cid + 1 AS n FROM pragma_table_info(%Q) i WHERE pk > 0 OR NOT EXISTS"   \
	" (SELECT 1 FROM pragma_table_info(%Q) WHERE pk > 0) ORDER BY pk, cid)"

int packing_order(sqlite3 *db, const char *table, char out[PACKING_NAME_MAX])
{
	struct names order = {0};
	char *sql = sqlite3_mprintf(ORDER, table, table);
	int rc = sql ? names_of(db, sql, &order) : SQLITE_NOMEM;

	snprintf(out, PACKING_NAME_MAX, "%s", order.n ? order.name[0] : "");
	sqlite3_free(sql);
	free(order.name);
	return rc;
}

static int pack_any(sqlite3 *db, const char *table)
{
	char *count = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table), order[PACKING_NAME_MAX];
	int rc = count ? packing_order(db, table, order) : SQLITE_NOMEM;

	if (rc == SQLITE_OK && *order && reading_number(db, count, 0) >= PACKING_ROWS_LEAST)
		rc = packtable_pack(db, table, order, NULL);
	sqlite3_free(count);
	return rc;
}

int packing_pack_all(sqlite3 *db)
{
	struct names tables = {0};
	int rc = exec(db, NAME_ENDINGS);

	if (rc == SQLITE_OK)
		rc = exec(db, COUNT_NAMED);
	if (rc == SQLITE_OK)
		rc = names_of(db, PACKABLE, &tables);
	for (size_t i = 0; rc == SQLITE_OK && i < tables.n; i++)
		rc = pack_any(db, tables.name[i]);
	free(tables.name);
	return rc;
}

/* --- a day's tables --- */

int packing_pack(sqlite3 *db, const struct packorder *o)
{
	int rc = exec(db, NAME_ENDINGS);

	if (rc == SQLITE_OK)
		rc = exec(db, COUNT_NAMED);
	if (rc == SQLITE_OK && o)
		rc = sqlite3_create_function(db, "sonde_number", 2, SQLITE_UTF8, (void *)o, packtable_number, NULL, NULL);
	if (rc == SQLITE_OK)
		rc = pack_tables(db, o);
	if (o)
		sqlite3_create_function(db, "sonde_number", 2, SQLITE_UTF8, NULL, NULL, NULL, NULL);
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
	struct names tables = {0};
	int rc = names_of(db, "SELECT name FROM packed_table", &tables);

	for (size_t i = 0; rc == SQLITE_OK && i < tables.n; i++) {
		int64_t rows = 0;
		char *sql = text_of(db, "SELECT rows, sql FROM packed_table WHERE name = ?1", tables.name[i], &rows);

		if (sql)
			rc = rows > 0 && rows <= COLUMN_MAX ? packtable_unpack(db, tables.name[i], (size_t)rows, sql) : SQLITE_CORRUPT;
		free(sql);
	}
	free(tables.name);
	return rc;
}

#define FORGET "DELETE FROM packed_table; DELETE FROM run_ending; DELETE FROM run_named"

int packing_unpack(sqlite3 *db, bool *any)
{
	bool there = packing_is_packed(db);
	int rc;

	if (any)
		*any = there;
	if (!there)
		return SQLITE_OK;
	rc = unpack_tables(db);
	return rc == SQLITE_OK ? exec(db, FORGET) : rc;
}
