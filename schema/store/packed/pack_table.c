/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/pack_table.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/store/packed/fetch.h"

int pack_table_exec(sqlite3 *db, char *sql)
{
	int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

static int prepare_text(sqlite3 *db, char *sql, sqlite3_stmt **out)
{
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, out, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

/* --- rows into columns --- */

/* Columns that others tell (packed/columns.h, forms 6 and 7). */
static const struct {
	const char *table, *column, *of;
} TOLD[] = {
	{"function", "hash", "name"},      {"source", "hash", "path"},
	{"process", "ppid", "pid"},        {"process", "start_ticks", "start_ns"},
	{"process", "end_ns", "start_ns"},
};

struct columns {
	int n;
	char *name[PACKEDCOLUMNS_MAX];
	bool is_number[PACKEDCOLUMNS_MAX]; /* as the table declares */
	int64_t id[PACKEDCOLUMNS_MAX];     /* packed_column.id */
	struct column c[PACKEDCOLUMNS_MAX];
	size_t block_rows, n_blocks, n_rows; /* of those blocks that are written */
	size_t cap[PACKEDCOLUMNS_MAX], text_cap[PACKEDCOLUMNS_MAX];
};

static void columns_release(struct columns *x)
{
	for (int i = 0; i < x->n; i++) {
		free(x->name[i]);
		column_release(&x->c[i]);
	}
}

static int column_named(const struct columns *x, const char *name)
{
	for (int i = 0; i < x->n; i++)
		if (!strcmp(x->name[i], name))
			return i;
	return -1;
}

static int take_text(struct column *c, size_t *cap, const char *text, int len)
{
	uint32_t from = c->n ? c->at[c->n] : 0;

	if (!text || len < 0 || (size_t)len + 1 > COLUMN_MAX - from)
		return SQLITE_TOOBIG;
	if (from + (size_t)len + 1 > *cap) {
		*cap = 2 * (from + (size_t)len + 1);
		c->text = mem_realloc(c->text, *cap);
	}
	memcpy(c->text + from, text, (size_t)len);
	c->text[from + (uint32_t)len] = '\0';
	c->at[c->n] = from;
	c->at[c->n + 1] = from + (uint32_t)len + 1;
	return SQLITE_OK;
}

/* The first NULL of a column: none was before it. */
static void begin_nulls(struct column *c, size_t cap)
{
	c->null = mem_array(cap ? cap : 1, sizeof(*c->null));
}

static void more_room(struct column *c, bool is_number, size_t *cap)
{
	size_t more = *cap ? 2 * *cap : 1024;

	if (is_number)
		c->numbers = mem_realloc(c->numbers, more * sizeof(*c->numbers));
	else
		c->at = mem_realloc(c->at, (more + 1) * sizeof(*c->at));
	if (c->null) {
		c->null = mem_realloc(c->null, more);
		memset(c->null + *cap, 0, more - *cap);
	}
	*cap = more;
}

/* NULL is stored as 0 or '' and marked. */
static int take_value(struct columns *x, sqlite3_stmt *st, int i)
{
	struct column *c = &x->c[i];
	int type = sqlite3_column_type(st, i), rc = SQLITE_OK;

	if (type != SQLITE_NULL && type != (x->is_number[i] ? SQLITE_INTEGER : SQLITE_TEXT))
		return SQLITE_MISMATCH;
	if (c->n == x->cap[i])
		more_room(c, x->is_number[i], &x->cap[i]);
	if (type == SQLITE_NULL && !c->null)
		begin_nulls(c, x->cap[i]);
	if (type == SQLITE_NULL)
		c->null[c->n] = 1;
	if (x->is_number[i])
		c->numbers[c->n] = sqlite3_column_int64(st, i);
	else
		rc = type == SQLITE_NULL ?
			     take_text(c, &x->text_cap[i], "", 0) :
			     take_text(c, &x->text_cap[i], (const char *)sqlite3_column_text(st, i),
				       sqlite3_column_bytes(st, i));
	c->n += rc == SQLITE_OK;
	return rc;
}

static int read_names(sqlite3 *db, const char *table, struct columns *x)
{
	sqlite3_stmt *st = NULL;
	int rc = prepare_text(
		db,
		sqlite3_mprintf("SELECT name, type FROM pragma_table_info(%Q) ORDER BY cid", table),
		&st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = x->n == PACKEDCOLUMNS_MAX ? SQLITE_TOOBIG : SQLITE_OK;
		if (rc == SQLITE_OK) {
			x->is_number[x->n] =
				!strcmp((const char *)sqlite3_column_text(st, 1), "INTEGER");
			x->name[x->n++] = mem_strdup((const char *)sqlite3_column_text(st, 0));
		}
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool is_stack(const char *table, const struct columns *x)
{
	return !strcmp(table, "stack") && x->n == 5 && column_named(x, "base") == 1 &&
	       column_named(x, "tail") == 4;
}

/* Their memory stays for the next block. */
static void begin_block(struct columns *x)
{
	for (int i = 0; i < x->n; i++) {
		x->c[i].n = 0;
		free(x->c[i].null);
		x->c[i].null = NULL;
	}
}

/* --- columns into bytes --- */

/* Columns get their numbers: those of a table are one behind the other, from x->id on. */
static int put_names(sqlite3 *db, const char *table, struct columns *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"INSERT INTO packed_column(\"table\", number, name, type) VALUES(?1, ?2, ?3, ?4)",
		-1, &st, NULL);

	for (int i = 0; rc == SQLITE_OK && i < x->n; i++) {
		sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
		sqlite3_bind_int(st, 2, i);
		sqlite3_bind_text(st, 3, x->name[i], -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 4, x->is_number[i] ? "INTEGER" : "TEXT", -1, SQLITE_STATIC);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
		x->id[i] = sqlite3_last_insert_rowid(db);
	}
	sqlite3_finalize(st);
	return rc;
}

static int put_bytes(sqlite3_stmt *insert, int number, const struct columns *x, const uint8_t *data,
		     size_t len)
{
	const struct column *c = &x->c[number];

	sqlite3_bind_int64(
		insert, 1,
		(sqlite3_int64)((uint64_t)x->id[number] << PACKED_BLOCK_BITS | x->n_blocks));
	if (!number) {
		sqlite3_bind_int64(insert, 2, c->numbers[0]);
		sqlite3_bind_int64(insert, 3, c->numbers[c->n - 1]);
	} else {
		sqlite3_bind_null(insert, 2);
		sqlite3_bind_null(insert, 3);
	}
	sqlite3_bind_blob64(insert, 4, data, len, SQLITE_STATIC);
	sqlite3_step(insert);
	return sqlite3_reset(insert);
}

static int told_by(const char *table, const struct columns *x, int number)
{
	for (size_t i = 0; i < ARRAY_SIZE(TOLD); i++)
		if (!strcmp(TOLD[i].table, table) && !strcmp(TOLD[i].column, x->name[number]))
			return column_named(x, TOLD[i].of);
	return -1;
}

/* the place of the first key of wide rows: after ts and run (schema/facts/fact.h) */
#define WIDE_KEY 2

static bool is_wide(const struct columns *x)
{
	return x->n > WIDE_KEY + 1 && !strcmp(x->name[0], "ts") && !strcmp(x->name[1], "run");
}

static int put_column(sqlite3_stmt *insert, const char *table, int number, const struct columns *x)
{
	uint8_t *data = NULL;
	size_t len;
	int rc = is_wide(x) && number > WIDE_KEY ?
			 packedcolumns_encode_keyed(x->c, number, WIDE_KEY, &data, &len) :
			 packedcolumns_encode(x->c, number, told_by(table, x, number), &data, &len);

	rc = rc ? SQLITE_TOOBIG : SQLITE_OK;
	if (rc == SQLITE_OK)
		rc = put_bytes(insert, number, x, data, len);
	free(data);
	return rc;
}

/* How many columns it put: none, or four. */
static int put_stacks(sqlite3_stmt *insert, const char *table, const struct columns *x, int *n)
{
	uint8_t *data[4] = {0};
	size_t len[4];
	int rc = SQLITE_OK;

	*n = is_stack(table, x) && !packedcolumns_encode_stacks(x->c, 1, data, len) ? 4 : 0;
	for (int i = 0; rc == SQLITE_OK && i < *n; i++)
		rc = put_bytes(insert, 1 + i, x, data[i], len[i]);
	for (int i = 0; i < 4; i++)
		free(data[i]);
	return rc;
}

static int put_block(sqlite3_stmt *insert, const char *table, struct columns *x)
{
	int together = 0, rc = put_stacks(insert, table, x, &together);

	for (int i = 0; rc == SQLITE_OK && i < x->n; i++)
		if (i < 1 || i > together)
			rc = put_column(insert, table, i, x);
	x->n_rows += x->c[0].n;
	x->n_blocks++;
	begin_block(x);
	return rc;
}

static int put_rows(sqlite3_stmt *rows, sqlite3_stmt *insert, const char *table, struct columns *x)
{
	int rc;

	while ((rc = sqlite3_step(rows)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		for (int i = 0; rc == SQLITE_OK && i < x->n; i++)
			rc = take_value(x, rows, i);
		if (rc == SQLITE_OK && x->c[0].n == x->block_rows)
			rc = put_block(insert, table, x);
		if (rc != SQLITE_OK)
			return rc;
	}
	return rc != SQLITE_DONE ? rc : x->c[0].n ? put_block(insert, table, x) : SQLITE_OK;
}

/* What makes the table and its indexes is in the schema, the table first. */
static int swap_in(sqlite3 *db, const char *table, const struct columns *x)
{
	int rc = pack_table_exec(
		db,
		sqlite3_mprintf(
			"INSERT INTO packed_table(name, rows, block_rows, sql) SELECT %Q, %lld, %lld, group_concat(sql, ';') FROM"
			" (SELECT sql FROM sqlite_master WHERE tbl_name = %Q AND sql IS NOT NULL ORDER BY type = 'table' DESC)",
			table, (long long)x->n_rows, (long long)x->block_rows, table));

	return rc == SQLITE_OK ?
		       pack_table_exec(
			       db,
			       sqlite3_mprintf(
				       "DROP TABLE \"%w\"; CREATE VIRTUAL TABLE \"%w\" USING sonde_packed",
				       table, table)) :
		       rc;
}

static int pack(sqlite3 *db, const char *table, const char *order, struct columns *x)
{
	sqlite3_stmt *rows = NULL, *insert = NULL;
	int rc = prepare_text(db, sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s", table, order),
			      &rows);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
			db,
			"INSERT INTO packed_block(id, first, last, data) VALUES(?1, ?2, ?3, ?4)",
			-1, &insert, NULL);
	if (rc == SQLITE_OK)
		rc = put_rows(rows, insert, table, x);
	sqlite3_finalize(rows);
	sqlite3_finalize(insert);
	return rc == SQLITE_OK ? swap_in(db, table, x) : rc;
}

int pack_table_pack(sqlite3 *db, const char *table, const char *order, size_t block_rows)
{
	struct columns x = {0};
	int rc = read_names(db, table, &x);

	x.block_rows = is_stack(table, &x) ? COLUMN_MAX : block_rows;
	if (rc == SQLITE_OK)
		rc = put_names(db, table, &x);
	if (rc == SQLITE_OK)
		rc = pack(db, table, order, &x);
	columns_release(&x);
	return rc;
}

/* --- columns into rows --- */

/* Indexes are made behind the rows: by what is behind the first statement of `sql`. */
static int make_rows(sqlite3 *db, const char *table, const char *sql)
{
	sqlite3_stmt *st = NULL;
	const char *indexes = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, &indexes);

	if (rc == SQLITE_OK) {
		sqlite3_step(st);
		rc = sqlite3_finalize(st);
	}
	if (rc == SQLITE_OK)
		rc = pack_table_exec(
			db,
			sqlite3_mprintf(
				"INSERT INTO main.\"%w\" SELECT * FROM temp.unpacking; DROP TABLE temp.unpacking",
				table));
	return rc == SQLITE_OK ? sqlite3_exec(db, indexes, NULL, NULL, NULL) : rc;
}

int pack_table_unpack(sqlite3 *db, const char *table, const char *sql)
{
	int rc = pack_table_exec(
		db,
		sqlite3_mprintf(
			"DROP TABLE IF EXISTS temp.unpacking; CREATE TEMP TABLE unpacking AS SELECT * FROM main.\"%w\"; DROP TABLE main.\"%w\";"
			"DELETE FROM packed_block WHERE id >> %d IN (SELECT id FROM packed_column WHERE \"table\" = %Q);"
			"DELETE FROM packed_column WHERE \"table\" = %Q",
			table, table, PACKED_BLOCK_BITS, table, table));

	return rc == SQLITE_OK ? make_rows(db, table, sql) : rc;
}
