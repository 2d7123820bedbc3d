/* SPDX-License-Identifier: Apache-2.0 */
/* childmap: finds a child by its key, however many its parent has. */
#include <stdlib.h>

#include "tests/unit/test.h"
#include "tools/fold/childmap.h"

TEST(an_empty_map_has_no_child)
{
	struct childmap m = {0};

	assert_int_equal(childmap_find(&m, 0, 0), 0);
	assert_int_equal(childmap_find(&m, UINT32_MAX, 7), 0);
	childmap_release(&m);
}

/* Every parent gets a child of each key below its own number: none, one, a few, many. */
TEST(each_child_is_found_and_no_other)
{
	enum { PARENTS = 40 };
	struct childmap m = {0};
	uint32_t child[PARENTS][PARENTS], n = PARENTS;

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
TEST(children_are_a_list)
{
	struct childmap m = {0};
	uint32_t expect = 3000;

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
