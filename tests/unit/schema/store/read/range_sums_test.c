/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of any range are those of the rows in it: of a file that is written, of an archive, kept or
 * made when they are asked for. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "schema/facts/host.h"
#include "schema/facts/l7.h"
#include "schema/facts/net.h"
#include "schema/store/archive/seal.h"
#include "schema/store/packed/sums.h"
#include "schema/store/write/facts.h"
#include "schema/store/write/waits.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define SECONDS 400
#define BUCKET  10

static const struct fact *const SUMMED[] = {&PROCESS_FACT,      &PROCESS_MEM_FACT, &ENDED_FACT,
					    &CGROUP_FACT,       &FLOW_FACT,        &HOST_FACT,
					    &REQUEST_BYTES_FACT};

static uint32_t process(struct store_writer *w, uint32_t pid)
{
	struct store_process p = {.pid = pid,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = pid,
				  .comm = "app",
				  .exe = "/bin/app",
				  .args = "app",
				  .cgroup = "/",
				  .unit = ""};

	return store_process(w, &p);
}

static void put_column(struct store_writer *w, const struct fact_column *c, int i, bool key,
		       struct fact_row *r)
{
	static const char *const words[] = {"one", "two", "three"};
	const int n = rand() % 3;

	if (!key && c->type == FACT_NUMBER && rand() % 4 == 0)
		return;
	switch (c->type) {
	case FACT_TEXT:
		fact_put_text(r, i, words[n]);
		break;
	case FACT_PROCESS:
		fact_put(r, i, process(w, 10 + (uint32_t)n));
		break;
	case FACT_CONTAINER:
		fact_put(r, i, 0);
		break;
	default: /* a multiple of what a row may be cut into */
		fact_put(r, i, (uint64_t)(1 + rand() % 1000) * 60);
	}
}

static void put_row(struct store_writer *w, uint32_t run, const struct fact *f, int64_t s)
{
	struct fact_row r = {0};

	for (uint32_t i = 0; i < f->n; i++)
		put_column(w, &f->columns[i], (int)i, f->columns[i].role == FACT_KEY, &r);
	assert_int_equal(store_fact(w, run, (T0_S + s) * NS, f, &r), 0);
}

static void put_wait(struct store_writer *w, uint32_t run)
{
	const uint32_t counts[2] = {(uint32_t)(1 + rand() % 5), 1};
	struct store_wait x = {.class = rand() % 2 ? STORE_WAIT_LOCK : STORE_WAIT_PIPE,
			       .n = counts[0] + 1,
			       .total_ns = (uint64_t)rand() % 100000,
			       .max_ns = (uint64_t)rand() % 1000,
			       .hist = counts,
			       .n_hist = 2,
			       .first_slot = 64 + (unsigned)(rand() % 40)};
	const uint32_t pid = 10 + (uint32_t)(rand() % 3);

	assert_int_equal(
		store_wait(w, store_task(w, run, process(w, pid), "app", pid), T0_S * NS, &x), 0);
}

/* With `two`, another capture of the same family for some time. */
static void fill(const struct fixture *f, bool two)
{
	struct store_writer *w = fixture_writer(f, 0);
	const uint32_t run = fixture_run(w, STORE_SCOPE_HOST, BUCKET, 1000000, T0_S * NS);
	const uint32_t other =
		two ? fixture_run(w, STORE_SCOPE_HOST, 1, 1000000, (T0_S + 50) * NS) : 0;

	srand(46);
	for (int64_t s = 0; s < SECONDS; s += BUCKET) {
		for (size_t i = 0; i < ARRAY_SIZE(SUMMED); i++)
			for (int k = 0; k < 4; k++)
				put_row(w, run, SUMMED[i], s);
		put_wait(w, run);
	}
	store_run_until(w, run, (T0_S + SECONDS) * NS);
	if (two)
		store_run_until(w, other, (T0_S + 90) * NS);
	store_flush(w);
	fixture_close(w);
	/* another boot is another segment, and the newest is not sealed */
	fixture_exec(fixture_segment(f, 0), "UPDATE meta SET value = 'x' WHERE key = 'boot_id'");
	w = fixture_writer(f, 0);
	fixture_add(w, fixture_run(w, STORE_SCOPE_HOST, BUCKET, 1000000, (T0_S + SECONDS) * NS), 1,
		    1, (T0_S + SECONDS) * NS, 1);
	fixture_close(w);
}

/* "run,process,side" */
static void keys(const struct fact *f, struct strbuf *out)
{
	strbuf_addstr(out, "run");
	for (uint32_t i = 0; i < f->n && f->columns[i].role == FACT_KEY; i++)
		strbuf_addf(out, ",%s", f->columns[i].name);
}

#define T0   "(SELECT value FROM meta WHERE key = 't0')"
#define PART "max(0, min(x.ts + " T0 " + 10, %lld + 1) - max(x.ts + " T0 ", %lld)) / 10.0"

/* What the rows come to: a statement that has nothing of the code that is tested. */
static void rows_sql(const struct sums_fact *of, long long first, long long last,
		     struct strbuf *out)
{
	const struct fact *f = of->fact;
	struct strbuf key cleanup_strbuf = STRBUF_INIT;

	keys(f, &key);
	strbuf_addf(out, "SELECT %s", strbuf_str(&key));
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fact_column *c = &f->columns[i];

		if (c->role == FACT_COUNTER || c->role == FACT_TALLY)
			strbuf_addf(out, ",CAST(round(total(%s * share)) AS INTEGER)", c->name);
		else if (c->role == FACT_GAUGE)
			strbuf_addf(out, of->peak ? ",max(%s)" : ",%s", c->name);
	}
	if (!of->peak)
		strbuf_addf(out, ",max(iif(%s IS NULL, ts - 1000000, ts))",
			    of->gauge ? of->gauge : "ts");
	strbuf_addf(out, " FROM (SELECT *, ");
	if (of->in_part)
		strbuf_addf(out, PART, last, first);
	else
		strbuf_addf(out, "x.ts + " T0 " >= %lld", first);
	strbuf_addf(out, " AS share FROM %s x WHERE x.ts + " T0 " BETWEEN %lld AND %lld) WHERE %s",
		    f->table, first - (long long)of->before_s, last,
		    of->peak ? "share > 0" : "true");
	strbuf_addf(out, " GROUP BY %s", strbuf_str(&key));
}

static void sums_sql(const struct sums_fact *of, struct strbuf *out)
{
	const struct fact *f = of->fact;
	struct strbuf key cleanup_strbuf = STRBUF_INIT;
	char name[SUMS_NAME_MAX];

	sums_name(f->table, name);
	keys(f, &key);
	strbuf_addf(out, "SELECT %s", strbuf_str(&key));
	for (uint32_t i = 0; i < f->n; i++) {
		const struct fact_column *c = &f->columns[i];

		if (c->role == FACT_COUNTER || c->role == FACT_TALLY)
			strbuf_addf(out, ",CAST(round(coalesce(%s, 0)) AS INTEGER)", c->name);
		else if (c->role == FACT_GAUGE)
			strbuf_addf(out, ",%s", c->name);
	}
	if (!of->peak)
		strbuf_addf(out, ",iif(%s IS NULL, ts - 1000000, ts)",
			    of->gauge ? of->gauge : "ts");
	strbuf_addf(out, " FROM %s", name);
}

static int64_t number(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int64_t n;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL))
		fail_msg("%s: %s", sqlite3_errmsg(db), sql);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return n;
}

static void print_rows(sqlite3 *db, const char *what, const char *rows, const char *without)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;

	strbuf_addf(&sql, "%s EXCEPT %s", rows, without);
	sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	while (sqlite3_step(st) == SQLITE_ROW) {
		fprintf(stderr, "%s:", what);
		for (int i = 0; i < sqlite3_column_count(st); i++)
			fprintf(stderr, " %s", (const char *)sqlite3_column_text(st, i));
		fprintf(stderr, "\n");
	}
	sqlite3_finalize(st);
}

/* How many keys there are. */
static int64_t assert_range(struct store_segment *s, const struct fact *f, int64_t first,
			    int64_t last)
{
	struct strbuf rows cleanup_strbuf = STRBUF_INIT, sums cleanup_strbuf = STRBUF_INIT,
			   sql cleanup_strbuf = STRBUF_INIT;
	const struct sums_fact *of = sums_fact_of(f->table);
	sqlite3 *db = store_segment_tables(s);

	assert_non_null(of);
	if (!store_segment_sums(s, f->table, first, last))
		fail_msg("%s has no sums", f->table);
	rows_sql(of, first, last, &rows);
	sums_sql(of, &sums);
	strbuf_addf(
		&sql,
		"SELECT count(*) FROM (SELECT * FROM (%s EXCEPT %s) UNION ALL SELECT * FROM (%s EXCEPT %s))",
		strbuf_str(&rows), strbuf_str(&sums), strbuf_str(&sums), strbuf_str(&rows));
	if (number(db, strbuf_str(&sql))) {
		print_rows(db, "rows", strbuf_str(&rows), strbuf_str(&sums));
		print_rows(db, "sums", strbuf_str(&sums), strbuf_str(&rows));
		fail_msg("%s from %lld to %lld", f->table, (long long)(first - T0_S),
			 (long long)(last - T0_S));
	}
	strbuf_reset(&sql);
	strbuf_addf(&sql, "SELECT count(*) FROM (%s)", strbuf_str(&sums));
	return number(db, strbuf_str(&sql));
}

static void assert_all_ranges(const char *path)
{
	struct store_segment *s;
	struct err e = {0};

	assert_int_equal(store_segment_open(path, &s, &e), 0);
	for (int k = 0; k < 60; k++) {
		const int64_t first = T0_S - 40 + rand() % (SECONDS + 40),
			      last = first + rand() % SECONDS;

		for (size_t i = 0; i < ARRAY_SIZE(SUMMED); i++)
			assert_range(s, SUMMED[i], first, last);
	}
	for (size_t i = 0; i < ARRAY_SIZE(SUMMED); i++)
		assert_true(assert_range(s, SUMMED[i], T0_S - 5, T0_S + SECONDS + 5) >= 1);
	store_segment_close(s);
}

static void seal(const struct fixture *f)
{
	struct seal_opts o = {.dir = f->dir};
	struct seal_report r;
	struct err e = {0};

	assert_int_equal(seal_run(&o, &r, &e), 0);
	assert_int_equal(r.segments, 1);
}

STORE_TEST(sums_of_any_range_are_those_of_its_rows)
{
	struct fixture *f = *state;

	fill(f, false);
	assert_all_ranges(fixture_segment(f, 0));
	seal(f);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0), "SELECT value FROM meta WHERE key = 'sums'"), 1);
	assert_all_ranges(fixture_segment(f, 0));
}

STORE_TEST(an_archive_keeps_the_sums_of_all_its_waits)
{
	struct fixture *f = *state;
	struct store_segment *s;
	struct err e = {0};
	int64_t n, total;

	fill(f, false);
	n = fixture_sql(fixture_segment(f, 0), "SELECT sum(n) FROM wait_row");
	total = fixture_sql(fixture_segment(f, 0), "SELECT sum(total_ns) FROM wait_row");
	seal(f);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, &e), 0);
	assert_true(store_segment_sums(s, "wait_row", T0_S, T0_S + SECONDS));
	assert_false(store_segment_sums(s, "wait_row", T0_S + 11, T0_S + SECONDS));
	assert_int_equal(number(store_segment_tables(s), "SELECT sum(n) FROM wait_sum"), n);
	assert_int_equal(number(store_segment_tables(s), "SELECT sum(total_ns) FROM wait_sum"),
			 total);
	assert_int_equal(number(store_segment_tables(s),
				"SELECT sum(value) FROM wait_sum, json_each(hist) WHERE key > 0"),
			 n);
	store_segment_close(s);
}

STORE_TEST(where_two_captures_ran_at_once_there_are_no_sums)
{
	struct fixture *f = *state;
	struct store_segment *s;
	struct err e = {0};

	fill(f, true);
	seal(f);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM meta WHERE key = 'sums'"),
		0);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, &e), 0);
	assert_false(store_segment_sums(s, "process_row", T0_S, T0_S + SECONDS));
	store_segment_close(s);
}

STORE_TEST(an_archive_that_becomes_rows_again_has_no_sums)
{
	struct fixture *f = *state;
	sqlite3 *db;

	fill(f, false);
	seal(f);
	assert_int_equal(sqlite3_open(fixture_segment(f, 0), &db), SQLITE_OK);
	assert_int_equal(store_copy_plain(db), SQLITE_OK);
	assert_int_equal(
		number(db,
		       "SELECT count(*) FROM sqlite_schema WHERE name LIKE '%@_sum' ESCAPE '@'"),
		0);
	assert_int_equal(number(db, "SELECT count(*) FROM meta WHERE key = 'sums'"), 0);
	sqlite3_close(db);
}
