/* SPDX-License-Identifier: Apache-2.0 */
/* heaptotals: what processes hold in all says whether a line of theirs can have grown. */
#include "tests/unit/test.h"
#include "tools/fold/ranking/heaptotals.h"

#define MIB   (1ull << 20)
#define JAVA  1
#define OTHER 2

/* From `first` to `last`, evenly; 0 at the beginning where that is not known. */
static void process_add(struct heaptotals *t, uint64_t process, uint64_t who, bool began,
			uint64_t first, uint64_t last, bool known)
{
	for (size_t i = known ? 0 : 1; i <= HEAPSITES_STEPS; i++)
		heaptotals_add(t, process, who, began, i,
			       (first * (HEAPSITES_STEPS - i) + last * i) / HEAPSITES_STEPS);
}

TEST(what_one_line_has_more_and_another_less_is_no_growth)
{
	struct heaptotals t = {0};

	for (size_t i = 0; i <= HEAPSITES_STEPS; i++) {
		heaptotals_add(&t, 7, JAVA, false, i, 10 * i * MIB);
		heaptotals_add(&t, 7, JAVA, false, i, (400 - 10 * i) * MIB);
	}
	process_add(&t, 8, OTHER, false, 0, 90 * MIB, true);
	assert_true(heaptotals_grown(&t, JAVA) == 0);
	assert_false(heaptotals_explain(&t, JAVA, 80 * MIB));
	assert_true(heaptotals_explain(&t, OTHER, 80 * MIB));
	heaptotals_release(&t);
}

TEST(a_process_that_became_smaller_hides_no_other_of_its_name)
{
	struct heaptotals t = {0};

	process_add(&t, 7, JAVA, false, 400 * MIB, 10 * MIB, true);
	process_add(&t, 8, JAVA, false, 10 * MIB, 90 * MIB, true);
	assert_true(heaptotals_grown(&t, JAVA) == 80 * MIB);
	assert_true(heaptotals_explain(&t, JAVA, 90 * MIB));
	assert_false(heaptotals_explain(&t, JAVA, 200 * MIB));
	heaptotals_release(&t);
}

TEST(a_process_that_began_within_the_range_had_nothing_and_of_another_its_first_end_counts)
{
	struct heaptotals t = {0};

	process_add(&t, 7, JAVA, true, 80 * MIB, 80 * MIB, false);
	process_add(&t, 8, OTHER, false, 80 * MIB, 80 * MIB, false);
	assert_true(heaptotals_grown(&t, JAVA) == 80 * MIB);
	assert_true(heaptotals_grown(&t, OTHER) == 0);
	heaptotals_release(&t);
}

TEST(a_shell_that_becomes_a_program_by_an_exec_hides_none_of_its_memory)
{
	struct heaptotals t = {0};

	heaptotals_add(&t, 7, OTHER, true, 1, 1 * MIB);
	process_add(&t, 7, JAVA, true, 0, 90 * MIB, true);
	assert_true(heaptotals_grown(&t, JAVA) == 90 * MIB);
	assert_true(heaptotals_grown(&t, OTHER) == 0);
	heaptotals_release(&t);
}
