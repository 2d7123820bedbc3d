/* SPDX-License-Identifier: Apache-2.0 */
/* rows_test: the collector of unwind rows; the last test compares random spans with the conditions
 * of rows.h taken address by address. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/rows.h"
#include "tests/rows/rowtable_at.h"
#include "tests/unit/test.h"

#define BASE 0x400000u
#define SIZE 0x10000u

static const uint64_t none = ROW_MAKE_SPECIAL(ROW_NONE, 0);
static const uint64_t entry = ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAME, 0, 1);
static const uint64_t pushed = ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAVED, 2, 2);

struct table {
	void *bytes;
	size_t size;
	const struct unwind_head *h;
	struct rowtable rows;
};

static void table_make(struct rows *r, struct table *t)
{
	*t = (struct table){0};
	assert_int_equal(rows_finish(r, &t->bytes, &t->size), 0);
	rows_release(r);
	if (!t->size)
		return;
	t->h = t->bytes;
	assert_int_equal(rowtable_init(&t->rows, t->bytes, t->size), 0);
}

static void table_release(struct table *t)
{
	rowtable_release(&t->rows);
	free(t->bytes);
}

/* The reader's lookup: by page, then the last row at or before the address. */
static uint64_t table_at(const struct table *t, uint64_t addr)
{
	const uint32_t at = (uint32_t)(addr - BASE), in_page = at & ((1u << TABLES_PAGE_SHIFT) - 1);
	const uint64_t *pages = (const uint64_t *)(t->h + 1), *rules;
	const uint32_t *rows;
	uint32_t number;
	uint64_t page;

	if (!t->size || at >> TABLES_PAGE_SHIFT >= t->h->page_count)
		return none;
	rules = pages + t->h->page_count;
	rows = (const uint32_t *)(rules + t->h->rule_count + 2 * (size_t)t->h->ext_count);
	page = pages[at >> TABLES_PAGE_SHIFT];
	number = ROW_PAGE_NUMBER(page);
	for (uint32_t i = 0; i < ROW_PAGE_COUNT(page); i++)
		if (ROW_IN_PAGE(rows[ROW_PAGE_FIRST(page) + i]) <= in_page)
			number = ROW_NUMBER(rows[ROW_PAGE_FIRST(page) + i]);
	assert_true(number < t->h->rule_count);
	assert_int_equal(rules[number], rowtable_at(&t->rows, addr));
	return rules[number];
}

static struct rows rows_make(void)
{
	struct rows r;

	assert_int_equal(rows_init(&r, BASE, BASE + SIZE), 0);
	return r;
}

static void span_of(struct rows *r, uint32_t lo, uint32_t hi, uint64_t rule,
		    enum rows_source source)
{
	rows_span(r, BASE + lo, BASE + hi, source);
	rows_add(r, BASE + lo, rule);
}

TEST(a_function_is_found_between_its_bounds)
{
	struct rows r = rows_make();
	struct table t;

	rows_span(&r, BASE + 0x100, BASE + 0x140, ROWS_EH_FRAME);
	rows_add(&r, BASE + 0x100, entry);
	rows_add(&r, BASE + 0x101, pushed);
	table_make(&r, &t);
	assert_int_equal(t.h->text_base, BASE);
	assert_int_equal(t.h->version, TABLES_VERSION);
	assert_int_equal(t.rows.count, 3);
	assert_int_equal(table_at(&t, BASE + 0xff), none);
	assert_int_equal(table_at(&t, BASE + 0x100), entry);
	assert_int_equal(table_at(&t, BASE + 0x101), pushed);
	assert_int_equal(table_at(&t, BASE + 0x13f), pushed);
	assert_int_equal(table_at(&t, BASE + 0x140), none);
	table_release(&t);
}

TEST(padding_belongs_to_what_stands_before_it)
{
	struct rows r = rows_make();
	struct table t;

	span_of(&r, 0x40, 0x51, pushed, ROWS_EH_FRAME);
	span_of(&r, 0x10, 0x31, entry, ROWS_EH_FRAME);
	span_of(&r, 0x61, 0x71, entry, ROWS_EH_FRAME);
	table_make(&r, &t);
	assert_int_equal(table_at(&t, BASE + 0x3f), entry);
	assert_int_equal(table_at(&t, BASE + 0x50), pushed);
	assert_int_equal(table_at(&t, BASE + 0x51), none);
	assert_int_equal(table_at(&t, BASE + 0x61), entry);
	table_release(&t);
}

TEST(rows_that_say_the_same_vanish)
{
	struct rows r = rows_make();
	struct table t;

	span_of(&r, 0, 0x10, entry, ROWS_EH_FRAME);
	span_of(&r, 0x10, 0x20, entry, ROWS_EH_FRAME);
	rows_add(&r, BASE + 0x14, entry);
	rows_add(&r, BASE + 0x18, pushed);
	rows_add(&r, BASE + 0x18, entry);
	table_make(&r, &t);
	assert_int_equal(t.rows.count, 2);
	assert_int_equal(table_at(&t, BASE + 0x1f), entry);
	table_release(&t);
}

TEST(a_better_source_holds_and_a_reserved_range_is_its_own)
{
	struct rows r = rows_make();
	struct table t;

	span_of(&r, 0x100, 0x200, entry, ROWS_EH_FRAME);
	span_of(&r, 0x140, 0x150, pushed, ROWS_SURE);
	span_of(&r, 0x400, 0x480, entry, ROWS_EH_FRAME);
	span_of(&r, 0x440, 0x460, pushed, ROWS_SURE);
	rows_reserve(&r, BASE + 0x400, BASE + 0x500);
	table_make(&r, &t);
	assert_int_equal(table_at(&t, BASE + 0x13f), entry);
	assert_int_equal(table_at(&t, BASE + 0x140), pushed);
	assert_int_equal(table_at(&t, BASE + 0x150), entry);
	assert_int_equal(table_at(&t, BASE + 0x43f), none);
	assert_int_equal(table_at(&t, BASE + 0x440), pushed);
	assert_int_equal(table_at(&t, BASE + 0x460), none);
	table_release(&t);
}

TEST(what_lies_outside_is_left_out)
{
	struct rows r = rows_make();
	struct table t;

	rows_span(&r, 0, 0x10, ROWS_EH_FRAME);
	rows_add(&r, 0, entry);
	rows_span(&r, BASE + SIZE - 4, BASE + SIZE + 4, ROWS_EH_FRAME);
	rows_add(&r, BASE + SIZE - 4, entry);
	rows_span(&r, BASE + 0x20, BASE + 0x20, ROWS_EH_FRAME);
	rows_add(&r, BASE + 0x20, entry);
	rows_span(&r, BASE + 0x30, BASE + 0x40, ROWS_EH_FRAME);
	rows_add(&r, BASE + 0x40, entry);
	rows_add(&r, BASE + 0x2f, entry);
	table_make(&r, &t);
	assert_int_equal(t.size, 0);
	assert_null(t.bytes);
	assert_int_equal(rows_init(&r, 0, ROWS_SIZE_MAX + 1), -EFBIG);
}

TEST(equal_extensions_share_a_number)
{
	const struct row_ext a = {.kind = ROW_EXT_DEREF, .reg = 6, .a = -8},
			     b = {.kind = ROW_EXT_CFA, .reg = 10};
	struct rows r = rows_make();
	struct table t;
	uint32_t first = rows_ext(&r, &a), second = rows_ext(&r, &b);

	assert_int_equal(first, ROW_MAKE_EXT(0));
	assert_int_equal(second, ROW_MAKE_EXT(1));
	assert_int_equal(rows_ext(&r, &a), first);
	span_of(&r, 0, 0x10, first, ROWS_EH_FRAME);
	rows_add(&r, BASE + 4, second);
	rows_add(&r, BASE + 8, ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RA));
	table_make(&r, &t);
	assert_int_equal(t.h->ext_count, 2);
	assert_int_equal(t.h->unsupported, 1);
	assert_memory_equal(&t.rows.exts[ROW_RULE_EXT(table_at(&t, BASE + 7))], &b, sizeof(b));
	table_release(&t);
}

TEST(a_row_at_a_pages_first_byte_is_in_the_page)
{
	struct rows r = rows_make();
	struct table t;

	span_of(&r, 0, 0x600, entry, ROWS_EH_FRAME);
	rows_add(&r, BASE + 0x200, pushed);
	rows_add(&r, BASE + 0x3ff, entry);
	table_make(&r, &t);
	assert_int_equal(t.h->page_count, 4);
	assert_int_equal(t.h->row_count, 1); /* that at 0x3ff alone */
	assert_int_equal(t.rows.count, 4);
	assert_int_equal(table_at(&t, BASE), entry);
	assert_int_equal(table_at(&t, BASE + 0x1ff), entry);
	assert_int_equal(table_at(&t, BASE + 0x200), pushed);
	assert_int_equal(table_at(&t, BASE + 0x3fe), pushed);
	assert_int_equal(table_at(&t, BASE + 0x5ff), entry);
	assert_int_equal(table_at(&t, BASE + 0x600), none);
	table_release(&t);
}

TEST(more_rules_than_have_a_number_are_marked)
{
	const uint64_t marked = ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_RANGE);
	const uint32_t n = TABLES_RULES_MAX + 10;
	struct rows r;
	struct table t;

	assert_int_equal(rows_init(&r, BASE, BASE + 2 * n), 0);
	rows_span(&r, BASE, BASE + 2 * n, ROWS_EH_FRAME);
	for (uint32_t i = 0; i < n; i++)
		rows_add(&r, BASE + i, ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAVED, i % 4096, 1 + i / 4096));
	table_make(&r, &t);
	assert_int_equal(t.h->rule_count, TABLES_RULES_MAX);
	assert_int_equal(table_at(&t, BASE + n - 14),
			 ROW_MAKE_CFA(ROW_RSP, ROW_BP_SAVED, (n - 14) % 4096, 1 + (n - 14) / 4096));
	assert_int_equal(table_at(&t, BASE + n - 13), marked); /* three are there before any row */
	assert_int_equal(table_at(&t, BASE + n - 1), marked);
	assert_int_equal(t.h->unsupported, 1);
	table_release(&t);
}

TEST(a_table_that_is_not_sound_is_refused)
{
	struct rows r = rows_make();
	struct unwind_head *h;
	struct rowtable again;
	uint64_t *page;
	struct table t;

	span_of(&r, 0x10, 0x300, entry, ROWS_EH_FRAME);
	table_make(&r, &t);
	h = t.bytes;
	page = (uint64_t *)(h + 1);
	assert_int_equal(rowtable_init(&again, t.bytes, t.size - 8), -EBADMSG);
	assert_int_equal(rowtable_init(&again, t.bytes, 8), -EBADMSG);
	*page += ROW_PAGE(0, 1, 0); /* its rows are then the next page's, too */
	assert_int_equal(rowtable_init(&again, t.bytes, t.size), -EBADMSG);
	*page = ROW_PAGE(h->rule_count, 0, 0);
	assert_int_equal(rowtable_init(&again, t.bytes, t.size), -EBADMSG);
	h->version++;
	assert_int_equal(rowtable_init(&again, t.bytes, t.size), -EBADMSG);
	table_release(&t);
}

/* ---- against the conditions, address by address ---- */

#define MODEL 0x900u
#define SPANS 24u

struct given {
	uint32_t lo, hi, source, at[3];
	uint64_t rules[3];
};

/* Condition 1 for one source: the span with the greatest start at or before the address, if it
 * reaches so far. */
static uint64_t model_of_source(const struct given *g, uint32_t source, uint32_t addr)
{
	const struct given *best = NULL;
	uint64_t rule = none;

	for (size_t i = 0; i < SPANS; i++)
		if (g[i].source == source && g[i].lo <= addr && (!best || g[i].lo > best->lo))
			best = &g[i];
	if (!best || addr >= best->hi)
		return none;
	for (size_t i = 0; i < 3; i++)
		if (best->at[i] < best->hi && best->at[i] <= addr)
			rule = best->rules[i];
	return rule;
}

static void model_fill(const struct given *g, uint64_t *model)
{
	for (uint32_t a = 0; a < MODEL; a++) {
		model[a] = none;
		for (uint32_t s = 0; s < ROWS_SOURCES && model[a] == none; s++)
			model[a] = model_of_source(g, s, a);
	}
	/* condition 2 */
	for (uint32_t a = 1; a < MODEL; a++) {
		uint32_t gap = 0;

		while (a + gap < MODEL && model[a + gap] == none)
			gap++;
		if (gap && gap <= ROWS_PADDING && a + gap < MODEL && model[a - 1] != none)
			for (uint32_t i = 0; i < gap; i++)
				model[a + i] = model[a - 1];
		a += gap;
	}
}

static void random_given(struct given *g)
{
	for (size_t i = 0; i < SPANS; i++) {
		g[i].lo = (uint32_t)rand() % 0x800;
		g[i].hi = g[i].lo + 1 + (uint32_t)rand() % 0x80;
		g[i].source = (uint32_t)rand() % ROWS_SOURCES;
		for (uint32_t k = 0; k < 3; k++) {
			g[i].at[k] = k ? g[i].at[k - 1] + 1 + (uint32_t)rand() % 8 : g[i].lo;
			g[i].rules[k] = ROW_MAKE_CFA(ROW_RSP, 0, 0, 1 + (uint32_t)rand() % 3);
		}
	}
}

TEST(random_spans_hold_where_the_conditions_say)
{
	static uint64_t model[MODEL];
	struct given g[SPANS];

	srand(7);
	for (unsigned round = 0; round < 500; round++) {
		struct rows r = rows_make();
		struct table t;

		random_given(g);
		for (size_t i = 0; i < SPANS; i++) {
			rows_span(&r, BASE + g[i].lo, BASE + g[i].hi,
				  (enum rows_source)g[i].source);
			for (size_t k = 0; k < 3; k++)
				rows_add(&r, BASE + g[i].at[k], g[i].rules[k]);
		}
		table_make(&r, &t);
		model_fill(g, model);
		for (uint32_t a = 0; a < MODEL; a++)
			assert_int_equal(table_at(&t, BASE + a), model[a]);
		for (size_t i = 1; i < t.rows.count; i++) {
			assert_true(t.rows.rows[i].addr > t.rows.rows[i - 1].addr);
			assert_int_not_equal(t.rows.rows[i].rule, t.rows.rows[i - 1].rule);
		}
		table_release(&t);
	}
}
