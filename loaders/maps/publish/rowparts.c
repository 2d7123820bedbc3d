/* SPDX-License-Identifier: Apache-2.0 */
/* Rows are written before the pages that lead to them, and pages one by one: each is either valid
 * or says that its rows are missing. */
#include "loaders/maps/publish/rowparts.h"

#include <errno.h>

static uint8_t *use_of(const struct rowset *set, uint32_t part)
{
	return (uint8_t *)set->use.at + part;
}

uint32_t rowparts_look(struct rowset *set, uint64_t now_ns, uint32_t *wanted)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < set->part_count; k++) {
		if (!__atomic_load_n(use_of(set, k), __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(use_of(set, k), 0, __ATOMIC_RELAXED);
		if (set->parts[k].here)
			set->parts[k].used_ns = now_ns;
		else
			wanted[n++] = k;
	}
	return n;
}

/* A part's pages [lo, hi), and the elements [first, end) of its rows. */
struct extent {
	uint32_t lo, hi, first, end;
};

static struct extent extent_of(const struct unwind_section *s, uint32_t part)
{
	struct extent x = {.lo = part << TABLES_PART_SHIFT, .hi = (part + 1) << TABLES_PART_SHIFT};
	uint64_t last;

	if (x.hi > s->page_count)
		x.hi = s->page_count;
	last = s->elements[x.hi - 1];
	x.first = ROW_PAGE_FIRST(s->elements[x.lo]) / 2;
	x.end = (ROW_PAGE_FIRST(last) + ROW_PAGE_COUNT(last) + 1) / 2;
	return x;
}

uint32_t rowparts_elements(const struct unwind_section *s, uint32_t part)
{
	const struct extent x = extent_of(s, part);

	return x.end - x.first;
}

bool rowparts_match(const struct rowsets *rs, const struct rowset *set,
		    const struct unwind_section *s)
{
	return set->page_count == s->page_count && set->rule_count == s->rule_count &&
	       set->ext_count == s->ext_count && set->row_count == s->row_count &&
	       tablemaps_rows_equal(rs->maps, set->first + set->page_count,
				    s->elements + s->page_count,
				    s->rule_count + 2 * s->ext_count) == 1;
}

/* elements: the file's pages, whose rows moved by `by`; NULL: mark the rows as missing. */
static int write_pages(const struct rowsets *rs, const struct rowset *set, uint32_t lo, uint32_t hi,
		       const uint64_t *elements, uint32_t by)
{
	struct tablemaps_window w = {0};
	int rc = tablemaps_window_borrow(rs->maps, set->first + lo, hi - lo, &w);

	for (uint32_t i = lo; !rc && i < hi; i++) {
		const uint64_t page = elements ? elements[i] : 0;
		const uint64_t made = elements ?
					      ROW_PAGE(ROW_PAGE_NUMBER(page), ROW_PAGE_COUNT(page),
						       ROW_PAGE_FIRST(page) + by) :
					      ROW_PAGE(0, ROW_PAGE_ABSENT, 0);

		__atomic_store_n(&w.at[i - lo], made, __ATOMIC_RELEASE);
	}
	tablemaps_window_close(&w);
	return rc;
}

int rowparts_make(struct rowsets *rs, struct rowset *set, const struct unwind_section *s,
		  uint32_t part, uint64_t used_ns)
{
	const uint64_t *rows =
		s->elements + s->page_count + s->rule_count + 2 * (size_t)s->ext_count;
	const struct extent x = extent_of(s, part);
	struct rowpart made = {.n = x.end - x.first, .here = true, .used_ns = used_ns};
	int rc = 0;

	if (set->parts[part].here)
		return 0;
	if (made.n && !arena_take(&rs->arena, made.n, &made.first))
		return -ENOSPC;
	if (made.n)
		rc = tablemaps_rows_write(rs->maps, made.first, rows + x.first, made.n);
	if (!rc)
		rc = write_pages(rs, set, x.lo, x.hi, s->elements, 2 * (made.first - x.first));
	if (rc)
		arena_give(&rs->arena, made.first, made.n, 0);
	else
		set->parts[part] = made;
	return rc;
}

void rowparts_drop(struct rowsets *rs, struct rowset *set, uint32_t part, uint64_t now_ns)
{
	const struct rowpart was = set->parts[part];
	uint32_t lo = part << TABLES_PART_SHIFT, hi = (part + 1) << TABLES_PART_SHIFT;

	if (!was.here ||
	    write_pages(rs, set, lo, hi > set->page_count ? set->page_count : hi, NULL, 0))
		return;
	arena_give(&rs->arena, was.first, was.n, now_ns);
	set->parts[part] = (struct rowpart){0};
}

bool rowparts_idle(const struct rowset *set, uint32_t part, uint64_t before_ns)
{
	const struct rowpart *p = &set->parts[part];

	return p->here && p->used_ns < before_ns &&
	       !__atomic_load_n(use_of(set, part), __ATOMIC_RELAXED);
}
