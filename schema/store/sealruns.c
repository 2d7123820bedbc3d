/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealruns: runs of a segment into a day. A run that went on over several segments is one again: it has the same token
 * in each, and lasts from the first one's beginning to the last one's end.
 */
#include <sqlite3.h>

#include "schema/base/mem.h"
#include "schema/store/sealparts.h"

enum { FIND, PUT, RAISE, PERIODS, LATEST, PERIOD_PUT, N_STATEMENTS };

static const char *const SQL[N_STATEMENTS] = {
	[FIND] = "SELECT id FROM run WHERE token = ?1 AND family = ?2",
	[PUT] = "INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted, recording)"
		" VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12) RETURNING id",
	[RAISE] = "UPDATE run SET state = iif(?3 >= to_ns, ?4, state), accounted = max(accounted, ?5), cpus = max(cpus, ?6),"
		  " from_ns = min(from_ns, ?2), to_ns = max(to_ns, ?3) WHERE id = ?1",
	[LATEST] = "SELECT period_ns FROM run_period WHERE run = ?1 AND from_ns <= ?2 ORDER BY from_ns DESC LIMIT 1",
	[PERIOD_PUT] = "INSERT INTO run_period(run, from_ns, period_ns) VALUES(?1, ?2, ?3)"
		       " ON CONFLICT DO UPDATE SET period_ns = excluded.period_ns",
};

struct work {
	struct sealdict *d;
	sqlite3_stmt *st[N_STATEMENTS];
	sqlite3_stmt *runs;
};

static int64_t number(sqlite3_stmt *st, int64_t otherwise)
{
	int64_t v = sqlite3_step(st) == SQLITE_ROW ? sqlite3_column_int64(st, 0) : otherwise;

	sqlite3_reset(st);
	return v;
}

static void bind_from(sqlite3_stmt *to, int at, sqlite3_stmt *from, int column)
{
	sqlite3_bind_value(to, at, sqlite3_column_value(from, column));
}

static int raise_run(struct work *w, int64_t id)
{
	sqlite3_stmt *st = w->st[RAISE];

	sqlite3_bind_int64(st, 1, id);
	bind_from(st, 2, w->runs, 7);
	bind_from(st, 3, w->runs, 8);
	bind_from(st, 4, w->runs, 9);
	bind_from(st, 5, w->runs, 11);
	bind_from(st, 6, w->runs, 6);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

/* A period holds from its stamp on. The first one of a part that goes on begins with the part. */
static int take_period(struct work *w, int64_t id, int64_t from_ns, int64_t period_ns, bool goes_on, int64_t part_ns)
{
	int64_t at = goes_on && !from_ns ? part_ns : from_ns;
	sqlite3_stmt *st = w->st[PERIOD_PUT];

	sqlite3_bind_int64(w->st[LATEST], 1, id);
	sqlite3_bind_int64(w->st[LATEST], 2, at);
	if (number(w->st[LATEST], -1) == period_ns)
		return SQLITE_OK;
	sqlite3_bind_int64(st, 1, id);
	sqlite3_bind_int64(st, 2, at);
	sqlite3_bind_int64(st, 3, period_ns);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int take_periods(struct work *w, int64_t run, int64_t id, bool goes_on, int64_t part_ns)
{
	sqlite3_stmt *st = w->st[PERIODS];
	int rc = SQLITE_OK;

	sqlite3_bind_int64(st, 1, run);
	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		rc = take_period(w, id, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1), goes_on, part_ns);
	sqlite3_reset(st);
	return rc;
}

static int take_run(struct work *w, struct seal_map *m)
{
	int64_t run = sqlite3_column_int64(w->runs, 0), id;
	bool goes_on;
	int rc = SQLITE_OK;

	if (run <= 0 || run >= 1 << 20)
		return SQLITE_CORRUPT;
	bind_from(w->st[FIND], 1, w->runs, 1);
	bind_from(w->st[FIND], 2, w->runs, 2);
	id = number(w->st[FIND], 0);
	goes_on = id != 0;
	if (goes_on) {
		rc = raise_run(w, id);
	} else {
		for (int i = 1; i <= 12; i++)
			bind_from(w->st[PUT], i, w->runs, i);
		id = number(w->st[PUT], 0);
	}
	if (rc != SQLITE_OK || id <= 0)
		return rc != SQLITE_OK ? rc : SQLITE_ERROR;
	if ((size_t)run >= m->n) {
		m->to = mem_realloc(m->to, ((size_t)run + 1) * sizeof(*m->to));
		for (; m->n <= (size_t)run; m->n++)
			m->to[m->n] = 0;
	}
	m->to[run] = (uint32_t)id;
	return take_periods(w, run, id, goes_on, sqlite3_column_int64(w->runs, 7));
}

int sealruns_take(struct sealdict *d, sqlite3 *segment)
{
	struct work w = {.d = d};
	int rc = sqlite3_prepare_v2(segment, "SELECT id, token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid,"
					     " accounted, recording FROM run ORDER BY id", -1, &w.runs, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(segment, "SELECT from_ns, period_ns FROM run_period WHERE run = ?1 ORDER BY from_ns", -1,
					&w.st[PERIODS], NULL);
	for (int i = 0; rc == SQLITE_OK && i < N_STATEMENTS; i++)
		if (SQL[i])
			rc = sqlite3_prepare_v2(d->day, SQL[i], -1, &w.st[i], NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(w.runs)) == SQLITE_ROW)
		rc = take_run(&w, &d->map[SEAL_RUN]);
	sqlite3_finalize(w.runs);
	for (int i = 0; i < N_STATEMENTS; i++)
		sqlite3_finalize(w.st[i]);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
