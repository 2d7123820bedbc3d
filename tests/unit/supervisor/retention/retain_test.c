/* SPDX-License-Identifier: Apache-2.0 */
/* retain: the shares of the budget. tests/e2e tests what it does with a store, with sonded and a
 * small disk. */
#include <stdlib.h>

#include "supervisor/retention/retain.h"
#include "tests/unit/test.h"

#define MIB (1ull << 20)

TEST(a_file_with_its_log_stays_below_a_quarter_and_images_keep_to_an_eighth)
{
	for (uint64_t budget = 8 * MIB; budget <= 64ull << 30; budget += budget / 3) {
		struct retain r = {.limits = {.bytes = budget}};

		assert_in_range(retain_segment_bytes(&r), 1 * MIB, budget / 8);
		assert_in_range(retain_images_mb(&r) * MIB, 1 * MIB, budget / 8);
	}
}

TEST(of_much_room_they_take_no_more_than_they_need)
{
	struct retain r = {.limits = {.bytes = 1ull << 40}};

	assert_int_equal(retain_segment_bytes(&r), 64 * MIB);
	assert_int_equal(retain_images_mb(&r), 256);
}

TEST(room_is_what_the_budget_and_the_disk_both_leave)
{
	struct retain r = {.limits = {.bytes = 800 * MIB, .reserve_bytes = 100 * MIB}};

	r.use.bytes = 300 * MIB;
	r.use.free_bytes = 1000 * MIB;
	assert_int_equal(retain_room(&r),
			 400 * MIB); /* an eighth is for what comes until the next look */
	r.use.free_bytes = 150 * MIB;
	assert_int_equal(retain_room(&r), 50 * MIB);
	r.use.free_bytes = 99 * MIB;
	assert_int_equal(retain_room(&r), 0);
	r.use.bytes = 900 * MIB;
	r.use.free_bytes = 1000 * MIB;
	assert_int_equal(retain_room(&r), 0);
}
