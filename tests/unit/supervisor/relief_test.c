/* SPDX-License-Identifier: Apache-2.0 */
/* relief: over a limit families are slowed one by one, then stopped one by one; and all comes back in reverse. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "supervisor/relief.h"

/* "1/2 is family 1's rate halved", "1- stopped": the steps as they come, until there is none. */
static const char *all_steps(struct relief *r, enum relief_limit limit, const struct relief_family *f, unsigned int n, bool more)
{
	static char said[512];
	struct relief_step s;
	size_t len = 0;

	said[0] = 0;
	while ((more ? relief_more : relief_less)(r, limit, f, n, &s))
		len += (size_t)snprintf(said + len, sizeof(said) - len, "%s%u%s", len ? " " : "", s.family, s.stop ? "-" : "/");
	return said;
}

static void the_dearest_is_slowed_first_then_each_is_stopped_the_last_first(void **state)
{
	struct relief_family f[] = {{true, true, 0.01}, {true, false, 0.2}, {true, true, 0.03}};
	struct relief r = {0};

	(void)state;
	assert_string_equal(all_steps(&r, RELIEF_CPU, f, 3, true), "2/ 2/ 2/ 0/ 0/ 0/ 2- 1- 0-");
	assert_true(relief_stopped(&r, 0) && relief_stopped(&r, 1) && relief_stopped(&r, 2));
	assert_int_equal(relief_count(&r, RELIEF_CPU), 9);
	assert_string_equal(all_steps(&r, RELIEF_CPU, f, 3, false), "0- 1- 2- 0/ 0/ 0/ 2/ 2/ 2/");
	assert_int_equal(r.n, 0);
}

static void what_a_family_takes_now_decides_whose_turn_it_is(void **state)
{
	struct relief_family f[] = {{true, true, 0.05}, {true, true, 0.01}};
	struct relief r = {0};
	struct relief_step s;

	(void)state;
	assert_true(relief_more(&r, RELIEF_CPU, f, 2, &s) && s.family == 0 && !s.stop);
	f[0].cores = 0.005;
	assert_true(relief_more(&r, RELIEF_CPU, f, 2, &s) && s.family == 1 && !s.stop);
	assert_int_equal(relief_freq(&r, 0, 19), 9);
	assert_int_equal(relief_freq(&r, 1, 99), 49);
	assert_int_equal(relief_freq(&r, 1, 1), 1);
}

static void memory_costs_families_but_for_the_first_and_no_rate(void **state)
{
	struct relief_family f[] = {{true, true, 0.05}, {false, true, 0}, {true, true, 0.01}, {true, false, 0}};
	struct relief r = {0};
	struct relief_step s;

	(void)state;
	assert_true(relief_more(&r, RELIEF_CPU, f, 4, &s));
	assert_string_equal(all_steps(&r, RELIEF_MEMORY, f, 4, true), "3- 2-");
	assert_false(relief_stopped(&r, 0));
	assert_int_equal(relief_freq(&r, 0, 20), 10);
	assert_int_equal(relief_count(&r, RELIEF_MEMORY), 2);
	/* each limit takes back its own */
	assert_string_equal(all_steps(&r, RELIEF_CPU, f, 4, false), "0/");
	assert_true(relief_stopped(&r, 3));
	assert_string_equal(all_steps(&r, RELIEF_MEMORY, f, 4, false), "2- 3-");
}

static void a_family_that_nobody_wants_any_more_is_no_step_back(void **state)
{
	struct relief_family f[] = {{true, true, 0.01}, {true, true, 0.05}};
	struct relief r = {0};
	struct relief_step s;

	(void)state;
	assert_string_equal(all_steps(&r, RELIEF_CPU, f, 2, true), "1/ 1/ 1/ 0/ 0/ 0/ 1- 0-");
	f[0].wanted = false;
	assert_true(relief_less(&r, RELIEF_CPU, f, 2, &s) && s.family == 1 && s.stop);
	assert_true(relief_less(&r, RELIEF_CPU, f, 2, &s) && s.family == 1 && !s.stop);
	assert_int_equal(relief_freq(&r, 1, 80), 20);
	assert_int_equal(relief_freq(&r, 0, 80), 80);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_dearest_is_slowed_first_then_each_is_stopped_the_last_first),
		cmocka_unit_test(what_a_family_takes_now_decides_whose_turn_it_is),
		cmocka_unit_test(memory_costs_families_but_for_the_first_and_no_rate),
		cmocka_unit_test(a_family_that_nobody_wants_any_more_is_no_step_back),
	};

	return cmocka_run_group_tests_name("relief", tests, NULL, NULL);
}
