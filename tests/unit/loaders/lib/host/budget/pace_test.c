/* SPDX-License-Identifier: Apache-2.0 */
/* pace: when the next tick comes. */
#include "loaders/lib/host/budget/pace.h"
#include "tests/unit/test.h"

#define MS 1000000ll

static struct pace at(int64_t now)
{
	return (struct pace){
		.quick_ns = 100 * MS, .slow_ns = 500 * MS, .phase_ns = 40 * MS, .next_ns = now};
}

TEST(when_nothing_happens_ticks_fall_on_multiples_and_the_phase)
{
	struct pace p = at(12345 * MS);

	pace_ticked(&p, 12346 * MS);
	assert_int_equal(p.next_ns, 12540 * MS);
	pace_ticked(&p, 12540 * MS);
	assert_int_equal(p.next_ns, 13040 * MS);
	pace_ticked(&p, 13039 * MS); /* it was called too early: a timer may be */
	assert_int_equal(p.next_ns, 13040 * MS);
}

TEST(what_happens_makes_the_next_tick_come_soon)
{
	struct pace p = at(0);

	pace_ticked(&p, 2000 * MS);
	assert_true(pace_is_slow(&p, 2001 * MS));
	assert_int_equal(p.next_ns, 2040 * MS);
	pace_ticked(&p, 2041 * MS);
	assert_int_equal(p.next_ns, 2540 * MS);
	pace_busy(&p, 2100 * MS);
	assert_false(pace_is_slow(&p, 2100 * MS));
	assert_int_equal(p.next_ns, 2200 * MS);
	pace_busy(&p, 2150 * MS); /* it does not push away what is planned */
	assert_int_equal(p.next_ns, 2200 * MS);
}

TEST(quick_ticks_end_a_while_after_the_last_event)
{
	struct pace p = at(0);
	int64_t now = 100 * MS;
	int quick = 0;

	pace_busy(&p, now);
	while (!pace_is_slow(&p, now)) {
		pace_ticked(&p, now);
		assert_in_range(p.next_ns - now, 1, 100 * MS);
		now = p.next_ns;
		quick++;
	}
	assert_in_range(quick, 9, 11);
	pace_ticked(&p, now);
	assert_int_equal(p.next_ns % (500 * MS), 40 * MS);
}

TEST(one_that_was_held_up_does_not_run_after_the_time)
{
	struct pace p = at(1000 * MS);

	pace_busy(&p, 900 * MS);
	pace_ticked(&p, 1750 * MS);
	assert_int_equal(p.next_ns, 1850 * MS);
	pace_ticked(&p, 1851 * MS); /* in step again */
	assert_int_equal(p.next_ns, 1950 * MS);
}
