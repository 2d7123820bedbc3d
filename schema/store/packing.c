/* SPDX-License-Identifier: Apache-2.0 */
/* packing: see the header. */
#include "schema/store/packing.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/column.h"
#include "schema/store/hoursums.h"
#include "schema/store/reading.h"

#define COLUMNS_MAX 32

/* With the columns by which their rows are in order, the first of which is a number. */
static const char *const TABLES[][2] = {
	{"text", "id"}, {"source", "id"}, {"function", "id"}, {"frame", "id"}, {"stack", "id"}, {"process", "id"}, {"task", "id"},
	{"series", "id"}, {"sample", "ts, series"},
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

/* Of these words; the text is freed. */
static int exec_text(sqlite3 *db, char *sql)
{
	int rc = sql ? exec(db, sql) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

static int prepare_text(sqlite3 *db, char *sql, sqlite3_stmt **out)
{
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
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

/* --- rows into columns --- */

struct building {
	struct column c;
	size_t cap, text_cap;
	bool is_number;
};

static int take_text(struct building *b, const char *text, int len)
{
	uint32_t from = b->c.at ? b->c.at[b->c.n] : 0;

	if (!text || len < 0 || (size_t)len + 1 > COLUMN_MAX - from)
		return SQLITE_TOOBIG;
	if (from + (size_t)len + 1 > b->text_cap) {
		b->text_cap = 2 * (from + (size_t)len + 1);
		b->c.text = mem_realloc(b->c.text, b->text_cap);
	}
	memcpy(b->c.text + from, text, (size_t)len);
	b->c.text[from + (uint32_t)len] = '\0';
	b->c.at[b->c.n + 1] = from + (uint32_t)len + 1;
	return SQLITE_OK;
}

static int take_value(struct building *b, sqlite3_stmt *st, int i)
{
	int rc = SQLITE_OK;

	if (sqlite3_column_type(st, i) != (b->is_number ? SQLITE_INTEGER : SQLITE_TEXT))
		return SQLITE_MISMATCH;
	if (b->c.n == b->cap) {
		b->cap = b->cap ? 2 * b->cap : 1024;
		if (b->is_number)
			b->c.numbers = mem_realloc(b->c.numbers, b->cap * sizeof(*b->c.numbers));
		else
			b->c.at = mem_realloc(b->c.at, (b->cap + 1) * sizeof(*b->c.at));
	}
	if (b->is_number) {
		b->c.numbers[b->c.n] = sqlite3_column_int64(st, i);
	} else {
		b->c.at[0] = 0;
		rc = take_text(b, (const char *)sqlite3_column_text(st, i), sqlite3_column_bytes(st, i));
	}
	b->c.n += rc == SQLITE_OK;
	return rc;
}

static int read_rows(sqlite3_stmt *st, struct building *b, int n)
{
	int rc;

	for (int i = 0; i < n; i++) {
		const char *type = sqlite3_column_decltype(st, i);

		b[i].is_number = type && !strcmp(type, "INTEGER");
	}
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		for (int i = 0; i < n; i++) {
			rc = take_value(&b[i], st, i);
			if (rc != SQLITE_OK)
				return rc;
		}
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put_column(sqlite3 *db, const char *table, int number, const char *name, const struct building *b)
{
	sqlite3_stmt *st = NULL;
	uint8_t *data = NULL;
	size_t len;
	int rc = sqlite3_prepare_v2(db, "INSERT INTO packed_column(\"table\", number, name, type, data) VALUES(?1, ?2, ?3, ?4, ?5)", -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = column_encode(&b->c, &data, &len) ? SQLITE_TOOBIG : SQLITE_OK;
	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
		sqlite3_bind_int(st, 2, number);
		sqlite3_bind_text(st, 3, name, -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 4, b->is_number ? "INTEGER" : "TEXT", -1, SQLITE_STATIC);
		sqlite3_bind_blob64(st, 5, data, len, SQLITE_STATIC);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	free(data);
	return rc;
}

/* What makes the table and its indexes stands in the schema, the table first. */
static int swap_in(sqlite3 *db, const char *table, size_t rows)
{
	int rc = exec_text(db, sqlite3_mprintf("INSERT INTO packed_table(name, rows, sql) SELECT %Q, %lld, group_concat(sql, ';') FROM"
					       " (SELECT sql FROM sqlite_master WHERE tbl_name = %Q AND sql IS NOT NULL ORDER BY type = 'table' DESC)",
					       table, (long long)rows, table));

	return rc == SQLITE_OK ? exec_text(db, sqlite3_mprintf("DROP TABLE \"%w\"; CREATE VIRTUAL TABLE \"%w\" USING sonde_packed", table, table)) : rc;
}

/* One without rows stays as it is. */
static int pack_table(sqlite3 *db, const char *table, const char *order)
{
	struct building b[COLUMNS_MAX] = {0};
	sqlite3_stmt *st = NULL;
	int rc = prepare_text(db, sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s", table, order), &st), n = sqlite3_column_count(st);

	if (rc == SQLITE_OK)
		rc = n > COLUMNS_MAX ? SQLITE_TOOBIG : read_rows(st, b, n);
	for (int i = 0; rc == SQLITE_OK && b[0].c.n && i < n; i++)
		rc = put_column(db, table, i, sqlite3_column_name(st, i), &b[i]);
	sqlite3_finalize(st);
	if (rc == SQLITE_OK && b[0].c.n)
		rc = swap_in(db, table, b[0].c.n);
	for (int i = 0; i < COLUMNS_MAX; i++)
		column_release(&b[i].c);
	return rc;
}

static int view_by_hour(sqlite3 *db, const char *view, const char *by_hour)
{
	return exec_text(db, sqlite3_mprintf("INSERT INTO packed_view(name, sql) SELECT name, sql FROM sqlite_master WHERE name = %Q;"
					     "DROP VIEW %s; CREATE VIEW %s AS SELECT * FROM %s", view, view, view, by_hour));
}

int packing_pack(sqlite3 *db)
{
	int rc = hoursums_fill(db);

	for (size_t i = 0; rc == SQLITE_OK && i < N_TABLES; i++)
		rc = pack_table(db, TABLES[i][0], TABLES[i][1]);
	for (size_t i = 0; rc == SQLITE_OK && i < N_VIEWS; i++)
		rc = view_by_hour(db, VIEWS[i][0], VIEWS[i][1]);
	return rc;
}

/* --- columns into rows --- */

static int read_columns(sqlite3 *db, const char *table, size_t rows, struct column *c, int *n)
{
	sqlite3_stmt *st = NULL;
	int rc = prepare_text(db, sqlite3_mprintf("SELECT data FROM packed_column WHERE \"table\" = %Q ORDER BY number", table), &st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = *n == COLUMNS_MAX || column_decode(sqlite3_column_blob(st, 0), (size_t)sqlite3_column_bytes(st, 0), rows, &c[*n]) ?
			     SQLITE_CORRUPT : SQLITE_OK;
		++*n;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put_rows(sqlite3 *db, const char *table, size_t rows, const struct column *c, int n)
{
	struct strbuf marks cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc;

	for (int i = 0; i < n; i++)
		strbuf_addstr(&marks, i ? ", ?" : "?");
	rc = prepare_text(db, sqlite3_mprintf("INSERT INTO \"%w\" VALUES(%s)", table, strbuf_str(&marks)), &st);
	for (size_t k = 0; rc == SQLITE_OK && k < rows; k++) {
		for (int i = 0; i < n; i++)
			if (c[i].numbers)
				sqlite3_bind_int64(st, i + 1, c[i].numbers[k]);
			else
				sqlite3_bind_text(st, i + 1, c[i].text + c[i].at[k], (int)(c[i].at[k + 1] - c[i].at[k] - 1), SQLITE_STATIC);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

/* Its indexes are made behind its rows, as they were written: by `sql`, statement by statement. */
static int unpack_table(sqlite3 *db, const char *table, size_t rows, const char *sql)
{
	struct column c[COLUMNS_MAX] = {0};
	sqlite3_stmt *st = NULL;
	const char *indexes = NULL;
	int n = 0, rc = read_columns(db, table, rows, c, &n);

	if (rc == SQLITE_OK)
		rc = exec_text(db, sqlite3_mprintf("DROP TABLE \"%w\"; DELETE FROM packed_column WHERE \"table\" = %Q", table, table));
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, sql, -1, &st, &indexes);
	if (rc == SQLITE_OK) {
		sqlite3_step(st);
		rc = sqlite3_finalize(st);
	}
	if (rc == SQLITE_OK)
		rc = put_rows(db, table, rows, c, n);
	if (rc == SQLITE_OK)
		rc = exec(db, indexes);
	for (int i = 0; i < COLUMNS_MAX; i++)
		column_release(&c[i]);
	return rc;
}

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
			rc = rows > 0 && rows <= COLUMN_MAX ? unpack_table(db, TABLES[i][0], (size_t)rows, sql) : SQLITE_CORRUPT;
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
			rc = exec_text(db, sqlite3_mprintf("DROP VIEW %s; %s", VIEWS[i][0], sql));
		free(sql);
	}
	return rc;
}

#define FORGET "DELETE FROM packed_table; DELETE FROM packed_view; DELETE FROM hour_row; DELETE FROM hour_place; DELETE FROM hour_who"

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
