/* SPDX-License-Identifier: Apache-2.0 */
/* Gauges: their values at the end of a range, and over time; two runs at once; together with other
 * families. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/clock.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static uint32_t heap_run(struct store_writer *w, uint32_t bucket_s, int64_t from_s)
{
	struct store_run r = {.family = "goheap",
			      .options = "sonde-goheap --test",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = bucket_s,
			      .from_ns = from_s * NS,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

static uint32_t series_of(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf)
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
	struct store_frame frame = {.offset = 16 * leaf};
	uint32_t id = store_frame(w, &frame);

	return store_series(w, run, store_process(w, &p), "app", pid, store_stack(w, &id, 1),
			    STORE_KIND_INUSE);
}

static void stands(struct store_writer *w, uint32_t run, uint32_t pid, uint32_t leaf, int64_t s,
		   uint64_t bytes)
{
	struct store_amount a = {.n = bytes ? 1 : 0, .value = bytes};

	assert_int_equal(store_amount(w, series_of(w, run, pid, leaf), s * NS, &a), 0);
}

static int add_value(void *ctx, const struct store_total *t)
{
	*(uint64_t *)ctx += t->value;
	return 0;
}

static uint64_t bytes_in(const char *segment, int64_t from_s, int64_t to_s)
{
	struct store_query q = {
		.from_ns = from_s * NS, .to_ns = to_s * NS, .kind = STORE_KIND_INUSE};
	struct store_segment *s;
	uint64_t sum = 0;

	assert_int_equal(store_segment_open(segment, &s, NULL), 0);
	assert_int_equal(store_totals(s, &q, add_value, &sum, NULL), 0);
	store_segment_close(s);
	return sum;
}

STORE_TEST(the_last_amount_of_a_bucket_holds)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = heap_run(w, 10, T0_S);

	stands(w, run, 1, 1, T0_S, 500);
	stands(w, run, 1, 1, T0_S + 1, 300);
	store_flush(w);
	stands(w, run, 1, 1, T0_S + 2, 200);
	stands(w, run, 1, 1, T0_S + 3, 100);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT value FROM amount"), 100);
	assert_int_equal(fixture_sql_all(f, "SELECT n FROM amount"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 4); /* four readings */
	assert_int_equal(bytes_in(fixture_segment(f, 0), T0_S, T0_S + 10), 100);
}

STORE_TEST(a_range_shows_what_stands_at_its_end)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = heap_run(w, 1, T0_S);
	const char *seg;

	stands(w, run, 1, 1, T0_S, 100);
	stands(w, run, 1, 2, T0_S, 10);
	stands(w, run, 1, 1, T0_S + 10, 200);  /* only changes are reported */
	stands(w, run, 2, 1, T0_S + 12, 1000); /* a process that ends after this */
	stands(w, run, 1, 2, T0_S + 20, 0);    /* all of it was freed */
	stands(w, run, 1, 1, T0_S + 30, 300);
	store_run_until(w, run, (T0_S + 60) * NS);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(bytes_in(seg, T0_S, T0_S + 5), 110);
	assert_int_equal(bytes_in(seg, T0_S, T0_S + 11), 210);
	assert_int_equal(bytes_in(seg, T0_S + 5, T0_S + 11),
			 210); /* the other was reported before, and still holds */
	assert_int_equal(bytes_in(seg, T0_S + 5, T0_S + 15), 1210);
	assert_int_equal(bytes_in(seg, T0_S + 5, T0_S + 25), 1200);
	assert_int_equal(bytes_in(seg, T0_S + 25, T0_S + 35),
			 300); /* the other process is not there any more */
	assert_int_equal(bytes_in(seg, T0_S + 40, T0_S + 50), 0); /* no reading */
	assert_int_equal(bytes_in(seg, 0, INT64_MAX / NS), 1300);
}

STORE_TEST(two_runs_at_once_are_not_counted_twice)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t coarse = heap_run(w, 10, T0_S), fine = heap_run(w, 1, T0_S + 20);
	const char *seg;

	for (int64_t s = T0_S; s < T0_S + 100; s += 10)
		stands(w, coarse, 1, 1, s, 100);
	stands(w, coarse, 1, 2, T0_S + 90, 7);
	for (int64_t s = T0_S + 20; s < T0_S + 60; s++)
		stands(w, fine, 1, 1, s, 101);
	store_run_until(w, fine, (T0_S + 60) * NS);
	store_run_until(w, coarse, (T0_S + 100) * NS);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(bytes_in(seg, T0_S, T0_S + 100), 107);
	assert_int_equal(bytes_in(seg, T0_S + 30, T0_S + 40), 101);
	assert_int_equal(bytes_in(seg, T0_S, T0_S + 15), 100);
}

struct line {
	int64_t at[32];
	uint64_t value[32];
	size_t n;
};

static int line_add(void *ctx, int64_t from_ns, uint32_t process, uint64_t value)
{
	struct line *l = ctx;

	assert_int_equal(process, 1);
	assert_true(l->n < 32);
	l->at[l->n] = from_ns / NS - T0_S;
	l->value[l->n++] = value;
	return 0;
}

STORE_TEST(along_time_a_gauge_shows_the_end_of_each_step)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = heap_run(w, 1, T0_S), next;
	struct store_query q = {
		.from_ns = (T0_S + 10) * NS, .to_ns = (T0_S + 60) * NS, .kind = STORE_KIND_INUSE};
	static const int64_t at[] = {10, 30, 40};
	static const uint64_t value[] = {13, 6, 50};
	struct store_segment *s;
	struct line l = {0};

	stands(w, run, 1, 1, T0_S, 10);
	stands(w, run, 1, 2, T0_S + 10, 1);
	stands(w, run, 1, 2, T0_S + 19, 3);
	stands(w, run, 1, 1, T0_S + 30, 3);
	store_run_until(w, run, (T0_S + 35) * NS);
	next = heap_run(w, 1, T0_S + 40);
	stands(w, next, 1, 1, T0_S + 40,
	       20); /* another capture: the values of the one before are not added to it */
	stands(w, next, 1, 2, T0_S + 41, 30);
	fixture_close(w);
	assert_int_equal(store_segment_open(fixture_segment(f, 0), &s, NULL), 0);
	assert_int_equal(store_timeline(s, &q, 10, line_add, &l, NULL), 0);
	assert_int_equal(l.n, 3);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(l.at[i], at[i]);
		assert_int_equal(l.value[i], value[i]);
	}
	l = (struct line){0};
	q.count = true;
	assert_int_equal(store_timeline(s, &q, 10, line_add, &l, NULL), 0);
	assert_int_equal(l.value[0], 2);
	store_segment_close(s);
}

STORE_TEST(a_run_of_another_family_changes_nothing_for_cpu)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t coarse = fixture_run(w, STORE_SCOPE_HOST, 10, NS, T0_S * NS);
	uint32_t fine = fixture_run(w, STORE_SCOPE_HOST, 1, NS / 10, T0_S * NS);
	struct fixture_sums before = {0}, after = {0};

	for (int64_t s = 0; s < 100; s++) {
		fixture_add(w, coarse, 1, 1, (T0_S + s) * NS, 1);
		fixture_add(w, fine, 1, 1, (T0_S + s) * NS, 10);
	}
	store_run_until(w, fine, (T0_S + 100) * NS);
	store_run_until(w, coarse, (T0_S + 100) * NS);
	fixture_close(w);
	assert_int_equal(fixture_totals(f->dir, (T0_S - 50) * NS, (T0_S + 300) * NS, &before, NULL),
			 0);
	assert_int_equal(before.samples,
			 1000); /* a window that takes the finer run, cut to what there is */
	w = fixture_writer(f, 0);
	stands(w, heap_run(w, 1, T0_S - 40), 1, 1, T0_S - 40, 5); /* longer than both */
	stands(w, heap_run(w, 1, T0_S + 200), 1, 1, T0_S + 200, 5);
	fixture_close(w);
	assert_int_equal(fixture_totals(f->dir, (T0_S - 50) * NS, (T0_S + 300) * NS, &after, NULL),
			 0);
	assert_int_equal(after.samples, before.samples);
	assert_int_equal(after.cpu_ns, before.cpu_ns);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(cpu_ns) FROM cpu_samples"), 100 * NS);
}

STORE_TEST(a_new_segment_asks_for_gauges_anew)
{
	struct fixture *f = *state;
	struct store_writer *w;
	uint64_t epoch;
	uint32_t run;

	fixture_segment_bytes(200 * 1024);
	w = fixture_writer(f, 0);
	run = heap_run(w, 1, T0_S);
	epoch = store_gauge_epoch(w);
	for (uint32_t i = 0; i < 200 && store_gauge_epoch(w) == epoch; i++) {
		for (uint32_t leaf = 0; leaf < 200; leaf++)
			stands(w, run, 1 + i, leaf, T0_S + i, 1);
		store_flush(w);
		assert_true(fixture_wait_stored(w, (i + 1) * 200));
	}
	assert_true(store_gauge_epoch(w) > epoch);
	fixture_close(w);
	fixture_segment_bytes(0);
	assert_true(fixture_files(f->dir, ".db") > 1);
}

/* Until the writer's dictionary is full and it begins another one. */
static void dictionary_fill(struct store_writer *w, uint32_t run)
{
	struct store_amount a = {.n = 1, .value = 1};
	uint32_t epoch = store_epoch(w);

	for (uint32_t leaf = 1; store_epoch(w) == epoch && leaf < 1000000; leaf++)
		(void)store_amount(w, series_of(w, run, 9, leaf), T0_S * NS, &a);
	assert_true(store_epoch(w) > epoch);
}

STORE_TEST(values_by_a_new_dictionary_replace_those_by_the_old_one)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 1024 * 1024);
	uint32_t run = heap_run(w, 1, T0_S);
	uint64_t gauges = store_gauge_epoch(w);
	const char *seg;

	stands(w, run, 1, 1, T0_S, 100);
	stands(w, run, 1, 2, T0_S, 10);
	dictionary_fill(w, run);
	assert_true(store_gauge_epoch(w) > gauges); /* so all is stored again */
	stands(w, run, 1, 1, T0_S + 20, 300);       /* and of the other stack nothing is left */
	store_run_until(w, run, (T0_S + 60) * NS);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(bytes_in(seg, T0_S + 10, T0_S + 30), 300);
}
