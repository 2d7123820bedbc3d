/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowsets_fuzz: an UNWIND section is refused, or every page and every row of it leads to a place
 * inside it, as a probe follows them; in one piece, and in parts.
 *
 * covers: loaders/maps/publish/rowsets.c loaders/maps/publish/rowparts.c
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <linux/types.h>

#include "loaders/maps/publish/rowparts.h"
#include "loaders/maps/publish/rowsets.h"
#include "loaders/maps/publish/tablemaps.h"
#include "probes/lib/tables.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define ELEMENTS 4096

static uint64_t array[ELEMENTS];

int tablemaps_rows_write(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	if (n > t->n_rows || first > t->n_rows - n)
		abort();
	memcpy(array + first, data, n * sizeof(*array));
	return 0;
}

int tablemaps_rows_equal(const struct tablemaps *t, uint32_t first, const void *data, uint32_t n)
{
	(void)t;
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

int tablemaps_window_borrow(const struct tablemaps *t, uint32_t first, uint32_t n,
			    struct tablemaps_window *w)
{
	return tablemaps_window_open(t, first, n, w);
}

void tablemaps_window_close(struct tablemaps_window *w)
{
	*w = (struct tablemaps_window){0};
}

static void follow(const struct rowset *set)
{
	const uint64_t *pages = array + set->first, *rules = pages + set->page_count;
	const uint32_t *rows =
		(const uint32_t *)(rules + set->rule_count + 2 * (size_t)set->ext_count);

	for (uint32_t i = 0; i < set->page_count; i++)
		if (ROW_PAGE_COUNT(pages[i]) + (uint64_t)ROW_PAGE_FIRST(pages[i]) >
			    set->row_count ||
		    ROW_PAGE_NUMBER(pages[i]) >= set->rule_count)
			abort();
	for (uint32_t i = 0; i < set->rule_count; i++)
		if (ROW_RULE_KIND(rules[i]) == ROW_EXT && ROW_RULE_EXT(rules[i]) >= set->ext_count)
			abort();
	for (uint32_t i = 0; i < set->row_count; i++)
		if (ROW_NUMBER(rows[i]) >= set->rule_count)
			abort();
}

/* The same rows are one set, other rows are another set, and a freed set is free room. */
static void again(struct rowsets *rs, const struct unwind_section *s, const struct rowset *set)
{
	struct rowset *same = NULL, *there;
	uint32_t first = 0, end = rowsets_end(set);

	if (rowsets_get(rs, s, &same) || same != set)
		abort();
	there = rowsets_get_at(rs, &(struct rowset){.first = end,
						    .page_count = set->page_count,
						    .rule_count = set->rule_count,
						    .ext_count = set->ext_count,
						    .row_count = set->row_count});
	if (there && there->first != end)
		abort();
	if (rowsets_get_at(rs, &(struct rowset){.first = ELEMENTS - 1,
						.page_count = 1,
						.rule_count = 1,
						.ext_count = 1,
						.row_count = 2}))
		abort();
	same->idle = true;
	if (rowsets_window(rs, ELEMENTS / 2, &first) && first > ELEMENTS / 2)
		abort();
	same->idle = false;
	rowsets_put(rs, there, 0);
	rowsets_put(rs, same, 0);
}

static uint32_t half(const uint32_t *halves, uint32_t i)
{
	if (i >= 2 * ELEMENTS)
		abort();
	return halves[i];
}

/* Each page of a part that is there leads to the file's own rows; the others say that it is not. */
static void follow_parts(const struct rowset *set, const struct unwind_section *s)
{
	const uint32_t *rows = (const uint32_t *)(s->elements + s->page_count + s->rule_count +
						  2 * (size_t)s->ext_count);

	for (uint32_t i = 0; i < set->page_count; i++) {
		const uint64_t want = s->elements[i], page = array[set->first + i];

		if (!set->parts[i >> TABLES_PART_SHIFT].here) {
			if (ROW_PAGE_COUNT(page) != ROW_PAGE_ABSENT)
				abort();
			continue;
		}
		if (ROW_PAGE_NUMBER(page) != ROW_PAGE_NUMBER(want) ||
		    ROW_PAGE_COUNT(page) != ROW_PAGE_COUNT(want))
			abort();
		for (uint32_t k = 0; k < ROW_PAGE_COUNT(page); k++)
			if (half((const uint32_t *)array, ROW_PAGE_FIRST(page) + k) !=
			    rows[ROW_PAGE_FIRST(want) + k])
				abort();
	}
}

/* What a probe met is wanted where it is not there, and not idle where it is. */
static void met(struct rowset *set, const struct unwind_section *s, const struct rowsets *rs)
{
	uint32_t *wanted = calloc(set->part_count, sizeof(*wanted)), n, absent = 0;
	uint8_t *use = (uint8_t *)set->use.at;

	for (uint32_t k = 0; k < set->part_count; k++) {
		use[k] = 1;
		absent += !set->parts[k].here;
		if (rowparts_idle(set, k, UINT64_MAX) || rowparts_elements(s, k) > ELEMENTS)
			abort();
	}
	n = rowparts_look(set, 1, wanted);
	if (n != absent || rowparts_look(set, 2, wanted) || !rowparts_match(rs, set, s))
		abort();
	for (uint32_t k = 0; k < set->part_count; k++)
		if (rowparts_idle(set, k, 2) != set->parts[k].here || rowparts_idle(set, k, 1))
			abort();
	free(wanted);
}

static void in_parts(const struct unwind_section *s, const struct tablemaps *maps)
{
	struct rowset *set = NULL;
	struct rowsets rs;

	rowsets_init(&rs, maps, 0);
	rs.parts_min = 1;
	if (rowsets_elements(&rs, s) && !rowsets_get(&rs, s, &set) && set->part_count) {
		for (uint32_t k = 0; k < set->part_count; k += 2)
			rowparts_make(&rs, set, s, k, 0);
		follow_parts(set, s);
		met(set, s, &rs);
		rowparts_drop(&rs, set, 0, 0);
		arena_tick(&rs.arena, 0);
		for (uint32_t k = set->part_count; k-- > 0;)
			rowparts_make(&rs, set, s, k, 0);
		follow_parts(set, s);
	}
	rowsets_put(&rs, set, 0);
	if (rs.arena.used)
		abort();
	rowsets_release(&rs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static const struct tablemaps maps = {.n_rows = ELEMENTS};
	uint64_t *copy = malloc(len ? len : 1); /* 8-aligned, and no more than there is */
	struct unwind_section s;
	struct rowset *set = NULL;
	struct rowsets rs;

	memcpy(copy, data, len);
	if (!unwind_section_open(&s, copy, len) && rowsets_sound(&s)) {
		rowsets_init(&rs, &maps, 0);
		if (rowsets_elements(&rs, &s) && !rowsets_get(&rs, &s, &set)) {
			follow(set);
			again(&rs, &s, set);
		}
		rowsets_put(&rs, set, 0);
		rowsets_release(&rs);
		in_parts(&s, &maps);
	}
	free(copy);
	return 0;
}
