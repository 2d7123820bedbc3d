/* SPDX-License-Identifier: Apache-2.0 */
/* Names that do not resolve: the first failure is reported at once, a storm in few reports that add
 * up, and names beyond the table's room as one sum. */
#include <stdio.h>
#include <string.h>

#include "loaders/l7/reports/unresolved.h"
#include "tests/unit/test.h"

#define S 1000000000ll

static struct unresolved u;
static struct {
	uint64_t times, n, others;
	int64_t last_utc;
} told;

static int fresh(void **state)
{
	(void)state;
	memset(&u, 0, sizeof(u));
	memset(&told, 0, sizeof(told));
	return 0;
}

static void hear(void *ctx, const struct unresolved_one *x)
{
	(void)ctx;
	told.times++;
	told.n += x->n;
	told.others += !strcmp(x->name, "other names") ? x->n : 0;
	told.last_utc = x->utc_ns;
}

static void vain(const char *name, const char *why, uint64_t n, int64_t at)
{
	struct unresolved_one x = {.n = n, .utc_ns = at, .comm = "app"};

	snprintf(x.name, sizeof(x.name), "%s", name);
	snprintf(x.why, sizeof(x.why), "%s", why);
	unresolved_add(&u, &x, at, hear, NULL);
}

TEST_WITH(a_storm_is_told_at_once_and_then_once_in_a_while_with_how_often, fresh, NULL)
{
	for (int64_t s = 0; s < 30; s++) {
		vain("A gone.test", "NXDOMAIN", 100, s * S);
		unresolved_due(&u, s * S, hear, NULL);
		assert_true(s || (told.times == 1 && told.n == 100));
	}
	assert_int_equal(told.times, 3);
	unresolved_due(&u, INT64_MAX, hear, NULL);
	assert_int_equal(told.times, 4);
	assert_int_equal(told.n, 3000);
	assert_int_equal(told.last_utc, 29 * S);
}

TEST_WITH(what_differs_is_told_apart_and_a_name_is_forgotten, fresh, NULL)
{
	vain("A gone.test", "NXDOMAIN", 1, 0);
	vain("A gone.test", "SERVFAIL", 1, 0);
	assert_int_equal(told.times, 2);
	unresolved_due(&u, 61 * S, hear, NULL);
	assert_int_equal(u.n, 0);
	vain("A gone.test", "NXDOMAIN", 1, 62 * S);
	assert_int_equal(told.times, 3);
}

TEST_WITH(more_names_than_there_is_room_for_are_one, fresh, NULL)
{
	char name[32];

	for (int i = 0; i < 10000; i++) {
		snprintf(name, sizeof(name), "A n%d.test", i);
		vain(name, "NXDOMAIN", 1, S);
	}
	assert_int_equal(told.times, UNRESOLVED_MOST);
	unresolved_due(&u, 12 * S, hear, NULL);
	assert_int_equal(told.times, UNRESOLVED_MOST + 1);
	assert_int_equal(told.others, 10000 - UNRESOLVED_MOST);
	assert_int_equal(told.n, 10000);
}
