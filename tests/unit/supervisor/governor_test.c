/* SPDX-License-Identifier: Apache-2.0 */
/* governor: over its limit for a minute, sonde takes less; with room for five, more again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "supervisor/governor.h"

#define S 1000000000ll

static void a_peak_changes_nothing_a_minute_does_and_room_brings_it_back(void **state)
{
	struct governor g = {0};
	int64_t t = 1000 * S;

	(void)state;
	assert_int_equal(governor_look(&g, 0.2, 0.05, 5, t), 0);
	assert_int_equal(governor_look(&g, 0.01, 0.05, 5, t + 50 * S), 0);
	assert_int_equal(governor_look(&g, 0.2, 0.05, 5, t + 70 * S), 0);
	assert_int_equal(governor_look(&g, 0.2, 0.05, 5, t + 131 * S), 1);
	assert_int_equal(g.step, 1);
	assert_int_equal(governor_look(&g, 0.2, 0.05, 5, t + 140 * S), 0);
	assert_int_equal(governor_look(&g, 0.03, 0.05, 5, t + 500 * S), 0); /* neither over nor half */
	assert_int_equal(governor_look(&g, 0.01, 0.05, 5, t + 510 * S), 0);
	assert_int_equal(governor_look(&g, 0.01, 0.05, 5, t + 811 * S), -1);
	assert_int_equal(g.step, 0);
}

static void it_never_steps_past_the_last(void **state)
{
	struct governor g = {0};

	(void)state;
	for (int64_t t = S; t < 3600 * S; t += 10 * S)
		governor_look(&g, 1, 0.05, 4, t);
	assert_int_equal(g.step, 4);
	assert_int_equal(governor_look(&g, 1, 0, 4, 4000 * S), -1); /* the limit was lifted */
}

static void sampling_is_slowed_first_and_the_first_family_stays(void **state)
{
	struct governor g = {0}, memory = {0};

	(void)state;
	assert_int_equal(governor_freq(&g, 19), 19);
	g.step = 2;
	assert_int_equal(governor_freq(&g, 99), 24);
	assert_true(governor_allows(&g, &memory, 2, 3));
	g.step = 30;
	assert_int_equal(governor_freq(&g, 19), 2);
	assert_int_equal(governor_freq(&g, 3), 1);
	assert_true(governor_allows(&g, &memory, 0, 3));
	assert_false(governor_allows(&g, &memory, 1, 3));
	g.step = GOVERNOR_SLOWER + 1;
	assert_true(governor_allows(&g, &memory, 1, 3));
	assert_false(governor_allows(&g, &memory, 2, 3));
}

static void too_much_memory_costs_families_and_no_rate(void **state)
{
	struct governor cpu = {0}, memory = {0};

	(void)state;
	for (int64_t t = S; t < 200 * S; t += 10 * S)
		governor_look(&memory, 300e6, 256e6, 3, t);
	assert_int_equal(memory.step, 2);
	assert_true(governor_allows(&cpu, &memory, 0, 3));
	assert_false(governor_allows(&cpu, &memory, 1, 3));
	assert_int_equal(governor_freq(&cpu, 19), 19);
	for (int64_t t = 200 * S; t < 1000 * S; t += 10 * S)
		governor_look(&memory, 100e6, 256e6, 3, t);
	assert_true(governor_allows(&cpu, &memory, 2, 3));
}

static void the_cpu_time_of_a_process_is_that_of_its_own_clock(void **state)
{
	struct timespec mine;
	int64_t ns;

	(void)state;
	do
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
	while (mine.tv_sec == 0 && mine.tv_nsec < 200000000);
	ns = process_cpu_ns(getpid());
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &mine);
	assert_in_range(ns, 150000000, mine.tv_sec * S + mine.tv_nsec + 20000000);
	assert_int_equal(process_cpu_ns(0x7ffffff0), 0);
	assert_true(process_private_bytes(getpid()) > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_peak_changes_nothing_a_minute_does_and_room_brings_it_back),
		cmocka_unit_test(it_never_steps_past_the_last),
		cmocka_unit_test(sampling_is_slowed_first_and_the_first_family_stays),
		cmocka_unit_test(too_much_memory_costs_families_and_no_rate),
		cmocka_unit_test(the_cpu_time_of_a_process_is_that_of_its_own_clock),
	};

	return cmocka_run_group_tests_name("governor", tests, NULL, NULL);
}
