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
