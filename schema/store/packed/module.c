/* SPDX-License-Identifier: Apache-2.0 */
/* module: Written after SQLite's "The Virtual Table Mechanism Of SQLite"
 * (vtab.html). What it does not find exactly SQLite compares again, so that a plan may only leave
 * out what cannot match. */
#include "schema/store/packed/module.h"

#include <errno.h>
#include <sqlite3ext.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

SQLITE_EXTENSION_INIT3

#include "schema/store/packed/fetch.h" /* behind the names that it calls by */

/* idxNum */
#define PLAN_EQUAL   1 /* column idxNum >> 8 is the first argument */
#define PLAN_FROM    2 /* the first column is at least the next argument, */
#define PLAN_UPTO    4 /* and at most the next one */
#define PLAN_REVERSE 8

#define BLOCKS_HELD 64 /* decoded at once while they are read one after the other */

struct table {
	sqlite3_vtab base;
	char *schema, *name;
	struct packed_source source;
	struct packedtable p;
	size_t n_cursors;
	uint32_t *order[PACKEDCOLUMNS_MAX]; /* places of rows by value, then place; NULL: not asked
					       for yet */
};

struct cursor {
	sqlite3_vtab_cursor base;
	const uint32_t *order; /* NULL: rows in their stored order */
	size_t at, end;
	bool reverse;
	size_t block; /* that the row before was in */
};

/* What packedtable_column says. */
static int table_error(struct table *t, int got)
{
	if (got == -ENOMEM || got == -EIO)
		return got == -EIO ? t->source.sql : SQLITE_NOMEM;
	sqlite3_free(t->base.zErrMsg);
	t->base.zErrMsg = sqlite3_mprintf(
		got == -ENOTSUP ?
			"a newer sonde packed table %s of this file: it takes that one to read it" :
			"the file is damaged: its packed table %s: a column cannot be read",
		t->name);
	return got == -ENOTSUP ? SQLITE_ERROR : SQLITE_CORRUPT_VTAB;
}

/* --- columns --- */

/* packed/table.h's */
static int fetch(void *ctx, int i, size_t block, uint8_t **data, size_t *len)
{
	struct table *t = ctx;

	return packed_fetch(&t->source, &t->p, i, block, data, len);
}

static int column_of(struct table *t, int i, size_t block, const struct column **out)
{
	int got = packedtable_column(&t->p, i, block, out);

	return got ? table_error(t, got) : SQLITE_OK;
}

/* All values of a column of numbers. */
static int values_of(struct table *t, int i, int64_t **out)
{
	int64_t *v = sqlite3_malloc64(t->p.n_rows * sizeof(*v));
	const struct column *c;
	int rc = v ? SQLITE_OK : SQLITE_NOMEM;

	for (size_t k = 0; rc == SQLITE_OK && k < t->p.n_blocks; k++) {
		rc = column_of(t, i, k, &c);
		if (rc == SQLITE_OK)
			memcpy(v + packedtable_first_row(&t->p, k), c->numbers, c->n * sizeof(*v));
	}
	if (rc == SQLITE_OK)
		*out = v;
	else
		sqlite3_free(v);
	return rc;
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
	int64_t *values;
	int rc;

	if (!i || t->order[i])
		return SQLITE_OK;
	rc = values_of(t, i, &values);
	if (rc != SQLITE_OK)
		return rc;
	t->order[i] = sqlite3_malloc64(t->p.n_rows * sizeof(*t->order[i]));
	for (size_t k = 0; t->order[i] && k < t->p.n_rows; k++)
		t->order[i][k] = (uint32_t)k;
	if (t->order[i])
		qsort_r(t->order[i], t->p.n_rows, sizeof(*t->order[i]), by_value, values);
	sqlite3_free(values);
	return t->order[i] ? SQLITE_OK : SQLITE_NOMEM;
}

static int value_at(struct table *t, int i, size_t place, int64_t *out)
{
	size_t row = t->order[i] ? t->order[i][place] : place, block = row / t->p.block_rows;
	const struct column *c;
	int rc = column_of(t, i, block, &c);

	if (rc == SQLITE_OK)
		*out = c->numbers[row - packedtable_first_row(&t->p, block)];
	return rc;
}

/* Column 0: the first row of block k whose value is at least v, where one is. Ids are dense,
 * mostly. */
static int find_in_block(struct table *t, size_t k, int64_t v, size_t *out)
{
	const struct column *c;
	size_t low = 0, high, guess;
	int rc = column_of(t, 0, k, &c);

	if (rc != SQLITE_OK)
		return rc;
	high = c->n;
	guess = v > c->numbers[0] ? (size_t)((uint64_t)v - (uint64_t)c->numbers[0]) : 0;
	if (guess < high && c->numbers[guess] == v && (!guess || c->numbers[guess - 1] < v))
		low = high = guess;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c->numbers[mid] < v)
			low = mid + 1;
		else
			high = mid;
	}
	*out = packedtable_first_row(&t->p, k) + low;
	return SQLITE_OK;
}

/* The first place in that order whose value is at least v; n_rows: none. */
static int find(struct table *t, int i, int64_t v, size_t *out)
{
	size_t low, high = t->p.n_rows, block = i ? 0 : packedtable_block_of(&t->p, v);
	int64_t at = 0;
	int rc = SQLITE_OK;

	if (!i && block < t->p.n_blocks)
		return find_in_block(t, block, v, out);
	low = i ? 0 : high;
	while (rc == SQLITE_OK && low < high) {
		size_t mid = low + (high - low) / 2;

		rc = value_at(t, i, mid, &at);
		if (at < v)
			low = mid + 1;
		else
			high = mid;
	}
	*out = low;
	return rc;
}

/* --- the table --- */

struct declaring {
	const struct packedtable *t;
	sqlite3_str *sql;
};

static void declare_column(void *ctx, int i, const char *column)
{
	const struct declaring *d = ctx;

	sqlite3_str_appendf(d->sql, "%s\"%w\" %s", i ? ", " : "CREATE TABLE x(", column,
			    d->t->is_number[i] ? "INTEGER" : "TEXT");
}

static int table_close(sqlite3_vtab *base)
{
	struct table *t = (struct table *)base;

	packedtable_close(&t->p);
	for (int i = 0; i < PACKEDCOLUMNS_MAX; i++)
		sqlite3_free(t->order[i]);
	sqlite3_free(t->schema);
	sqlite3_free(t->name);
	sqlite3_free(t);
	return SQLITE_OK;
}

static int declare(struct table *t)
{
	struct declaring d = {&t->p, sqlite3_str_new(t->source.db)};
	int rc = t->schema && t->name ?
			 packed_open(&t->source, t->name, &t->p, declare_column, &d) :
			 SQLITE_NOMEM;
	char *sql;

	sqlite3_str_appendall(d.sql, ")");
	sql = sqlite3_str_finish(d.sql);
	if (rc == SQLITE_CORRUPT)
		rc = SQLITE_CORRUPT_VTAB;
	if (rc == SQLITE_OK)
		rc = sql ? sqlite3_declare_vtab(t->source.db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	return rc;
}

/* argv: the module, the schema that the table is in, its name */
static int table_connect(sqlite3 *db, void *ctx, int argc, const char *const *argv,
			 sqlite3_vtab **out, char **why)
{
	struct table *t = sqlite3_malloc64(sizeof(*t));
	int rc;

	(void)ctx;
	(void)argc;
	if (!t)
		return SQLITE_NOMEM;
	memset(t, 0, sizeof(*t));
	t->p.fetch = fetch;
	t->p.ctx = t;
	t->schema = sqlite3_mprintf("%s", argv[1]);
	t->name = sqlite3_mprintf("%s", argv[2]);
	t->source = (struct packed_source){.db = db, .schema = t->schema};
	rc = declare(t);
	if (rc != SQLITE_OK) {
		*why = sqlite3_mprintf("the file is damaged: its packed table %s has no columns",
				       argv[2]);
		table_close(&t->base);
		return rc;
	}
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*out = &t->base;
	return SQLITE_OK;
}

/* Another function than that one: else the module were a table by itself. */
static int table_create(sqlite3 *db, void *ctx, int argc, const char *const *argv,
			sqlite3_vtab **out, char **why)
{
	return table_connect(db, ctx, argc, argv, out, why);
}

/* --- plans --- */

static bool is_equal(const struct table *t, const sqlite3_index_info *info, int i)
{
	int column = info->aConstraint[i].iColumn;

	return info->aConstraint[i].usable &&
	       info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_EQ &&
	       (column < 0 || t->p.is_number[column]);
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

	if (!c)
		return SQLITE_NOMEM;
	*c = (struct cursor){0};
	((struct table *)base)->n_cursors++;
	*out = &c->base;
	return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	((struct table *)base->pVtab)->n_cursors--;
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
	rc = find(t, column, wanted, &c->at);
	for (c->end = c->at; rc == SQLITE_OK && c->end < t->p.n_rows; c->end++) {
		int64_t at = 0;

		rc = value_at(t, column, c->end, &at);
		if (at != wanted)
			break;
	}
	return rc;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int plan, const char *words, int argc,
			 sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	struct table *t = (struct table *)base->pVtab;
	int rc = SQLITE_OK, n = 0;

	(void)words;
	(void)argc;
	c->order = NULL;
	c->at = 0;
	c->end = t->p.n_rows;
	c->reverse = plan & PLAN_REVERSE;
	if (!c->end)
		return SQLITE_OK;
	if (plan & PLAN_EQUAL)
		return filter_equal(c, t, plan >> 8, argv[0]);
	if (plan & PLAN_FROM && sqlite3_value_type(argv[n++]) == SQLITE_INTEGER)
		rc = find(t, 0, sqlite3_value_int64(argv[n - 1]), &c->at);
	if (rc == SQLITE_OK && plan & PLAN_UPTO &&
	    sqlite3_value_type(argv[n++]) == SQLITE_INTEGER &&
	    sqlite3_value_int64(argv[n - 1]) < INT64_MAX)
		rc = find(t, 0, sqlite3_value_int64(argv[n - 1]) + 1, &c->end);
	return rc;
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

/* A scan of all rows decodes them block by block, unless another cursor is in the table too.
 */
static void leave_block(struct cursor *c, struct table *t, size_t block)
{
	if (block == c->block)
		return;
	if (t->p.n_blocks > BLOCKS_HELD && t->n_cursors == 1 && !c->order)
		packedtable_release(&t->p, c->block);
	c->block = block;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int i)
{
	struct table *t = (struct table *)base->pVtab;
	size_t row = row_of((struct cursor *)base), block = row / t->p.block_rows;
	const struct column *c;
	int rc;

	leave_block((struct cursor *)base, t, block);
	rc = column_of(t, i, block, &c);
	if (rc != SQLITE_OK)
		return rc;
	row -= packedtable_first_row(&t->p, block);
	if (c->null && c->null[row])
		sqlite3_result_null(out);
	else if (c->numbers)
		sqlite3_result_int64(out, c->numbers[row]);
	else
		sqlite3_result_text(out, c->text + c->at[row],
				    (int)(c->at[row + 1] - c->at[row] - 1),
				    t->p.range ? SQLITE_TRANSIENT : SQLITE_STATIC);
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	int64_t v = 0;
	struct table *t = (struct table *)base->pVtab;
	size_t row = row_of((struct cursor *)base);
	int rc = value_at(t, 0, row, &v); /* column 0 is not sorted */

	*out = v;
	return rc;
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

/* --- views --- */

int packed_view(sqlite3 *db, const char *sql)
{
	static const char begin[] = "CREATE VIEW ";
	sqlite3_stmt *st = NULL;
	const char *behind = NULL;
	char *text;
	int rc;

	if (!sql || strncmp(sql, begin, sizeof(begin) - 1))
		return SQLITE_OK;
	text = sqlite3_mprintf("CREATE TEMP VIEW IF NOT EXISTS %s", sql + sizeof(begin) - 1);
	rc = text ? sqlite3_prepare_v2(db, text, -1, &st, &behind) : SQLITE_NOMEM;
	if (rc == SQLITE_OK && st && !behind[strspn(behind, "; \t\n")]) {
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	sqlite3_free(text);
	return rc;
}

int packed_views(sqlite3 *db, const char *name)
{
	sqlite3_stmt *st = NULL;
	int rc;

	rc = sqlite3_prepare_v2(
		db,
		"SELECT sql FROM main.packed_view WHERE (?1 IS NULL OR name = ?1) AND sql LIKE 'CREATE VIEW%' ORDER BY id",
		-1, &st, NULL);
	if (rc != SQLITE_OK)
		return rc == SQLITE_ERROR ? SQLITE_OK :
					    rc; /* no file of a store, or an older one */
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		rc = packed_view(db, (const char *)sqlite3_column_text(st, 0));
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
