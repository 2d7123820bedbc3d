/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/named_share.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "schema/base/mem.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/series_list.h"

#define HOUR 3600

struct run {
	int64_t last; /* the second that its last hour ends with, since t0 */
	int64_t samples, named;
	bool there, any;
};

struct counting {
	struct series_list series;
	uint32_t *run_of; /* by task */
	uint8_t *named;   /* by stack: its leaf has a function */
	size_t n_stacks, n_runs;
	struct run *runs; /* by id */
};

/* Each row of two numbers, the first of which is an id below `n`. */
static int each_pair(sqlite3 *db, const char *sql, size_t n,
		     void (*take)(struct counting *x, size_t id, int64_t v), struct counting *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);

		if (id > 0 && id < (int64_t)n)
			take(x, (size_t)id, sqlite3_column_int64(st, 1));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void take_run(struct counting *x, size_t id, int64_t last)
{
	x->runs[id] = (struct run){.last = last, .there = true};
}

static void take_task(struct counting *x, size_t id, int64_t run)
{
	x->run_of[id] = run > 0 && run < (int64_t)x->n_runs ? (uint32_t)run : 0;
}

static void take_stack(struct counting *x, size_t id, int64_t function)
{
	x->named[id] = function > 0;
}

/* A run that was not ended lasts to the last sample. */
#define LAST                                                                                             \
	"SELECT id, min(iif(to_ns > 0, to_ns / 1000000000 - (SELECT value FROM meta WHERE key = 't0'), " \
	"1 << 62), (SELECT max(ts) FROM sample)) FROM run"
#define NAMED "SELECT k.id, r.function FROM stack k CROSS JOIN frame r ON r.id = k.leaf"

static int read_all(struct counting *x, sqlite3 *db)
{
	int rc = series_list_read(db, &x->series);

	x->n_runs = series_list_slots(db, "SELECT max(id) FROM run", "SELECT count(*) FROM run");
	x->n_stacks =
		series_list_slots(db, "SELECT max(id) FROM stack", "SELECT count(*) FROM stack");
	if (rc != SQLITE_OK || !x->n_runs || !x->n_stacks)
		return rc != SQLITE_OK ? rc : SQLITE_TOOBIG;
	x->runs = mem_array(x->n_runs, sizeof(*x->runs));
	x->run_of = mem_array(x->series.n_tasks, sizeof(*x->run_of));
	x->named = mem_array(x->n_stacks, sizeof(*x->named));
	rc = each_pair(db, LAST, x->n_runs, take_run, x);
	if (rc == SQLITE_OK)
		rc = each_pair(db, "SELECT id, run FROM task", x->series.n_tasks, take_task, x);
	return rc == SQLITE_OK ? each_pair(db, NAMED, x->n_stacks, take_stack, x) : rc;
}

static void count(struct counting *x, int64_t ts, int64_t series, int64_t n)
{
	const struct series_list_one *s =
		series > 0 && series < (int64_t)x->series.n ? &x->series.of[series] : NULL;
	struct run *r = s ? &x->runs[x->run_of[s->task]] : NULL;

	if (!r || !r->there || ts <= r->last - HOUR || ts > r->last || n < 0 ||
	    n > INT64_MAX - r->samples)
		return;
	r->any = true;
	r->samples += n;
	r->named += s->stack < x->n_stacks && x->named[s->stack] ? n : 0;
}

static int count_all(struct counting *x, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT ts, series, n FROM sample", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		count(x, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
		      sqlite3_column_int64(st, 2));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int put(const struct counting *x, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db, "INSERT OR REPLACE INTO run_named(run, samples, named) VALUES(?1, ?2, ?3)", -1,
		&st, NULL);

	for (size_t i = 1; rc == SQLITE_OK && i < x->n_runs; i++) {
		if (!x->runs[i].any)
			continue;
		sqlite3_bind_int64(st, 1, (int64_t)i);
		sqlite3_bind_int64(st, 2, x->runs[i].samples);
		sqlite3_bind_int64(st, 3, x->runs[i].named);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

int named_share_make(sqlite3 *db)
{
	struct counting x = {0};
	int rc = read_all(&x, db);

	if (rc == SQLITE_OK)
		rc = count_all(&x, db);
	if (rc == SQLITE_OK)
		rc = put(&x, db);
	series_list_release(&x.series);
	free(x.run_of);
	free(x.named);
	free(x.runs);
	return rc == SQLITE_TOOBIG ? SQLITE_OK : rc;
}
