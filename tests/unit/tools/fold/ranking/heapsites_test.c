/* SPDX-License-Identifier: Apache-2.0 */
/* heapsites: what counts as growth. */
#include "schema/base/array.h"
#include "tests/unit/test.h"
#include "tools/fold/ranking/heapsites.h"

#define SLOPE(...)                                       \
	({                                               \
		const uint64_t v_[] = {__VA_ARGS__};     \
		heapsites_slope(v_, ARRAY_SIZE(v_), 10); \
	})

TEST(what_goes_on_growing_has_its_slope)
{
	assert_true(SLOPE(0, 100, 200, 300, 400, 500, 600, 700) == 10);
	assert_true(SLOPE(700, 600, 500, 400, 300, 200, 100, 0) == -10);
}

TEST(a_start_a_peak_or_what_goes_up_and_down_is_no_growth)
{
	assert_true(SLOPE(0, 5000, 5000, 5000, 5000, 5000, 5000, 5000) == 0);
	assert_true(SLOPE(10, 10, 10, 90000, 10, 10, 10, 10) == 0);
	assert_true(SLOPE(0, 800, 0, 800, 0, 800, 0, 800) <
		    SLOPE(0, 60, 120, 180, 240, 300, 360, 420));
}

TEST(few_points_and_no_time_are_no_slope)
{
	const uint64_t one = 5;

	assert_true(heapsites_slope(&one, 1, 10) == 0);
	assert_true(heapsites_slope(NULL, 0, 10) == 0);
	assert_true(SLOPE(0, 10) == 1);
}

#define MIB        (1ull << 20)
#define GROWS(...) heapsites_grows((const uint64_t[HEAPSITES_STEPS + 1]){__VA_ARGS__})

TEST(what_goes_on_growing_grows_also_if_it_began_late_or_falls_now_and_then)
{
	assert_true(GROWS(0, MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB, 6 * MIB, 7 * MIB, 8 * MIB));
	assert_true(GROWS(0, 0, 0, 0, MIB, 2 * MIB, 3 * MIB, 4 * MIB, 5 * MIB));
	assert_true(GROWS(40 * MIB, 44 * MIB, 42 * MIB, 48 * MIB, 50 * MIB, 49 * MIB, 55 * MIB,
			  60 * MIB, 62 * MIB));
	assert_true(GROWS(0, 12 * MIB, 25 * MIB, 37 * MIB, 50 * MIB, 62 * MIB, 75 * MIB, 75 * MIB,
			  75 * MIB));
}

TEST(a_start_a_jump_a_little_or_what_goes_up_and_down_does_not_grow)
{
	assert_false(GROWS(0, 90 * MIB, 90 * MIB, 90 * MIB, 90 * MIB, 90 * MIB, 90 * MIB, 90 * MIB,
			   90 * MIB));
	assert_false(GROWS(0, 0, 0, 0, 90 * MIB, 90 * MIB, 90 * MIB, 90 * MIB, 91 * MIB));
	assert_false(GROWS(0, 50 * MIB, 70 * MIB, 80 * MIB, 85 * MIB, 88 * MIB, 89 * MIB, 90 * MIB,
			   91 * MIB));
	assert_false(GROWS(0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000));
	assert_false(GROWS(0, 16 * MIB, 2 * MIB, 14 * MIB, 9 * MIB, 1 * MIB, 15 * MIB, 3 * MIB,
			   16 * MIB));
	assert_false(GROWS(90 * MIB, 80 * MIB, 70 * MIB, 60 * MIB, 50 * MIB, 40 * MIB, 30 * MIB,
			   20 * MIB, 10 * MIB));
}
