/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/packing.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/named_share.h"
#include "schema/store/packed/pack_table.h"
#include "schema/store/packed/sample_sums.h"
#include "schema/store/packed/sums.h"

bool packing_is_packed(sqlite3 *db)
{
	return sql_number(db, "SELECT EXISTS (SELECT 1 FROM packed_table)", 0) !=
	       0; /* an older schema has no such table */
}

/* Names while they are rows. */
#define NAME_ENDINGS                                                                                                                       \
	"INSERT OR REPLACE INTO run_ending(run, executable, module, reason, n) SELECT u.run, coalesce(t.value, ''), coalesce(i.name, '')," \
	" u.reason, sum(u.n) FROM run_unwound u LEFT JOIN text t ON t.id = u.exe LEFT JOIN image i ON i.id = u.image GROUP BY 1, 2, 3, 4"

/* Rows of sums are wide: of this many, columns take less. */
#define SUMS_LEAST 8

/* --- any tables --- */

struct names {
	char (*name)[PACKING_NAME_MAX];
	size_t n, cap;
};

/* The first column of all rows. A text longer than a name is not one of ours. */
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

/* Those whose columns are numbers and texts, the first one a number by which their rows are in
 * order. */
#define PACKABLE                                                                                                                                    \
	"SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND m.sql NOT LIKE 'CREATE VIRTUAL%' AND m.name NOT LIKE 'sqlite@_%' ESCAPE '@'" \
	" AND m.name NOT IN ('meta', 'packed_table', 'packed_column', 'packed_block', 'packed_view', 'run_named', 'run_ending')"                    \
	" AND NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE type NOT IN ('INTEGER', 'TEXT'))"                                           \
	" AND EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE cid = 0 AND type = 'INTEGER' AND pk <= 1"                                       \
	" AND (pk = 1 OR NOT EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE pk > 0)))"
/* By the key, or by all columns if there is no key. */
#define ORDER                                                                                                            \
	"SELECT group_concat(n, ', ') FROM (SELECT cid + 1 AS n FROM pragma_table_info(%Q) i WHERE pk > 0 OR NOT EXISTS" \
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

static int pack_any(sqlite3 *db, const char *table, size_t least, size_t block_rows)
{
	char *count = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", table),
	     order[PACKING_NAME_MAX];
	int rc = count ? packing_order(db, table, order) : SQLITE_NOMEM;

	if (rc == SQLITE_OK && *order) {
		int64_t n = sql_number(db, count, 0);

		if (!n || n >= (int64_t)least)
			rc = pack_table_pack(db, table, order, block_rows);
	}
	sqlite3_free(count);
	return rc;
}

/* What made the views, and the tables that are packed, is itself packed. */
static int pack_schema(sqlite3 *db)
{
	struct names views = {0};
	int rc = sql_exec(
		db,
		"INSERT INTO packed_view(name, sql) SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid");

	if (rc == SQLITE_OK)
		rc = names_of(db, "SELECT name FROM packed_view ORDER BY id", &views);
	for (size_t i = 0; rc == SQLITE_OK && i < views.n; i++)
		rc = pack_table_exec(db, sqlite3_mprintf("DROP VIEW \"%w\"", views.name[i]));
	if (rc == SQLITE_OK)
		rc = sql_exec(
			db,
			"INSERT INTO packed_view(name, sql) SELECT name, sql FROM packed_table; UPDATE packed_table SET sql = ''");
	if (rc == SQLITE_OK)
		rc = pack_table_pack(db, "packed_view", "1",
				     PACKING_BLOCK_ROWS); /* text, and most of a small archive */
	free(views.name);
	return rc;
}

/* Those of samples are read as columns, or not at all. */
static size_t least_of(const char *table, size_t least)
{
	const size_t sums = sample_sums_has(table) ? 1 : sums_has(table) ? SUMS_LEAST : least;

	return sums < least ? sums : least;
}

int packing_pack(sqlite3 *db, size_t least, size_t block_rows)
{
	int rc = sql_exec(db, NAME_ENDINGS);

	if (rc == SQLITE_OK)
		rc = named_share_make(db);
	if (rc == SQLITE_OK)
		rc = sums_make(db);
	return rc == SQLITE_OK ? packing_pack_made(db, least, block_rows) : rc;
}

int packing_pack_made(sqlite3 *db, size_t least, size_t block_rows)
{
	struct names tables = {0};
	int rc = names_of(db, PACKABLE, &tables);

	for (size_t i = 0; rc == SQLITE_OK && i < tables.n; i++)
		rc = pack_any(db, tables.name[i], least_of(tables.name[i], least), block_rows);
	free(tables.name);
	return rc == SQLITE_OK ? pack_schema(db) : rc;
}

/* --- and back --- */

/* The text of one row; NULL: no such row. The statement is finished afterwards: a table cannot be
 * dropped while it is being read. */
static char *text_of(sqlite3 *db, const char *sql, const char *name)
{
	sqlite3_stmt *st = NULL;
	char *out = NULL;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		return NULL;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		out = mem_strdup((const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return out;
}

/* It is still named as packed: who unpacks one alone says otherwise. */
static int unpack_table(sqlite3 *db, const char *table)
{
	char *sql = text_of(
		db,
		"SELECT coalesce(nullif(t.sql, ''), v.sql) FROM packed_table t LEFT JOIN packed_view v ON v.name = t.name WHERE t.name = ?1",
		table);
	int rc = sql ? pack_table_unpack(db, table, sql) : SQLITE_OK;

	free(sql);
	return rc;
}

static int unpack_tables(sqlite3 *db)
{
	struct names tables = {0};
	int rc = names_of(db, "SELECT name FROM packed_table ORDER BY name = 'packed_view'",
			  &tables); /* what makes the others is in it */

	for (size_t i = 0; rc == SQLITE_OK && i < tables.n; i++)
		rc = unpack_table(db, tables.name[i]);
	free(tables.name);
	return rc;
}

int packing_unpack_one(sqlite3 *db, const char *table)
{
	int rc = unpack_table(db, table);

	return rc == SQLITE_OK ?
		       pack_table_exec(
			       db,
			       sqlite3_mprintf("DELETE FROM packed_table WHERE name = %Q", table)) :
		       rc;
}

int packing_pack_one(sqlite3 *db, const char *table)
{
	int rc = pack_any(db, table, 1,
			  PACKING_BLOCK_ROWS); /* a table that was packed before is packed again */

	/* if it was packed with the others, packed_view still has the statement that makes it */
	return rc != SQLITE_OK ?
		       rc :
		       pack_table_exec(
			       db,
			       sqlite3_mprintf(
				       "UPDATE packed_table SET sql = '' WHERE name = %Q AND EXISTS"
				       " (SELECT 1 FROM packed_view WHERE name = %Q AND sql LIKE 'CREATE TABLE%%')",
				       table, table));
}

static int make_views(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db, "SELECT sql FROM packed_view WHERE sql LIKE 'CREATE VIEW%' ORDER BY id", -1,
		&st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = sql_exec(db, (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

#define FORGET \
	"DELETE FROM packed_table; DELETE FROM packed_view; DELETE FROM run_ending; DELETE FROM run_named; DELETE FROM meta WHERE key IN ('archived_ns', 'first_ts', 'last_ts'); PRAGMA application_id = 0"

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
		rc = sums_drop(db);
	if (rc == SQLITE_OK)
		rc = make_views(db);
	return rc == SQLITE_OK ? sql_exec(db, FORGET) : rc;
}
