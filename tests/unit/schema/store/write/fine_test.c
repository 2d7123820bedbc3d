/* SPDX-License-Identifier: Apache-2.0 */
/* fine: the ring gets all of what the store gets, in finer steps, under the same names; of samples
 * the store gets its share; segments end and are removed as they get old. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/facts/logs.h"
#include "schema/store/files/folder.h"
#include "schema/store/write/facts.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010
#define OUTSIDE                                                                                        \
	"SELECT count(*) FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task " \
	"JOIN run r ON r.id = t.run JOIN meta m ON m.key = 't0' "                                      \
	"WHERE (x.ts + m.value + 1) * 1000000000 <= r.from_ns OR (x.ts + m.value) * 1000000000 >= r.to_ns"
#define SAMPLES "SELECT ifnull(sum(n), 0) FROM sample"

static struct fixture ring_of(const struct fixture *f)
{
	struct fixture ring;

	snprintf(ring.dir, sizeof(ring.dir), "%.56s/flight", f->dir);
	return ring;
}

static struct store_writer *writer(const struct fixture *f, uint32_t age_s, uint32_t keep_s,
				   uint64_t bytes)
{
	struct fixture ring = ring_of(f);
	struct store_writer_opts o = {.dir = f->dir,
				      .fine_dir = ring.dir,
				      .fine_segment_s = age_s,
				      .fine_keep_s = keep_s,
				      .fine_bytes = bytes};
	struct store_writer *w = NULL;
	struct err e = {0};

	if (store_writer_open(&o, &w, &e)) {
		fprintf(stderr, "%s\n", e.what);
		abort();
	}
	return w;
}

static uint32_t run_of(struct store_writer *w, uint32_t share)
{
	const struct store_run r = {.family = "cpu",
				    .options = "sonde-cpu --test",
				    .scope = STORE_SCOPE_HOST,
				    .bucket_s = 10,
				    .period_ns = PERIOD,
				    .cpus = 2,
				    .from_ns = T0_S * NS,
				    .fine_s = 1,
				    .share = share};

	return store_run_begin(w, &r);
}

static int64_t sql_ring(const struct fixture *ring, const char *sql)
{
	return fixture_sql_all(ring, sql);
}

STORE_TEST(all_samples_are_in_both_with_names_that_came_late)
{
	struct fixture *f = *state, ring = ring_of(f);
	struct store_writer *w = writer(f, 0, 0, 0);
	uint32_t run = run_of(w, 1), frame, function;
	const struct store_image image = {.name = "libx.so", .path = "/libx.so", .kind = 0};
	const struct store_frame place = {.image = store_image(w, &image), .offset = 77};
	const struct store_function named = {.name = "came_late", .image = place.image};
	const struct store_process p = {.pid = 7, .comm = "late", .start_ticks = 9};
	uint32_t series;

	for (int64_t s = 0; s < 30; s++)
		for (uint32_t leaf = 1; leaf < 4; leaf++)
			fixture_add(w, run, 100 + leaf, leaf, (T0_S + s) * NS + NS / 3, leaf);
	frame = store_frame(w, &place);
	series = store_series(w, run, store_process(w, &p), "late", 7, store_stack(w, &frame, 1),
			      STORE_KIND_CPU);
	assert_int_equal(store_add(w, series, T0_S * NS, 5), 0);
	store_flush(w);
	assert_true(fixture_wait_stored(w, 30 * 6 + 5));
	function = store_function(w, &named);
	store_frame_name(w, frame, function, 0, 0);
	assert_int_equal(store_add(w, series, T0_S * NS, 1), 0);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, SAMPLES), 30 * 6 + 6);
	assert_int_equal(sql_ring(&ring, SAMPLES), 30 * 6 + 6);
	assert_int_equal(fixture_sql_all(f, "SELECT count(DISTINCT ts) FROM sample"), 3);
	assert_int_equal(sql_ring(&ring, "SELECT count(DISTINCT ts) FROM sample"), 30);
	for (int i = 0; i < 2; i++) {
		const struct fixture *x = i ? &ring : f;

		assert_int_equal(
			fixture_sql_all(
				x, "SELECT sum(samples) FROM cpu_samples WHERE comm = 'prog-102'"),
			60);
		assert_int_equal(
			fixture_sql_all(x, "SELECT count(*) FROM frame e JOIN function u ON u.id = "
					   "e.function WHERE u.name = 'came_late'"),
			1);
		assert_int_equal(fixture_sql_all(x, "SELECT count(*) FROM series"), 4);
		assert_int_equal(fixture_sql_all(x, OUTSIDE), 0);
		assert_int_equal(fixture_sql_all(x, "SELECT sum(accounted) FROM run"), 30 * 6 + 6);
	}
	assert_int_not_equal(fixture_sql_all(f, "SELECT token FROM run"),
			     sql_ring(&ring, "SELECT token FROM run"));
}

STORE_TEST(of_samples_the_store_gets_its_share_and_nothing_counts_as_lost)
{
	struct fixture *f = *state, ring = ring_of(f);
	struct store_writer *w = writer(f, 0, 0, 0);
	uint32_t run = run_of(w, 5);
	int64_t store, odd;

	/* two that take turns, so that each fifth alone would be of one of ten */
	for (int64_t i = 0; i < 20000; i++)
		fixture_add(w, run, 100 + (uint32_t)(i % 10), 1, T0_S * NS + i * NS / 1000, 1);
	store_run_offered(w, run, 20000);
	store_run_until(w, run, (T0_S + 20) * NS);
	fixture_close(w);
	store = fixture_sql_all(f, SAMPLES);
	assert_int_equal(store, 4000);
	assert_int_equal(sql_ring(&ring, SAMPLES), 20000);
	odd = fixture_sql_all(f, "SELECT sum(n) FROM sample JOIN series s ON s.id = series JOIN "
				 "task t ON t.id = s.task JOIN process p ON p.id = t.process WHERE "
				 "p.pid = 103");
	assert_in_range(odd, 300, 500); /* 400, its deviation is 18 */
	assert_int_equal(fixture_sql_all(f, "SELECT min(period_ns) FROM run_period"), 5 * PERIOD);
	assert_int_equal(sql_ring(&ring, "SELECT min(period_ns) FROM run_period"), PERIOD);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(accounted) FROM run"), 20000);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM loss"), 0);
}

STORE_TEST(segments_end_one_after_the_other_and_the_old_are_removed)
{
	struct fixture *f = *state, ring = ring_of(f);
	struct store_writer *w = writer(f, 0, 0, 4); /* each batch is more */
	uint32_t run = run_of(w, 1);
	int64_t first = 0;

	for (int64_t s = 0; s < 14; s++) {
		fixture_add(w, run, 100, 1, (T0_S + s) * NS + NS / 2, 3);
		store_run_until(w, run, (T0_S + s + 1) * NS);
		store_flush(w);
		assert_true(fixture_wait_stored(w, 3 * (uint64_t)(s + 1)));
	}
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, SAMPLES), 42);
	assert_int_equal(fixture_files(ring.dir, ".db"), 2);
	assert_true(sql_ring(&ring, SAMPLES) < 42);
	for (size_t i = 0; i < fixture_files(ring.dir, ".db"); i++) {
		const char *path = fixture_segment(&ring, i);
		int64_t from = fixture_sql(path, "SELECT from_ns FROM run");

		assert_int_equal(fixture_sql(path, OUTSIDE), 0);
		if (first)
			assert_int_equal(from, first);
		first = fixture_sql(path, "SELECT to_ns FROM run");
	}
	assert_int_equal(first, (T0_S + 14) * NS);
}

STORE_TEST(a_ring_that_cannot_be_written_does_not_harm_the_store)
{
	struct fixture *f = *state, ring = ring_of(f);
	FILE *file = fopen(ring.dir, "w"); /* no folder */
	struct store_writer *w;
	uint32_t run;

	assert_non_null(file);
	fclose(file);
	w = writer(f, 0, 0, 0);
	run = run_of(w, 1);
	for (int64_t s = 0; s < 5; s++) {
		fixture_add(w, run, 100, 1, (T0_S + s) * NS, 3);
		store_flush(w);
	}
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, SAMPLES), 15);
}

/* They are no events: of a segment that has nothing else of their run they are the first. */
STORE_TEST(rows_that_are_no_events_have_their_run_in_each_segment)
{
	struct fixture *f = *state, ring = ring_of(f);
	struct store_writer *w = writer(f, 1000, 100000, 0);
	uint32_t run = run_of(w, 1);
	char name[SEGMENT_NAME_MAX];
	struct err e = {0};

	for (int64_t i = 0; i < 40; i++) {
		struct fact_row row = {0};
		struct store_writer_stat stat;

		fact_put_text(&row, LOG_SECOND_SOURCE, "shop");
		fact_put_text(&row, LOG_SECOND_LEVEL, "error");
		fact_put_text(&row, LOG_SECOND_PATTERN, "");
		fact_put(&row, LOG_SECOND_CONTAINER, 0);
		fact_put(&row, LOG_SECOND_MESSAGES, 1);
		assert_int_equal(store_fact_fine(w, run, (T0_S + i) * NS, &LOG_SECOND_FACT, &row),
				 0);
		if (i % 5 != 4)
			continue;
		store_flush(w);
		do {
			usleep(1000);
			store_writer_stat(w, &stat);
		} while (stat.queued_bytes);
		if (i % 10 == 9)
			assert_int_equal(folder_turn(ring.dir, name, &e), 0);
	}
	fixture_close(w);
	assert_true(fixture_files(ring.dir, ".db") >= 4);
	assert_int_equal(fixture_sql_all(&ring, "SELECT sum(messages) FROM log_second_row"), 40);
	assert_int_equal(fixture_sql_all(&ring,
					 "SELECT count(*) FROM log_second_row WHERE run NOT IN "
					 "(SELECT id FROM run)"),
			 0);
}
