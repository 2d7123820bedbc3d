/* SPDX-License-Identifier: Apache-2.0 */
/* dwline on line tables written by hand; whole programs are compared with llvm-symbolizer
 * (tests/e2e/names/test_line_tables.py). And .gnu_debugaltlink. */
#include "tests/unit/loaders/index/testing.h"

#include "loaders/index/elf/debuglink.h"
#include "loaders/index/lines/dwline.h"

static const struct elf_range code[] = {{0x1000, 0x2000}};

struct bytes {
	uint8_t at[512];
	size_t len;
};

static void add(struct bytes *b, const void *data, size_t len)
{
	assert_true(b->len + len <= sizeof(b->at));
	memcpy(b->at + b->len, data, len);
	b->len += len;
}
#define ADD(b, ...) add(b, (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))

/* DWARF 4: directory "/d", files "a.c" (in it) and "b.h" (in the unit's own). Lengths are put in by
 * table_end. */
static void table_begin(struct bytes *b)
{
	ADD(b, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0);
	ADD(b, 1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1);
	add(b, "/d\0", 4);
	add(b, "a.c", 4);
	ADD(b, 1, 0, 0);
	add(b, "b.h", 4);
	ADD(b, 0, 0, 0, 0);
	b->at[6] = (uint8_t)(b->len - 10);
}

static void table_end(struct bytes *b)
{
	const uint32_t len = (uint32_t)b->len - 4;

	memcpy(b->at, &len, sizeof(len));
}

/* Extended opcodes. */
static void set_address(struct bytes *b, uint64_t addr)
{
	ADD(b, 0, 9, 2);
	add(b, &addr, sizeof(addr));
}

static void end_sequence(struct bytes *b, uint8_t advance)
{
	ADD(b, 2, advance, 0, 1, 1);
}

static bool read_table(const struct bytes *b, struct lineset *set, size_t len)
{
	const struct dwline_sections s = {.line = {b->at, len}};
	struct dwline t;

	lineset_init(set, code, 1);
	if (!dwline_open(&t, &s, 0, "/unit", set))
		return false;
	dwline_rows(&t, set);
	dwline_release(&t);
	return true;
}

static void assert_row(const struct lineset *s, size_t i, uint32_t addr, const char *file,
		       uint32_t line)
{
	assert_true(i < s->row_count);
	assert_int_equal(s->base + s->rows[i].addr, addr);
	assert_string_equal(strtab_get(&s->files, s->rows[i].file), file);
	assert_int_equal(s->rows[i].line, line);
}

TEST(rows_and_files_come_out_as_the_program_says)
{
	struct bytes b = {0};
	struct lineset s;

	table_begin(&b);
	set_address(&b, 0x1000);
	ADD(&b, 3, 9, 1);             /* line 10, row */
	ADD(&b, 13 + 14 * 4 + 5 + 2); /* 4 bytes, 2 lines on: a special opcode */
	ADD(&b, 4, 2, 5, 7, 1);       /* b.h, column 7, row at the same address: it counts */
	ADD(&b, 8, 1);                /* 17 bytes on */
	end_sequence(&b, 3);
	table_end(&b);
	assert_true(read_table(&b, &s, b.len));
	assert_int_equal(s.sequence_count, 1);
	assert_int_equal(s.row_count, 3);
	assert_row(&s, 0, 0x1000, "/d/a.c", 10);
	assert_row(&s, 1, 0x1004, "/unit/b.h", 12);
	assert_int_equal(s.rows[1].column, 7);
	assert_row(&s, 2, 0x1015, "/unit/b.h", 12);
	assert_int_equal(s.sequences[0].hi, 0x18);
	lineset_release(&s);
}

/* What a linker leaves of a function that it merged with another one. */
TEST(a_sequence_of_no_length_swallows_nothing)
{
	struct bytes b = {0};
	struct lineset s;

	table_begin(&b);
	set_address(&b, 0x1100);
	ADD(&b, 3, 4, 1);
	end_sequence(&b, 0);
	set_address(&b, 0x1800);
	ADD(&b, 3, 8, 1);
	end_sequence(&b, 0x10);
	set_address(&b, 0x1100);
	ADD(&b, 3, 6, 1);
	end_sequence(&b, 0x10);
	table_end(&b);
	assert_true(read_table(&b, &s, b.len));
	assert_int_equal(s.sequence_count, 2);
	assert_row(&s, s.sequences[0].first, 0x1800, "/d/a.c", 9);
	assert_row(&s, s.sequences[1].first, 0x1100, "/d/a.c", 7);
	assert_int_equal(s.sequences[1].hi, 0x110);
	lineset_release(&s);
}

TEST(a_table_cut_anywhere_gives_what_came_before_or_nothing)
{
	struct bytes b = {0};
	struct lineset s;

	table_begin(&b);
	for (uint32_t i = 0; i < 4; i++) {
		set_address(&b, 0x1000 + 0x100 * i);
		ADD(&b, 3, 1, 1);
		end_sequence(&b, 8);
	}
	table_end(&b);
	for (size_t cut = 0; cut <= b.len; cut++) {
		const uint32_t len = (uint32_t)(cut < 4 ? 0 : cut - 4);
		bool whole = cut == b.len;

		memcpy(b.at, &len, sizeof(len));
		if (read_table(&b, &s, cut))
			assert_true(s.sequence_count <= 4 && (!whole || s.sequence_count == 4));
		else
			assert_false(whole);
		lineset_release(&s);
	}
}

TEST(a_dwz_link_has_a_name_and_a_build_id)
{
	struct debugaltlink link;

	assert_true(debugaltlink_parse("../x.dwz\0\1\2\3", 12, &link));
	assert_string_equal(link.name, "../x.dwz");
	assert_int_equal(link.build_id_len, 3);
	assert_memory_equal(link.build_id, "\1\2\3", 3);
	assert_false(debugaltlink_parse("x.dwz", 5, &link));
	assert_false(debugaltlink_parse("x.dwz\0\1", 7, &link));
	assert_false(debugaltlink_parse("\0\1\2\3", 4, &link));
}
