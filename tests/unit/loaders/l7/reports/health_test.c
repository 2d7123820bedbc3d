/* SPDX-License-Identifier: Apache-2.0 */
/* health: a service that is far slower than in its own hour, or fails more often, is told once;
 * one that is as it always was is not, however slow. */
#include <stdio.h>
#include <string.h>

#include "loaders/l7/reports/health.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

struct told {
	int slow, failing;
	char why[256], causes[512];
};

static void tell(void *ctx, const char *cause, const char *why)
{
	struct told *t = ctx;

	size_t at = strlen(t->causes);

	t->slow += !strncmp(cause, "slow service ", 13);
	t->failing += !strncmp(cause, "failing service ", 16);
	snprintf(t->causes + at, sizeof(t->causes) - at, "%s;", cause);
	snprintf(t->why, sizeof(t->why), "%s", why);
}

/* Ten seconds: `n` requests that take `ns` each, of which some failed. */
static int64_t window(struct health *h, int64_t now, uint32_t n, uint64_t ns, uint64_t failed,
		      struct told *t)
{
	health_add(h, "shop", n, failed, &n, hist_step(ns), 1, now);
	now += HEALTH_WINDOW_NS;
	health_due(h, now, tell, t);
	return now;
}

TEST(a_service_that_becomes_slow_is_told_once_with_what_it_was)
{
	struct health h = {0};
	struct told t = {0};
	int64_t now = NSEC_PER_SEC;

	for (int i = 0; i < 90; i++)
		now = window(&h, now, 50, 10000000, 0, &t);
	assert_int_equal(t.slow + t.failing, 0);
	now = window(&h, now, 50, 400000000, 0, &t);
	now = window(&h, now, 50, 400000000, 0, &t);
	assert_int_equal(t.slow, 1);
	assert_int_equal(t.failing, 0);
	assert_non_null(strstr(t.why, "shop is slow: p99 3")); /* 400 ms, a step wide */
	assert_non_null(strstr(t.why, "in its last hour 9.9"));
	health_release(&h);
}

TEST(a_service_that_begins_to_fail_is_told_and_one_that_always_does_is_not)
{
	struct health h = {0};
	struct told t = {0};
	int64_t now = NSEC_PER_SEC;

	for (int i = 0; i < 90; i++)
		now = window(&h, now, 100, 10000000, 20, &t);
	now = window(&h, now, 100, 10000000, 25, &t);
	assert_int_equal(t.slow + t.failing, 0);
	now = window(&h, now, 100, 10000000, 80, &t);
	assert_int_equal(t.failing, 1);
	assert_non_null(strstr(t.why, "80 of 100 requests, in its last hour 20 %"));
	health_release(&h);
}

TEST(few_requests_short_times_and_a_service_that_is_new_tell_nothing)
{
	struct health h = {0};
	struct told t = {0};
	int64_t now = NSEC_PER_SEC;

	for (int i = 0; i < 50; i++) /* less than ten minutes */
		now = window(&h, now, 50, 1000000, 0, &t);
	now = window(&h, now, 50, 900000000, 40, &t);
	assert_int_equal(t.slow + t.failing, 0);
	health_release(&h);
	for (int i = 0; i < 90; i++)
		now = window(&h, now, 50, 1000000, 0, &t);
	now = window(&h, now, 19, 900000000, 9, &t);
	now = window(&h, now, 50, 4000000, 0, &t); /* 3 ms more */
	assert_int_equal(t.slow + t.failing, 0);
	health_release(&h);
}

TEST(two_services_that_become_slow_are_two_causes)
{
	static const char *const names[] = {"shop", "till"};
	struct health h = {0};
	struct told t = {0};
	int64_t now = NSEC_PER_SEC;

	for (int i = 0; i <= 90; i++) {
		const uint32_t n = 50;

		for (int k = 0; k < 2; k++)
			health_add(&h, names[k], n, 0, &n, hist_step(i < 90 ? 10000000 : 400000000),
				   1, now);
		now += HEALTH_WINDOW_NS;
		health_due(&h, now, tell, &t);
	}
	assert_string_equal(t.causes, "slow service shop;slow service till;");
	health_release(&h);
}
