/* SPDX-License-Identifier: Apache-2.0 */
/* packed: see the header. Written after SQLite's "The Virtual Table Mechanism Of SQLite" (vtab.html). What it does not find exactly
 * SQLite compares again, so that a plan may only leave out what cannot match. */
#include "schema/store/packed.h"

#include <errno.h>
#include <sqlite3ext.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/store/packedcolumns.h"

SQLITE_EXTENSION_INIT3

#include "schema/store/packedfetch.h" /* behind the names that it calls by */

/* idxNum */
#define PLAN_EQUAL   1 /* column idxNum >> 8 is the first argument */
#define PLAN_FROM    2 /* the first column is at least the next argument, */
#define PLAN_UPTO    4 /* and at most the next one */
#define PLAN_REVERSE 8

struct table {
	sqlite3_vtab base;
	sqlite3 *db;
	char *schema, *name;
	bool is_number[PACKEDCOLUMNS_MAX], known[PACKEDCOLUMNS_MAX]; /* known: read, and of that type */
	struct packedcolumns p;
	int sql;                            /* what a statement failed with, where fetch says -EIO */
	uint32_t *order[PACKEDCOLUMNS_MAX]; /* places of rows by value, then place; NULL: not asked for yet */
};

struct cursor {
	sqlite3_vtab_cursor base;
	const uint32_t *order; /* NULL: rows as they stand */
	size_t at, end;
	bool reverse;
};

/* What packedcolumns_need_as says. */
static int table_error(struct table *t, int got)
{
	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf(got == -ENOTSUP ? "a newer sonde packed table %s of this file: it takes that one to read it" :
					  "the file is damaged: its packed table %s: a column cannot be read", t->name);
	return got == -ENOTSUP ? SQLITE_ERROR : SQLITE_CORRUPT_VTAB;
}

/* --- columns --- */

/* packedcolumns.h's */
static int fetch(void *ctx, int i, uint8_t **data, size_t *len)
{
	struct table *t = ctx;
	char *sql = sqlite3_mprintf("SELECT data FROM \"%w\".packed_column WHERE \"table\" = ?1 AND number = ?2", t->schema);
	sqlite3_stmt *st = NULL;
	int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	t->sql = rc;
	return rc == SQLITE_OK ? packed_fetch(st, t->name, i, data, len) : -EIO;
}

static int read_column(struct table *t, int i)
{
	int got = packedcolumns_need_as(&t->p, i, t->is_number[i]);

	if (got == -ENOMEM || got == -EIO)
		return got == -EIO ? t->sql : SQLITE_NOMEM;
	if (!got)
		t->known[i] = true;
	return got ? table_error(t, got) : SQLITE_OK;
}

static int column_of(struct table *t, int i)
{
	return t->known[i] ? SQLITE_OK : read_column(t, i);
}

static int by_value(const void *a, const void *b, void *numbers)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const int64_t *v = numbers;

	if (v[x] != v[y])
		return v[x] < v[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int order_of(struct table *t, int i)
{
	int rc = column_of(t, i);

	if (rc != SQLITE_OK || !i || t->order[i])
		return rc;
	t->order[i] = sqlite3_malloc64(t->p.n_rows * sizeof(*t->order[i]));
	if (!t->order[i])
		return SQLITE_NOMEM;
	for (size_t k = 0; k < t->p.n_rows; k++)
		t->order[i][k] = (uint32_t)k;
	qsort_r(t->order[i], t->p.n_rows, sizeof(*t->order[i]), by_value, t->p.c[i].numbers);
	return SQLITE_OK;
}

/* The first row in that order whose value is at least v; n_rows: none. */
static size_t find(const struct table *t, int i, int64_t v)
{
	const int64_t *numbers = t->p.c[i].numbers;
	const uint32_t *order = t->order[i];
	size_t low = 0, high = t->p.n_rows;

	if (!i && v > 0 && (uint64_t)v <= high && numbers[v - 1] == v && (v == 1 || numbers[v - 2] < v))
		return (size_t)v - 1; /* dense ids */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (numbers[order ? order[mid] : mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* --- the table --- */

static int read_names(struct table *t, sqlite3_str *declared)
{
	char *sql = sqlite3_mprintf("SELECT c.name, c.type, t.rows FROM \"%w\".packed_table t JOIN \"%w\".packed_column c ON c.\"table\" = t.name"
				    " WHERE t.name = %Q ORDER BY c.number", t->schema, t->schema, t->name);
	sqlite3_stmt *st = NULL;
	int rc = sql ? sqlite3_prepare_v2(t->db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *type = (const char *)sqlite3_column_text(st, 1);
		sqlite3_int64 rows = sqlite3_column_int64(st, 2);

		if (t->p.n == PACKEDCOLUMNS_MAX || rows <= 0 || rows > COLUMN_MAX) {
			rc = SQLITE_CORRUPT_VTAB;
			break;
		}
		t->p.n_rows = (size_t)rows;
		t->is_number[t->p.n] = type && !strcmp(type, "INTEGER");
		sqlite3_str_appendf(declared, "%s\"%w\" %s", t->p.n ? ", " : "", sqlite3_column_text(st, 0), t->is_number[t->p.n] ? "INTEGER" : "TEXT");
		t->p.n++;
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc != SQLITE_DONE ? rc : t->p.n && t->is_number[0] ? SQLITE_OK : SQLITE_CORRUPT_VTAB;
}

static int table_close(sqlite3_vtab *base)
{
	struct table *t = (struct table *)base;

	packedcolumns_release(&t->p);
	for (int i = 0; i < PACKEDCOLUMNS_MAX; i++)
		sqlite3_free(t->order[i]);
	sqlite3_free(t->schema);
	sqlite3_free(t->name);
	sqlite3_free(t);
	return SQLITE_OK;
}

static int declare(struct table *t)
{
	sqlite3_str *declared = sqlite3_str_new(t->db);
	char *sql;
	int rc;

	sqlite3_str_appendall(declared, "CREATE TABLE x(");
	rc = t->schema && t->name ? read_names(t, declared) : SQLITE_NOMEM;
	sqlite3_str_appendall(declared, ")");
	sql = sqlite3_str_finish(declared);
	if (rc == SQLITE_OK)
		rc = sql ? sqlite3_declare_vtab(t->db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

/* argv: the module, the schema that the table is in, its name */
static int table_connect(sqlite3 *db, void *ctx, int argc, const char *const *argv, sqlite3_vtab **out, char **why)
{
	struct table *t = sqlite3_malloc64(sizeof(*t));
	int rc;

	(void)ctx;
	(void)argc;
	if (!t)
		return SQLITE_NOMEM;
	memset(t, 0, sizeof(*t));
	t->db = db;
	t->p.fetch = fetch;
	t->p.ctx = t;
	t->schema = sqlite3_mprintf("%s", argv[1]);
	t->name = sqlite3_mprintf("%s", argv[2]);
	rc = declare(t);
	if (rc != SQLITE_OK) {
		*why = sqlite3_mprintf("the file is damaged: its packed table %s has no columns", argv[2]);
		table_close(&t->base);
		return rc;
	}
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*out = &t->base;
	return SQLITE_OK;
}

/* Another function than that one: else the module were a table by itself. */
static int table_create(sqlite3 *db, void *ctx, int argc, const char *const *argv, sqlite3_vtab **out, char **why)
{
	return table_connect(db, ctx, argc, argv, out, why);
}

/* --- plans --- */

static bool is_equal(const struct table *t, const sqlite3_index_info *info, int i)
{
	int column = info->aConstraint[i].iColumn;

	return info->aConstraint[i].usable && info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ && (column < 0 || t->is_number[column]);
}

static int bound_of(const sqlite3_index_info *info, int i)
{
	if (!info->aConstraint[i].usable || info->aConstraint[i].iColumn > 0)
		return 0;
	switch (info->aConstraint[i].op) {
	case SQLITE_INDEX_CONSTRAINT_GT:
	case SQLITE_INDEX_CONSTRAINT_GE:
		return PLAN_FROM;
	case SQLITE_INDEX_CONSTRAINT_LT:
	case SQLITE_INDEX_CONSTRAINT_LE:
		return PLAN_UPTO;
	default:
		return 0;
	}
}

static void plan_bounds(sqlite3_index_info *info, double *rows)
{
	int n = 0;

	for (int bound = PLAN_FROM; bound <= PLAN_UPTO; bound *= 2)
		for (int i = 0; i < info->nConstraint; i++)
			if (bound_of(info, i) == bound && !(info->idxNum & bound)) {
				info->aConstraintUsage[i].argvIndex = ++n;
				info->idxNum |= bound;
				*rows /= 4;
			}
}

/* The first column is a table's id where it has no two rows of one. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	const struct table *t = (struct table *)base;
	double rows = (double)t->p.n_rows;
	int equal = -1;

	for (int i = 0; i < info->nConstraint; i++)
		if (is_equal(t, info, i) && (equal < 0 || info->aConstraint[i].iColumn <= 0))
			equal = i;
	if (equal >= 0) {
		int column = info->aConstraint[equal].iColumn;

		info->aConstraintUsage[equal].argvIndex = 1;
		info->idxNum = PLAN_EQUAL | (column > 0 ? column : 0) << 8;
		rows = column > 0 ? 10 : 1;
	} else {
		plan_bounds(info, &rows);
	}
	if (info->nOrderBy == 1 && info->aOrderBy[0].iColumn <= 0) {
		info->orderByConsumed = 1;
		info->idxNum |= info->aOrderBy[0].desc ? PLAN_REVERSE : 0;
	}
	info->estimatedRows = (sqlite3_int64)rows + 1;
	info->estimatedCost = rows + 2;
	return SQLITE_OK;
}

/* --- a scan --- */

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct cursor *c = sqlite3_malloc64(sizeof(*c));

	(void)base;
	if (!c)
		return SQLITE_NOMEM;
	*c = (struct cursor){0};
	*out = &c->base;
	return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	sqlite3_free(base);
	return SQLITE_OK;
}

static int filter_equal(struct cursor *c, struct table *t, int column, sqlite3_value *v)
{
	int64_t wanted = sqlite3_value_int64(v);
	int rc;

	if (sqlite3_value_type(v) == SQLITE_NULL)
		c->end = 0;
	if (sqlite3_value_type(v) != SQLITE_INTEGER)
		return SQLITE_OK; /* all of them, which SQLite compares */
	rc = order_of(t, column);
	if (rc != SQLITE_OK)
		return rc;
	c->order = t->order[column];
	c->at = c->end = find(t, column, wanted);
	while (c->end < t->p.n_rows && t->p.c[column].numbers[c->order ? c->order[c->end] : c->end] == wanted)
		c->end++;
	return SQLITE_OK;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *words, int argc, sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	struct table *t = (struct table *)base->pVtab;
	int rc = column_of(t, 0), n = 0;

	(void)words;
	(void)argc;
	if (rc != SQLITE_OK)
		return rc;
	c->order = NULL;
	c->at = 0;
	c->end = t->p.n_rows;
	c->reverse = plan & PLAN_REVERSE;
	if (plan & PLAN_EQUAL)
		return filter_equal(c, t, plan >> 8, argv[0]);
	if (plan & PLAN_FROM && sqlite3_value_type(argv[n++]) == SQLITE_INTEGER)
		c->at = find(t, 0, sqlite3_value_int64(argv[n - 1]));
	if (plan & PLAN_UPTO && sqlite3_value_type(argv[n++]) == SQLITE_INTEGER && sqlite3_value_int64(argv[n - 1]) < INT64_MAX)
		c->end = find(t, 0, sqlite3_value_int64(argv[n - 1]) + 1);
	return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	const struct cursor *c = (struct cursor *)base;

	return c->at >= c->end;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	c->reverse ? c->end-- : c->at++;
	return SQLITE_OK;
}

static size_t row_of(const struct cursor *c)
{
	size_t at = c->reverse ? c->end - 1 : c->at;

	return c->order ? c->order[at] : at;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int i)
{
	struct table *t = (struct table *)base->pVtab;
	size_t row = row_of((struct cursor *)base);
	int rc = column_of(t, i);
	const struct column *c = &t->p.c[i];

	if (rc != SQLITE_OK)
		return rc;
	if (c->null && c->null[row])
		sqlite3_result_null(out);
	else if (c->numbers)
		sqlite3_result_int64(out, c->numbers[row]);
	else
		sqlite3_result_text(out, c->text + c->at[row], (int)(c->at[row + 1] - c->at[row] - 1), SQLITE_STATIC);
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((struct table *)base->pVtab)->p.c[0].numbers[row_of((struct cursor *)base)];
	return SQLITE_OK;
}

static const sqlite3_module MODULE = {
	.iVersion = 1,
	.xCreate = table_create,
	.xConnect = table_connect,
	.xBestIndex = best_index,
	.xDisconnect = table_close,
	.xDestroy = table_close,
	.xOpen = cursor_open,
	.xClose = cursor_close,
	.xFilter = cursor_filter,
	.xNext = cursor_next,
	.xEof = cursor_eof,
	.xColumn = cursor_column,
	.xRowid = cursor_rowid,
};

int packed_register(sqlite3 *db)
{
	return sqlite3_create_module_v2(db, "sonde_packed", &MODULE, NULL, NULL);
}
