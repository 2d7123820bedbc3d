/* SPDX-License-Identifier: Apache-2.0 */
/* load_limit: over its limit for a minute, less is to be done; with room for five, more again. */
#include <stddef.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/limits/load_limit.h"
#include "tests/unit/test.h"

#define S 1000000000ll

#define MINUTE LOAD_LIMIT_WHILE_NS

TEST(a_peak_changes_nothing_a_minute_does_and_room_brings_it_back)
{
	struct load_limit g = {0};
	int64_t t = 1000 * S;

	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, t), 0);
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, t + 50 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, t + 70 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, t + 131 * S), 1);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, t + 140 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.03, 0.05, MINUTE, t + 500 * S),
			 0); /* neither over nor half */
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, t + 510 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, t + 809 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, t + 811 * S), -1);
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, t + 812 * S), 0);
}

TEST(what_is_taken_at_the_start_does_not_count)
{
	struct load_limit g = {0};
	int64_t began = 1000 * S;

	for (int64_t t = began; t <= began + MINUTE; t += 10 * S)
		assert_true(load_limit_starts(&g, began, MINUTE, t));
	assert_false(load_limit_starts(&g, began, MINUTE, began + 70 * S));
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, began + 70 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, began + 129 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, began + 130 * S), 1);
}

TEST(a_service_that_begins_later_does_not_count_either_unless_it_fails_again_and_again)
{
	int64_t ready = 5000 * S;

	assert_true(load_limit_begins(0, 0, MINUTE, ready));
	assert_true(load_limit_begins(ready, 0, MINUTE, ready + 59 * S));
	assert_false(load_limit_begins(ready, 0, MINUTE, ready + 60 * S));
	assert_false(load_limit_begins(0, 1, MINUTE, ready));
	assert_false(load_limit_begins(ready, 2, MINUTE, ready + S));
}

TEST(where_one_step_was_not_enough_the_next_is_asked_for_sooner)
{
	struct load_limit g = {0};

	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 1 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 61 * S), 1);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 71 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 90 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 91 * S), 1);
	assert_int_equal(load_limit_look(&g, 0.01, 0.05, MINUTE, 101 * S),
			 0); /* enough: a whole minute again */
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 111 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 141 * S), 0);
	assert_int_equal(load_limit_look(&g, 0.2, 0.05, MINUTE, 171 * S), 1);
}

TEST(switches_of_the_host_only_grow)
{
	uint64_t before = host_switches();

	for (int i = 0; i < 10; i++)
		usleep(1000);
	assert_true(before && host_switches() > before);
}

TEST(a_limit_that_is_lifted_is_room_at_once)
{
	struct load_limit g = {0};

	assert_int_equal(load_limit_look(&g, 1, 0.05, MINUTE, S), 0);
	assert_int_equal(load_limit_look(&g, 1, 0, MINUTE, 2 * S), -1);
	assert_int_equal(load_limit_look(&g, 1, 0.05, MINUTE, 3 * S), 0);
	assert_int_equal(load_limit_look(&g, 1, 0.05, MINUTE, 62 * S),
			 0); /* the minute begins anew */
	assert_int_equal(load_limit_look(&g, 1, 0.05, MINUTE, 63 * S), 1);
}

TEST(the_cpu_time_of_a_process_is_that_of_its_own_clock)
{
	struct timespec mine;
	int64_t ns, before;

	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
	while (mine.tv_sec == 0 && mine.tv_nsec < 200000000);
	before = mine.tv_sec * S + mine.tv_nsec;
	ns = process_cpu_ns(getpid());
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
	assert_in_range(ns, before, mine.tv_sec * S + mine.tv_nsec);
	assert_int_equal(process_cpu_ns(0x7ffffff0), 0);
	assert_true(process_private_bytes(getpid()) > 0);
}

TEST(the_memory_of_children_is_theirs_while_they_run)
{
	pid_t child;

	assert_int_equal(process_children_bytes(getpid()), 0);
	child = fork();
	if (!child)
		for (;;)
			pause();
	assert_true(process_children_bytes(getpid()) > 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(process_children_bytes(getpid()), 0);
}
