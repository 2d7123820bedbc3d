/* SPDX-License-Identifier: Apache-2.0 */
/* What a probe may cost. */
#include "loaders/probe/pace.h"
#include "tests/unit/test.h"

#define SECOND 1000000000ll

TEST(of_more_hits_than_the_rate_one_in_so_many_is_sent)
{
	assert_int_equal(pace_every(100, SECOND, 100), 1);
	assert_int_equal(pace_every(0, SECOND, 100), 1);
	assert_int_equal(pace_every(101, SECOND, 100), 2);
	assert_int_equal(pace_every(1000000, SECOND, 100), 10000);
	assert_int_equal(pace_every(1000000, SECOND, 0), 1);
}

TEST(a_probe_within_its_share_stays)
{
	struct pace p = {.at_ns = SECOND};

	assert_int_equal(pace_look(&p, 2 * SECOND, (uint64_t)(PACE_SHARE * SECOND)), 0);
	assert_int_equal(p.at_ns, 2 * SECOND);
}

TEST(one_beyond_it_is_away_until_the_average_is_the_share)
{
	struct pace p = {.at_ns = SECOND};

	/* a whole CPU for a second is a tenth of one in ten */
	assert_int_equal(pace_look(&p, 2 * SECOND, SECOND), 2 * SECOND + 9 * SECOND);
	assert_int_equal(pace_look(&p, 12 * SECOND, SECOND), 0);
	assert_int_equal(pace_look(&p, 13 * SECOND, 100 * SECOND), 13 * SECOND + PACE_OFF_MOST);
}
