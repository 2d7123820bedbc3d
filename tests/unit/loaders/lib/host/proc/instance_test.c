/* SPDX-License-Identifier: Apache-2.0 */
/* instance: every loader groups the same processes into an instance of a container, whenever it
 * looks. */
#include <string.h>

#include "loaders/lib/host/proc/instance.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define LIVES UINT64_MAX

static uint64_t began(const struct instance_life *all, size_t n, const struct instance_life *p)
{
	struct instance found;

	instance_find(all, n, p, &found);
	return found.from_ns;
}

/* The runtime's helpers, the first process, a child of it, one started from outside (exec); and the
 * same for the next instance. */
static const struct instance_life own_pids[] = {
	{10, 12, 100, 50, false},
	{11, 13, 101, 50, false},
	{12, 90, 102, 50, true},
	{20, 30, 103, 102, false},
	{40, 41, 104, 60, false},
	{45, 80, 105, 102, true}, /* a sandbox within: number 1 too, but started from inside */
	{95, 97, 200, 51, false},
	{96, LIVES, 201, 51, true},
	{99, 100, 202, 201, false}};

TEST(with_a_pid_namespace_of_its_own_the_first_process_is_the_instance)
{
	static const uint64_t expected[] = {12, 12, 12, 12, 12, 12, 96, 96, 96};

	for (size_t i = 0; i < ARRAY_SIZE(own_pids); i++)
		assert_int_equal(began(own_pids, ARRAY_SIZE(own_pids), &own_pids[i]), expected[i]);
	/* a later loader knows only those that live or ended recently */
	assert_int_equal(began(own_pids + 2, 2, &own_pids[3]), 12);
	assert_int_equal(began(own_pids + 7, 1, &own_pids[8]), 96);
}

TEST(with_the_hosts_pids_a_gap_in_which_nobody_lives_is_a_restart)
{
	static const struct instance_life all[] = {
		{10, 50, 100, 1, false},  {15, 20, 101, 100, false},  {30, 60, 102, 100, false},
		{35, 40, 103, 102, true}, {70, LIVES, 104, 1, false}, {71, LIVES, 105, 104, false}};
	static const uint64_t expected[] = {10, 10, 10, 10, 70, 70};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		assert_int_equal(began(all, ARRAY_SIZE(all), &all[i]), expected[i]);
}

/* Three loaders write the same: one that named the helper first, one that saw all, and one that
 * started late. */
TEST(what_is_known_stays_while_somebody_lives_and_all_agree)
{
	struct instance now = {0}, before = {0}, found, late_now = {0}, late_before = {0};

	instance_find(own_pids, 1, &own_pids[0], &found); /* of the helper alone */
	assert_int_equal(instance_settle(&now, &before, &found), 10);
	instance_find(own_pids, 6, &own_pids[3], &found);
	assert_int_equal(instance_settle(&now, &before, &found), 12);
	assert_true(now.sure);
	instance_find(own_pids + 2, 2, &own_pids[3], &found);
	assert_int_equal(instance_settle(&late_now, &late_before, &found), 12);
	/* the next one; then a straggler of the first is named */
	instance_find(own_pids, ARRAY_SIZE(own_pids), &own_pids[8], &found);
	assert_int_equal(instance_settle(&now, &before, &found), 96);
	instance_find(own_pids, ARRAY_SIZE(own_pids), &own_pids[4], &found);
	assert_int_equal(instance_settle(&now, &before, &found), 12);
	assert_int_equal(now.from_ns, 96);
}

TEST(the_process_that_began_it_may_be_gone_and_forgotten)
{
	static const struct instance_life all[] = {
		{10, 50, 100, 1, false}, {40, LIVES, 101, 1, false}, {90, LIVES, 102, 101, false}};
	struct instance now = {0}, before = {0}, found;

	instance_find(all, 2, &all[1], &found);
	assert_int_equal(instance_settle(&now, &before, &found), 10);
	instance_find(all + 1, 2, &all[2], &found); /* of which it is the child's */
	assert_int_equal(found.from_ns, 40);
	assert_int_equal(instance_settle(&now, &before, &found), 10);
	assert_int_equal(before.from_ns, 0);
}

TEST(its_beginning_is_told_in_utc_by_the_boots_own_second)
{
	char text[INSTANCE_TEXT];

	assert_string_equal(instance_text(1763694600, 300000000000, text),
			    "2025-11-21T03:15:00.00Z");
	assert_string_equal(instance_text(1763694600, 299990000001, text),
			    "2025-11-21T03:14:59.99Z");
	/* clock ticks of /proc and nanoseconds of the kernel are one text */
	assert_string_equal(instance_text(1763694600, 1234567890, text), "2025-11-21T03:10:01.23Z");
	assert_string_equal(instance_text(1763694600, 1230000000, text), "2025-11-21T03:10:01.23Z");
	instance_text(UINT64_MAX / 2, UINT64_MAX, text);
	assert_true(strlen(text) < INSTANCE_TEXT);
}
