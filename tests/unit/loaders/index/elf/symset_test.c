/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each address: the rules of symset.h. Pieces are written as "start-end name". */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <errno.h>
#include <stdio.h>

#include "loaders/index/elf/symset.h"
#include "schema/base/strbuf.h"

/* Code from 100 to 200 and from 300 to 400. */
static void set_init(struct symset *s)
{
	struct elf_range *code = calloc(2, sizeof(*code));

	code[0] = (struct elf_range){100, 200};
	code[1] = (struct elf_range){300, 400};
	symset_init(s, code, 2);
}

static void add(struct symset *s, uint64_t addr, uint64_t size, const char *name, int kind,
		int bind)
{
	const struct symset_symbol sym = {.addr = addr,
					  .size = size,
					  .name = name,
					  .kind = (uint8_t)kind,
					  .bind = (uint8_t)bind};

	assert_int_equal(symset_add(s, &sym), 0);
}

static void expect_between(struct symset *s, const uint64_t *edges, size_t edge_count,
			   const char *want)
{
	cleanup_strbuf struct strbuf got = STRBUF_INIT;
	struct symset_piece *pieces = NULL;
	size_t n = 0;

	assert_int_equal(symset_resolve(s, edges, edge_count, &pieces, &n), 0);
	for (size_t i = 0; i < n; i++)
		strbuf_addf(&got, "%s%d-%d %s", i ? ", " : "", (int)pieces[i].start,
			    (int)pieces[i].end, s->symbols[pieces[i].symbol].name);
	assert_string_equal(strbuf_str(&got), want);
	free(pieces);
	symset_release(s);
}

static void expect(struct symset *s, const char *want)
{
	expect_between(s, NULL, 0, want);
}

TEST(global_comes_before_local_before_weak)
{
	struct symset s;

	set_init(&s);
	add(&s, 100, 10, "weak", SYMSET_FUNC, SYMSET_WEAK);
	add(&s, 100, 10, "local", SYMSET_FUNC, SYMSET_LOCAL);
	add(&s, 100, 10, "__global", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 100, 10, "global", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 100, 0, "sizeless", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	add(&s, 120, 10, "weak2", SYMSET_FUNC, SYMSET_WEAK);
	add(&s, 120, 10, "local2", SYMSET_FUNC, SYMSET_LOCAL);
	expect(&s, "100-110 global, 120-130 local2");
}

TEST(the_choice_does_not_depend_on_order)
{
	static const char *const names[] = {"bb", "_a", "aa", "ccc"};

	for (size_t shift = 0; shift < 4; shift++) {
		struct symset s;

		set_init(&s);
		for (size_t i = 0; i < 4; i++)
			add(&s, 100, 10, names[(i + shift) % 4], SYMSET_FUNC, SYMSET_GLOBAL);
		expect(&s, "100-110 aa");
	}
}

TEST(a_symbol_without_size_ends_at_the_next_or_with_its_section)
{
	struct symset s;

	set_init(&s);
	add(&s, 150, 0, "a", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	add(&s, 170, 5, "b", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 190, 0, "c", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	add(&s, 350, 0, "d", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	expect(&s, "150-170 a, 170-175 b, 190-200 c, 350-400 d");
}

TEST(what_has_no_size_ends_where_another_table_says_that_something_else_begins)
{
	static const uint64_t edges[] = {175, 160, 150, 390, 360, 115, 100};
	struct symset s;

	set_init(&s);
	add(&s, 100, 30, "sized", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 150, 0, "memset", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	add(&s, 170, 0, "label", SYMSET_LABEL, SYMSET_LOCAL);
	add(&s, 350, 0, "last", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	expect_between(&s, edges, ARRAY_SIZE(edges),
		       "100-130 sized, 150-160 memset, 170-175 label, 350-360 last");
}

TEST(a_label_counts_only_where_nothing_else_is)
{
	struct symset s;

	set_init(&s);
	add(&s, 100, 20, "func", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 110, 0, "inside", SYMSET_LABEL, SYMSET_GLOBAL);
	add(&s, 112, 0, "inside_too", SYMSET_FUNC_ANY, SYMSET_GLOBAL);
	add(&s, 130, 0, "label", SYMSET_LABEL, SYMSET_LOCAL);
	add(&s, 140, 0, "label2", SYMSET_LABEL, SYMSET_LOCAL);
	expect(&s, "100-120 func, 130-140 label, 140-200 label2");
}

TEST(a_function_inside_another_interrupts_it)
{
	struct symset s;

	set_init(&s);
	add(&s, 100, 60, "outer", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 110, 10, "inner", SYMSET_FUNC, SYMSET_LOCAL);
	add(&s, 112, 3, "innermost", SYMSET_FUNC, SYMSET_LOCAL);
	add(&s, 150, 30, "across", SYMSET_FUNC, SYMSET_LOCAL);
	expect(&s,
	       "100-110 outer, 110-112 inner, 112-115 innermost, 115-120 inner, 120-150 outer, 150-180 across");
}

TEST(what_is_not_code_is_left_out_and_sizes_are_cut)
{
	struct symset s;

	set_init(&s);
	add(&s, 90, 20, "before", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 200, 20, "between", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 190, UINT64_MAX, "endless", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, UINT64_MAX, 20, "far", SYMSET_FUNC, SYMSET_GLOBAL);
	expect(&s, "190-200 endless");
}

TEST(the_pclntab_names_what_it_knows)
{
	struct symset s;

	set_init(&s);
	add(&s, 100, 20, "symtab", SYMSET_FUNC, SYMSET_GLOBAL);
	add(&s, 100, 20, "main.f", SYMSET_GO, SYMSET_GLOBAL);
	add(&s, 130, 20, "c_func", SYMSET_FUNC, SYMSET_GLOBAL);
	expect(&s, "100-120 main.f, 130-150 c_func");
}

TEST(an_empty_set_has_no_pieces)
{
	struct symset s;

	set_init(&s);
	expect(&s, "");
	symset_init(&s, NULL, 0);
	add(&s, 100, 20, "x", SYMSET_FUNC, SYMSET_GLOBAL);
	expect(&s, "");
}

/* Against a table of all addresses, painted in order of start. */
TEST(random_sets_agree_with_painting)
{
	char names[64][4];

	srand(7);
	for (int i = 0; i < 64; i++)
		snprintf(names[i], sizeof(names[i]), "n%02d", i);
	for (int round = 0; round < 300; round++) {
		struct elf_range *code = calloc(1, sizeof(*code));
		const char *at[256] = {0};
		const char *got[256] = {0};
		uint8_t size[256] = {0}, who[256] = {0};
		struct symset_piece *pieces = NULL;
		struct symset s;
		size_t n = 0;

		code[0] = (struct elf_range){0, 256};
		symset_init(&s, code, 1);
		for (int i = 0; i < 20; i++) {
			int a = rand() % 255;

			if (size[a])
				continue;
			size[a] = (uint8_t)(1 + rand() % (rand() % 8 ? 12 : 120));
			who[a] = (uint8_t)i;
			add(&s, (uint64_t)a, size[a], names[i], SYMSET_FUNC, SYMSET_GLOBAL);
		}
		for (int a = 0; a < 256; a++)
			for (int k = a; k < a + size[a] && k < 256; k++)
				at[k] = names[who[a]];
		assert_int_equal(symset_resolve(&s, NULL, 0, &pieces, &n), 0);
		for (size_t i = 0; i < n; i++)
			for (uint64_t k = pieces[i].start; k < pieces[i].end; k++) {
				assert_null(got[k]);
				got[k] = s.symbols[pieces[i].symbol].name;
			}
		assert_memory_equal(at, got, sizeof(at));
		free(pieces);
		symset_release(&s);
	}
}
