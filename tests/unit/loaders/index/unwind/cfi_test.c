/* SPDX-License-Identifier: Apache-2.0 */
/* cfi_test: call-frame information that no assembler writes: damage, widths, encodings, bounds.
 * What assemblers and compilers write is compared with readelf in tests/rows. */
#include <stdlib.h>
#include <string.h>

#include "loaders/index/unwind/cfi.h"
#include "loaders/index/unwind/cfiexpr.h"
#include "schema/base/array.h"
#include "schema/base/cursor.h"
#include "tests/unit/test.h"

#define TEXT 0x1000u
#define SIZE 0x100u

static const struct elf_range code = {TEXT, TEXT + 0x1000};

/* Bytes that grow. */
struct bytes {
	uint8_t v[4096];
	size_t n;
};

static void put(struct bytes *b, const void *p, size_t n)
{
	assert_true(b->n + n <= sizeof(b->v));
	memcpy(b->v + b->n, p, n);
	b->n += n;
}

static void put_u8(struct bytes *b, uint8_t v)
{
	put(b, &v, 1);
}

static void put_u32(struct bytes *b, uint32_t v)
{
	put(b, &v, 4);
}

static void put_u64(struct bytes *b, uint64_t v)
{
	put(b, &v, 8);
}

/* An entry's length, set right when it is whole. */
static size_t entry_begin(struct bytes *b)
{
	put_u32(b, 0);
	return b->n;
}

static void entry_end(struct bytes *b, size_t at)
{
	uint32_t len = (uint32_t)(b->n - at);

	memcpy(b->v + at - 4, &len, 4);
}

/* def_cfa rsp+8, RA at CFA - 8 */
#define FIRST "\x0c\x07\x08\x90\x01"

static void put_cie(struct bytes *b, uint32_t id, uint8_t version, const char *letters,
		    const void *data, size_t data_len, const char *program, size_t program_len)
{
	size_t at = entry_begin(b);

	put_u32(b, id);
	put_u8(b, version);
	put(b, letters, strlen(letters) + 1);
	if (version == 4)
		put(b, "\x08\0", 2);
	put(b, "\x01\x78\x10", 3); /* code 1, data -8, RA 16 */
	if (*letters == 'z') {
		put_u8(b, (uint8_t)data_len);
		put(b, data, data_len);
	}
	put(b, program, program_len);
	entry_end(b, at);
}

/* .eh_frame's FDE with udata8 addresses, of the CIE at 0. */
static void put_fde(struct bytes *b, uint64_t start, const char *program, size_t program_len)
{
	size_t at = entry_begin(b);

	put_u32(b, (uint32_t)at);
	put_u64(b, start);
	put_u64(b, SIZE);
	put_u8(b, 0);
	put(b, program, program_len);
	entry_end(b, at);
}

struct read {
	struct rows r;
	struct cfi_tally t;
};

static struct read cfi_of(const struct bytes *b, bool debug_frame, bool open_end)
{
	/* an exact copy: the sanitizer sees a read beyond it */
	uint8_t *copy = malloc(b->n ? b->n : 1);
	const struct cfi_section s = {.data = copy,
				      .len = b->n,
				      .vaddr = 0x8000,
				      .debug_frame = debug_frame,
				      .open_end = open_end,
				      .text = TEXT,
				      .got = 0x9000,
				      .code = &code,
				      .code_count = 1};
	struct read x = {0};

	memcpy(copy, b->v, b->n);
	assert_int_equal(rows_init(&x.r, TEXT, TEXT + 0x1000), 0);
	cfi_read(&s, ROWS_EH_FRAME, &x.r, &x.t);
	free(copy);
	return x;
}

/* The rule of the first span's row that begins at this distance from TEXT; ROW_NONE if there is
 * none. */
static uint64_t rule_at(const struct read *x, uint32_t at)
{
	for (size_t i = 0; i < x->r.count; i++)
		if (x->r.rows[i] >> 32 == at)
			return x->r.rules[(uint32_t)x->r.rows[i]];
	return ROW_MAKE_SPECIAL(ROW_NONE, 0);
}

#define CFA(bp, saved, words, bx, bx_saved) \
	(ROW_MAKE_CFA(ROW_RSP, bp, saved, words) | ROW_MAKE_BX(bx, bx_saved))

static const uint64_t entry = CFA(ROW_BP_SAME, 0, 1, ROW_BX_SAME, 0);
static const uint64_t broken = ROW_MAKE_SPECIAL(ROW_UNSUPPORTED, ROW_UNSUPPORTED_BROKEN);

static struct bytes simple(const char *program, size_t len)
{
	struct bytes b = {.n = 0};

	put_cie(&b, 0, 1, "zR", "\x04", 1, FIRST, 5);
	put_fde(&b, TEXT, program, len);
	return b;
}
#define SIMPLE(program) simple(program, sizeof(program) - 1)

TEST(damage_counts_from_its_address_on)
{
	/* advance 4, then: unknown; restore_state of nothing; an expression beyond the end; a cut
	 * number */
	static const char *const ends[] = {"\x44\x3f", "\x44\x0b", "\x44\x0f\x7f", "\x44\x0e\x80",
					   "\x44\x01\x01"};

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		struct bytes b = simple(ends[i], strlen(ends[i]));
		struct read x = cfi_of(&b, false, false);

		assert_int_equal(x.t.fdes, 1);
		assert_int_equal(x.t.broken, 1);
		assert_int_equal(rule_at(&x, 0), entry);
		assert_int_equal(rule_at(&x, 4), broken);
		rows_release(&x.r);
	}
}

TEST(rbx_is_followed)
{
	/* two pushes; RBX at CFA - 16; both popped; RBX at an odd place, undefined, in RBP, in
	 * itself, by an expression */
	struct bytes b = SIMPLE(
		"\x41\x0e\x18\x83\x02\x41\x0e\x08\x41\x0e\x18\x11\x03\x7f\x41\x07\x03\x41\x09\x03\x06"
		"\x41\x09\x03\x03\x41\x10\x03\x02\x76\x70\x41\x08\x03");
	const uint64_t given[] = {entry,
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_SAVED, 2),
				  entry,
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_SAME, 0),
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_LOST, 0),
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_LOST, 0),
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_SAME, 0),
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_LOST, 0),
				  CFA(ROW_BP_SAME, 0, 3, ROW_BX_SAME, 0)};
	struct read x = cfi_of(&b, false, false);

	assert_int_equal(x.t.broken, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(given); i++) {
		if (i && given[i] == given[i - 1])
			assert_int_equal(rule_at(&x, i),
					 ROW_MAKE_SPECIAL(ROW_NONE, 0)); /* no separate row */
		else
			assert_int_equal(rule_at(&x, i), given[i]);
	}
	rows_release(&x.r);
}

TEST(states_are_remembered_as_deep_as_said)
{
	char program[2 * CFI_REMEMBER_MAX + 4];

	for (unsigned deep = CFI_REMEMBER_MAX; deep <= CFI_REMEMBER_MAX + 1; deep++) {
		struct bytes b;
		struct read x;

		memset(program, 0x0a, deep);
		memset(program + deep, 0x0b, deep);
		b = simple(program, 2 * deep);
		x = cfi_of(&b, false, false);
		assert_int_equal(x.t.broken, deep > CFI_REMEMBER_MAX);
		assert_int_equal(rule_at(&x, 0), deep > CFI_REMEMBER_MAX ? broken : entry);
		rows_release(&x.r);
	}
}

TEST(each_encoding_of_an_address_is_read)
{
	static const struct {
		uint8_t encoding, bytes;
		uint64_t base; /* what the reader adds to it; 1: its own address */
		bool fails;
	} given[] = {
		{0x00, 8, 0, false},    {0x02, 2, 0, false},      {0x03, 4, 0, false},
		{0x04, 8, 0, false},    {0x0a, 2, 0, false},      {0x0b, 4, 0, false},
		{0x0c, 8, 0, false},    {0x1b, 4, 1, false},      {0x1c, 8, 1, false},
		{0x2b, 4, TEXT, false}, {0x3b, 4, 0x9000, false}, {0x50, 8, 0, false},
		{0x4b, 4, 0, true},     {0x9b, 4, 0, true},       {0xff, 4, 0, true},
		{0x05, 4, 0, true},
	};

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		const uint64_t at = 0x8000, want = 0x1234;
		uint64_t out = 0, v = want - (given[i].base == 1 ? at : given[i].base);
		struct cursor c = cursor_init(&v, given[i].bytes);

		if (given[i].fails) {
			assert_false(cfi_pointer(&c, given[i].encoding, at, TEXT, 0x9000, &out));
			continue;
		}
		assert_true(cfi_pointer(&c, given[i].encoding, at, TEXT, 0x9000, &out));
		assert_int_equal(out, want);
		assert_int_equal(c.pos, given[i].bytes);
		c = cursor_init(&v, given[i].bytes - 1u);
		assert_false(cfi_pointer(&c, given[i].encoding, at, TEXT, 0x9000, &out));
	}
}

TEST(a_wide_entry_of_eh_frame_has_a_narrow_id)
{
	struct bytes b = {.n = 0};
	struct read x;
	uint64_t len;

	put_cie(&b, 0, 1, "zR", "\x04", 1, FIRST, 5);
	put_u32(&b, 0xffffffff);
	put_u64(&b, 4 + 16 + 1);
	put_u32(&b, (uint32_t)b.n);
	put_u64(&b, TEXT);
	put_u64(&b, SIZE);
	put_u8(&b, 0);
	x = cfi_of(&b, false, false);
	assert_int_equal(x.t.fdes, 1);
	assert_int_equal(rule_at(&x, 0), entry);
	rows_release(&x.r);
	/* and one whose length exceeds the input, near the largest number, is refused */
	len = UINT64_MAX - 4;
	memcpy(b.v + b.n - 21 - 4 - 8 + 4, &len, 8);
	x = cfi_of(&b, false, false);
	assert_int_equal(x.t.fdes, 0);
	rows_release(&x.r);
}

TEST(a_length_of_zero_ends_only_what_has_no_end_of_its_own)
{
	struct bytes b = SIMPLE("");
	struct read x;

	put_u32(&b, 0);
	put_fde(&b, TEXT + SIZE, "", 0);
	x = cfi_of(&b, false, false);
	assert_int_equal(x.t.fdes, 2);
	rows_release(&x.r);
	x = cfi_of(&b, false, true);
	assert_int_equal(x.t.fdes, 1);
	rows_release(&x.r);
}

TEST(functions_outside_of_code_are_dropped)
{
	struct bytes b = SIMPLE("");
	struct read x;

	put_fde(&b, 0, "", 0);
	put_fde(&b, TEXT + 0xfff, "", 0);
	put_fde(&b, UINT64_MAX - 8, "", 0);
	put_fde(&b, 0x500, "", 0);
	x = cfi_of(&b, false, false);
	assert_int_equal(x.t.fdes, 1);
	assert_int_equal(x.t.dropped, 4);
	rows_release(&x.r);
}

TEST(a_cie_of_another_kind_has_no_functions)
{
	static const struct {
		uint8_t version;
		const char *letters, *data, *program;
		bool usable;
	} given[] = {
		{1, "zR", "\x04", FIRST, true},
		{3, "zR", "\x04", FIRST, true},
		{4, "zR", "\x04", FIRST, true},
		{1, "zRS", "\x04", FIRST, true},
		{1, "zRB", "\x04", FIRST, true},
		{1, "zLR", "\x1b\x04", FIRST, true},
		{1, "zPR", "\x03....\x04", FIRST, true},
		{1, "zPR", "\xff\x04", FIRST, true},
		{2, "zR", "\x04", FIRST, false},
		{1, "R", "", FIRST, false},
		{1, "zR", "\x04", "\x3f", false},
		{1, "zPR", "\x0f\x04", FIRST, false},
		{1, "zR", "", FIRST, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		struct bytes b = {.n = 0};
		struct read x;

		put_cie(&b, 0, given[i].version, given[i].letters, given[i].data,
			strlen(given[i].data), given[i].program, strlen(given[i].program));
		put_fde(&b, TEXT, "", 0);
		x = cfi_of(&b, false, false);
		assert_int_equal(x.t.fdes, given[i].usable);
		assert_int_equal(x.t.dropped, !given[i].usable);
		rows_release(&x.r);
	}
}

TEST(every_cut_of_a_section_is_survived)
{
	struct bytes b = SIMPLE(
		"\x41\x0e\x10\x86\x02\x43\x0d\x06\x0a\x50\x0c\x07\x08\x0b\x41\x0f\x03\x77\x08\x06");

	while (b.n--) {
		struct read x = cfi_of(&b, false, false);
		void *out = NULL;
		size_t size = 0;

		assert_int_equal(rows_finish(&x.r, &out, &size), 0);
		free(out);
		rows_release(&x.r);
	}
}

TEST(an_expression_has_an_answer_or_none)
{
	static const struct {
		const char *bytes;
		bool solved, deref;
		int reg, reg8;
		int64_t k, plus;
	} given[] = {
		{"\x77\x08", true, false, 7, -1, 8, 0},             /* RSP + 8 */
		{"\x77\x08\x06\x23\x10", true, true, 7, -1, 8, 16}, /* *(RSP + 8) + 16 */
		{"\x77\x70\x38\x1c", true, false, 7, -1, -24, 0},   /* RSP - 16 - 8 */
		{"\x92\x03\x7f", true, false, 3, -1, -1, 0},        /* RBX - 1 */
		{"\x38\x73\x01\x1e\x76\x02\x22", true, false, 6, 3, 10,
		 0}, /* 8 * (RBX + 1) + RBP + 2 */
		{"\x09\xf8\x77\x02\x22", true, false, 7, -1, -6, 0},
		{"\x0a\x10\x27\x11\x70\x22\x76\x00\x22", true, false, 6, -1, 0x2700, 0},
		{"\x77\x08\x76\x08\x22", false, false, 0, 0, 0, 0}, /* two registers, once each */
		{"\x73\x08\x34\x24", false, false, 0, 0, 0, 0},     /* << 4 */
		{"\x77\x08\x06\x06", false, false, 0, 0, 0, 0},     /* **(RSP + 8) */
		{"\x30\x06", false, false, 0, 0, 0, 0},             /* *0 */
		{"\x22", false, false, 0, 0, 0, 0},
		{"\x77", false, false, 0, 0, 0, 0},
		{"\x92\x20\x08", false, false, 0, 0, 0, 0},
		{"\x1a", false, false, 0, 0, 0, 0},
		{"\x31\x31\x31\x31\x31\x31\x31\x31\x31", false, false, 0, 0, 0, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(given); i++) {
		/* strlen would stop at a 0 operand: only one case has one, at a known place */
		size_t len = strlen(given[i].bytes);
		struct cfiexpr x = {0};

		if (len == 7 && given[i].bytes[0] == 0x0a)
			len = 9;
		assert_int_equal(cfiexpr_solve((const uint8_t *)given[i].bytes, len, false, &x),
				 given[i].solved);
		if (!given[i].solved)
			continue;
		assert_int_equal(x.deref, given[i].deref);
		assert_int_equal(x.sum.reg, given[i].reg);
		assert_int_equal(x.sum.reg8, given[i].reg8);
		assert_int_equal(x.sum.k, given[i].k);
		assert_int_equal(x.plus, given[i].plus);
	}
}
