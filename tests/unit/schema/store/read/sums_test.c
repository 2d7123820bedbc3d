/* SPDX-License-Identifier: Apache-2.0 */
/* The sums of each run equal the sums of its rows: while it is written, and archived. */
#include <stdio.h>

#include "schema/store/archive/seal.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static void add_amount(struct store_writer *w, uint32_t run, enum store_kind kind, uint32_t tid,
		       int64_t s, uint64_t n)
{
	struct store_process p = {.pid = 7,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = 7,
				  .comm = "app",
				  .exe = "/bin/app",
				  .args = "app",
				  .cgroup = "/",
				  .unit = ""};
	const struct store_amount a = {.n = n, .value = n * 100};
	struct store_frame frame = {.offset = 16 * tid};
	uint32_t id = store_frame(w, &frame), process = store_process(w, &p),
		 stack = store_stack(w, &id, 1);

	assert_int_equal(
		store_amount(w, store_series(w, run, process, "app", tid, stack, kind), s * NS, &a),
		0);
}

static void add_second(struct store_writer *w, const uint32_t run[2], int64_t s)
{
	struct store_cost c = {.program = s % 3 ? "sonde-cpu" : "sonde-maps",
			       .cpu_ns = 1000 + (uint64_t)s,
			       .runs = 1,
			       .rss_bytes = 9,
			       .private_bytes = (uint64_t)(1 << 20) + (uint64_t)(s * 7 % 5),
			       .map_bytes = (uint64_t)(s % 4)};

	for (int k = 0; k < 2; k++) {
		fixture_add(w, run[k], 100 + (uint32_t)(s % 3), (uint32_t)(s % 5), (T0_S + s) * NS,
			    2 + (uint64_t)s);
		add_amount(w, run[k], STORE_KIND_OFFCPU, 1 + (uint32_t)(s % 2), T0_S + s, 3);
		add_amount(w, run[k], STORE_KIND_INUSE, 1 + (uint32_t)(s % 2), T0_S + s,
			   50 + (uint64_t)s);
		store_loss(w, run[k], (T0_S + s) * NS, s % 2 ? "ring" : "maps", 1 + (uint64_t)s);
		store_cost(w, run[k], (T0_S + s) * NS, &c);
		store_unwound(w, run[k], (T0_S + s) * NS, s % 2 ? "/bin/app" : "", 0,
			      1 + (uint32_t)(s % 3), 4);
	}
	store_flush(w);
}

/* Two runs, several batches to a bucket. */
static void fill(const struct fixture *f, int64_t first)
{
	struct store_writer *w = fixture_writer(f, 0);
	const uint32_t run[2] = {
		fixture_run(w, STORE_SCOPE_HOST, 10, 1000000, (T0_S + first) * NS),
		fixture_run(w, STORE_SCOPE_NARROW, 1, 1000000, (T0_S + first) * NS)};

	for (int64_t s = first; s < first + 25; s++)
		add_second(w, run, s);
	fixture_close(w);
}

static void assert_equal_rows(const char *path, const char *sums, const char *rows)
{
	char sql[800];

	snprintf(
		sql, sizeof(sql),
		"SELECT count(*) FROM (SELECT * FROM (%s EXCEPT %s) UNION ALL SELECT * FROM (%s EXCEPT %s))",
		sums, rows, rows, sums);
	if (fixture_sql(path, sql))
		fail_msg("%s: %s", path, sums);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM (%s)", sums);
	assert_true(fixture_sql(path, sql) > 1);
}

/* `counts`: which of the kinds the rows count */
static void assert_summed(const char *path, const char *counts)
{
	char sums[100], rows[100];

	snprintf(sums, sizeof(sums), "SELECT run, kind, n FROM run_count WHERE %s", counts);
	snprintf(rows, sizeof(rows), "SELECT run, kind, n FROM run_counted WHERE %s", counts);
	assert_equal_rows(path, sums, rows);
	assert_equal_rows(path, "SELECT run, reason, n FROM run_loss",
			  "SELECT run, reason, sum(n) FROM loss_row GROUP BY 1, 2");
	assert_equal_rows(path, "SELECT run, program, cpu_ns FROM run_cost",
			  "SELECT run, program, sum(cpu_ns) FROM cost_row GROUP BY 1, 2");
	/* a row has the last one of its bucket */
	assert_int_equal(
		fixture_sql(
			path,
			"SELECT count(*) FROM run_cost s WHERE private_bytes < (SELECT max(private_bytes) FROM cost_row c"
			" WHERE c.run = s.run AND c.program = s.program) OR private_bytes > 1048576 + 4 OR map_bytes > 3"),
		0);
	assert_equal_rows(
		path, "SELECT run, exe, image, reason, n FROM run_unwound",
		"SELECT run, exe, image, reason, sum(n) FROM unwound_row GROUP BY 1, 2, 3, 4");
}

STORE_TEST(the_sums_of_a_run_are_those_of_its_rows)
{
	struct fixture *f = *state;

	fill(f, 0);
	assert_summed(fixture_segment(f, 0), "1");
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT n FROM run_count WHERE run = 1 AND kind = 1"),
			 25 * 2 + 24 * 25 / 2);
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT n FROM run_count WHERE run = 1 AND kind = 2"),
			 25 * 3);
	/* of a gauge the rows: ten seconds' readings of two threads */
	assert_int_equal(fixture_sql(fixture_segment(f, 0),
				     "SELECT n FROM run_count WHERE run = 1 AND kind = 5"),
			 3 * 2);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0),
			    "SELECT max(value) FROM amount JOIN series ON series.id = series"
			    " JOIN task ON task.id = task WHERE kind = 5"),
		74 * 100);
}

STORE_TEST(an_archive_has_the_sums_of_its_segment)
{
	struct fixture *f = *state;
	struct seal_opts o = {.dir = f->dir};
	const char *sum = "SELECT sum(n) FROM run_count";
	struct seal_report r;
	struct err e = {0};
	int64_t n = 0;

	for (int k = 0; k < 2; k++) {
		fill(f, 20 * k);
		n += k ? 0 : fixture_sql(fixture_segment(f, 0), sum);
		fixture_exec(fixture_segment(f, (size_t)k),
			     "UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	}
	assert_int_equal(seal_run(&o, &r, &e), 0);
	assert_int_equal(r.segments, 1);
	assert_summed(fixture_segment(f, 0), "1");
	assert_int_equal(fixture_sql(fixture_segment(f, 0), sum), n);
}
