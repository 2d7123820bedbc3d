/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's steps. */
#include "schema/store/archive/minutes.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/store/archive/remake.h"
#include "schema/store/model/fact_sql.h"
#include "schema/store/model/hist.h"
#include "schema/store/model/merge_sql.h"
#include "schema/store/model/sql.h"
#include "schema/store/model/stored.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/sums.h"

#define TEXT_OF(n)      TEXT_(n)
#define TEXT_(n)        #n
#define AT_USER_VERSION 60 /* of the file's header: sqlite.org/fileformat2.html, 1.3 */

/* What goes on by itself, in buckets of less than a minute. Not where a window of it was kept
 * (keep.h): it hides whole buckets, and would hide a minute that it has in part. */
#define FINE_RUNS                                                                                    \
	"SELECT id FROM run WHERE recording = 0 AND bucket_s < " TEXT_OF(MINUTES_S) " AND " TEXT_OF( \
		MINUTES_S) " % bucket_s = 0"                                                         \
			   " AND NOT EXISTS (SELECT 1 FROM run k "                                   \
			   "WHERE k.state = " TEXT_OF(                                               \
				   STORE_RUN_ELSEWHERE) " AND "                                      \
							"k.family = run.family AND k.from_ns < "     \
							"run.to_ns AND k.to_ns > run.from_ns)"

/*
 * Time that threads waited and ran is no table of one thing a row (fact.h), but by task or series.
 * Its runs are those that have wait_row: all amounts of such a run add up.
 */
#define OF_RUN  "SELECT id, id AS run FROM main.run WHERE id IN (SELECT run FROM temp.wait_run)"
#define OF_TASK "SELECT id, run FROM main.task WHERE run IN (SELECT run FROM temp.wait_run)"
#define OF_SERIES \
	"SELECT e.id, t.run FROM main.series e JOIN main.task t ON t.id = e.task WHERE t.run IN (SELECT run FROM temp.wait_run)"
static const struct wait_table {
	const char *table, *by, *of; /* of: which id of column `by` is of which run */
	const char *columns, *merge;
	const char *sums; /* of all rows, as step 3 compares them */
} WAITS[] = {
	{"wait_row", "task", OF_TASK, "task,class,flags,n,total_ns,max_ns,hist", MERGE_WAIT,
	 "sum(n), sum(total_ns), max(max_ns)"},
	{"wake_row", "task", OF_TASK, "task,class,waker,context,stack,n,total_ns", MERGE_N_TOTAL,
	 "sum(n), sum(total_ns), count(DISTINCT task)"},
	{"culprit_row", "task", OF_TASK, "task,culprit,kind,n,total_ns", MERGE_N_TOTAL,
	 "sum(n), sum(total_ns), count(DISTINCT task)"},
	{"wait_on_row", "task", OF_TASK, "task,class,object,waker,stack,n,total_ns", MERGE_N_TOTAL,
	 "sum(n), sum(total_ns), count(DISTINCT task)"},
	{"amount", "series", OF_SERIES, "series,n,value,max,hist", MERGE_AMOUNT,
	 "sum(n), sum(value), max(max)"},
	{"amount_error_row", "series", OF_SERIES, "series,n_variance,value_variance",
	 MERGE_AMOUNT_ERROR, "sum(n_variance), sum(value_variance), count(DISTINCT series)"},
	{"throttle_row", "run", OF_RUN, "run,cgroup,periods,throttled,throttled_ns", MERGE_THROTTLE,
	 "sum(periods), sum(throttled), sum(throttled_ns)"},
	{"steal_row", "run", OF_RUN, "run,steal_ns,idle_ns,cpu_ns", MERGE_STEAL,
	 "sum(steal_ns), sum(idle_ns), sum(cpu_ns)"},
};
#define N_WAITS ARRAY_SIZE(WAITS)

bool minutes_are(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t v[4];

	return fd < 0 || pread(fd, v, sizeof(v), AT_USER_VERSION) != sizeof(v) || v[3] == MINUTES_S;
}

static bool has_rows(sqlite3 *db, const struct fact *f)
{
	sqlite3_stmt *st = NULL;
	char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\" WHERE run IN (%s) LIMIT 1", f->table,
				    FINE_RUNS);
	bool some = sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
		    sqlite3_step(st) == SQLITE_ROW;

	sqlite3_finalize(st);
	sqlite3_free(sql);
	return some;
}

/* Step 2: which minute a row is of, and where the file's first one begins. */
#define MINUTE_OF(x)                                                                                                           \
	"max((ts + (SELECT value FROM meta WHERE key = 't0')) / " TEXT_OF(MINUTES_S) " * " TEXT_OF(                            \
		MINUTES_S) " - (SELECT value FROM meta WHERE key = 't0'), (SELECT first FROM temp.fine_run r WHERE r.run = " x \
			   ".run))"

static int sum_table(sqlite3 *db, const struct fact *f)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, columns cleanup_strbuf = STRBUF_INIT;

	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(&columns, ",%s", f->columns[i].name);
	strbuf_addf(
		&sql,
		"DROP TABLE IF EXISTS temp.fine; CREATE TEMP TABLE fine AS SELECT * FROM main.%s WHERE run IN (SELECT run FROM temp.fine_run);"
		"DELETE FROM main.%s WHERE run IN (SELECT run FROM temp.fine_run); INSERT INTO main.%s(",
		f->table, f->table, f->table);
	fact_columns_sql(f, &sql);
	strbuf_addstr(&sql, ") SELECT ");
	strbuf_addstr(&sql, MINUTE_OF("x"));
	strbuf_addf(&sql, ",run%s FROM temp.fine x WHERE true ORDER BY ts", strbuf_str(&columns));
	fact_merge_sql(f, &sql);
	strbuf_addstr(&sql, "; DROP TABLE temp.fine");
	return sql_exec(db, strbuf_str(&sql));
}

/* ---- waits ---- */

/* A file of an older schema lacks the newest of these tables. */
static bool is_there(sqlite3 *db, const struct wait_table *w)
{
	char *sql =
		sqlite3_mprintf("SELECT EXISTS (SELECT 1 FROM pragma_table_info(%Q))", w->table);
	bool there = sql && sql_number(db, sql, 0);

	sqlite3_free(sql);
	return there;
}

/* temp.wait_run, and the place of each run's first row. */
static int find_wait_runs(sqlite3 *db)
{
	int rc = sql_exec(
		db,
		"CREATE TEMP TABLE wait_run AS SELECT DISTINCT t.run AS run FROM main.task t WHERE t.run IN (" FINE_RUNS
		")"
		" AND EXISTS (SELECT 1 FROM main.kind k WHERE k.id = t.kind AND k.class <> 'gauge')"
		" AND t.id IN (SELECT task FROM main.wait_row)");

	for (size_t i = 0; rc == SQLITE_OK && i < N_WAITS; i++) {
		const struct wait_table *w = &WAITS[i];
		struct strbuf sql cleanup_strbuf = STRBUF_INIT;

		if (!is_there(db, w))
			continue;
		strbuf_addf(
			&sql,
			"CREATE TEMP TABLE of_%s(id INTEGER PRIMARY KEY, run INTEGER); INSERT INTO temp.of_%s %s;"
			"INSERT INTO temp.fine_run SELECT o.run, min(x.ts) FROM main.%s x JOIN temp.of_%s o ON o.id = x.%s WHERE true GROUP BY 1"
			" ON CONFLICT DO UPDATE SET first = min(first, excluded.first)",
			w->table, w->table, w->of, w->table, w->table, w->by);
		rc = sql_exec(db, strbuf_str(&sql));
	}
	return rc;
}

static int sum_waits_of(sqlite3 *db, const struct wait_table *w)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	int rc = packing_unpack_one(db, w->table);

	if (rc != SQLITE_OK)
		return rc;
	strbuf_addf(
		&sql,
		"CREATE TEMP TABLE fine AS SELECT x.*, o.run AS of_run FROM main.%s x JOIN temp.of_%s o ON o.id = x.%s;",
		w->table, w->table, w->by);
	strbuf_addf(&sql, "DELETE FROM main.%s WHERE %s IN (SELECT id FROM temp.of_%s);", w->table,
		    w->by, w->table);
	strbuf_addf(
		&sql,
		"INSERT INTO main.%s(ts,%s) SELECT " MINUTE_OF(
			"o") ",%s FROM (SELECT of_run AS run, * FROM temp.fine) o WHERE true ORDER BY ts"
			     " ON CONFLICT DO UPDATE SET %s; DROP TABLE temp.fine",
		w->table, w->columns, w->columns, w->merge);
	rc = sql_exec(db, strbuf_str(&sql));
	return rc == SQLITE_OK ? packing_pack_one(db, w->table) : rc;
}

static bool has_waits(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool some =
		sqlite3_prepare_v2(db, "SELECT 1 FROM temp.wait_run", -1, &st, NULL) == SQLITE_OK &&
		sqlite3_step(st) == SQLITE_ROW;

	sqlite3_finalize(st);
	return some;
}

static int sum_waits(sqlite3 *db)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_WAITS && has_waits(db); i++)
		rc = is_there(db, &WAITS[i]) ? sum_waits_of(db, &WAITS[i]) : rc;
	return rc;
}

/* ---- all ---- */

/* Each run's first row of any of these tables. */
static int find_runs(sqlite3 *db)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	const char *before = "";

	strbuf_addstr(
		&sql,
		"CREATE TEMP TABLE fine_run(run INTEGER PRIMARY KEY, first INTEGER); INSERT INTO temp.fine_run SELECT run, min(ts) FROM (");
	for (int i = 0; FACTS[i]; i++) {
		if (!FACTS[i]->minutes || !has_rows(db, FACTS[i]))
			continue;
		strbuf_addf(
			&sql,
			"%sSELECT run, min(ts) AS ts FROM main.%s WHERE run IN (%s) GROUP BY run",
			before, FACTS[i]->table, FINE_RUNS);
		before = " UNION ALL ";
	}
	if (!*before)
		strbuf_addstr(&sql, "SELECT 0 AS run, 0 AS ts WHERE false");
	strbuf_addstr(&sql, ") GROUP BY run");
	int rc = sql_exec(db, strbuf_str(&sql));
	return rc == SQLITE_OK ? find_wait_runs(db) : rc;
}

static int sum_all(sqlite3 *db)
{
	int rc = hist_register(db);

	if (rc == SQLITE_OK)
		rc = find_runs(db);

	for (int i = 0; rc == SQLITE_OK && FACTS[i]; i++) {
		if (!FACTS[i]->minutes || !has_rows(db, FACTS[i]))
			continue;
		rc = packing_unpack_one(db, FACTS[i]->table);
		if (rc == SQLITE_OK)
			rc = sum_table(db, FACTS[i]);
		if (rc == SQLITE_OK)
			rc = packing_pack_one(db, FACTS[i]->table);
	}
	if (rc == SQLITE_OK)
		rc = sum_waits(db);
	if (rc == SQLITE_OK)
		rc = packing_unpack_one(db, "run");
	if (rc == SQLITE_OK)
		rc = sql_exec(db,
			      "UPDATE run SET bucket_s = " TEXT_OF(
				      MINUTES_S) " WHERE id IN (SELECT run FROM temp.fine_run)");
	if (rc == SQLITE_OK)
		rc = packing_pack_one(db, "run");
	if (rc == SQLITE_OK)
		rc = packing_unpack_one(db, "container");
	if (rc == SQLITE_OK)
		rc = packing_pack_one(
			db, "container"); /* some dozen rows, and a page for each four of them */
	if (rc == SQLITE_OK)
		rc = sums_remake(db);
	return rc;
}

/* --- step 3 --- */

static int sums_of(sqlite3 *db, const struct fact *f, int64_t sums[FACT_COLUMNS_MAX])
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc;

	strbuf_addstr(&sql, "SELECT 0");
	for (uint32_t i = 0; i < f->n; i++)
		strbuf_addf(&sql,
			    f->columns[i].role == FACT_COUNTER || f->columns[i].role == FACT_TALLY ?
				    ",sum(%s)" :
				    ",count(DISTINCT %s)",
			    f->columns[i].role == FACT_GAUGE ? "0" : f->columns[i].name);
	strbuf_addf(&sql, " FROM %s", f->table);
	rc = sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	for (uint32_t i = 0; rc == SQLITE_ROW && i < f->n; i++)
		sums[i] = sqlite3_column_int64(st, (int)i + 1);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int sums_of_waits(sqlite3 *db, const struct wait_table *w, int64_t sums[3])
{
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\"", w->sums, w->table);
	sqlite3_stmt *st = NULL;
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	for (int i = 0; rc == SQLITE_ROW && i < 3; i++)
		sums[i] = sqlite3_column_int64(st, i);
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

static int compare_waits(sqlite3 *a, sqlite3 *b)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < N_WAITS; i++) {
		int64_t before[3] = {0}, after[3] = {0};

		if (!is_there(a, &WAITS[i]))
			continue;
		rc = sums_of_waits(a, &WAITS[i], before);
		if (rc == SQLITE_OK)
			rc = sums_of_waits(b, &WAITS[i], after);
		if (rc == SQLITE_OK && memcmp(before, after, sizeof(before)) != 0)
			rc = SQLITE_MISMATCH;
	}
	return rc;
}

static int compare(sqlite3 *a, sqlite3 *b)
{
	int rc = compare_waits(a, b);

	for (int i = 0; rc == SQLITE_OK && FACTS[i]; i++) {
		int64_t before[FACT_COLUMNS_MAX] = {0}, after[FACT_COLUMNS_MAX] = {0};

		if (!FACTS[i]->minutes || !has_rows(a, FACTS[i]))
			continue;
		rc = sums_of(a, FACTS[i], before);
		if (rc == SQLITE_OK)
			rc = sums_of(b, FACTS[i], after);
		if (rc == SQLITE_OK && memcmp(before, after, sizeof(before)) != 0)
			rc = SQLITE_MISMATCH;
	}
	return rc;
}

int minutes_make(const char *path, const char *to, struct err *e)
{
	static const struct remake how = {
		"the minutes", sum_all,
		"PRAGMA user_version = " TEXT_OF(
			MINUTES_S) "; COMMIT; VACUUM; PRAGMA journal_mode=DELETE",
		compare};

	return remake_file(path, to, &how, e);
}
