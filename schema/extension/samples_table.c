/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde_samples: one row for each (bucket, series), in order of time, of rows and of an archive
 * alike.
 *
 * Comparisons with ts are handed down: blocks outside are not decoded. `counts` is 1 where the row
 * counts: of two captures at once one does.
 */
#include <sqlite3ext.h>
#include <string.h>

#include "schema/extension/blocks.h"
#include "schema/extension/tables.h"

SQLITE_EXTENSION_INIT3

enum shown { TS, SERIES_ID, SAMPLES, CPU_NS, COUNTS, STACK_ID, TASK_ID, PROCESS_ID, RUN_ID };

#define COLUMNS                                                                                           \
	"CREATE TABLE x(ts INTEGER, series_id INTEGER, samples INTEGER, cpu_ns INTEGER, counts INTEGER, " \
	"stack_id INTEGER, task_id INTEGER, process_id INTEGER, run_id INTEGER)"
#define ROWS_GUESS 1e7

struct cursor {
	sqlite3_vtab_cursor base;
	struct series_map *map;
	struct blocks blocks;
	const struct sample_row *row; /* NULL: at the end */
	const struct series_task *task;
	int64_t ts;
	sqlite3_int64 n; /* rowid */
	bool only_counted, counts;
};

TABLES_CONNECT(COLUMNS)

/* idxStr: for each argument how it is compared; see plan_one. */
static char kind_of(const struct sqlite3_index_constraint *c)
{
	if (c->iColumn == COUNTS && c->op == SQLITE_INDEX_CONSTRAINT_EQ)
		return 'c';
	if (c->iColumn != TS)
		return 0;
	switch (c->op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return '=';
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ']';
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ')';
	case SQLITE_INDEX_CONSTRAINT_LE:
		return '[';
	case SQLITE_INDEX_CONSTRAINT_LT:
		return '(';
	default:
		return 0;
	}
}

static bool in_our_order(const sqlite3_index_info *info)
{
	for (int i = 0; i < info->nOrderBy; i++)
		if (info->aOrderBy[i].desc || info->aOrderBy[i].iColumn != (i ? SERIES_ID : TS) ||
		    i > 1)
			return false;
	return info->nOrderBy > 0;
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	char kinds[32];
	int n = 0;
	double rows = ROWS_GUESS;

	(void)base;
	for (int i = 0; i < info->nConstraint && n < (int)sizeof(kinds) - 1; i++) {
		char kind = info->aConstraint[i].usable ? kind_of(&info->aConstraint[i]) : 0;

		if (!kind)
			continue;
		kinds[n++] = kind;
		info->aConstraintUsage[i].argvIndex = n;
		rows *= kind == '=' ? 1e-4 : kind == 'c' ? 1 : 0.25;
	}
	kinds[n] = '\0';
	info->idxStr = sqlite3_mprintf("%s", kinds);
	info->needToFreeIdxStr = 1;
	info->orderByConsumed = in_our_order(info);
	info->estimatedRows = (sqlite3_int64)rows + 1;
	info->estimatedCost = rows + 1000;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	(void)base;
	return tables_cursor(sizeof(struct cursor), out);
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	blocks_close(&c->blocks);
	series_drop(c->map);
	sqlite3_free(c);
	return SQLITE_OK;
}

/* To the next row whose series is known. */
static int cursor_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;
	int rc;

	c->n++;
	while ((c->row = blocks_next(&c->blocks, &rc))) {
		c->task = series_task(c->map, c->row->series);
		c->ts = c->row->ts + c->map->t0;
		c->counts = c->task && series_counts(c->map, c->task, c->ts);
		if (c->counts || (c->task && !c->only_counted))
			return SQLITE_OK;
	}
	if (rc == SQLITE_CORRUPT_VTAB)
		return tables_error(base->pVtab, rc,
				    "the file is damaged: a block of samples cannot be read");
	return rc == SQLITE_OK ? rc : tables_error(base->pVtab, rc, NULL);
}

/* What is no number is left to SQLite, which compares each row again. */
static void plan_one(struct cursor *c, char kind, sqlite3_value *v, int64_t *first, int64_t *last)
{
	bool lower = kind == '=' || kind == ']' || kind == ')',
	     upper = kind == '=' || kind == '[' || kind == '(';
	int64_t t;

	if (kind == 'c')
		c->only_counted |=
			sqlite3_value_type(v) == SQLITE_INTEGER && sqlite3_value_int64(v) == 1;
	if (lower && tables_time(v, true, &t) && t > *first)
		*first = t;
	if (upper && tables_time(v, false, &t) && t < *last)
		*last = t;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *kinds, int argc,
			 sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	int64_t first = INT64_MIN / 4, last = INT64_MAX / 4;
	int rc;

	(void)number;
	c->row = NULL;
	c->n = 0;
	c->only_counted = false;
	blocks_close(&c->blocks);
	rc = tables_map(base->pVtab, &c->map);
	if (rc != SQLITE_OK)
		return rc;
	for (int i = 0; i < argc; i++)
		plan_one(c, kinds[i], argv[i], &first, &last);
	rc = blocks_open(&c->blocks, tables_of(base->pVtab)->db, first - c->map->t0,
			 last - c->map->t0);
	return rc == SQLITE_OK ? cursor_next(base) : tables_error(base->pVtab, rc, NULL);
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	return !((struct cursor *)base)->row;
}

static void result_cpu_ns(const struct cursor *c, sqlite3_context *out)
{
	int64_t period = series_period_ns(c->map, c->task, c->ts), ns;

	if (period >= 0 && !__builtin_mul_overflow((int64_t)c->row->n, period, &ns))
		sqlite3_result_int64(out, ns);
	else if (period >= 0)
		sqlite3_result_double(out, (double)c->row->n * (double)period);
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
	const struct cursor *c = (struct cursor *)base;

	switch ((enum shown)column) {
	case TS:
		sqlite3_result_int64(out, c->ts);
		break;
	case SERIES_ID:
		sqlite3_result_int64(out, c->row->series);
		break;
	case SAMPLES:
		sqlite3_result_int64(out, (sqlite3_int64)c->row->n);
		break;
	case CPU_NS:
		result_cpu_ns(c, out);
		break;
	case COUNTS:
		sqlite3_result_int(out, c->counts);
		break;
	case STACK_ID:
		sqlite3_result_int64(out, c->map->series[c->row->series].stack);
		break;
	case TASK_ID:
		sqlite3_result_int64(out, c->map->series[c->row->series].task);
		break;
	case PROCESS_ID:
		sqlite3_result_int64(out, c->task->process);
		break;
	case RUN_ID:
		sqlite3_result_int64(out, c->task->run);
		break;
	}
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((struct cursor *)base)->n;
	return SQLITE_OK;
}

const sqlite3_module SAMPLES_TABLE = TABLES_MODULE;
