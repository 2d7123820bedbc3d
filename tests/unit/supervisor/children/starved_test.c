/* SPDX-License-Identifier: Apache-2.0 */
/* starved: how long a thread has waited for a CPU since it was last heard. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "supervisor/children/starved.h"
#include "tests/unit/test.h"

#define S 1000000000ll

static int64_t take(struct starved *s, int64_t ran, int64_t waited, bool runnable, int64_t since,
		    int64_t now)
{
	struct starved_look l = {(uint64_t)(ran), (uint64_t)(waited), runnable};

	return starved_take(s, &l, since, now);
}

TEST(a_wait_that_is_not_over_is_seen_by_a_runnable_thread_that_does_not_run)
{
	struct starved s = {0};

	assert_int_equal(take(&s, 5, 7 * S, true, 100 * S, 100 * S), 0);
	assert_int_equal(take(&s, 5, 7 * S, true, 100 * S, 110 * S), 10 * S);
	assert_int_equal(take(&s, 5, 7 * S, true, 100 * S, 125 * S), 25 * S);
	/* it runs: the kernel has counted that wait now, and it is not counted twice */
	assert_int_equal(take(&s, 6, 32 * S, true, 100 * S, 126 * S), 25 * S);
	assert_int_equal(take(&s, 6, 32 * S, true, 100 * S, 130 * S), 29 * S);
}

TEST(sleep_and_work_are_no_wait)
{
	struct starved s = {0};

	for (int64_t t = 0; t < 30; t++)
		assert_int_equal(take(&s, 5, 7, false, 100 * S, (100 + t) * S), 0);
	s = (struct starved){0};
	for (int64_t t = 0; t < 30; t++)
		assert_int_equal(take(&s, t * S, 7, true, 100 * S, (100 + t) * S), 0);
}

TEST(a_sign_of_life_starts_the_count_again_and_no_more_than_the_silence_is_counted)
{
	struct starved s = {0};

	take(&s, 1, 0, true, 100 * S, 100 * S);
	assert_int_equal(take(&s, 1, 0, true, 100 * S, 110 * S), 10 * S);
	assert_int_equal(take(&s, 2, 11 * S, true, 111 * S, 112 * S), 1 * S);
	assert_int_equal(take(&s, 2, 11 * S, false, 115 * S, 120 * S), 0);
}

TEST(a_thread_that_waits_in_the_kernel_is_blocked_and_only_since_it_was_last_heard)
{
	struct starved_look d = {.ran_ns = 5, .blocked = true},
			    ran = {.ran_ns = 6, .blocked = true};
	struct starved s = {0};

	assert_int_equal(starved_take(&s, &d, 100 * S, 100 * S), 0);
	assert_int_equal(starved_take(&s, &d, 100 * S, 104 * S), 0);
	assert_int_equal(s.blocked_ns, 4 * S);
	starved_take(&s, &ran, 100 * S, 108 * S); /* it ran in between */
	assert_int_equal(s.blocked_ns, 4 * S);
	starved_take(&s, &ran, 110 * S, 112 * S);
	assert_int_equal(s.blocked_ns, 2 * S);
	/* who looks was blocked, too: what the thread did meanwhile is not known */
	starved_take(&s, &(struct starved_look){.ran_ns = 9}, 110 * S, 140 * S);
	assert_int_equal(s.blocked_ns, 30 * S);
}

TEST(a_process_is_read_and_one_that_is_gone_is_not)
{
	struct starved_look l;
	pid_t pid;

	assert_true(starved_read(getpid(), &l));
	assert_true(l.runnable && l.ran_ns);
	pid = fork();
	if (!pid) {
		pause();
		_exit(0);
	}
	usleep(50000);
	assert_true(starved_read(pid, &l));
	assert_false(l.runnable);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_false(starved_read(pid, &l));
}
