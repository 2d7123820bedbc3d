/* SPDX-License-Identifier: Apache-2.0 */
/* links: the requests made for a request are found with it, parents first, bounded; dropped ones
 * are reported. */
#include "loaders/l7/links.h"
#include "tests/unit/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void put(struct links *l, uint64_t span, uint64_t parent, int64_t end_ns)
{
	links_put(l, &(struct link){.span = span,
				    .parent = parent,
				    .begin_ns = end_ns - 1,
				    .end_ns = end_ns,
				    .service = (char *)"127.0.0.1:1",
				    .operation = "GET",
				    .protocol = "redis"});
}

static void kin_free(struct link *kin, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		link_release(&kin[i]);
	free(kin);
}

TEST(all_that_come_down_from_one_are_found_and_no_other)
{
	struct links *l = links_new();
	struct link *kin;
	uint32_t n;
	bool cut;

	put(l, 3, 2, 10); /* asked for what came of 1 */
	put(l, 2, 1, 20);
	put(l, 4, 1, 30);
	put(l, 9, 8, 40);
	kin = links_kin(l, 1, &n, &cut);
	assert_int_equal(n, 3);
	assert_false(cut);
	assert_int_equal(kin[0].span, 4);
	assert_int_equal(kin[1].span, 2);
	assert_int_equal(kin[2].span, 3);
	assert_string_equal(kin[2].service, "127.0.0.1:1");
	kin_free(kin, n);
	kin = links_kin(l, 7, &n, &cut);
	assert_null(kin);
	assert_int_equal(n, 0);
	links_free(l);
}

TEST(more_than_are_kept_of_one_are_told)
{
	struct links *l = links_new();
	struct link *kin;
	uint32_t n;
	bool cut;

	for (uint64_t i = 0; i < LINKS_KIN + 1; i++)
		put(l, 100 + i, 1, 10);
	kin = links_kin(l, 1, &n, &cut);
	assert_int_equal(n, LINKS_KIN);
	assert_true(cut);
	kin_free(kin, n);
	links_free(l);
}

TEST(what_is_forgotten_is_not_found_and_its_time_is_told)
{
	struct links *l = links_new();
	uint32_t n;
	bool cut;

	put(l, 2, 1, 10);
	for (uint64_t i = 0; i + 1 < LINKS; i++)
		put(l, 100 + i, 50, 20);
	assert_int_equal(links_since(l), 0);
	put(l, 99, 50, 30);
	assert_int_equal(links_since(l), 10);
	assert_null(links_kin(l, 1, &n, &cut));
	links_free(l);
}

TEST(a_circle_ends)
{
	struct links *l = links_new();
	struct link *kin;
	uint32_t n;
	bool cut;

	put(l, 2, 1, 10);
	put(l, 1, 2, 10);
	kin = links_kin(l, 1, &n, &cut);
	assert_true(n <= LINKS_KIN && cut);
	kin_free(kin, n);
	links_free(l);
}

TEST(a_tag_names_one_process)
{
	const struct msg_process a = {.start_ns = 5, .tgid = 7, .exec_id = 1},
				 b = {.start_ns = 6, .tgid = 7, .exec_id = 1};

	assert_int_equal(
		link_span(&a, 1000),
		link_span(&(struct msg_process){.start_ns = 5, .tgid = 7, .exec_id = 2}, 1000));
	assert_int_not_equal(link_span(&a, 1000), link_span(&b, 1000));
	assert_int_not_equal(link_span(&a, 1000), link_span(&a, 1001));
	assert_true(link_span(&a, 1000) >> LINK_BITS == 0 && link_id(0) != 0);
}
