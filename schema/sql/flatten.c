/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatten: writes the schema that all migrations add up to, as one text. The build runs it. New
 * files of the store use that text: applying the migrations one by one would parse all views at
 * each ALTER TABLE, and parse views that a later migration replaces (60 ms of CPU instead of 10).
 *
 * Every migration is applied to an empty file in memory; then its schema is written in the order in
 * which it came to be, and the rows that are there before its triggers: SCHEMA_WHOLE, a C string.
 * SCHEMA_KNOWN: the plain text (plain.h) of everything that a file of any version has which is
 * still read, sorted. Exit 1: a migration fails.
 */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/sql/migrations.h"
#include "schema/sql/plain.h"
#include "schema/sql/oldest.h"

static int fail(sqlite3 *db, const char *what)
{
	fprintf(stderr, "flatten: %s: %s\n", what, sqlite3_errmsg(db));
	return 1;
}

static void plain_call(sqlite3_context *c, int n, sqlite3_value **v)
{
	const char *sql = (const char *)sqlite3_value_text(v[0]);
	char *out = sql ? malloc(strlen(sql) + 1) : NULL;

	(void)n;
	if (!out)
		return;
	plain_sql(sql, out);
	sqlite3_result_text(c, out, -1, free);
}

/* What a file of this version has. */
static int note_known(sqlite3 *db)
{
	return sqlite3_exec(
		db,
		"INSERT OR IGNORE INTO temp.known SELECT plain(sql) FROM main.sqlite_schema WHERE sql IS NOT NULL",
		NULL, NULL, NULL);
}

static int apply(sqlite3 *db)
{
	char note[96];

	if (sqlite3_create_function(db, "plain", 1, SQLITE_UTF8, NULL, plain_call, NULL, NULL) ||
	    sqlite3_exec(db, "CREATE TEMP TABLE known(sql TEXT PRIMARY KEY)", NULL, NULL, NULL))
		return fail(db, "known");

	for (size_t i = 0; i < sizeof(MIGRATIONS) / sizeof(MIGRATIONS[0]); i++) {
		snprintf(note, sizeof(note),
			 "INSERT OR REPLACE INTO meta(key, value) VALUES('schema_version', %d)",
			 MIGRATIONS[i].version);
		if (sqlite3_exec(db, MIGRATIONS[i].sql, NULL, NULL, NULL) ||
		    sqlite3_exec(db, note, NULL, NULL, NULL))
			return fail(db, MIGRATIONS[i].name);
		if (MIGRATIONS[i].version >= MIGRATE_OLDEST && note_known(db))
			return fail(db, MIGRATIONS[i].name);
	}
	return 0;
}

/* As lines of a C string, without the last quote. */
static void print_text(const char *text)
{
	putchar('"');
	for (; *text; text++) {
		if (*text == '\n')
			fputs("\\n\"\n\"", stdout);
		else if (*text == '\t')
			fputs("\\t", stdout);
		else
			printf(*text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
	}
}

/* A statement among others in one string. */
static void print(const char *text)
{
	print_text(text);
	puts(";\\n\"");
}

static int print_known(sqlite3 *db)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, "SELECT sql FROM temp.known ORDER BY sql", -1, &st, NULL))
		return fail(db, "known");
	puts("static const char *const SCHEMA_KNOWN[] = {");
	while (sqlite3_step(st) == SQLITE_ROW) {
		print_text((const char *)sqlite3_column_text(st, 0));
		puts("\",");
	}
	puts("};");
	return sqlite3_finalize(st) ? fail(db, "known") : 0;
}

/* Each first column of the answer as a statement. */
static int print_all(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL))
		return fail(db, sql);
	while (sqlite3_step(st) == SQLITE_ROW)
		print((const char *)sqlite3_column_text(st, 0));
	return sqlite3_finalize(st) ? fail(db, sql) : 0;
}

/* A SELECT that gives the INSERT of each of the table's rows. */
static int print_rows(sqlite3 *db, const char *table)
{
	char *sql, *columns = NULL;
	sqlite3_stmt *st;
	int rc = 1;

	sql = sqlite3_mprintf(
		"SELECT group_concat('quote(\"' || name || '\")', ' || '','' || ') FROM pragma_table_info(%Q)",
		table);
	if (!sqlite3_prepare_v2(db, sql, -1, &st, NULL) && sqlite3_step(st) == SQLITE_ROW)
		columns = sqlite3_mprintf(
			"SELECT 'INSERT INTO \"%w\" VALUES(' || %s || ')' FROM \"%w\"", table,
			sqlite3_column_text(st, 0), table);
	sqlite3_finalize(st);
	if (columns)
		rc = print_all(db, columns);
	sqlite3_free(sql);
	sqlite3_free(columns);
	return rc;
}

static int print_data(sqlite3 *db)
{
	sqlite3_stmt *st;
	int rc = 0;

	if (sqlite3_prepare_v2(
		    db,
		    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
		    -1, &st, NULL))
		return fail(db, "tables");
	while (!rc && sqlite3_step(st) == SQLITE_ROW)
		rc = print_rows(db, (const char *)sqlite3_column_text(st, 0));
	return sqlite3_finalize(st) || rc;
}

int main(void)
{
	sqlite3 *db;
	int rc = sqlite3_open(":memory:", &db);

	puts("/* made from schema/sql/NNNN-*.sql by flatten.c */\nstatic const char SCHEMA_WHOLE[] =");
	rc = rc || apply(db) ||
	     print_all(
		     db,
		     "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND type <> 'trigger' AND name NOT LIKE 'sqlite_%' ORDER BY rowid") ||
	     print_data(db) ||
	     print_all(db, "SELECT sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid");
	puts(";");
	rc = rc || print_known(db);
	sqlite3_close(db);
	return rc;
}
