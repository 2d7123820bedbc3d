/* SPDX-License-Identifier: Apache-2.0 */
/* rowsets: equal rows are stored once, whoever added them; rows that point outside themselves are
 * refused. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/maps/publish/rowsets.h"
#include "loaders/maps/publish/tablemaps.h"
#include "tests/unit/test.h"

#define GRACE    100
#define ELEMENTS 64

/* The BPF array, for this test. */
static uint64_t array[ELEMENTS];
static int write_fails;

int tablemaps_rows_write(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	assert_true(first + n <= t->n_rows);
	if (!write_fails)
		memcpy(array + first, data, n * sizeof(*array));
	return write_fails;
}

int tablemaps_rows_equal(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	assert_true(first + n <= t->n_rows);
	return !memcmp(array + first, data, n * sizeof(*array));
}

int tablemaps_window_open(const struct tablemaps *t, uint32_t first, uint32_t n,
			  struct tablemaps_window *w)
{
	if (!n || n > t->n_rows || first > t->n_rows - n)
		return -ERANGE;
	*w = (struct tablemaps_window){.base = array, .at = array + first};
	return 0;
}

void tablemaps_window_close(struct tablemaps_window *w)
{
	*w = (struct tablemaps_window){0};
}

static const struct tablemaps maps = {.n_rows = ELEMENTS};
static struct rowsets rs;

static int set_up(void **state)
{
	(void)state;
	memset(array, 0, sizeof(array));
	rowsets_init(&rs, &maps, GRACE);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	rowsets_release(&rs);
	return 0;
}

#define AS_EXAMPLE .page_count = 2, .rule_count = 3, .ext_count = 1, .row_count = 2
#define ROWS(a, b) ((uint64_t)(b) << 32 | (a))

/* Two pages, three rules, an extension, two rows: 8 elements. */
struct example {
	uint64_t e[8];
	struct unwind_section s;
};

static void example_make(struct example *x, uint32_t tag)
{
	*x = (struct example){.e = {ROW_PAGE(0, 1, 0), ROW_PAGE(2, 1, 1),
				    ROW_MAKE_SPECIAL(ROW_NONE, 0), ROW_MAKE_EXT(0),
				    ROW_MAKE_CFA(ROW_RBP, ROW_BP_SAVED, 2, 2), 1, 2,
				    ROWS(ROW_MAKE(1, 1), ROW_MAKE(9 + tag, 2))}};
	x->s = (struct unwind_section){
		.elements = x->e, .page_count = 2, .rule_count = 3, .ext_count = 1, .row_count = 2};
}

TEST_WITH(equal_rows_stand_once_and_the_last_reference_gives_them_back, set_up, tear_down)
{
	struct rowset *a, *b, *c;
	struct example x, y;

	example_make(&x, 0);
	example_make(&y, 1);
	assert_int_equal(rowsets_get(&rs, &x.s, &a), 0);
	assert_int_equal(rowsets_get(&rs, &x.s, &b), 0);
	assert_int_equal(rowsets_get(&rs, &y.s, &c), 0);
	assert_ptr_equal(a, b);
	assert_ptr_not_equal(a, c);
	assert_int_equal(rs.arena.used, 16);
	assert_memory_equal(array + a->first, x.e, sizeof(x.e));
	assert_memory_equal(array + c->first, y.e, sizeof(y.e));
	rowsets_put(&rs, a, 1000);
	assert_int_equal(rs.arena.used, 16);
	rowsets_put(&rs, b, 1000);
	assert_int_equal(rs.arena.used, 8);
	rowsets_put(&rs, NULL, 1000);
	arena_tick(&rs.arena, 1000 + GRACE - 1);
	assert_int_equal(rs.arena.held_elements, 8);
	rowsets_put(&rs, c, 1000);
}

TEST_WITH(a_full_array_says_so_and_a_failed_write_costs_no_room, set_up, tear_down)
{
	struct rowset *sets[ELEMENTS / 8], *one = NULL;
	struct example x;

	example_make(&x, 99);
	write_fails = -EIO;
	assert_int_equal(rowsets_get(&rs, &x.s, &one), -EIO);
	assert_null(one);
	write_fails = 0;
	arena_tick(&rs.arena, GRACE);
	assert_int_equal(rs.arena.used, 0);
	for (uint32_t i = 0; i < ELEMENTS / 8; i++) {
		example_make(&x, i);
		assert_int_equal(rowsets_get(&rs, &x.s, &sets[i]), 0);
	}
	example_make(&x, 99);
	assert_int_equal(rowsets_get(&rs, &x.s, &one), -ENOSPC);
	assert_null(one);
}

TEST_WITH(what_a_predecessor_wrote_is_found_by_its_content, set_up, tear_down)
{
	struct rowset *old, *again;
	struct example x;

	example_make(&x, 0);
	memcpy(array + 24, x.e, sizeof(x.e));
	old = rowsets_get_at(&rs, &(struct rowset){.first = 24, AS_EXAMPLE});
	assert_non_null(old);
	assert_ptr_equal(rowsets_get_at(&rs, &(struct rowset){.first = 24, AS_EXAMPLE}), old);
	assert_null(rowsets_get_at(&rs, &(struct rowset){.first = 30, AS_EXAMPLE}));
	assert_null(rowsets_get_at(&rs, &(struct rowset){.first = ELEMENTS - 4, AS_EXAMPLE}));
	assert_null(rowsets_get_at(&rs, &(struct rowset){.page_count = UINT32_MAX,
							 .rule_count = UINT32_MAX,
							 .ext_count = UINT32_MAX,
							 .row_count = UINT32_MAX}));
	assert_int_equal(rowsets_get(&rs, &x.s, &again), 0);
	assert_ptr_equal(again, old);
	assert_int_equal(rs.arena.used, 8);
}

TEST_WITH(room_is_made_where_the_fewest_rows_have_to_go, set_up, tear_down)
{
	struct rowset *sets[ELEMENTS / 8];
	struct example x;
	uint32_t at = 77;

	assert_true(rowsets_window(&rs, ELEMENTS, &at));
	assert_int_equal(at, 0);
	assert_false(rowsets_window(&rs, ELEMENTS + 1, &at));
	for (uint32_t i = 0; i < ELEMENTS / 8; i++) {
		example_make(&x, i);
		assert_int_equal(rowsets_get(&rs, &x.s, &sets[i]), 0);
	}
	assert_false(rowsets_window(&rs, 1, &at));
	sets[1]->idle = sets[4]->idle = sets[5]->idle = true;
	assert_true(rowsets_window(&rs, 8, &at));
	assert_int_equal(at, 8);
	assert_true(rowsets_window(&rs, 9, &at)); /* two neighbours, not two that are apart */
	assert_int_equal(at, 32);
	assert_false(rowsets_window(&rs, 17, &at));
	rowsets_put(&rs, sets[5], 1000); /* being given back: it costs nothing */
	assert_true(rowsets_window(&rs, 8, &at));
	assert_int_equal(at, 40);
	rowsets_put(&rs, sets[7], 1000); /* the end of the array */
	sets[6]->idle = true;
	assert_true(rowsets_window(&rs, 32, &at));
	assert_int_equal(at, 32);
	assert_false(rowsets_window(&rs, 33, &at));
}

TEST(rows_that_point_outside_themselves_are_refused)
{
	struct example x;

	example_make(&x, 0);
	assert_true(rowsets_sound(&x.s));
	x.s.row_count = 1; /* the upper half of the last element is unused */
	x.e[1] = ROW_PAGE(2, 0, 1);
	assert_true(rowsets_sound(&x.s));
	x.e[1] = ROW_PAGE(2, 1, 1); /* one row too many */
	assert_false(rowsets_sound(&x.s));
	x.e[1] = ROW_PAGE(2, 0, 2);
	assert_false(rowsets_sound(&x.s));
	x.e[1] = ROW_PAGE(2, 2, UINT32_MAX);
	assert_false(rowsets_sound(&x.s));
	x.e[1] = ROW_PAGE(3, 0, 1); /* there are rules 0 to 2 */
	assert_false(rowsets_sound(&x.s));
	example_make(&x, 0);
	x.e[3] = ROW_MAKE_EXT(1); /* there is only 0 */
	assert_false(rowsets_sound(&x.s));
	example_make(&x, 0);
	x.e[7] = ROWS(ROW_MAKE(1, 1), ROW_MAKE(9, 3));
	assert_false(rowsets_sound(&x.s));
}
