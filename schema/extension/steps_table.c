/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde_steps(step_s, from, to): what each task has in each step of time: from <= ts < to, seconds
 * since 1970, either of which may be left out. A step is step_s seconds, and begins at a multiple
 * of step_s; a bucket belongs to the step in which it begins. If two captures overlap, only the one
 * that counts. Only one step is in memory at a time: rows come in order of buckets.
 */
#include <sqlite3ext.h>
#include <string.h>

#include "schema/extension/blocks.h"
#include "schema/extension/tables.h"
#include "schema/extension/task_columns.h"

SQLITE_EXTENSION_INIT3

enum shown {
	TS,
	SAMPLES,
	CPU_NS,
	TASK_ID,
	PROCESS_ID,
	RUN_ID,
	WHOSE,
	STEP_S = WHOSE + TASK_COLUMNS_TASK,
	FROM_TS,
	TO_TS
};
enum argument { ARG_STEP, ARG_FROM, ARG_TO, ARGS };

#define COLUMNS                                                                                                                                  \
	"CREATE TABLE x(ts INTEGER, samples INTEGER, cpu_ns INTEGER, task_id INTEGER, process_id INTEGER, run_id INTEGER, " TASK_COLUMNS_OF_TASK \
	", step_s HIDDEN, from_ts HIDDEN, to_ts HIDDEN)"
#define ROWS_GUESS 1e5
#define COST_GUESS 1e6

struct sum {
	uint64_t samples, cpu_ns;
	bool unknown; /* the time that a part of them lasts */
};
struct cursor {
	sqlite3_vtab_cursor base;
	struct series_map *map;
	struct blocks blocks;
	struct task_columns whose;
	struct tables_args args;
	const struct sample_row *row; /* the first one of a later step; NULL: no later one */
	int64_t step_s, ts;           /* the step that is held */
	struct sum *sums;             /* by task */
	uint32_t *met;                /* the tasks that it has */
	uint32_t n_met, at;
	sqlite3_int64 n; /* rowid */
};

TABLES_CONNECT(COLUMNS)

static int no_width(sqlite3_vtab *base)
{
	return tables_error(
		base, SQLITE_ERROR,
		"sonde_steps() is asked with the seconds of a step, 1 or more: sonde_steps(step_s, from, to)");
}

static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	int rc = tables_args_plan(info, STEP_S, ARGS);

	info->estimatedRows = (sqlite3_int64)ROWS_GUESS;
	info->estimatedCost = COST_GUESS;
	return rc == SQLITE_OK && !(info->idxNum & 1 << ARG_STEP) ? no_width(base) : rc;
}

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	(void)base;
	return tables_cursor(sizeof(struct cursor), out);
}

static void forget(struct cursor *c)
{
	blocks_close(&c->blocks);
	tables_args_release(&c->args);
	sqlite3_free(c->sums);
	sqlite3_free(c->met);
	c->sums = NULL;
	c->met = NULL;
	c->row = NULL;
	c->n_met = c->at = 0;
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

/* To the next row that counts. */
static int to_next_row(struct cursor *c)
{
	int rc;

	while ((c->row = blocks_next(&c->blocks, &rc))) {
		const struct series_task *t = series_task(c->map, c->row->series);

		if (t && series_counts(c->map, t, c->row->ts + c->map->t0))
			return SQLITE_OK;
	}
	if (rc == SQLITE_CORRUPT_VTAB)
		return tables_error(c->base.pVtab, rc,
				    "the file is damaged: a block of samples cannot be read");
	return rc == SQLITE_OK ? rc : tables_error(c->base.pVtab, rc, NULL);
}

static void add(struct cursor *c, const struct sample_row *r)
{
	uint32_t task = c->map->series[r->series].task;
	int64_t period = series_period_ns(c->map, &c->map->tasks[task], r->ts + c->map->t0);
	struct sum *s = &c->sums[task];
	uint64_t ns;

	if (!s->samples)
		c->met[c->n_met++] = task;
	if (__builtin_add_overflow(s->samples, r->n, &s->samples) || s->samples > INT64_MAX)
		s->samples = INT64_MAX;
	s->unknown |= period < 0 || __builtin_mul_overflow(r->n, (uint64_t)period, &ns) ||
		      __builtin_add_overflow(s->cpu_ns, ns, &s->cpu_ns) || s->cpu_ns > INT64_MAX;
}

static int64_t step_of(const struct cursor *c, int64_t ts)
{
	int64_t into = ts % c->step_s;

	return ts - (into < 0 ? into + c->step_s : into);
}

/* Takes in the step of c->row; none is left where that is NULL. */
static int to_next_step(struct cursor *c)
{
	int rc = SQLITE_OK;

	for (uint32_t i = 0; i < c->n_met; i++)
		c->sums[c->met[i]] = (struct sum){0};
	c->n_met = c->at = 0;
	if (c->row)
		c->ts = step_of(c, c->row->ts + c->map->t0);
	while (rc == SQLITE_OK && c->row && c->row->ts + c->map->t0 - c->ts < c->step_s) {
		add(c, c->row);
		rc = to_next_row(c);
	}
	return rc;
}

static int take_args(struct cursor *c, int given, sqlite3_value **argv)
{
	int rc = tables_args_take(&c->args, given, argv);

	if (rc == SQLITE_OK &&
	    (!tables_time(c->args.v[ARG_STEP], true, &c->step_s) || c->step_s < 1))
		rc = no_width(c->base.pVtab);
	return rc;
}

static int make_room(struct cursor *c)
{
	uint64_t n = c->map->n_tasks;

	c->sums = sqlite3_malloc64(n * sizeof(*c->sums));
	c->met = sqlite3_malloc64(n * sizeof(*c->met));
	if (!c->sums || !c->met)
		return SQLITE_NOMEM;
	memset(c->sums, 0, n * sizeof(*c->sums));
	return SQLITE_OK;
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
	c->n = 0;
	rc = tables_map(base->pVtab, &c->map);
	if (rc == SQLITE_OK)
		rc = take_args(c, given, argv);
	if (rc != SQLITE_OK || !tables_args_range(&c->args, ARG_FROM, &first, &end))
		return rc;
	rc = make_room(c);
	if (rc != SQLITE_OK)
		return rc;
	rc = blocks_open(&c->blocks, tables_of(base->pVtab)->db, first - c->map->t0,
			 end - 1 - c->map->t0);
	if (rc != SQLITE_OK)
		return tables_error(base->pVtab, rc, NULL);
	rc = to_next_row(c);
	return rc == SQLITE_OK ? to_next_step(c) : rc;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	c->n++;
	return ++c->at < c->n_met ? SQLITE_OK : to_next_step(c);
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	const struct cursor *c = (struct cursor *)base;

	return c->at >= c->n_met;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
	struct cursor *c = (struct cursor *)base;
	uint32_t id = c->met[c->at];
	const struct series_task *task = &c->map->tasks[id];
	const struct sum *s = &c->sums[id];

	if (column >= WHOSE && column < WHOSE + TASK_COLUMNS_TASK)
		return task_columns_task(&c->whose, tables_of(base->pVtab)->db, id, column - WHOSE,
					 out);
	switch (column) {
	case TS:
		sqlite3_result_int64(out, c->ts);
		break;
	case SAMPLES:
		sqlite3_result_int64(out, (sqlite3_int64)s->samples);
		break;
	case CPU_NS:
		s->unknown ? sqlite3_result_null(out) :
			     sqlite3_result_int64(out, (sqlite3_int64)s->cpu_ns);
		break;
	case TASK_ID:
		sqlite3_result_int64(out, id);
		break;
	case PROCESS_ID:
		sqlite3_result_int64(out, task->process);
		break;
	case RUN_ID:
		sqlite3_result_int64(out, task->run);
		break;
	default:
		tables_args_result(&c->args, column - STEP_S, out);
		break;
	}
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((struct cursor *)base)->n;
	return SQLITE_OK;
}

const sqlite3_module STEPS_TABLE = TABLES_MODULE;
