/* SPDX-License-Identifier: Apache-2.0 */
/* rowparts: whatever of a set is there, a probe finds in it the rule that the file has, or that the
 * part is not there. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/maps/publish/rowparts.h"
#include "tests/unit/test.h"

#define GRACE    100
#define PAGES    300 /* three parts, the last one short */
#define PARTS    3
#define RULES    40
#define ELEMENTS 2048

/* The BPF array, for this test. */
static uint64_t array[ELEMENTS];

int tablemaps_rows_write(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	assert_true(first + n <= t->n_rows);
	memcpy(array + first, data, n * sizeof(*array));
	return 0;
}

int tablemaps_rows_equal(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	assert_true(first + n <= t->n_rows);
	return !memcmp(array + first, data, n * sizeof(*array));
}

int tablemaps_window_open(const struct tablemaps *t, uint32_t first, uint32_t n,
			  struct tablemaps_window *w)
{
	assert_true(n && first + n <= t->n_rows);
	*w = (struct tablemaps_window){.base = array, .at = array + first};
	return 0;
}

int tablemaps_window_borrow(const struct tablemaps *t, uint32_t first, uint32_t n,
			    struct tablemaps_window *w)
{
	return tablemaps_window_open(t, first, n, w);
}

void tablemaps_window_close(struct tablemaps_window *w)
{
	*w = (struct tablemaps_window){0};
}

static struct tablemaps maps = {.n_rows = ELEMENTS};
static struct rowsets rs;

/* Page i begins with rule i % RULES and has i % 4 rows behind. */
static uint64_t elements[ELEMENTS];
static struct unwind_section section = {
	.elements = elements, .page_count = PAGES, .rule_count = RULES};

static int set_up(void **state)
{
	uint32_t *rows = (uint32_t *)(elements + PAGES + RULES), n = 0;

	(void)state;
	memset(array, 0, sizeof(array));
	for (uint32_t i = 0; i < PAGES; i++) {
		elements[i] = ROW_PAGE(i % RULES, i % 4, n);
		for (uint32_t k = 0; k < i % 4; k++)
			rows[n++] = ROW_MAKE(7 + k, (i + k + 1) % RULES);
	}
	for (uint32_t i = 0; i < RULES; i++)
		elements[PAGES + i] = ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, i + 1);
	section.row_count = n;
	maps.n_rows = ELEMENTS;
	rowsets_init(&rs, &maps, GRACE);
	rs.parts_min = 100;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rowsets_release(&rs);
	return 0;
}

/* What a probe does, in an image at `first` whose rows are counted from row_first on. UINT32_MAX:
 * the part is absent. */
static uint32_t number(const uint64_t *all, uint32_t first, uint32_t row_first, uint32_t page,
		       uint32_t in_page)
{
	const uint64_t p = all[first + page];
	uint32_t found = ROW_PAGE_NUMBER(p);

	if (ROW_PAGE_COUNT(p) == ROW_PAGE_ABSENT)
		return UINT32_MAX;
	for (uint32_t k = 0; k < ROW_PAGE_COUNT(p); k++) {
		uint32_t at = 2 * row_first + ROW_PAGE_FIRST(p) + k,
			 row = (uint32_t)(all[at / 2] >> (at % 2 * 32));

		if (ROW_IN_PAGE(row) <= in_page)
			found = ROW_NUMBER(row);
	}
	return found;
}

/* Of each part: is it there, and then right? */
static void assert_parts(const struct rowset *set, bool one, bool two, bool three)
{
	const bool here[PARTS] = {one, two, three};

	for (uint32_t page = 0; page < PAGES; page++)
		for (uint32_t in_page = 0; in_page < 12; in_page++) {
			uint32_t want = number(elements, 0, PAGES + RULES, page, in_page),
				 got = number(array, set->first, 0, page, in_page);

			assert_int_equal(got, here[page >> TABLES_PART_SHIFT] ? want : UINT32_MAX);
		}
	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(set->parts[k].here, here[k]);
}

static struct rowset *get(void)
{
	struct rowset *set = NULL;

	assert_int_equal(rowsets_get(&rs, &section, &set), 0);
	assert_int_equal(set->part_count, PARTS);
	assert_memory_equal(array + set->first + PAGES, elements + PAGES,
			    RULES * sizeof(*elements));
	return set;
}

TEST_WITH(parts_come_and_go_each_for_itself, set_up, tear_down)
{
	struct rowset *set = get();
	uint32_t head = rs.arena.used;

	assert_int_equal(head, rowsets_elements(&rs, &section));
	assert_parts(set, false, false, false);
	assert_int_equal(rowparts_make(&rs, set, &section, 1, 1000), 0);
	assert_int_equal(rs.arena.used, head + rowparts_elements(&section, 1));
	assert_parts(set, false, true, false);
	assert_int_equal(rowparts_make(&rs, set, &section, 2, 1000), 0);
	assert_int_equal(rowparts_make(&rs, set, &section, 0, 1000), 0);
	assert_int_equal(rowparts_make(&rs, set, &section, 0, 1000), 0);
	assert_parts(set, true, true, true);
	rowparts_drop(&rs, set, 1, 2000);
	rowparts_drop(&rs, set, 1, 2000);
	assert_parts(set, true, false, true);
	assert_int_equal(rs.arena.held_elements, rowparts_elements(&section, 1));
	arena_tick(&rs.arena, 2000 + GRACE);
	assert_int_equal(rowparts_make(&rs, set, &section, 1, 3000), 0);
	assert_parts(set, true, true, true);
	rowsets_put(&rs, set, 4000);
	assert_int_equal(rs.arena.used, 0);
}

TEST_WITH(a_part_that_finds_no_room_says_so_and_stays_away, set_up, tear_down)
{
	struct rowset *set;

	maps.n_rows = rowsets_elements(&rs, &section) + rowparts_elements(&section, 0) + 10;
	rowsets_release(&rs);
	rowsets_init(&rs, &maps, GRACE);
	rs.parts_min = 100;
	set = get();
	assert_int_equal(rowparts_make(&rs, set, &section, 0, 1000), 0);
	assert_int_equal(rowparts_make(&rs, set, &section, 1, 1000), -ENOSPC);
	assert_parts(set, true, false, false);
}

TEST_WITH(what_probes_ask_for_is_told_once_and_what_they_use_is_not_idle, set_up, tear_down)
{
	struct rowset *set = get();
	uint8_t *use = (uint8_t *)(array + set->use_first);
	uint32_t wanted[PARTS];

	assert_int_equal(rowparts_make(&rs, set, &section, 1, 1000), 0);
	use[1] = use[2] = 1;
	assert_false(rowparts_idle(set, 1, 5000));
	assert_int_equal(rowparts_look(set, 4000, wanted), 1);
	assert_int_equal(wanted[0], 2);
	assert_int_equal(rowparts_look(set, 4500, wanted), 0);
	assert_true(rowparts_idle(set, 1, 4001));
	assert_false(rowparts_idle(set, 1, 4000));
	assert_false(rowparts_idle(set, 2, 5000)); /* it is not there */
}

TEST_WITH(equal_ones_stand_once_and_a_predecessors_are_found_where_they_lie, set_up, tear_down)
{
	struct rowset *set = get(), as, *old;
	struct rowsets next;

	assert_ptr_equal(get(), set);
	assert_true(rowparts_match(&rs, set, &section));
	assert_int_equal(rowparts_make(&rs, set, &section, 0, 1000), 0);
	assert_int_equal(rowparts_make(&rs, set, &section, 2, 1000), 0);
	as = (struct rowset){.first = set->first,
			     .page_count = PAGES,
			     .rule_count = RULES,
			     .row_count = section.row_count,
			     .use_first = set->use_first};
	rowsets_init(&next, &maps, GRACE);
	old = rowsets_get_at(&next, &as);
	assert_non_null(old);
	assert_int_equal(next.arena.used, rs.arena.used);
	assert_parts(old, true, false, true);
	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(old->parts[k].first, set->parts[k].first);
	rowsets_put(&next, old, 0);
	assert_int_equal(next.arena.used, 0);
	rowsets_release(&next);
}

TEST_WITH(room_is_made_of_idle_parts_too, set_up, tear_down)
{
	struct rowset *set = get();
	uint32_t at = 77, n = rowparts_elements(&section, 1);

	for (uint32_t k = 0; k < PARTS; k++)
		assert_int_equal(rowparts_make(&rs, set, &section, k, 1000), 0);
	maps.n_rows = rs.arena.used;
	assert_false(rowsets_window(&rs, n, &at));
	set->parts[1].idle = true;
	assert_true(rowsets_window(&rs, n, &at));
	assert_int_equal(at, set->parts[1].first);
	assert_false(rowsets_window(&rs, n + 1, &at));
}
