// SPDX-License-Identifier: Apache-2.0
/* rowsets: see the header. */
#include "loaders/maps/rowsets.h"

#include <errno.h>
#include <stdlib.h>
#include <utlist.h>

#include "loaders/maps/tablemaps.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

void rowsets_init(struct rowsets *rs, const struct tablemaps *maps, uint64_t grace_ns)
{
	*rs = (struct rowsets){.maps = maps};
	arena_init(&rs->arena, 0, maps->n_rows, grace_ns);
}

void rowsets_release(struct rowsets *rs)
{
	struct rowset *set, *next;

	DL_FOREACH_SAFE(rs->all, set, next) {
		DL_DELETE(rs->all, set);
		free(set);
	}
	arena_release(&rs->arena);
}

static uint64_t elements_of(uint32_t pages, uint32_t rules, uint32_t exts, uint32_t rows)
{
	return (uint64_t)pages + rules + 2 * (uint64_t)exts + ((uint64_t)rows + 1) / 2;
}

uint32_t rowsets_elements(const struct unwind_section *s)
{
	/* checked by unwind_section_open */
	return (uint32_t)elements_of(s->page_count, s->rule_count, s->ext_count, s->row_count);
}

bool rowsets_sound(const struct unwind_section *s)
{
	const uint64_t *rules = s->elements + s->page_count;
	const uint32_t *rows = (const uint32_t *)(rules + s->rule_count + 2 * (size_t)s->ext_count);

	for (uint32_t i = 0; i < s->page_count; i++) {
		const uint64_t page = s->elements[i];

		if (ROW_PAGE_FIRST(page) > s->row_count || ROW_PAGE_COUNT(page) > s->row_count - ROW_PAGE_FIRST(page) ||
		    ROW_PAGE_NUMBER(page) >= s->rule_count)
			return false;
	}
	for (uint32_t i = 0; i < s->rule_count; i++)
		if (ROW_RULE_KIND(rules[i]) == ROW_EXT && ROW_RULE_EXT(rules[i]) >= s->ext_count)
			return false;
	for (uint32_t i = 0; i < s->row_count; i++)
		if (ROW_NUMBER(rows[i]) >= s->rule_count)
			return false;
	return true;
}

static struct rowset *find(const struct rowsets *rs, const struct unwind_section *s)
{
	struct rowset *set;

	DL_FOREACH(rs->all, set)
		if (set->page_count == s->page_count && set->rule_count == s->rule_count && set->ext_count == s->ext_count &&
		    set->row_count == s->row_count &&
		    tablemaps_rows_equal(rs->maps, set->first, s->elements, rowsets_elements(s)) == 1)
			return set;
	return NULL;
}

static struct rowset *add(struct rowsets *rs, const struct rowset *as)
{
	struct rowset *set = mem_alloc(sizeof(*set));

	*set = *as;
	set->refs = 1;
	DL_APPEND(rs->all, set);
	return set;
}

int rowsets_get(struct rowsets *rs, const struct unwind_section *s, struct rowset **out)
{
	struct rowset *set = find(rs, s);
	uint32_t n = rowsets_elements(s), first;
	int rc;

	if (set) {
		set->refs++;
		*out = set;
		return 0;
	}
	if (!arena_take(&rs->arena, n, &first))
		return -ENOSPC;
	rc = tablemaps_rows_write(rs->maps, first, s->elements, n);
	if (rc) {
		arena_give(&rs->arena, first, n, 0);
		return rc;
	}
	*out = add(rs, &(struct rowset){.first = first, .page_count = s->page_count, .rule_count = s->rule_count,
					.ext_count = s->ext_count, .row_count = s->row_count});
	return 0;
}

struct rowset *rowsets_get_at(struct rowsets *rs, uint32_t first, uint32_t page_count, uint32_t rule_count,
			      uint32_t ext_count, uint32_t row_count)
{
	uint64_t n = elements_of(page_count, rule_count, ext_count, row_count);
	struct rowset *set;

	DL_FOREACH(rs->all, set)
		if (set->first == first && set->page_count == page_count && set->rule_count == rule_count &&
		    set->ext_count == ext_count && set->row_count == row_count) {
			set->refs++;
			return set;
		}
	if (n > UINT32_MAX || !arena_take_at(&rs->arena, first, (uint32_t)n))
		return NULL;
	return add(rs, &(struct rowset){.first = first, .page_count = page_count, .rule_count = rule_count,
					.ext_count = ext_count, .row_count = row_count});
}

static uint32_t size_of(const struct rowset *set)
{
	return (uint32_t)elements_of(set->page_count, set->rule_count, set->ext_count, set->row_count);
}

uint32_t rowsets_end(const struct rowset *set)
{
	return set->first + size_of(set);
}

static int by_first(const void *a, const void *b)
{
	const struct rowset *x = *(struct rowset *const *)a, *y = *(struct rowset *const *)b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* What has to go for [first, first + n), whose first set is sets[i]. UINT64_MAX: it cannot be had. */
static uint64_t price(struct rowset *const *sets, size_t count, size_t i, uint32_t first, uint32_t n)
{
	uint64_t sum = 0;

	for (; i < count && sets[i]->first < first + n; i++) {
		if (!sets[i]->idle)
			return UINT64_MAX;
		sum += rowsets_end(sets[i]) - sets[i]->first;
	}
	return sum;
}

bool rowsets_window(const struct rowsets *rs, uint32_t n, uint32_t *first)
{
	cleanup_free struct rowset **sets = NULL;
	size_t count = 0, cap = 0;
	uint64_t best = UINT64_MAX;
	struct rowset *set;

	DL_FOREACH(rs->all, set) {
		mem_grow(sets, count, cap);
		sets[count++] = set;
	}
	if (count)
		qsort(sets, count, sizeof(*sets), by_first);
	for (size_t i = 0; i <= count; i++) { /* right behind each, and at the begin */
		uint32_t at = i ? rowsets_end(sets[i - 1]) : 0;
		uint64_t cost = n <= rs->maps->n_rows && at <= rs->maps->n_rows - n ? price(sets, count, i, at, n) : UINT64_MAX;

		if (cost >= best)
			continue;
		best = cost;
		*first = at;
	}
	return best != UINT64_MAX;
}

void rowsets_put(struct rowsets *rs, struct rowset *set, uint64_t now_ns)
{
	if (!set || --set->refs)
		return;
	arena_give(&rs->arena, set->first, size_of(set), now_ns);
	DL_DELETE(rs->all, set);
	free(set);
}
