/* SPDX-License-Identifier: Apache-2.0 */
/* replaced: which of the sampled pages are those that are there now. */
#include "loaders/mem/replaced.h"

#include "schema/base/array.h"
#include "tests/unit/test.h"

#define HUGE 512

TEST(huge_pages_that_are_counted_each_stay_next_to_samples_of_any_weight)
{
	struct held_page pages[20];
	size_t huge = 0;

	for (size_t i = 0; i < 15; i++)
		pages[i] = (struct held_page){
			.page = HUGE * i, .pages = HUGE, .exact = true, .time_ns = i + 1};
	for (size_t i = 15; i < ARRAY_SIZE(pages); i++)
		pages[i] = (struct held_page){
			.page = HUGE * 20 + i, .pages = 65536, .time_ns = 100 + i};
	for (size_t i = 0, n = replaced_drop(pages, ARRAY_SIZE(pages)); i < n; i++)
		huge += pages[i].exact;
	assert_int_equal(huge, 15);
}

TEST(of_one_place_that_was_touched_twice_the_youngest_is_right)
{
	struct held_page pages[] = {
		{.page = 512, .pages = HUGE, .exact = true, .time_ns = 5, .site = 1},
		{.page = 512, .pages = HUGE, .exact = true, .time_ns = 9, .site = 2},
		{.page = 0, .pages = HUGE, .exact = true, .time_ns = 7, .site = 3},
		{.page = 700, .pages = 1, .exact = true, .time_ns = 8, .site = 4},
	};

	assert_int_equal(replaced_drop(pages, ARRAY_SIZE(pages)), 2);
	assert_int_equal(pages[0].site, 3);
	assert_int_equal(pages[1].site, 2);
	assert_int_equal(replaced_drop(pages, 0), 0);
}

/* 64 samples of 16 pages each on 1024 pages fit; as many older ones at the same places go. */
TEST(neighbours_that_do_not_fit_lose_the_oldest)
{
	struct held_page pages[128];
	size_t n, old = 0;

	for (size_t i = 0; i < 64; i++) {
		pages[2 * i] = (struct held_page){.page = 16 * i, .pages = 16, .time_ns = 10 + i};
		pages[2 * i + 1] =
			(struct held_page){.page = 16 * i + 3, .pages = 16, .time_ns = 1000 + i};
	}
	n = replaced_drop(pages, ARRAY_SIZE(pages));
	for (size_t i = 0; i < n; i++)
		old += pages[i].time_ns < 1000;
	assert_in_range(n, 64, 84); /* of each 32, a quarter of 16 and one */
	assert_int_equal(n - old, 64);
}
