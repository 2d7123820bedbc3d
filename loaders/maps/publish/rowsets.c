/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/rowsets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

/* ---- begin and end ---- */

void rowsets_init(struct rowsets *rs, const struct tablemaps *maps, uint64_t grace_ns)
{
	*rs = (struct rowsets){.maps = maps, .parts_min = ROWSETS_PARTS_MIN};
	arena_init(&rs->arena, 0, maps->n_rows, grace_ns);
}

static void parts_release(struct rowset *set)
{
	tablemaps_window_close(&set->use);
	free(set->parts);
	set->parts = NULL;
	set->part_count = 0;
}

void rowsets_release(struct rowsets *rs)
{
	struct rowset *set, *next;

	DL_FOREACH_SAFE (rs->all, set, next) {
		DL_DELETE(rs->all, set);
		parts_release(set);
		free(set);
	}
	arena_release(&rs->arena);
}

/* ---- how large ---- */

static uint64_t elements_of(uint32_t pages, uint32_t rules, uint32_t exts, uint32_t rows)
{
	return (uint64_t)pages + rules + 2 * (uint64_t)exts + ((uint64_t)rows + 1) / 2;
}

static uint32_t parts_of(uint32_t pages)
{
	return (pages >> TABLES_PART_SHIFT) + !!(pages & ((1u << TABLES_PART_SHIFT) - 1));
}

/* Without its rows. */
static uint64_t head_elements(uint32_t pages, uint32_t rules, uint32_t exts)
{
	return elements_of(pages, rules, exts, 0) + (parts_of(pages) + 7) / 8;
}

/* Are the rows of each page behind those of the previous one? Then a part's rows are adjacent. */
static bool is_orderly(const struct unwind_section *s)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < s->page_count; i++) {
		if (ROW_PAGE_FIRST(s->elements[i]) != at)
			return false;
		at += ROW_PAGE_COUNT(s->elements[i]);
	}
	return at <= s->row_count;
}

static bool in_parts(const struct rowsets *rs, const struct unwind_section *s)
{
	return s->row_count >= rs->parts_min && is_orderly(s);
}

uint32_t rowsets_elements(const struct rowsets *rs, const struct unwind_section *s)
{
	/* checked by unwind_section_open */
	return (uint32_t)(in_parts(rs, s) ?
				  head_elements(s->page_count, s->rule_count, s->ext_count) :
				  elements_of(s->page_count, s->rule_count, s->ext_count,
					      s->row_count));
}

static uint32_t size_of(const struct rowset *set)
{
	return (uint32_t)(set->use_first ?
				  head_elements(set->page_count, set->rule_count, set->ext_count) :
				  elements_of(set->page_count, set->rule_count, set->ext_count,
					      set->row_count));
}

uint32_t rowsets_end(const struct rowset *set)
{
	return set->first + size_of(set);
}

/* Does each row's rule exist? Two rows a word and without a branch, since there are millions at a
 * start: a rule number that is too high leaves the top bit of its half set; what the lower half
 * borrows does not matter then. */
static bool rows_sound(const uint64_t *words, uint32_t n, uint32_t rule_count)
{
	const uint64_t two = 1ull << 32 | 1, last = two * (rule_count - 1);
	uint64_t below = 0;

	for (uint32_t i = 0; i < n; i++)
		below |= last - (words[i] & two * ROW_NUMBER(UINT32_MAX));
	return !(below & two << 31);
}

bool rowsets_sound(const struct unwind_section *s)
{
	const uint64_t *rules = s->elements + s->page_count;
	const uint64_t *rows = rules + s->rule_count + 2 * (size_t)s->ext_count;

	for (uint32_t i = 0; i < s->page_count; i++) {
		const uint64_t page = s->elements[i];

		if (ROW_PAGE_FIRST(page) > s->row_count ||
		    ROW_PAGE_COUNT(page) > s->row_count - ROW_PAGE_FIRST(page) ||
		    ROW_PAGE_NUMBER(page) >= s->rule_count)
			return false;
	}
	for (uint32_t i = 0; i < s->rule_count; i++)
		if (ROW_RULE_KIND(rules[i]) == ROW_EXT && ROW_RULE_EXT(rules[i]) >= s->ext_count)
			return false;
	return !s->row_count ||
	       (s->rule_count && rows_sound(rows, (s->row_count + 1) / 2, s->rule_count));
}

/* ---- sets ---- */

static uint64_t content_of(const struct unwind_section *s)
{
	uint64_t n = elements_of(s->page_count, s->rule_count, s->ext_count, s->row_count);

	return hash_wide(s->page_count, s->elements, n * sizeof(*s->elements)) | 1;
}

/* content: 0 if it is in one piece. */
static bool has_content(const struct rowsets *rs, const struct rowset *set,
			const struct unwind_section *s, uint64_t content)
{
	if (set->use_first || content)
		return set->use_first && set->content == content;
	return tablemaps_rows_equal(rs->maps, set->first, s->elements, size_of(set)) == 1;
}

static struct rowset *find(const struct rowsets *rs, const struct unwind_section *s,
			   uint64_t content)
{
	struct rowset *set;

	DL_FOREACH (rs->all, set)
		if (set->page_count == s->page_count && set->rule_count == s->rule_count &&
		    set->ext_count == s->ext_count && set->row_count == s->row_count &&
		    has_content(rs, set, s, content))
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

static int make_parts(const struct rowsets *rs, struct rowset *set)
{
	set->use_first = set->first + set->page_count + set->rule_count + 2 * set->ext_count;
	set->part_count = parts_of(set->page_count);
	set->parts = mem_array(set->part_count, sizeof(*set->parts));
	return tablemaps_window_open(rs->maps, set->use_first, (set->part_count + 7) / 8,
				     &set->use);
}

/* Everything but the rows; no part is loaded. */
static int write_head(const struct rowsets *rs, const struct rowset *set,
		      const struct unwind_section *s)
{
	uint32_t n = size_of(set), rest = s->rule_count + 2 * s->ext_count;
	cleanup_free uint64_t *head = mem_array(n, sizeof(*head));

	for (uint32_t i = 0; i < s->page_count; i++)
		head[i] = ROW_PAGE(0, ROW_PAGE_ABSENT, 0);
	memcpy(head + s->page_count, s->elements + s->page_count, rest * sizeof(*head));
	return tablemaps_rows_write(rs->maps, set->first, head, n);
}

static int write_set(const struct rowsets *rs, struct rowset *set, const struct unwind_section *s)
{
	int rc;

	if (!set->content)
		return tablemaps_rows_write(rs->maps, set->first, s->elements, size_of(set));
	rc = make_parts(rs, set);
	return rc ? rc : write_head(rs, set, s);
}

int rowsets_get(struct rowsets *rs, const struct unwind_section *s, struct rowset **out)
{
	uint64_t content = in_parts(rs, s) ? content_of(s) : 0;
	struct rowset *set = find(rs, s, content), as;
	int rc;

	if (set) {
		set->refs++;
		*out = set;
		return 0;
	}
	as = (struct rowset){.page_count = s->page_count,
			     .rule_count = s->rule_count,
			     .ext_count = s->ext_count,
			     .row_count = s->row_count,
			     .content = content};
	if (!arena_take(&rs->arena, rowsets_elements(rs, s), &as.first))
		return -ENOSPC;
	rc = write_set(rs, &as, s);
	if (rc) {
		parts_release(&as);
		arena_give(&rs->arena, as.first, rowsets_elements(rs, s), 0);
		return rc;
	}
	*out = add(rs, &as);
	return 0;
}

/* The place of a predecessor's part, from its pages. */
static void part_take_at(struct rowsets *rs, struct rowset *set, uint32_t k, const uint64_t *pages)
{
	uint32_t lo = k << TABLES_PART_SHIFT, hi = lo + (1u << TABLES_PART_SHIFT);
	struct rowpart part = {.here = true};
	uint64_t last;

	if (hi > set->page_count)
		hi = set->page_count;
	if (ROW_PAGE_COUNT(pages[lo]) == ROW_PAGE_ABSENT)
		return;
	last = pages[hi - 1];
	part.first = ROW_PAGE_FIRST(pages[lo]) / 2;
	part.n = (ROW_PAGE_FIRST(last) + ROW_PAGE_COUNT(last) + 1) / 2 - part.first;
	if (!part.n || arena_take_at(&rs->arena, part.first, part.n))
		set->parts[k] = part;
}

static void parts_take_at(struct rowsets *rs, struct rowset *set)
{
	struct tablemaps_window pages = {0};

	if (make_parts(rs, set) ||
	    tablemaps_window_open(rs->maps, set->first, set->page_count, &pages)) {
		parts_release(set);
		return;
	}
	for (uint32_t k = 0; k < set->part_count; k++)
		part_take_at(rs, set, k, pages.at);
	tablemaps_window_close(&pages);
}

static bool is_same(const struct rowset *a, const struct rowset *b)
{
	return a->first == b->first && a->page_count == b->page_count &&
	       a->rule_count == b->rule_count && a->ext_count == b->ext_count &&
	       a->row_count == b->row_count && a->use_first == b->use_first;
}

struct rowset *rowsets_get_at(struct rowsets *rs, const struct rowset *as)
{
	uint64_t n = as->use_first ? head_elements(as->page_count, as->rule_count, as->ext_count) :
				     elements_of(as->page_count, as->rule_count, as->ext_count,
						 as->row_count);
	struct rowset *set;

	DL_FOREACH (rs->all, set)
		if (is_same(set, as)) {
			set->refs++;
			return set;
		}
	if (n > UINT32_MAX || !arena_take_at(&rs->arena, as->first, (uint32_t)n))
		return NULL;
	set = add(rs, as);
	if (set->use_first)
		parts_take_at(rs, set);
	return set;
}

/* ---- room ---- */

/* A set's one piece, or one of its parts. */
struct piece {
	uint32_t first, end;
	bool idle;
};

static int by_first(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

static struct piece *pieces(const struct rowsets *rs, size_t *count)
{
	struct piece *v = NULL;
	struct rowset *set;
	size_t cap = 0;

	*count = 0;
	DL_FOREACH (rs->all, set) {
		mem_grow(v, *count, cap);
		v[(*count)++] = (struct piece){set->first, rowsets_end(set), set->idle};
		for (uint32_t k = 0; k < set->part_count; k++) {
			const struct rowpart *p = &set->parts[k];

			if (!p->n)
				continue;
			mem_grow(v, *count, cap);
			v[(*count)++] =
				(struct piece){p->first, p->first + p->n, set->idle || p->idle};
		}
	}
	if (*count)
		qsort(v, *count, sizeof(*v), by_first);
	return v;
}

/* The cost of freeing [first, first + n), whose first piece is v[i]. UINT64_MAX: impossible. */
static uint64_t price(const struct piece *v, size_t count, size_t i, uint32_t first, uint32_t n)
{
	uint64_t sum = 0;

	for (; i < count && v[i].first < first + n; i++) {
		if (!v[i].idle)
			return UINT64_MAX;
		sum += v[i].end - v[i].first;
	}
	return sum;
}

bool rowsets_window(const struct rowsets *rs, uint32_t n, uint32_t *first)
{
	size_t count;
	cleanup_free struct piece *v = pieces(rs, &count);
	uint64_t best = UINT64_MAX;

	for (size_t i = 0; i <= count; i++) { /* directly after each piece, and at the beginning */
		uint32_t at = i ? v[i - 1].end : 0;
		uint64_t cost = n <= rs->maps->n_rows && at <= rs->maps->n_rows - n ?
					price(v, count, i, at, n) :
					UINT64_MAX;

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
	for (uint32_t k = 0; k < set->part_count; k++)
		arena_give(&rs->arena, set->parts[k].first, set->parts[k].n, now_ns);
	arena_give(&rs->arena, set->first, size_of(set), now_ns);
	parts_release(set);
	DL_DELETE(rs->all, set);
	free(set);
}
