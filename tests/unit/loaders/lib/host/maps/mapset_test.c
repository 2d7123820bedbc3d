/* SPDX-License-Identifier: Apache-2.0 */
/* mapset: gives the same answers as a plain table of (page, time). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/maps/mapset.h"
#include "tests/unit/test.h"

static char a_, b_, c_;
#define A (&a_)
#define B (&b_)
#define C (&c_)

TEST(a_later_mapping_replaces_what_it_overlaps_from_its_time_on)
{
	struct mapset s = {0};

	mapset_put(&s, 0, 100, 1000, A, 10, 1);
	mapset_put(&s, 50, 60, 0, B, 20, 1);
	assert_int_equal(s.n_now, 3);
	assert_ptr_equal(mapset_find(&s, 55, 20)->image, B);
	assert_ptr_equal(mapset_find(&s, 55, 19)->image, A);
	assert_int_equal(mapset_find(&s, 55, 19)->offset, 1050);
	assert_ptr_equal(mapset_find(&s, 49, 30)->image, A);
	assert_int_equal(mapset_find(&s, 60, 30)->offset, 1060);
	assert_null(mapset_find(&s, 55, 9));
	assert_null(mapset_find(&s, 100, 30));
	mapset_release(&s);
}

TEST(a_mapping_told_again_keeps_its_time)
{
	struct mapset s = {0};

	mapset_put(&s, 0, 100, 0, A, 10, 1);
	mapset_put(&s, 0, 100, 0, A, 50, 1);
	mapset_put(&s, 20, 30, 20, A, 60, 1);
	assert_int_equal(s.n_now, 1);
	assert_non_null(mapset_find(&s, 25, 10));
	mapset_put(&s, 20, 30, 21, A, 60, 1); /* another offset is another mapping */
	assert_int_equal(s.n_now, 3);
	mapset_release(&s);
}

TEST(after_the_end_the_history_still_answers_until_it_is_forgotten)
{
	struct mapset s = {0};

	mapset_put(&s, 0, 100, 0, A, 10, 1);
	mapset_end(&s, 20, 1);
	assert_int_equal(s.n_now, 0);
	assert_non_null(mapset_find(&s, 1, 19));
	assert_null(mapset_find(&s, 1, 20));
	mapset_forget(&s, 21);
	assert_null(mapset_find(&s, 1, 19));
	mapset_release(&s);
}

TEST(an_empty_or_inverted_range_changes_nothing)
{
	struct mapset s = {0};

	mapset_put(&s, 5, 5, 0, A, 1, 1);
	mapset_put(&s, 6, 5, 0, A, 1, 1);
	assert_int_equal(s.n_now, 0);
	mapset_release(&s);
}

#define PAGES 40
#define TIMES 4000

/* Random mappings against a table that is filled page by page. */
TEST(random_mappings_agree_with_a_table_of_pages_and_times)
{
	static struct {
		void *image;
		uint64_t offset;
	} table[TIMES + 1][PAGES];
	void *images[] = {A, B, C, NULL};
	struct mapset s = {0}, copy = {0};

	srand(7);
	for (uint64_t t = 1; t <= TIMES; t++) {
		uint64_t start = (uint64_t)rand() % PAGES,
			 len = 1 + (uint64_t)rand() % (PAGES - start);
		uint64_t offset = 1 + (uint64_t)rand() % 1000;
		void *image = images[rand() % 4];

		memcpy(table[t], table[t - 1], sizeof(table[t]));
		for (uint64_t p = start; p < start + len; p++) {
			table[t][p].image = image;
			table[t][p].offset = offset + p - start;
		}
		mapset_put(&s, start, start + len, offset, image, t, 1);
		for (size_t i = 1; i < s.n_now; i++)
			assert_true(s.now[i - 1].end <= s.now[i].start);
		for (int k = 0; k < 50; k++) { /* the last 200 moments */
			uint64_t when =
				t > 200 ? t - (uint64_t)rand() % 200 : 1 + (uint64_t)rand() % t;
			uint64_t p = (uint64_t)rand() % PAGES;
			const struct mapping *m = mapset_find(&s, p, when);

			if (!table[when][p].offset) {
				assert_null(m);
				continue;
			}
			assert_non_null(m);
			assert_ptr_equal(m->image, table[when][p].image);
			assert_int_equal(m->offset + p - m->start, table[when][p].offset);
		}
	}
	mapset_copy(&copy, &s, TIMES + 5);
	assert_int_equal(copy.n_now, s.n_now);
	assert_null(mapset_find(&copy, s.now[0].start, TIMES + 4));
	assert_non_null(mapset_find(&copy, s.now[0].start, TIMES + 5));
	mapset_release(&copy);
	mapset_release(&s);
}
