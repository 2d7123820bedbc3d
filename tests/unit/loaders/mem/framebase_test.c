/* SPDX-License-Identifier: Apache-2.0 */
/* framebase: the address that most pages agree on holds. */
#include "loaders/mem/framebase.h"

#include "schema/base/array.h"
#include "tests/unit/test.h"

TEST(what_more_than_half_agree_on_holds)
{
	const uint64_t most[] = {7, 0, 5, 7, 7, 9, 7}, half[] = {7, 7, 5, 5}, none[] = {0, 0, 0};

	assert_int_equal(framebase_agreed(most, ARRAY_SIZE(most)), 7);
	assert_int_equal(framebase_agreed(half, ARRAY_SIZE(half)), 0);
	assert_int_equal(framebase_agreed(none, ARRAY_SIZE(none)), 0);
	assert_int_equal(framebase_agreed(NULL, 0), 0);
}

TEST(without_a_program_that_says_where_pages_are_nothing_is_found)
{
	const __u64 nothing = 0;

	assert_int_equal(framebase_find(&nothing), 0);
}
