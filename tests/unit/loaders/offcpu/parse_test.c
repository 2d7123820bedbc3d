/* SPDX-License-Identifier: Apache-2.0 */
/* record and quota: what comes from outside, in bytes. Texts as kernels 5.10 (cgroup v1) and 6.12
 * (v2) write them. */
#include <errno.h>
#include <string.h>

#include "loaders/offcpu/quota.h"
#include "loaders/offcpu/record.h"
#include "tests/unit/test.h"

static bool cpustat(const char *text, struct store_throttle *t)
{
	return quota_parse_cpustat(text, strlen(text), t);
}

TEST(both_versions_of_cpu_stat_are_read)
{
	struct store_throttle t;

	assert_true(cpustat("nr_periods 310\nnr_throttled 287\nthrottled_time 8312345678\n", &t));
	assert_true(t.periods == 310 && t.throttled == 287 && t.throttled_ns == 8312345678);
	assert_true(cpustat(
		"usage_usec 9\nuser_usec 5\nsystem_usec 4\ncore_sched.force_idle_usec 0\nnr_periods 12\n"
		"nr_throttled 3\nthrottled_usec 4500\nnr_bursts 0\nburst_usec 0\n",
		&t));
	assert_true(t.periods == 12 && t.throttled == 3 && t.throttled_ns == 4500000);
}

TEST(a_cpu_stat_without_periods_is_none_and_leaves_what_was_there)
{
	struct store_throttle t = {1, 2, 3};

	assert_false(cpustat("usage_usec 9\nuser_usec 5\nsystem_usec 4\n", &t));
	assert_false(cpustat("", &t));
	assert_false(cpustat("nr_periods\n", &t));
	assert_false(cpustat("nr_periods x\n", &t));
	assert_false(cpustat("nr_periods 99999999999999999999\n", &t));
	assert_false(cpustat("xnr_periods 3\n", &t));
	assert_true(t.periods == 1 && t.throttled == 2 && t.throttled_ns == 3);
	assert_true(cpustat("nr_periods 5\nthrottled_usec 18446744073709551615",
			    &t)); /* cut short, and too large */
	assert_true(t.periods == 5 && t.throttled_ns == UINT64_MAX);
}

TEST(proc_stat_tells_steal_and_idle_in_ticks)
{
	static const char text[] =
		"cpu  100 10 200 5000 50 0 25 300 7 8\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
	struct store_steal s = {0}, before = {1, 2, 3};

	assert_true(quota_parse_stat(text, strlen(text), 100, &s));
	assert_true(s.steal_ns == 3000000000 && s.idle_ns == 50500000000 &&
		    s.cpu_ns == 56850000000);
	s = before;
	assert_false(
		quota_parse_stat("cpu  1 2 3 4 5 6 7\n", 19, 100, &s)); /* a kernel without steal */
	assert_false(quota_parse_stat("cpu0 1 2 3 4 5 6 7 8\n", 21, 100, &s));
	assert_false(quota_parse_stat(text, strlen(text), 0, &s));
	assert_false(quota_parse_stat("cpu  1 2 3 18446744073709551615 5 6 7 8\n", 39, 100, &s));
	assert_memory_equal(&s, &before, sizeof(s));
}

TEST(a_record_is_as_long_as_its_frames_say_or_none_of_ours)
{
	struct {
		struct stack_event ev;
		uint64_t frames[4];
	} w = {.ev = {.n_kernel = 1, .n_user = 3}};
	uint64_t n = 9;

	assert_int_equal(record_value(&w, sizeof(w), &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(record_value(&w, sizeof(w) - 1, &n), -EBADMSG);
	assert_int_equal(record_value(&w, sizeof(w.ev) - 1, &n), -EBADMSG);
	w.ev.n_kernel = UINT16_MAX;
	assert_int_equal(record_value(&w, sizeof(w), &n), -EBADMSG);
}

TEST(an_end_accounts_for_its_weight_once_or_twice)
{
	struct offcpu_end e = {
		.ev = {.end = OFFCPU_RECORD_END}, .weight = UINT32_MAX, .blocked = 1};
	uint64_t n = 0;

	assert_int_equal(record_value(&e, sizeof(e), &n), 0);
	assert_true(n == 2ull * UINT32_MAX);
	e.blocked = 0;
	assert_int_equal(record_value(&e, sizeof(e), &n), 0);
	assert_true(n == UINT32_MAX);
	assert_false(record_is_end(&e.ev, sizeof(e) - 8));
	e.ev.n_user = 1;
	assert_false(record_is_end(&e.ev, sizeof(e)));
}
