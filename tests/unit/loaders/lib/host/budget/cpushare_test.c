/* SPDX-License-Identifier: Apache-2.0 */
/* cpushare: the CPU time allowed on a busy host and on an idle one. */
#include <time.h>

#include "loaders/lib/host/budget/cpushare.h"
#include "tests/unit/test.h"

#define MS 1000000ll
#define S  (1000 * MS)

/* Simulates a task that uses a whole core whenever it is allowed to, checked every 100 ms. Returns
 * what it used in `seconds`. */
static int64_t used(struct cpushare *s, int64_t seconds, int64_t idle_share_percent)
{
	int64_t now = s->now_ns, idle = s->idle_ns, sum = 0;

	for (int64_t i = 0; i < 10 * seconds; i++) {
		now += 100 * MS;
		if (cpushare_open(s)) {
			sum += 100 * MS;
			cpushare_spend(s, 100 * MS);
		}
		idle += idle_share_percent * MS;
		cpushare_tick(s, now, idle);
	}
	return sum;
}

TEST(in_a_minute_without_idle_time_it_is_at_most_five_percent)
{
	struct cpushare s;

	cpushare_init(&s, 7 * S, 3 * S);
	assert_true(cpushare_open(&s) && cpushare_is_full(&s));
	assert_in_range(used(&s, 60, 0), 2900 * MS, 3100 * MS);
	assert_in_range(used(&s, 600, 0), 17900 * MS, 18100 * MS);
	assert_false(cpushare_is_full(&s));
}

TEST(half_of_what_is_idle_may_be_used)
{
	struct cpushare s;

	cpushare_init(&s, 0, 0);
	used(&s, 60, 0);
	assert_in_range(used(&s, 100, 20), 12900 * MS, 13100 * MS); /* 3 % and half of 20 % */
	assert_in_range(used(&s, 100, 200), 99 * S, 100 * S);       /* two idle CPUs */
}

TEST(what_is_saved_has_a_bound_and_what_was_used_beyond_is_paid_back)
{
	struct cpushare s;

	cpushare_init(&s, 0, 0);
	cpushare_tick(&s, 1000 * S, 1000 * S);
	assert_int_equal(s.left_ns, CPUSHARE_SAVED_NS);
	cpushare_spend(&s, CPUSHARE_SAVED_NS + 300 * MS);
	assert_false(cpushare_open(&s));
	cpushare_tick(&s, 1009 * S, 1000 * S);
	assert_false(cpushare_open(&s));
	cpushare_tick(&s, 1011 * S, 900 * S); /* a count that goes back is no time */
	assert_true(cpushare_open(&s));
}

TEST(idle_time_is_the_hosts)
{
	const struct timespec pause = {0, 30 * MS};
	int64_t first = cpushare_idle_ns();

	assert_true(first > 0);
	nanosleep(&pause, NULL);
	assert_true(cpushare_idle_ns() >= first);
}
