/* SPDX-License-Identifier: Apache-2.0 */
/* pace: the rate of stacks follows what they cost. */
#include "loaders/offcpu/pace.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

static int64_t now;
static uint64_t cost;

/* One more second that costs so much of a core. */
static uint32_t second(struct pace *p, double cores)
{
	now += NSEC_PER_SEC;
	cost += (uint64_t)(cores * NSEC_PER_SEC);
	return pace_next(p, cost, now);
}

static struct pace started(uint32_t asked)
{
	struct pace p;

	pace_init(&p, asked);
	now = cost = 0;
	for (int i = 0; i < 3; i++)
		assert_int_equal(second(&p, 3), asked); /* the start is not counted */
	return p;
}

TEST(what_costs_too_much_falls_in_proportion_and_by_half_at_most)
{
	struct pace p = started(1000);

	assert_int_equal(second(&p, PACE_MOST * 1.25), 800);
	assert_int_equal(second(&p, PACE_MOST * 10), 400);
	for (int i = 0; i < 9; i++)
		second(&p, 1);
	assert_int_equal(second(&p, 1), PACE_LEAST);
}

TEST(what_costs_little_comes_back_to_what_was_asked_for)
{
	struct pace p = started(1000);

	second(&p, 1);
	assert_int_equal(second(&p, PACE_MOST * 0.8), 500); /* neither too much nor little */
	assert_int_equal(second(&p, PACE_MOST * 0.1), 750);
	assert_int_equal(second(&p, 0), 1000);
	assert_int_equal(second(&p, 0), 1000);
}

TEST(who_asked_for_less_than_the_least_keeps_that)
{
	struct pace p = started(25);

	assert_int_equal(second(&p, 2), 25);
}
