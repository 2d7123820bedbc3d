/* SPDX-License-Identifier: Apache-2.0 */
/* stretch: a run during which the clock is set back is several runs, none of which overlaps another
 * one, and what each of them took in is accounted for. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10101010

#define OVERLAPS                                                                                        \
	"SELECT count(*) FROM run a JOIN run b ON a.id < b.id AND a.from_ns < b.to_ns AND b.from_ns < " \
	"a.to_ns"
#define OUTSIDE                                                                                        \
	"SELECT count(*) FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task " \
	"JOIN run r ON r.id = t.run JOIN meta m ON m.key = 't0' "                                      \
	"WHERE (x.ts + m.value + 1) * 1000000000 <= r.from_ns OR (x.ts + m.value) * 1000000000 >= r.to_ns"

/* A second of the capture, by a clock that says so. */
static void at(struct store_writer *w, uint32_t run, int64_t s, uint64_t n)
{
	store_runs_at(w, s * NS);
	fixture_add(w, run, 100, 1, s * NS + NS / 2, n);
	store_run_until(w, run, (s + 1) * NS);
}

STORE_TEST(a_clock_that_is_set_back_begins_a_run_and_one_that_comes_back_goes_on_with_it)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS),
		 epoch = store_epoch(w);
	uint64_t gauges = store_gauge_epoch(w);
	const char *seg;

	for (int64_t s = 0; s < 5; s++)
		at(w, run, T0_S + s, 10);
	assert_int_equal(store_epoch(w), epoch);
	for (int64_t s = -4; s < 8; s++) /* set back by 9 s: it grows up to its begin, and beyond */
		at(w, run, T0_S + s, 7);
	assert_int_equal(store_epoch(w), epoch + 2);
	assert_true(store_gauge_epoch(w) >= gauges + 2);
	for (int64_t s = -3600; s < -3598; s++)
		at(w, run, T0_S + s, 3);
	for (int64_t s = 2; s < 3; s++) /* set forward */
		at(w, run, T0_S + s, 1);
	fixture_close(w);
	seg = fixture_segment(f, 0);
	assert_int_equal(fixture_sql(seg, "SELECT sum(samples) FROM cpu_samples"), 50 + 84 + 6 + 1);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM run"), 3);
	assert_int_equal(fixture_sql(seg, "SELECT count(DISTINCT token) FROM run"), 3);
	assert_int_equal(
		fixture_sql(seg,
			    "SELECT count(DISTINCT iif(recording, recording, token)) FROM run"),
		1);
	assert_int_equal(fixture_sql(seg, "SELECT count(*) FROM run WHERE state = 1"), 3);
	assert_int_equal(fixture_sql(seg, OVERLAPS), 0);
	assert_int_equal(fixture_sql(seg, OUTSIDE), 0);
	assert_int_equal(fixture_sql(seg, "SELECT sum(accounted) FROM run"), 50 + 84 + 6 + 1);
}

STORE_TEST(what_comes_late_of_before_does_not_make_it_overlap)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	at(w, run, T0_S, 1);
	at(w, run, T0_S - 100, 1);
	fixture_add(w, run, 100, 1, T0_S * NS + NS / 2, 1);
	at(w, run, T0_S - 99, 1);
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), OVERLAPS), 0);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT sum(samples) FROM cpu_samples"),
			 4);
}

STORE_TEST(less_than_a_second_before_the_begin_is_of_the_run)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	store_runs_at(w, T0_S * NS - NS / 10);
	fixture_add(w, run, 100, 1, T0_S * NS, 5);
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM run"), 1);
}

STORE_TEST(a_clock_without_rest_ends_with_the_last_run_that_has_room)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	for (int64_t i = 0; i < 100; i++)
		at(w, run, T0_S - 60 * i, 2);
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT count(*) FROM run"), 40);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT sum(samples) FROM cpu_samples"),
			 200);
}

STORE_TEST(each_stretch_is_sampled_at_the_rate_in_force)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	at(w, run, T0_S, 1);
	store_run_period(w, run, (T0_S + 1) * NS, 2 * PERIOD);
	at(w, run, T0_S + 1, 1);
	at(w, run, T0_S - 100, 1);
	store_run_period(w, run, (T0_S - 99) * NS, 4 * PERIOD);
	at(w, run, T0_S - 99, 1);
	at(w, run, T0_S + 5, 1);
	fixture_close(w);
	assert_int_equal(fixture_sql(fixture_segment(f, 0), "SELECT sum(cpu_ns) FROM cpu_samples"),
			 (int64_t)PERIOD * (1 + 2 + 2 + 4 + 4));
}

/* In a child, which is killed with six events in its rings and two more that it never heard of. */
static void killed_writer(const struct fixture *f)
{
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	at(w, run, T0_S, 10);
	store_loss(w, run, T0_S * NS, "ring", 4);
	store_loss(w, run, T0_S * NS, "throttled", 3);
	store_run_offered(w, run, 20);
	at(w, run, T0_S - 100, 6);
	store_run_offered(w, run, 25);
	at(w, run, T0_S + 10, 2);
	store_run_offered(w, run, 30);
	store_flush(w);
	if (!fixture_wait_stored(w, 18))
		_exit(1);
	kill(getpid(), SIGKILL);
}

STORE_TEST(what_a_killed_writer_had_not_taken_in_is_lost_once)
{
	struct fixture *f = *state;
	pid_t child = fork();
	int status;

	if (!child)
		killed_writer(f);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status));
	fixture_close(fixture_writer(f, 0));
	assert_int_equal(fixture_sql_all(f, "SELECT sum(lost) FROM loss WHERE reason = 'killed'"),
			 30 - 22);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(accounted) FROM run"), 30 + 3);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(samples) FROM cpu_samples"), 18);
}
