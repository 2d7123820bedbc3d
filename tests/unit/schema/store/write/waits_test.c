/* SPDX-License-Identifier: Apache-2.0 */
/* Waits: an impossible row is dropped alone, never with its batch. */
#include "schema/base/clock.h"
#include "schema/store/write/waits.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define MOST (1ULL << 56) /* waits.h */

static uint32_t waits_run(struct store_writer *w)
{
	struct store_run r = {.family = "offcpu",
			      .options = "sonde-offcpu --test",
			      .scope = STORE_SCOPE_HOST,
			      .bucket_s = 10,
			      .from_ns = T0_S * NS,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

static uint32_t task_of(struct store_writer *w, uint32_t run, uint32_t pid)
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

	return store_task(w, run, store_process(w, &p), "app", pid);
}

static void waited(struct store_writer *w, uint32_t task, uint64_t n, uint64_t total_ns,
		   uint64_t max_ns)
{
	struct store_wait x = {
		.class = STORE_WAIT_PIPE, .n = n, .total_ns = total_ns, .max_ns = max_ns};

	assert_int_equal(store_wait(w, task, T0_S * NS, &x), 0);
}

STORE_TEST(a_hostile_wait_is_counted_lost_and_the_others_are_kept)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = waits_run(w), task = task_of(w, run, 1);

	waited(w, task, 3, 3000, 2000);
	waited(w, task, UINT64_MAX, 1, 1);
	waited(w, task, 1, (uint64_t)INT64_MAX + 1, 1);
	waited(w, task, 1, INT64_MAX, INT64_MAX);
	waited(w, task, 1, 1, MOST + 1);
	waited(w, task, 2, 500, 400);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM wait_row"), 5);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(total_ns) FROM wait_row"), 3500);
	assert_int_equal(fixture_sql_all(f, "SELECT max(max_ns) FROM wait_row"), 2000);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM loss_row WHERE reason = 'range'"),
			 4);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM loss_row"), 4);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"),
			 9); /* five waits, four rows lost */
}

STORE_TEST(a_hostile_row_of_each_other_table_is_counted_lost)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = waits_run(w), task = task_of(w, run, 1);
	struct store_wake wake = {.class = STORE_WAIT_PIPE, .n = 1};
	struct store_culprit culprit = {.kind = STORE_CULPRIT_IDLE, .n = 1};
	struct store_wait_on on = {.class = STORE_WAIT_PIPE, .object = "/a", .n = 1};
	struct store_throttle throttle = {.periods = 1};
	struct store_steal steal = {.cpu_ns = 1};

	for (int i = 0; i < 2; i++) {
		wake.total_ns = culprit.total_ns = on.total_ns = throttle.throttled_ns =
			steal.steal_ns = i ? UINT64_MAX - 5 : 7;
		assert_int_equal(store_wake(w, task, T0_S * NS, &wake), 0);
		assert_int_equal(store_culprit(w, task, T0_S * NS, &culprit), 0);
		assert_int_equal(store_wait_on(w, task, T0_S * NS, &on), 0);
		store_throttle(w, run, T0_S * NS, "/g", &throttle);
		store_steal(w, run, T0_S * NS, &steal);
	}
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT total_ns FROM wake_row"), 7);
	assert_int_equal(fixture_sql_all(f, "SELECT total_ns FROM culprit_row"), 7);
	assert_int_equal(fixture_sql_all(f, "SELECT total_ns FROM wait_on_row"), 7);
	assert_int_equal(fixture_sql_all(f, "SELECT throttled_ns FROM throttle_row"), 7);
	assert_int_equal(fixture_sql_all(f, "SELECT steal_ns FROM steal_row"), 7);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM loss_row WHERE reason = 'range'"),
			 5);
}

STORE_TEST(a_wait_of_two_years_is_believed)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = waits_run(w), task = task_of(w, run, 1);

	for (int i = 0; i < 100; i++)
		waited(w, task, 1, MOST, MOST);
	fixture_close(w);
	assert_true(fixture_sql_all(f, "SELECT sum(total_ns) FROM wait_row") ==
		    (int64_t)(100 * MOST));
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM loss_row"), 0);
}

STORE_TEST(rows_of_one_key_add_up_and_others_stay_apart)
{
	static const uint32_t counts[2][3] = {{1, 2, 0}, {5, 0, 7}};
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = waits_run(w), one = task_of(w, run, 1), two = task_of(w, run, 2);

	for (int i = 0; i < 2; i++) {
		struct store_wait x = {.class = STORE_WAIT_PIPE,
				       .n = 3 + (uint64_t)i,
				       .total_ns = 10,
				       .max_ns = 4 + (uint64_t)i,
				       .hist = counts[i],
				       .n_hist = 3,
				       .first_slot = 64 + (unsigned)i};
		struct store_wake wake = {
			.class = STORE_WAIT_PIPE, .waker = two, .n = 1, .total_ns = 5};

		assert_int_equal(store_wait(w, one, T0_S * NS, &x), 0);
		assert_int_equal(store_wake(w, one, T0_S * NS, &wake), 0);
		wake.waker = 0;
		assert_int_equal(store_wake(w, one, T0_S * NS, &wake), 0);
		waited(w, two, 1, 1, 1);
		x.flags = STORE_WAIT_UNFINISHED;
		assert_int_equal(store_wait(w, one, T0_S * NS, &x), 0);
	}
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM wait_row"), 3);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM wake_row"), 2);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT count(*) FROM wait_row WHERE n = 7 AND total_ns = 20 AND max_ns = 5 AND hist = '[64,1,7,0,7]'"),
		2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM wait_row"), 7 + 7 + 2);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 7 + 7 + 2);
}
