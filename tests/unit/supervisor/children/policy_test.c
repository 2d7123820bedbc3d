/* SPDX-License-Identifier: Apache-2.0 */
/* policy: which children are restarted, and when. */
#include "schema/base/err.h"
#include "supervisor/children/policy.h"
#include "tests/unit/test.h"

#define MS 1000000ll

TEST(the_wait_doubles_to_its_most_a_quarter_more_or_less)
{
	int64_t want = 500 * MS;

	for (unsigned int n = 1; n < 200; n++) {
		int64_t least = policy_delay_ns(n, false, 0),
			most = policy_delay_ns(n, false, UINT32_MAX);

		assert_in_range(least, want * 3 / 4 - MS, want * 3 / 4 + MS);
		assert_in_range(most, want * 5 / 4 - MS, want * 5 / 4 + MS);
		want = want * 2 < 60000 * MS ? want * 2 : 60000 * MS;
	}
	assert_true(policy_delay_ns(100, true, UINT32_MAX) <= 12500 * MS);
}

TEST(what_nothing_but_a_person_changes_is_given_up_at_once)
{
	assert_true(policy_gives_up(1, false, EXIT_USAGE));
	assert_true(policy_gives_up(1, false, EXIT_PREREQUISITE));
	assert_true(policy_gives_up(1, false, EXIT_PERMISSION));
	assert_false(policy_gives_up(1, true, EXIT_PERMISSION));
	assert_false(policy_gives_up(1, false, EXIT_RUNTIME));
}

TEST(too_many_in_a_row_are_enough_but_never_of_a_full_store)
{
	assert_false(policy_gives_up(POLICY_TRIES - 1, false, -1));
	assert_true(policy_gives_up(POLICY_TRIES, false, -1));
	assert_false(policy_gives_up(POLICY_CRASHES - 1, true, -1));
	assert_true(policy_gives_up(POLICY_CRASHES, true, -1));
	assert_false(policy_gives_up(100000, false, EXIT_STORE));
}

TEST(only_time_in_which_it_could_act_counts_against_a_silent_one)
{
	assert_int_equal(policy_judge(20000 * MS, 0, 20000 * MS), POLICY_IN_TIME);
	assert_int_equal(policy_judge(20001 * MS, 0, 20000 * MS), POLICY_HANGS);
	assert_int_equal(policy_judge(30000 * MS, 10000 * MS, 20000 * MS), POLICY_STARVED);
	assert_int_equal(policy_judge(30000 * MS, 9999 * MS, 20000 * MS), POLICY_HANGS);
	assert_int_equal(policy_judge(3600000 * MS, 3590000 * MS, 20000 * MS), POLICY_STARVED);
}
