/* SPDX-License-Identifier: Apache-2.0 */
/* Readings become differences: a counter that begins, is reset, or belongs to a new object causes
 * no jump, and nothing between readings is lost. */
#include <stdio.h>

#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/bpf/family.h"
#include "schema/facts/host.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

struct bench {
	const struct fixture *f;
	struct store_writer *w;
	struct family_host h;
	struct meter m;
	int64_t s; /* of the round */
	bool refuses;
};

static void bench_begin(struct bench *b, const struct fixture *f, int64_t idle_ns)
{
	*b = (struct bench){
		.f = f, .w = fixture_writer(f, 0), .m = {.fact = &DISK_FACT, .idle_ns = idle_ns}};
	b->h = (struct family_host){.store = b->w,
				    .run = fixture_run(b->w, STORE_SCOPE_HOST, 10, 0, T0_S * NS),
				    .bucket_s = 10};
}

static bool names(void *ctx, struct fact_row *row)
{
	const struct bench *b = ctx;

	fact_put_text(row, DISK_NAME, "sda");
	return !b->refuses;
}

static void reading(struct bench *b, uint64_t identity, bool young, uint64_t reads,
		    uint64_t in_flight)
{
	struct meter_round r = {
		.h = &b->h, .now_ns = (1000 + b->s) * NS, .utc_ns = (T0_S + b->s) * NS};
	struct meter_reading x = {.key = "sda", .identity = identity, .young = young};

	fact_put(&x.row, DISK_READS, reads);
	fact_put(&x.row, DISK_IN_FLIGHT, in_flight);
	meter_take(&b->m, &r, &x, names, b);
}

static void round_ends(struct bench *b)
{
	meter_end(&b->m);
	b->s += 10;
}

/* What the store has in the end; -1: NULL. */
static int64_t bench_end(struct bench *b, const char *sql)
{
	fixture_close(b->w);
	meter_release(&b->m);
	return fixture_sql(fixture_segment(b->f, 0), sql);
}

STORE_TEST(what_was_there_before_begins_with_its_gauges)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	reading(&b, 1, false, 1000000, 3);
	round_ends(&b);
	reading(&b, 1, false, 1000005, 4);
	round_ends(&b);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 5);
	assert_int_equal(fixture_sql(fixture_segment(*state, 0),
				     "SELECT in_flight FROM disk_row WHERE reads IS NULL"),
			 3);
}

STORE_TEST(what_came_later_or_was_made_anew_began_at_nothing)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	round_ends(&b);
	reading(&b, 1, true, 7, 0);
	round_ends(&b);
	reading(&b, 2, false, 2, 0); /* another one of that name */
	round_ends(&b);
	round_ends(&b); /* gone */
	reading(&b, 3, true, 1, 0);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 10);
}

STORE_TEST(what_is_only_seen_late_makes_no_step)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	round_ends(&b);
	reading(&b, 1, false, 1000000, 0);
	round_ends(&b);
	reading(&b, 1, false, 1000001, 0);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 1);
}

STORE_TEST(a_counter_that_goes_backwards_is_not_measured_once)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	reading(&b, 1, false, 100, 0);
	round_ends(&b);
	reading(&b, 1, false, 3, 1);
	round_ends(&b);
	reading(&b, 1, false, 9, 1);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 6);
	assert_int_equal(fixture_sql(fixture_segment(*state, 0),
				     "SELECT count(*) FROM disk_row WHERE reads IS NULL"),
			 2);
}

STORE_TEST(what_the_store_could_not_take_is_part_of_the_next_difference)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	reading(&b, 1, false, 100, 0);
	round_ends(&b);
	b.refuses = true;
	reading(&b, 1, false, 110, 0);
	round_ends(&b);
	b.refuses = false;
	reading(&b, 1, false, 111, 0);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 11);
}

STORE_TEST(a_thing_that_the_store_refused_at_first_began_where_it_began)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	round_ends(&b);
	b.refuses = true;
	reading(&b, 1, true, 4, 0);
	round_ends(&b);
	b.refuses = false;
	reading(&b, 1, false, 6, 0);
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 6);
}

STORE_TEST(what_does_not_move_has_a_row_now_and_then)
{
	struct bench b;

	bench_begin(&b, *state, 60 * NS);
	for (int i = 0; i < 13; i++) { /* two minutes, both ends */
		reading(&b, 1, false, 100, 0);
		round_ends(&b);
	}
	assert_int_equal(bench_end(&b, "SELECT count(*) FROM disk_row"), 3);
}

STORE_TEST(what_moves_a_little_has_a_row_now_and_then_with_all_that_moved)
{
	struct bench b;

	bench_begin(&b, *state, 0);
	b.m.little_ns = 60 * NS;
	for (uint64_t i = 0; i < 13; i++) { /* reads alone are a tally */
		reading(&b, 1, false, 100 + i, 0);
		round_ends(&b);
	}
	assert_int_equal(bench_end(&b, "SELECT sum(reads) FROM disk_row"), 12);
	assert_int_equal(fixture_sql(fixture_segment(*state, 0), "SELECT count(*) FROM disk_row"),
			 3);
}

static enum meter_move move_of(int column, uint64_t before, uint64_t now)
{
	struct fact_row last = {0}, row = {0}, out;

	fact_put(&last, column, before);
	fact_put(&row, column, now);
	return meter_difference(&CGROUP_FACT, &last, false, &row, &out);
}

TEST(little_is_little_time_few_bytes_and_a_small_part_of_a_size)
{
	assert_int_equal(move_of(CGROUP_USER, 5, 5), METER_STILL);
	assert_int_equal(move_of(CGROUP_USER, 5, 5 + METER_LITTLE_US - 1), METER_LITTLE);
	assert_int_equal(move_of(CGROUP_USER, 5, 5 + METER_LITTLE_US), METER_MOVED);
	assert_int_equal(move_of(CGROUP_READ_BYTES, 0, METER_LITTLE_BYTES - 1), METER_LITTLE);
	assert_int_equal(move_of(CGROUP_READ_BYTES, 0, METER_LITTLE_BYTES), METER_MOVED);
	assert_int_equal(move_of(CGROUP_OOM_KILLS, 7, 8), METER_MOVED);
	assert_int_equal(move_of(CGROUP_READS, 0, 1000), METER_LITTLE);
	assert_int_equal(move_of(CGROUP_MEM, 640 << 20, 655 << 20), METER_LITTLE);
	assert_int_equal(move_of(CGROUP_MEM, 640 << 20, 661 << 20), METER_MOVED);
	assert_int_equal(move_of(CGROUP_MEM, 4096, 9000), METER_LITTLE);
	assert_int_equal(move_of(CGROUP_PIDS, 3, 4), METER_MOVED);
	assert_int_equal(move_of(CGROUP_USER, 9, 2),
			 METER_MOVED); /* reset: it goes on from there */
}

TEST(a_column_that_is_missing_for_a_while_goes_on_where_it_was)
{
	struct fact_row one = {0}, two = {0}, out;

	fact_put(&one, DISK_READS, 5);
	fact_put(&two, DISK_WRITES, 5);
	assert_int_equal(meter_difference(&DISK_FACT, NULL, true, &one, &out), METER_MOVED);
	assert_int_equal(out.v[DISK_READS].number, 5);
	assert_int_equal(meter_difference(&DISK_FACT, &one, false, &two, &out),
			 METER_MOVED); /* it begins to be measured */
	assert_int_equal(out.set, 0);
}
