/* SPDX-License-Identifier: Apache-2.0 */
/* childmap: a child is found by its key, however many its parent has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tools/fold/childmap.h"

static void an_empty_map_has_no_child(void **state)
{
	struct childmap m = {0};

	(void)state;
	assert_int_equal(childmap_find(&m, 0, 0), 0);
	assert_int_equal(childmap_find(&m, UINT32_MAX, 7), 0);
	childmap_release(&m);
}

/* Every parent gets a child of each key below its own number: none, one, a few, many. */
static void each_child_is_found_and_no_other(void **state)
{
	enum { PARENTS = 40 };
	struct childmap m = {0};
	uint32_t child[PARENTS][PARENTS], n = PARENTS;

	(void)state;
	for (uint32_t p = 1; p < PARENTS; p++)
		childmap_add(&m, p - 1, 1000, p);
	for (uint32_t key = 0; key < PARENTS; key++)
		for (uint32_t p = key + 1; p < PARENTS; p++) {
			assert_int_equal(childmap_find(&m, p, key), 0);
			childmap_add(&m, p, key, child[p][key] = n++);
		}
	for (uint32_t p = 0; p < PARENTS; p++) {
		assert_int_equal(childmap_find(&m, p, 1000), p + 1 < PARENTS ? p + 1 : 0);
		for (uint32_t key = 0; key < PARENTS; key++)
			assert_int_equal(childmap_find(&m, p, key), key < p ? child[p][key] : 0);
	}
	childmap_release(&m);
}

/* Newest first, whether they are walked or hashed. */
static void children_are_a_list(void **state)
{
	struct childmap m = {0};
	uint32_t expect = 3000;

	(void)state;
	for (uint32_t i = 1; i <= expect; i++)
		childmap_add(&m, 0, i * 7, i);
	assert_int_equal(m.nodes[0].n, expect);
	for (uint32_t at = m.nodes[0].first; at; at = m.nodes[at].next) {
		assert_int_equal(at, expect--);
		assert_int_equal(m.nodes[at].key, at * 7);
	}
	assert_int_equal(expect, 0);
	childmap_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map_has_no_child),
		cmocka_unit_test(each_child_is_found_and_no_other),
		cmocka_unit_test(children_are_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
