/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/packed/sample_sums.h"

#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/kinds.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/series_list.h"

static const char *const TABLES[] = {SAMPLE_SUM, SAMPLE_TIME_SUM, AMOUNT_SUM, WAIT_STACK_SUM};

static const char MAKE_SAMPLES[] =
	"CREATE TABLE " SAMPLE_SUM
	"(task INTEGER NOT NULL, stack INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(task, stack)) STRICT, WITHOUT ROWID;"
	"CREATE TABLE " SAMPLE_TIME_SUM
	"(ts INTEGER NOT NULL, task INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(ts, task)) STRICT, WITHOUT ROWID";
static const char MAKE_AMOUNTS[] =
	"CREATE TABLE " AMOUNT_SUM
	"(task INTEGER PRIMARY KEY, n INTEGER NOT NULL, value INTEGER NOT NULL) STRICT, WITHOUT ROWID";

bool sample_sums_has(const char *table)
{
	for (size_t i = 0; i < ARRAY_SIZE(TABLES); i++)
		if (!strcmp(TABLES[i], table))
			return true;
	return false;
}

/* A series and what it comes to. */
struct sum {
	uint32_t task, stack;
	int64_t n, value;
};

struct summing {
	sqlite3 *db;
	struct sum *sums; /* by series */
	size_t n_sums, n_tasks;
	/* of the bucket at hand: */
	int64_t ts, *in_bucket; /* by task */
	uint32_t *touched;
	size_t n_touched;
	sqlite3_stmt *put; /* a row of sample_time_sum */
	bool too_much;     /* some number is past its range */
};

static bool add(struct summing *x, int64_t *sum, int64_t n)
{
	if (n < 0 || __builtin_add_overflow(*sum, n, sum))
		x->too_much = true;
	return !x->too_much;
}

/* The sum of a row's series; NULL: it has none. */
static struct sum *sum_of(const struct summing *x, int64_t series)
{
	return series > 0 && (uint64_t)series < x->n_sums && x->sums[series].task ?
		       &x->sums[series] :
		       NULL;
}

static int read_series(struct summing *x)
{
	struct series_list l;
	int rc = series_list_read(x->db, &l);

	x->n_sums = l.n;
	x->n_tasks = l.n_tasks;
	x->sums = rc == SQLITE_OK ? mem_array(l.n, sizeof(*x->sums)) : NULL;
	for (size_t i = 0; rc == SQLITE_OK && i < l.n; i++)
		x->sums[i] = (struct sum){.task = l.of[i].task, .stack = l.of[i].stack};
	series_list_release(&l);
	return rc;
}

/* ---- samples by bucket and thread ---- */

static int end_bucket(struct summing *x)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < x->n_touched; i++) {
		sqlite3_bind_int64(x->put, 1, x->ts);
		sqlite3_bind_int64(x->put, 2, x->touched[i]);
		sqlite3_bind_int64(x->put, 3, x->in_bucket[x->touched[i]]);
		sqlite3_step(x->put);
		rc = sqlite3_reset(x->put);
		x->in_bucket[x->touched[i]] = 0;
	}
	x->n_touched = 0;
	return rc;
}

static int add_sample(struct summing *x, sqlite3_stmt *st)
{
	const int64_t ts = sqlite3_column_int64(st, 0), n = sqlite3_column_int64(st, 2);
	struct sum *sum = sum_of(x, sqlite3_column_int64(st, 1));
	int rc = ts == x->ts ? SQLITE_OK : end_bucket(x);

	x->ts = ts;
	if (!sum || n <= 0 || !add(x, &sum->n, n))
		return rc;
	if (!x->in_bucket[sum->task])
		x->touched[x->n_touched++] = sum->task;
	add(x, &x->in_bucket[sum->task], n);
	return rc;
}

static int read_samples(struct summing *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(x->db, "INSERT INTO " SAMPLE_TIME_SUM " VALUES(?1, ?2, ?3)", -1,
				    &x->put, NULL);

	x->in_bucket = mem_array(x->n_tasks, sizeof(*x->in_bucket));
	x->touched = mem_array(x->n_tasks, sizeof(*x->touched));
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(x->db, "SELECT ts, series, n FROM sample ORDER BY ts", -1,
					&st, NULL);
	while (rc == SQLITE_OK && !x->too_much && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = add_sample(x, st);
	sqlite3_finalize(st);
	if (rc == SQLITE_DONE)
		rc = end_bucket(x);
	sqlite3_finalize(x->put);
	free(x->in_bucket);
	free(x->touched);
	return rc;
}

/* ---- samples by thread and stack ---- */

static int by_task_and_stack(const void *a, const void *b)
{
	const struct sum *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int put_sum(sqlite3_stmt *st, const struct sum *s)
{
	sqlite3_bind_int64(st, 1, s->task);
	sqlite3_bind_int64(st, 2, s->stack);
	sqlite3_bind_int64(st, 3, s->n);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

/* Two writers may have put one stack of a thread twice. */
static int put_sums(struct summing *x)
{
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	int rc = sqlite3_prepare_v2(x->db, "INSERT INTO " SAMPLE_SUM " VALUES(?1, ?2, ?3)", -1, &st,
				    NULL);

	for (size_t i = 0; i < x->n_sums; i++)
		if (x->sums[i].n)
			x->sums[n++] = x->sums[i];
	qsort(x->sums, n, sizeof(*x->sums), by_task_and_stack);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++) {
		if (i + 1 < n && !by_task_and_stack(&x->sums[i], &x->sums[i + 1]))
			add(x, &x->sums[i + 1].n, x->sums[i].n);
		else
			rc = put_sum(st, &x->sums[i]);
	}
	sqlite3_finalize(st);
	return rc;
}

static int drop(sqlite3 *db, const char *table)
{
	char *sql = sqlite3_mprintf("DROP TABLE IF EXISTS \"%w\"", table);
	int rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

static int make_samples(sqlite3 *db)
{
	struct summing x = {.db = db};
	int rc = sql_exec(db, MAKE_SAMPLES);

	if (rc == SQLITE_OK)
		rc = read_series(&x);
	if (rc == SQLITE_OK)
		rc = read_samples(&x);
	if (rc == SQLITE_OK && !x.too_much)
		rc = put_sums(&x);
	free(x.sums);
	if (x.too_much || rc == SQLITE_TOOBIG) {
		rc = drop(db, SAMPLE_SUM);
		if (rc == SQLITE_OK)
			rc = drop(db, SAMPLE_TIME_SUM);
	}
	return rc;
}

/* ---- amounts by thread ---- */

bool sample_sums_adds_up(enum store_kind kind)
{
	const struct store_kind_info *k = store_kind_info(kind);

	return k && k->class != STORE_GAUGE && !k->sized;
}

/* A sum past its range is an error of SQLite's. */
static int make_amounts(sqlite3 *db)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	int rc = sql_exec(db, MAKE_AMOUNTS);

	strbuf_addstr(
		&sql,
		"INSERT INTO " AMOUNT_SUM
		" SELECT t.id, sum(max(a.n, 0)), sum(max(a.value, 0)) FROM amount a CROSS JOIN series e ON e.id = a.series"
		" CROSS JOIN task t ON t.id = e.task WHERE t.kind IN (0");
	for (int k = 1; k < STORE_KINDS; k++)
		if (sample_sums_adds_up((enum store_kind)k))
			strbuf_addf(&sql, ", %d", k);
	strbuf_addstr(&sql, ") GROUP BY t.id");
	if (rc == SQLITE_OK)
		rc = sql_exec(db, strbuf_str(&sql));
	return rc == SQLITE_ERROR ? drop(db, AMOUNT_SUM) : rc;
}

static bool has_rows(sqlite3 *db, const char *sql)
{
	return sql_number(db, sql, 0) > 0;
}

int sample_sums_make(sqlite3 *db)
{
	int rc =
		has_rows(db, "SELECT EXISTS (SELECT 1 FROM sample)") ? make_samples(db) : SQLITE_OK;

	if (rc == SQLITE_OK && has_rows(db, "SELECT EXISTS (SELECT 1 FROM amount)"))
		rc = make_amounts(db);
	return rc;
}

int sample_sums_empty(sqlite3 *db)
{
	int rc = sql_exec(db, MAKE_SAMPLES);

	if (rc == SQLITE_OK)
		rc = drop(db, SAMPLE_TIME_SUM);
	return rc == SQLITE_OK ? sql_exec(db, MAKE_AMOUNTS) : rc;
}

int sample_sums_drop(sqlite3 *db)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(TABLES); i++)
		rc = drop(db, TABLES[i]);
	return rc;
}
