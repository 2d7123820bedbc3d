/* SPDX-License-Identifier: Apache-2.0 */
/* packtable: see the header. */
#include "schema/store/packtable.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/packedcolumns.h"

int packtable_exec(sqlite3 *db, char *sql)
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

void packtable_number(sqlite3_context *out, int argc, sqlite3_value **argv)
{
	(void)argc;
	sqlite3_result_int64(out, packorder_number(sqlite3_user_data(out), (enum packorder_kind)sqlite3_value_int(argv[0]), sqlite3_value_int64(argv[1])));
}

/* --- rows into columns --- */

/* What the new numbers of packorder.h are in. */
static const struct {
	const char *table, *column;
	enum packorder_kind kind;
} NUMBERED[] = {
	{"function", "id", PACKORDER_FUNCTION}, {"frame", "id", PACKORDER_FRAME}, {"frame", "function", PACKORDER_FUNCTION},
	{"frame", "outer", PACKORDER_FRAME}, {"series", "id", PACKORDER_SERIES}, {"series", "stack", PACKORDER_STACK},
	{"sample", "series", PACKORDER_SERIES},
};

/* Columns that others tell (packedcolumns.h, forms 6 and 7). */
static const struct {
	const char *table, *column, *of;
} TOLD[] = {
	{"function", "hash", "name"}, {"source", "hash", "path"}, {"process", "ppid", "pid"}, {"process", "start_ticks", "start_ns"},
	{"process", "end_ns", "start_ns"},
};

struct columns {
	int n;
	char *name[PACKEDCOLUMNS_MAX];
	bool is_number[PACKEDCOLUMNS_MAX]; /* as the table declares */
	struct column c[PACKEDCOLUMNS_MAX];
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
	c->null = mem_array(cap, sizeof(*c->null));
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

/* NULL stands as 0 or '' and is marked. */
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
		rc = type == SQLITE_NULL ? take_text(c, &x->text_cap[i], "", 0) :
		     take_text(c, &x->text_cap[i], (const char *)sqlite3_column_text(st, i), sqlite3_column_bytes(st, i));
	c->n += rc == SQLITE_OK;
	return rc;
}

/* A column as it is to be read: by its new number. */
static char *asked(const char *table, const char *column, bool renumber)
{
	for (size_t i = 0; renumber && i < sizeof(NUMBERED) / sizeof(NUMBERED[0]); i++)
		if (!strcmp(NUMBERED[i].table, table) && !strcmp(NUMBERED[i].column, column))
			return sqlite3_mprintf("sonde_number(%d, \"%w\")", NUMBERED[i].kind, column);
	return sqlite3_mprintf("\"%w\"", column);
}

static int read_names(sqlite3 *db, const char *table, struct columns *x)
{
	sqlite3_stmt *st = NULL;
	int rc = prepare_text(db, sqlite3_mprintf("SELECT name, type FROM pragma_table_info(%Q) ORDER BY cid", table), &st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = x->n == PACKEDCOLUMNS_MAX ? SQLITE_TOOBIG : SQLITE_OK;
		if (rc == SQLITE_OK) {
			x->is_number[x->n] = !strcmp((const char *)sqlite3_column_text(st, 1), "INTEGER");
			x->name[x->n++] = mem_strdup((const char *)sqlite3_column_text(st, 0));
		}
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_rows(sqlite3 *db, const char *table, const char *order, bool renumber, struct columns *x)
{
	sqlite3_str *sql = sqlite3_str_new(db);
	sqlite3_stmt *st = NULL;
	int rc;

	for (int i = 0; i < x->n; i++) {
		char *column = asked(table, x->name[i], renumber);

		sqlite3_str_appendf(sql, "%s %s", i ? "," : "SELECT", column ? column : "");
		sqlite3_free(column);
	}
	sqlite3_str_appendf(sql, " FROM \"%w\" ORDER BY %s", table, order);
	rc = prepare_text(db, sqlite3_str_finish(sql), &st);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		for (int i = 0; i < x->n && (rc == SQLITE_OK || rc == SQLITE_ROW); i++)
			rc = take_value(x, st, i);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Stacks in their new order are others than the rows are. */
static int read_stacks(const struct packorder *o, struct columns *x)
{
	struct stackcolumns s;
	int rc = packorder_stacks(o, &s);

	if (rc != SQLITE_OK)
		return rc;
	x->c[0] = (struct column){.n = s.base.n, .numbers = mem_array(s.base.n + 1, sizeof(int64_t))};
	for (size_t i = 0; i < s.base.n; i++)
		x->c[0].numbers[i] = (int64_t)i + 1;
	x->c[1] = s.base;
	x->c[2] = s.keep;
	x->c[3] = s.leaf;
	x->c[4] = s.tail;
	return SQLITE_OK;
}

static bool is_stack(const char *table, const struct columns *x)
{
	return !strcmp(table, "stack") && x->n == 5 && column_named(x, "base") == 1 && column_named(x, "tail") == 4;
}

static int read_table(sqlite3 *db, const char *table, const char *order, const struct packorder *o, struct columns *x)
{
	int rc = read_names(db, table, x);

	if (rc != SQLITE_OK)
		return rc;
	return o && is_stack(table, x) ? read_stacks(o, x) : read_rows(db, table, order, o, x);
}

/* --- columns into bytes --- */

static int put_bytes(sqlite3 *db, const char *table, int number, const struct columns *x, const uint8_t *data, size_t len)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "INSERT INTO packed_column(\"table\", number, name, type, data) VALUES(?1, ?2, ?3, ?4, ?5)", -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
		sqlite3_bind_int(st, 2, number);
		sqlite3_bind_text(st, 3, x->name[number], -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 4, x->c[number].numbers ? "INTEGER" : "TEXT", -1, SQLITE_STATIC);
		sqlite3_bind_blob64(st, 5, data, len, SQLITE_STATIC);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

static int told_by(const char *table, const struct columns *x, int number)
{
	for (size_t i = 0; i < sizeof(TOLD) / sizeof(TOLD[0]); i++)
		if (!strcmp(TOLD[i].table, table) && !strcmp(TOLD[i].column, x->name[number]))
			return column_named(x, TOLD[i].of);
	return -1;
}

static int put_column(sqlite3 *db, const char *table, int number, const struct columns *x)
{
	uint8_t *data = NULL;
	size_t len;
	int rc = packedcolumns_encode(x->c, number, told_by(table, x, number), &data, &len) ? SQLITE_TOOBIG : SQLITE_OK;

	if (rc == SQLITE_OK)
		rc = put_bytes(db, table, number, x, data, len);
	free(data);
	return rc;
}

/* How many columns it put: none, or four. */
static int put_stacks(sqlite3 *db, const char *table, const struct columns *x, int *n)
{
	uint8_t *data[4] = {0};
	size_t len[4];
	int rc = SQLITE_OK;

	*n = is_stack(table, x) && !packedcolumns_encode_stacks(x->c, 1, data, len) ? 4 : 0;
	for (int i = 0; rc == SQLITE_OK && i < *n; i++)
		rc = put_bytes(db, table, 1 + i, x, data[i], len[i]);
	for (int i = 0; i < 4; i++)
		free(data[i]);
	return rc;
}

/* What makes the table and its indexes stands in the schema, the table first. */
static int swap_in(sqlite3 *db, const char *table, size_t rows)
{
	int rc = packtable_exec(db, sqlite3_mprintf("INSERT INTO packed_table(name, rows, sql) SELECT %Q, %lld, group_concat(sql, ';') FROM"
					       " (SELECT sql FROM sqlite_master WHERE tbl_name = %Q AND sql IS NOT NULL ORDER BY type = 'table' DESC)",
					       table, (long long)rows, table));

	return rc == SQLITE_OK ? packtable_exec(db, sqlite3_mprintf("DROP TABLE \"%w\"; CREATE VIRTUAL TABLE \"%w\" USING sonde_packed", table, table)) : rc;
}

/* One without rows stays as it is. */
static int put_table(sqlite3 *db, const char *table, const struct columns *x)
{
	int together = 0, rc = x->c[0].n ? put_stacks(db, table, x, &together) : SQLITE_OK;

	for (int i = 0; rc == SQLITE_OK && x->c[0].n && i < x->n; i++)
		if (i < 1 || i > together)
			rc = put_column(db, table, i, x);
	return rc == SQLITE_OK && x->c[0].n ? swap_in(db, table, x->c[0].n) : rc;
}

int packtable_pack(sqlite3 *db, const char *table, const char *order, const struct packorder *o)
{
	struct columns x = {0};
	int rc = read_table(db, table, order, o, &x);

	if (rc == SQLITE_OK)
		rc = put_table(db, table, &x);
	columns_release(&x);
	return rc;
}

/* --- columns into rows --- */

struct packed_bytes {
	uint8_t *data[PACKEDCOLUMNS_MAX];
	size_t len[PACKEDCOLUMNS_MAX];
};

static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	struct packed_bytes *b = ctx;

	*data = malloc(b->len[i] + 1);
	if (!*data)
		return -ENOMEM;
	*len = b->len[i];
	memcpy(*data, b->data[i], *len);
	return 0;
}

static int read_bytes(sqlite3 *db, const char *table, struct packed_bytes *b, int *n)
{
	sqlite3_stmt *st = NULL;
	int rc = prepare_text(db, sqlite3_mprintf("SELECT data FROM packed_column WHERE \"table\" = %Q ORDER BY number", table), &st);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = *n == PACKEDCOLUMNS_MAX ? SQLITE_CORRUPT : SQLITE_OK;
		if (rc != SQLITE_OK)
			break;
		b->len[*n] = (size_t)sqlite3_column_bytes(st, 0);
		b->data[*n] = mem_alloc(b->len[*n] + 1);
		memcpy(b->data[*n], sqlite3_column_blob(st, 0), b->len[*n]);
		++*n;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_columns(sqlite3 *db, const char *table, struct packedcolumns *p)
{
	struct packed_bytes b = {0};
	int rc = read_bytes(db, table, &b, &p->n);

	p->fetch = fetch;
	p->ctx = &b;
	for (int i = 0; rc == SQLITE_OK && i < p->n; i++)
		rc = packedcolumns_need(p, i) ? SQLITE_CORRUPT : SQLITE_OK;
	for (int i = 0; i < PACKEDCOLUMNS_MAX; i++)
		free(b.data[i]);
	return rc;
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
			if (c[i].null && c[i].null[k])
				sqlite3_bind_null(st, i + 1);
			else if (c[i].numbers)
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
static int make_rows(sqlite3 *db, const char *table, const struct packedcolumns *p, const char *sql)
{
	sqlite3_stmt *st = NULL;
	const char *indexes = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, &indexes);

	if (rc == SQLITE_OK) {
		sqlite3_step(st);
		rc = sqlite3_finalize(st);
	}
	if (rc == SQLITE_OK)
		rc = put_rows(db, table, p->n_rows, p->c, p->n);
	return rc == SQLITE_OK ? sqlite3_exec(db, indexes, NULL, NULL, NULL) : rc;
}

int packtable_unpack(sqlite3 *db, const char *table, size_t rows, const char *sql)
{
	struct packedcolumns p = {.n_rows = rows};
	int rc = read_columns(db, table, &p);

	if (rc == SQLITE_OK)
		rc = packtable_exec(db, sqlite3_mprintf("DROP TABLE \"%w\"; DELETE FROM packed_column WHERE \"table\" = %Q", table, table));
	if (rc == SQLITE_OK)
		rc = make_rows(db, table, &p, sql);
	packedcolumns_release(&p);
	return rc;
}
