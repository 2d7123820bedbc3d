/* SPDX-License-Identifier: Apache-2.0 */
/* series: Ids in a file are dense (schema/sql/0022-samples.sql): arrays by id,
 * refused where they are not. */
#include "schema/extension/series.h"

#include <sqlite3ext.h>
#include <string.h>

#include "schema/extension/blocks.h"

SQLITE_EXTENSION_INIT3

#define NS           1000000000ll
#define SPARSE_ROWS  65536 /* ids up to this are accepted as they are */
#define SPARSE_TIMES 16    /* and beyond that, this many for each row */

void series_drop(struct series_map *m)
{
	if (!m || --m->users)
		return;
	sqlite3_free(m->series);
	sqlite3_free(m->tasks);
	sqlite3_free(m->hidden);
	sqlite3_free(m->periods);
	sqlite3_free(m);
}

struct series_map *series_keep(struct series_map *m)
{
	m->users++;
	return m;
}

/* Zeroed, with one more than the largest id of `table`. */
static int by_id(sqlite3 *db, const char *table, size_t size, void **out, uint32_t *n)
{
	char sql[96];
	int64_t rows, most;

	sqlite3_snprintf(sizeof(sql), sql, "SELECT count(*) FROM main.%s", table);
	rows = blocks_number(db, sql, 0);
	sqlite3_snprintf(sizeof(sql), sql, "SELECT max(id) FROM main.%s", table);
	most = blocks_number(db, sql, 0);
	if (most < 0 || most >= UINT32_MAX || (most > SPARSE_ROWS && most / SPARSE_TIMES > rows))
		return SQLITE_CORRUPT_VTAB;
	*out = sqlite3_malloc64(((uint64_t)most + 1) * size);
	if (!*out)
		return SQLITE_NOMEM;
	memset(*out, 0, ((size_t)most + 1) * size);
	*n = (uint32_t)most + 1;
	return SQLITE_OK;
}

/* Calls `each` for every row of `sql`. */
static int for_rows(struct series_map *m, sqlite3 *db, const char *sql,
		    int (*each)(struct series_map *m, sqlite3_stmt *st))
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL), bad = SQLITE_OK;

	if (rc != SQLITE_OK)
		return rc;
	while (!bad && (rc = sqlite3_step(st)) == SQLITE_ROW)
		bad = each(m, st);
	sqlite3_finalize(st);
	return bad ? bad : rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool in_range(sqlite3_int64 id, uint32_t n)
{
	return id > 0 && id < n;
}

static uint32_t id_at(sqlite3_stmt *st, int column)
{
	sqlite3_int64 id = sqlite3_column_int64(st, column);

	return id > 0 && id < UINT32_MAX ? (uint32_t)id : 0;
}

static int take_task(struct series_map *m, sqlite3_stmt *st)
{
	sqlite3_int64 id = sqlite3_column_int64(st, 0);

	if (in_range(id, m->n_tasks))
		m->tasks[id] = (struct series_task){.run = id_at(st, 1),
						    .process = id_at(st, 2),
						    .cpu = sqlite3_column_int(st, 3) == 1};
	return SQLITE_OK;
}

static int take_series(struct series_map *m, sqlite3_stmt *st)
{
	sqlite3_int64 id = sqlite3_column_int64(st, 0);

	if (in_range(id, m->n) && in_range(sqlite3_column_int64(st, 1), m->n_tasks))
		m->series[id] = (struct series_one){.task = id_at(st, 1), .stack = id_at(st, 2)};
	return SQLITE_OK;
}

/* Room for one more element of this size behind n of them: doubled at each power of two. */
static int grow(void **items, uint32_t n, size_t size)
{
	void *more;

	if (n & (n - 1) || n == UINT32_MAX / 2 + 1)
		return n & (n - 1) ? SQLITE_OK : SQLITE_NOMEM;
	more = sqlite3_realloc64(*items, (n ? 2 * (uint64_t)n : 1) * size);
	if (!more)
		return SQLITE_NOMEM;
	*items = more;
	return SQLITE_OK;
}

/* They come in order of time; those that touch become one. */
static int take_hidden(struct series_map *m, sqlite3_stmt *st)
{
	struct series_hidden h = {sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1),
				  sqlite3_column_int64(st, 2), sqlite3_column_int64(st, 3)};
	struct series_hidden *before = m->n_hidden ? &m->hidden[m->n_hidden - 1] : NULL;
	int rc = SQLITE_OK;

	if (before && before->run == h.run && before->process == h.process &&
	    h.first <= before->last) {
		before->last = h.last > before->last ? h.last : before->last;
	} else {
		rc = grow((void **)&m->hidden, m->n_hidden, sizeof(h));
		if (rc == SQLITE_OK)
			m->hidden[m->n_hidden++] = h;
	}
	return rc;
}

static int take_period(struct series_map *m, sqlite3_stmt *st)
{
	sqlite3_int64 from_ns = sqlite3_column_int64(st, 1);
	int rc = grow((void **)&m->periods, m->n_periods, sizeof(*m->periods));

	if (rc == SQLITE_OK)
		m->periods[m->n_periods++] = (struct series_period){
			sqlite3_column_int64(st, 0), from_ns / NS + (from_ns % NS > 0),
			sqlite3_column_int64(st, 2)};
	return rc;
}

/* The first one of (run, process) or behind it. */
static uint32_t hidden_from(const struct series_map *m, int64_t run, int64_t process)
{
	uint32_t low = 0, high = m->n_hidden;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		const struct series_hidden *h = &m->hidden[mid];

		if (h->run < run || (h->run == run && h->process < process))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static uint32_t periods_from(const struct series_map *m, int64_t run)
{
	uint32_t low = 0, high = m->n_periods;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (m->periods[mid].run < run)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void find_parts(const struct series_map *m, struct series_task *t)
{
	t->hidden = hidden_from(m, t->run, t->process);
	t->n_hidden = hidden_from(m, t->run, (int64_t)t->process + 1) - t->hidden;
	t->period = periods_from(m, t->run);
	t->n_periods = periods_from(m, (int64_t)t->run + 1) - t->period;
}

static int read_all(struct series_map *m, sqlite3 *db, const char **why)
{
	int rc = by_id(db, "task", sizeof(*m->tasks), (void **)&m->tasks, &m->n_tasks);

	if (rc == SQLITE_OK)
		rc = by_id(db, "series", sizeof(*m->series), (void **)&m->series, &m->n);
	if (rc == SQLITE_CORRUPT_VTAB)
		*why = "the file is damaged: the ids of its series are not dense";
	if (rc == SQLITE_OK)
		rc = for_rows(m, db, "SELECT id, run, process, kind FROM main.task", take_task);
	if (rc == SQLITE_OK)
		rc = for_rows(m, db, "SELECT id, task, stack FROM main.series", take_series);
	if (rc == SQLITE_OK)
		rc = for_rows(
			m, db,
			"SELECT DISTINCT run, process, first_ts, last_ts FROM run_hidden ORDER BY 1, 2, 3",
			take_hidden);
	if (rc == SQLITE_OK)
		rc = for_rows(m, db,
			      "SELECT run, from_ns, period_ns FROM main.run_period ORDER BY 1, 2",
			      take_period);
	for (uint32_t i = 0; rc == SQLITE_OK && i < m->n_tasks; i++)
		find_parts(m, &m->tasks[i]);
	m->t0 = blocks_number(db, "SELECT value FROM main.meta WHERE key = 't0'", 0);
	if (rc == SQLITE_OK && (m->t0 <= -SAMPLE_TS_MAX || m->t0 >= SAMPLE_TS_MAX))
		rc = SQLITE_CORRUPT_VTAB;
	return rc;
}

int series_read(struct series_map **m, sqlite3 *db, const char **why)
{
	int64_t version = blocks_number(db, "PRAGMA main.data_version", 0) + 1;
	int changes = sqlite3_total_changes(db), rc;

	if (*m && version == (*m)->version && changes == (*m)->changes)
		return SQLITE_OK;
	series_drop(*m);
	*m = sqlite3_malloc64(sizeof(**m));
	if (!*m)
		return SQLITE_NOMEM;
	**m = (struct series_map){.users = 1, .version = version, .changes = changes};
	rc = read_all(*m, db, why);
	if (rc != SQLITE_OK) {
		series_drop(*m);
		*m = NULL;
	}
	return rc;
}

const struct series_task *series_task(const struct series_map *m, uint32_t series)
{
	return series < m->n && m->series[series].task ? &m->tasks[m->series[series].task] : NULL;
}

bool series_counts(const struct series_map *m, const struct series_task *t, int64_t ts)
{
	uint32_t low = t->hidden, high = t->hidden + t->n_hidden;

	while (low < high) { /* the first one that ends at ts or later */
		uint32_t mid = low + (high - low) / 2;

		if (m->hidden[mid].last < ts)
			low = mid + 1;
		else
			high = mid;
	}
	return t->cpu && (low == t->hidden + t->n_hidden || m->hidden[low].first > ts);
}

int64_t series_period_ns(const struct series_map *m, const struct series_task *t, int64_t ts)
{
	for (uint32_t i = t->period + t->n_periods; i-- > t->period;)
		if (m->periods[i].from_s <= ts)
			return m->periods[i].period_ns;
	return -1;
}
