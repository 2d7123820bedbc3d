/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde_totals(from, to): what each series has between two times, added up here: from <= ts < to,
 * seconds since 1970, each of which may be left out. Only what counts of two captures at once. In
 * order of series. Each with the names that cpu_samples has for its rows, so that a day is asked
 * for what each function used without a row for each bucket.
 */
#include <sqlite3ext.h>
#include <string.h>

#include "schema/extension/blocks.h"
#include "schema/extension/task_columns.h"
#include "schema/extension/tables.h"

SQLITE_EXTENSION_INIT3

enum shown {
	SERIES_ID,
	SAMPLES,
	CPU_NS,
	STACK_ID,
	TASK_ID,
	PROCESS_ID,
	RUN_ID,
	FIRST_TS,
	LAST_TS,
	WHOSE,
	FROM_TS = WHOSE + TASK_COLUMNS_TASK + TASK_COLUMNS_STACK,
	TO_TS
};

#define COLUMNS                                                                                                  \
	"CREATE TABLE x(series_id INTEGER, samples INTEGER, cpu_ns INTEGER, stack_id INTEGER, task_id INTEGER, " \
	"process_id INTEGER, run_id INTEGER, first_ts INTEGER, last_ts INTEGER, " TASK_COLUMNS_ALL               \
	", from_ts HIDDEN, to_ts HIDDEN)"
#define ROWS_GUESS 1e5
#define COST_GUESS 1e6

struct sum {
	uint64_t samples, cpu_ns;
	int64_t first, last; /* buckets */
	int64_t plain_from;  /* from there on each sample counts and lasts the same time; see plain
			      */
	uint64_t plain;      /* how many of those are not in cpu_ns yet */
	bool met, unknown;   /* unknown: the time that a part of them lasts */
};
struct cursor {
	sqlite3_vtab_cursor base;
	struct series_map *map;
	struct sum *sums; /* by series */
	struct task_columns whose;
	uint32_t at;             /* the series; map->n: at the end */
	struct tables_args args; /* from, to */
};

TABLES_CONNECT(COLUMNS)

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	(void)base;
	info->orderByConsumed = info->nOrderBy == 1 && info->aOrderBy[0].iColumn == SERIES_ID &&
				!info->aOrderBy[0].desc;
	info->estimatedRows = (sqlite3_int64)ROWS_GUESS;
	info->estimatedCost = COST_GUESS;
	return tables_args_plan(info, FROM_TS, 2);
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	(void)base;
	return tables_cursor(sizeof(struct cursor), out);
}

static void forget(struct cursor *c)
{
	sqlite3_free(c->sums);
	tables_args_release(&c->args);
	c->sums = NULL;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	forget(c);
	task_columns_release(&c->whose);
	series_drop(c->map);
	sqlite3_free(c);
	return SQLITE_OK;
}

/* If no other capture covers any of it, and its period never changed. */
static void meet(const struct cursor *c, struct sum *s, uint32_t series)
{
	const struct series_task *t = series_task(c->map, series);

	s->met = true;
	s->plain_from = INT64_MAX;
	if (t && t->cpu && !t->n_hidden && t->n_periods == 1)
		s->plain_from = c->map->periods[t->period].from_s - c->map->t0;
}

static void add_ns(struct sum *s, uint64_t n, int64_t period)
{
	uint64_t ns;

	s->unknown |= period < 0 || __builtin_mul_overflow(n, (uint64_t)period, &ns) ||
		      __builtin_add_overflow(s->cpu_ns, ns, &s->cpu_ns) || s->cpu_ns > INT64_MAX;
}

static void add_samples(struct sum *s, const struct sample_row *r)
{
	if (!s->samples)
		s->first = r->ts;
	s->last = r->ts;
	if (__builtin_add_overflow(s->samples, r->n, &s->samples) || s->samples > INT64_MAX)
		s->samples = INT64_MAX;
}

static void add(const struct cursor *c, const struct sample_row *r)
{
	struct sum *s = &c->sums[r->series];
	const struct series_task *t;
	int64_t ts = r->ts + c->map->t0;

	if (!s->met)
		meet(c, s, r->series);
	if (r->ts >= s->plain_from) {
		if (__builtin_add_overflow(s->plain, r->n, &s->plain))
			s->unknown = true;
		add_samples(s, r);
		return;
	}
	t = series_task(c->map, r->series);
	if (!t || !series_counts(c->map, t, ts))
		return;
	add_ns(s, r->n, series_period_ns(c->map, t, ts));
	add_samples(s, r);
}

static void add_plain(const struct cursor *c)
{
	for (uint32_t i = 0; i < c->map->n; i++)
		if (c->sums[i].plain)
			add_ns(&c->sums[i], c->sums[i].plain,
			       c->map->periods[series_task(c->map, i)->period].period_ns);
}

static int sum_up(struct cursor *c, int64_t first, int64_t last)
{
	struct blocks b = {0};
	const struct sample_row *r;
	int rc = blocks_open(&b, tables_of(c->base.pVtab)->db, first - c->map->t0,
			     last - c->map->t0);

	if (rc != SQLITE_OK)
		return tables_error(c->base.pVtab, rc, NULL);
	while ((r = blocks_next(&b, &rc)))
		if (r->series < c->map->n)
			add(c, r);
	add_plain(c);
	blocks_close(&b);
	if (rc == SQLITE_CORRUPT_VTAB)
		return tables_error(c->base.pVtab, rc,
				    "the file is damaged: a block of samples cannot be read");
	return rc == SQLITE_OK ? rc : tables_error(c->base.pVtab, rc, NULL);
}

static void to_one_with_samples(struct cursor *c)
{
	while (c->at < c->map->n && !c->sums[c->at].samples)
		c->at++;
}

static int cursor_filter(sqlite3_vtab_cursor *base, int given, const char *plan, int argc,
			 sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;
	int64_t first, end;
	int rc;

	(void)plan;
	(void)argc;
	forget(c);
	rc = tables_map(base->pVtab, &c->map);
	if (rc == SQLITE_OK)
		rc = tables_args_take(&c->args, given, argv);
	if (rc != SQLITE_OK)
		return rc;
	c->at = 0;
	c->sums = sqlite3_malloc64((uint64_t)c->map->n * sizeof(*c->sums));
	if (!c->sums)
		return SQLITE_NOMEM;
	memset(c->sums, 0, (size_t)c->map->n * sizeof(*c->sums));
	if (tables_args_range(&c->args, 0, &first, &end))
		rc = sum_up(c, first, end - 1);
	to_one_with_samples(c);
	return rc;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	c->at++;
	to_one_with_samples(c);
	return SQLITE_OK;
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	const struct cursor *c = (struct cursor *)base;

	return !c->map || c->at >= c->map->n;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
	struct cursor *c = (struct cursor *)base;
	const struct series_one *series = &c->map->series[c->at];
	const struct series_task *task = &c->map->tasks[series->task];
	const struct sum *s = &c->sums[c->at];

	if (column >= WHOSE && column < WHOSE + TASK_COLUMNS_TASK)
		return task_columns_task(&c->whose, tables_of(base->pVtab)->db, series->task,
					 column - WHOSE, out);
	if (column >= WHOSE + TASK_COLUMNS_TASK && column < FROM_TS)
		return task_columns_stack(&c->whose, tables_of(base->pVtab)->db, series->stack,
					  column - WHOSE - TASK_COLUMNS_TASK, out);
	switch (column) {
	case SERIES_ID:
		sqlite3_result_int64(out, c->at);
		break;
	case SAMPLES:
		sqlite3_result_int64(out, (sqlite3_int64)s->samples);
		break;
	case CPU_NS:
		s->unknown ? sqlite3_result_null(out) :
			     sqlite3_result_int64(out, (sqlite3_int64)s->cpu_ns);
		break;
	case STACK_ID:
		sqlite3_result_int64(out, series->stack);
		break;
	case TASK_ID:
		sqlite3_result_int64(out, series->task);
		break;
	case PROCESS_ID:
		sqlite3_result_int64(out, task->process);
		break;
	case RUN_ID:
		sqlite3_result_int64(out, task->run);
		break;
	case FIRST_TS:
		sqlite3_result_int64(out, s->first + c->map->t0);
		break;
	case LAST_TS:
		sqlite3_result_int64(out, s->last + c->map->t0);
		break;
	case FROM_TS:
	case TO_TS:
		tables_args_result(&c->args, column - FROM_TS, out);
		break;
	}
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((struct cursor *)base)->at;
	return SQLITE_OK;
}

const sqlite3_module TOTALS_TABLE = TABLES_MODULE;
