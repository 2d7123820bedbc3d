/* SPDX-License-Identifier: Apache-2.0 */
/* Facts that schema/facts declares: their tables are those of the migrations, rows come back as
 * they were put, and merge. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/facts/host.h"
#include "schema/facts/l7.h"
#include "schema/sql/migrations.h"
#include "schema/store/archive/seal.h"
#include "schema/store/retention/segcount.h"
#include "schema/store/write/facts.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static void empty_store(const struct fixture *f)
{
	fixture_close(fixture_writer(f, 0));
}

static const char *role_word(enum fact_role role)
{
	return role == FACT_GAUGE ? "gauge" : "counter";
}

/* The line of a migration that makes the column: "  reads INTEGER, -- counter: reads that were
 * completed". */
static void column_line(const struct fact_column *c, char *out, size_t size)
{
	if (c->type != FACT_NUMBER)
		snprintf(out, size, "  %s INTEGER NOT NULL, -- %s\n", c->name, c->comment);
	else
		snprintf(out, size, "  %s INTEGER, -- %s%s%s: %s\n", c->name, role_word(c->role),
			 *c->unit ? ", " : "", c->unit, c->comment);
}

/* The text of the table in the migrations, from its first line on. */
static const char *table_text(const struct fact *f)
{
	char head[300];

	snprintf(head, sizeof(head), "CREATE TABLE %s( -- %s\n", f->table, f->comment);
	for (size_t i = 0; i < ARRAY_SIZE(MIGRATIONS); i++) {
		const char *found = strstr(MIGRATIONS[i].sql, head);

		if (found)
			return found;
	}
	fail_msg("no migration has \"%s\"", head);
	return NULL;
}

STORE_TEST(each_declaration_is_its_table_with_the_same_comments)
{
	char sql[300], line[400];

	empty_store(*state);
	for (const struct fact *const *f = FACTS; *f; f++) {
		const char *text = table_text(*f), *path = fixture_segment(*state, 0);

		snprintf(sql, sizeof(sql), "SELECT count(*) FROM pragma_table_info('%s')",
			 (*f)->table);
		assert_int_equal(fixture_sql(path, sql), (*f)->n + 2);
		for (uint32_t i = 0; i < (*f)->n; i++) {
			const struct fact_column *c = &(*f)->columns[i];
			bool key = c->role == FACT_KEY;

			snprintf(
				sql, sizeof(sql),
				"SELECT count(*) FROM pragma_table_info('%s') WHERE cid = %u AND name = '%s' AND type ="
				" 'INTEGER' AND pk = %u AND \"notnull\" = %d",
				(*f)->table, i + 2, c->name, key ? i + 3 : 0,
				c->type != FACT_NUMBER);
			if (fixture_sql(path, sql) != 1)
				fail_msg("%s.%s is not as it is declared", (*f)->table, c->name);
			column_line(c, line, sizeof(line));
			if (!strstr(text, line))
				fail_msg("%s: no migration has the line \"%s\"", (*f)->table, line);
		}
	}
}

TEST(keys_come_first_and_only_numbers_are_counted)
{
	for (const struct fact *const *f = FACTS; *f; f++)
		for (uint32_t i = 0; i < (*f)->n; i++) {
			const struct fact_column *c = &(*f)->columns[i];

			assert_true(c->role != FACT_KEY || !i ||
				    (*f)->columns[i - 1].role == FACT_KEY);
			assert_true(c->role != FACT_KEY || c->type != FACT_NUMBER);
			assert_true((c->role != FACT_COUNTER && c->role != FACT_TALLY) ||
				    c->type == FACT_NUMBER);
			assert_true(*c->comment);
		}
}

static struct fact_row disk(const char *name, uint64_t reads, uint64_t in_flight)
{
	struct fact_row r = {0};

	fact_put_text(&r, DISK_NAME, name);
	fact_put(&r, DISK_READS, reads);
	fact_put(&r, DISK_IN_FLIGHT, in_flight);
	return r;
}

static uint32_t run_begin(struct store_writer *w)
{
	return fixture_run(w, STORE_SCOPE_HOST, 10, 0, T0_S * NS);
}

STORE_TEST(counters_of_a_bucket_add_up_and_of_gauges_the_last_one_holds)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = run_begin(w);
	struct fact_row r = disk("sda", 5, 9);
	const char *path;

	assert_int_equal(store_fact(w, run, (T0_S + 1) * NS, &DISK_FACT, &r), 0);
	r = disk("sda", 7, 2);
	fact_put(&r, DISK_WRITES, 3); /* not measured before */
	assert_int_equal(store_fact(w, run, (T0_S + 2) * NS, &DISK_FACT, &r), 0);
	store_flush(w);
	r = (struct fact_row){0}; /* and now nothing but this one */
	fact_put_text(&r, DISK_NAME, "sda");
	fact_put(&r, DISK_READS, 1);
	assert_int_equal(store_fact(w, run, (T0_S + 3) * NS, &DISK_FACT, &r), 0);
	r = disk("sda", 100, 1);
	assert_int_equal(store_fact(w, run, (T0_S + 11) * NS, &DISK_FACT, &r), 0);
	fixture_close(w);
	path = fixture_segment(*state, 0);
	assert_int_equal(fixture_sql(path, "SELECT count(*) FROM disk_row"), 2);
	assert_int_equal(fixture_sql(path, "SELECT reads FROM disk_row ORDER BY ts LIMIT 1"), 13);
	assert_int_equal(fixture_sql(path, "SELECT in_flight FROM disk_row ORDER BY ts LIMIT 1"),
			 2);
	assert_int_equal(fixture_sql(path, "SELECT writes FROM disk_row ORDER BY ts LIMIT 1"), 3);
	assert_int_equal(
		fixture_sql(path, "SELECT count(*) FROM disk_row WHERE write_bytes IS NULL"), 2);
	assert_int_equal(
		fixture_sql(
			path,
			"SELECT reads FROM disk_stats WHERE disk = 'sda' ORDER BY ts DESC LIMIT 1"),
		100);
}

STORE_TEST(each_row_is_an_event_of_its_run_and_counted)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = run_begin(w);
	struct segcount c;
	struct fact_row r;

	for (uint64_t i = 0; i < 20; i++) {
		r = disk(i % 2 ? "sda" : "sdb", i, 0);
		assert_int_equal(store_fact(w, run, (T0_S + (int64_t)i) * NS, &DISK_FACT, &r), 0);
	}
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(*state, 0), "SELECT accounted FROM run"), 20);
	assert_int_equal(
		fixture_sql(fixture_segment(*state, 0), "SELECT n FROM run_count WHERE kind = 0"),
		20);
	assert_int_equal(segcount_read(fixture_segment(*state, 0), &c, NULL), 0);
	assert_int_equal(c.n, 1);
	assert_int_equal(c.family[0].rows, 4); /* two disks, two buckets */
	assert_int_equal(c.from_ns, T0_S * NS);
}

STORE_TEST(rows_beside_others_add_up_and_are_no_events)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = run_begin(w), series = fixture_series(w, run, 7, 1);
	struct fact_row r = {0};
	const char *path;

	assert_int_equal(store_add(w, series, T0_S * NS, 3), 0);
	fact_put(&r, REQUEST_SAMPLE_TAG, 90);
	fact_put(&r, REQUEST_SAMPLE_SERIES, series);
	fact_put(&r, REQUEST_SAMPLE_N, 1);
	fact_put(&r, REQUEST_SAMPLE_VALUE, 10);
	assert_int_equal(store_fact(w, run, T0_S * NS, &REQUEST_SAMPLE_FACT, &r), 0);
	assert_int_equal(store_fact(w, run, T0_S * NS, &REQUEST_SAMPLE_FACT, &r), 0);
	fixture_close(w);
	path = fixture_segment(*state, 0);
	assert_int_equal(fixture_sql(path, "SELECT accounted FROM run"), 3);
	assert_int_equal(fixture_sql(path, "SELECT count(*) FROM run_count WHERE kind = 0"), 0);
	assert_int_equal(
		fixture_sql(
			path,
			"SELECT x.n * 100 + x.value FROM request_sample_row x JOIN sample s ON s.series = x.series WHERE x.tag = 90"),
		220);
}

STORE_TEST(a_row_without_its_key_is_refused_and_a_number_that_cannot_be_is_lost)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t run = run_begin(w);
	struct fact_row r = {0};
	const char *path;

	fact_put(&r, DISK_READS, 1);
	assert_int_equal(store_fact(w, run, T0_S * NS, &DISK_FACT, &r), -EINVAL);
	r = disk("sda", UINT64_MAX, 4);
	assert_int_equal(store_fact(w, run, T0_S * NS, &DISK_FACT, &r), 0);
	fixture_close(w);
	path = fixture_segment(*state, 0);
	assert_int_equal(fixture_sql(path, "SELECT n FROM loss_row WHERE reason = 'range'"), 1);
	assert_int_equal(fixture_sql(path, "SELECT in_flight FROM disk_row WHERE reads IS NULL"),
			 4);
}

/* A cgroup of a container, a process and a disk: each of the references. */
static void put_references(struct store_writer *w, uint32_t run, int64_t s, uint32_t pid)
{
	struct store_container c = {.runtime = "docker",
				    .runtime_id = "abc",
				    .name = "web",
				    .image = "web:1",
				    .cgroup = "/docker/abc"};
	struct store_process p = {.pid = pid,
				  .exec_id = 1,
				  .start_ns = T0_S * NS,
				  .start_ticks = pid,
				  .comm = "web",
				  .exe = "/bin/web",
				  .args = "web",
				  .cgroup = "/docker/abc",
				  .unit = ""};
	struct fact_row r = {0};

	p.container = store_container(w, &c);
	fact_put(&r, PROCESS_ID, store_process(w, &p));
	fact_put(&r, PROCESS_USER, 1000);
	assert_int_equal(store_fact(w, run, s * NS, &PROCESS_FACT, &r), 0);
	r = (struct fact_row){0};
	fact_put_text(&r, CGROUP_PATH, "/docker/abc");
	fact_put(&r, CGROUP_CONTAINER, store_container(w, &c));
	fact_put(&r, CGROUP_USER, 1000);
	fact_put(&r, CGROUP_MEM, 4096 * pid);
	assert_int_equal(store_fact(w, run, s * NS, &CGROUP_FACT, &r), 0);
}

STORE_TEST(an_archive_has_the_rows_of_its_segment_with_the_same_names)
{
	const struct fixture *f = *state;
	struct seal_opts o = {.dir = f->dir};
	struct store_writer *w;
	struct seal_report r;
	struct err e = {0};
	uint32_t run;

	w = fixture_writer(f, 0);
	run = run_begin(w);
	for (uint32_t i = 0; i < 1500; i++)
		put_references(w, run, T0_S + i, 7);
	fixture_close(w);
	fixture_exec(fixture_segment(f, 0),
		     "UPDATE meta SET value = 'another' WHERE key = 'boot_id'");
	fixture_close(fixture_writer(f, 0));
	if (seal_run(&o, &r, &e))
		fail_msg("%s", e.what);
	assert_int_equal(r.segments, 1);
	assert_int_equal(
		fixture_sql(
			fixture_segment(f, 0),
			"SELECT count(*) FROM packed_table WHERE name IN ('process_row', 'cgroup_row')"),
		2);
	assert_int_equal(
		fixture_sql(
			fixture_segment(f, 0),
			"SELECT sum(user_us) FROM process_stats WHERE comm = 'web' AND container = 'web'"),
		1500000);
	assert_int_equal(
		fixture_sql(
			fixture_segment(f, 0),
			"SELECT sum(user_us) FROM container_stats WHERE container = 'web' AND rx_bytes IS NULL"),
		1500000);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0),
			    "SELECT max(mem) FROM container_stats WHERE cgroup = '/docker/abc'"),
		4096 * 7);
	assert_int_equal(
		fixture_sql(fixture_segment(f, 0), "SELECT sum(n) FROM run_count WHERE kind = 0"),
		3000);
}

STORE_TEST(of_two_captures_at_once_each_bucket_comes_from_one)
{
	struct store_writer *w = fixture_writer(*state, 0);
	uint32_t always = run_begin(w),
		 record = fixture_run(w, STORE_SCOPE_NARROW, 1, 0, (T0_S + 10) * NS);
	const char *path;
	struct fact_row r;

	/* both see one read a second; the record from the second bucket to its end */
	for (uint64_t i = 0; i < 30; i++) {
		r = disk("sda", 1, 0);
		assert_int_equal(store_fact(w, always, (T0_S + (int64_t)i) * NS, &DISK_FACT, &r),
				 0);
		if (i >= 10 && i < 20)
			assert_int_equal(
				store_fact(w, record, (T0_S + (int64_t)i) * NS, &DISK_FACT, &r), 0);
	}
	store_run_until(w, always, (T0_S + 30) * NS);
	store_run_until(w, record, (T0_S + 20) * NS);
	fixture_close(w);
	path = fixture_segment(*state, 0);
	assert_int_equal(fixture_sql(path, "SELECT sum(reads) FROM disk_stats"), 30);
	assert_int_equal(fixture_sql(path, "SELECT count(*) FROM disk_stats WHERE seconds = 1"),
			 10);
}
