/* SPDX-License-Identifier: Apache-2.0 */
/* HotSpot's tables of lines and scopes, sound and damaged. The whole walk is tested on real JDKs
 * (tests/e2e/pstack/test_pstack_java.py). */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include "loaders/lib/runtimes/hotspot.h"
#include "loaders/lib/runtimes/hotspotcode.h"
#include "schema/base/cleanup.h"

static struct fake f;

static void put_number(uint8_t *to, size_t *at, unsigned x, uint32_t v)
{
	for (int i = 0; i < 4 && v >= 192 - x; i++) {
		uint32_t b = 192 - x + (v - (192 - x)) % 64;

		to[(*at)++] = (uint8_t)(b + x);
		v = (v - b) >> 6;
	}
	to[(*at)++] = (uint8_t)(v + x);
}

TEST(numbers_are_read_as_they_were_written)
{
	static const uint32_t all[] = {0,    1,     190,   191,      192,       193,       255,
				       1000, 12288, 65535, 1u << 20, INT32_MAX, UINT32_MAX};

	for (unsigned x = 0; x < 2; x++)
		for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
			uint8_t bytes[8];
			size_t len = 0, at = 0;
			uint32_t v = 7;

			put_number(bytes, &len, x, all[i]);
			assert_true(len <= 5 && hotspot_number_read(bytes, len, &at, x, &v));
			assert_int_equal(v, all[i]);
			assert_int_equal(at, len);
			for (size_t cut = 0; cut < len; cut++) {
				at = 0;
				assert_false(hotspot_number_read(bytes, cut, &at, x, &v));
			}
		}
}

TEST(a_line_holds_up_to_the_next_one)
{
	/* bci 0: line 7; bci 3: line 9; bci 300: line 5 */
	uint8_t table[32] = {0 << 3 | 7, 3 << 3 | 2, 0xff};
	size_t at = 3;

	put_number(table, &at, 0, 297 << 1);
	put_number(table, &at, 0, (4 - 1) << 1 | 1); /* -4 */
	table[at++] = 0;
	assert_int_equal(hotspot_line_find(table, at, 0, 0), 7);
	assert_int_equal(hotspot_line_find(table, at, 0, 2), 7);
	assert_int_equal(hotspot_line_find(table, at, 0, 3), 9);
	assert_int_equal(hotspot_line_find(table, at, 0, 299), 9);
	assert_int_equal(hotspot_line_find(table, at, 0, 300), 5);
	assert_int_equal(hotspot_line_find(table, at, 0, 9999), 5);
	assert_int_equal(hotspot_line_find(NULL, 0, 0, 1), 0);
	assert_int_equal(hotspot_line_find(table, 4, 0, 300), 9); /* cut off */
}

TEST(a_line_table_fits_only_as_it_was_packed)
{
	for (unsigned x = 0; x < 2; x++) {
		uint8_t table[32] = {0xff};
		size_t at = 1;

		put_number(table, &at, x, 0);
		put_number(table, &at, x, 369 << 1);
		table[at++] = 5 << 3 | 2;
		table[at++] = 0;
		assert_true(hotspot_lines_fit(table, at, x, 6));
		assert_false(hotspot_lines_fit(table, at, !x, 6));
		assert_false(hotspot_lines_fit(table, at, x, 5));     /* beyond the code */
		assert_false(hotspot_lines_fit(table, at - 1, x, 6)); /* no end */
	}
	assert_false(hotspot_lines_fit((const uint8_t *)"", 1, 0, 6)); /* empty */
}

/* ---- a method ---- */

static struct hotspotcode code;
static struct hotspot_packing packing;
static uint64_t pool, tags, class;

static uint64_t symbol(const char *s)
{
	uint64_t at = fake_room(&f, 8 + strlen(s));
	uint16_t length = (uint16_t)strlen(s);

	fake_put(&f, at, &length, 2);
	fake_put(&f, at + 6, s, length);
	return at;
}

static void begin(void)
{
	static const enum hotspot_number there[] = {
		HOTSPOT_NM_PCS,    HOTSPOT_NM_PCS_END,  HOTSPOT_NM_METADATA,
		HOTSPOT_NM_SCOPES, HOTSPOT_PC_OFFSET,   HOTSPOT_PC_SCOPE,
		HOTSPOT_SIZE_PC,   HOTSPOT_CONST_FLAGS, HOTSPOT_HAS_LINES};
	const uint32_t length = 4;
	const uint8_t utf8 = 1;
	const uint16_t file = 3;

	memset(&f, 0, sizeof(f));
	f.m = (struct runtime_memory){.ctx = &f, .read = fake_read};
	f.next = FAKE_BASE + 0x1000;
	packing = (struct hotspot_packing){.proved = true};
	code = (struct hotspotcode){.m = &f.m, .packing = &packing};
	code.n[HOTSPOT_METHOD_CONST] = 8;
	code.n[HOTSPOT_CONST_POOL] = 8;
	code.n[HOTSPOT_CONST_CODE_SIZE] = 40;
	code.n[HOTSPOT_CONST_NAME] = 42;
	code.n[HOTSPOT_CONST_FLAGS] = 36;
	code.n[HOTSPOT_SIZE_CONST] = 56;
	code.n[HOTSPOT_POOL_HOLDER] = 24;
	code.n[HOTSPOT_POOL_TAGS] = 8;
	code.n[HOTSPOT_POOL_LENGTH] = 52;
	code.n[HOTSPOT_POOL_SOURCE] = 56;
	code.has[HOTSPOT_POOL_SOURCE] = true;
	code.n[HOTSPOT_SIZE_POOL] = 72;
	code.n[HOTSPOT_CLASS_NAME] = 24;
	code.n[HOTSPOT_SYMBOL_BODY] = 6;
	code.n[HOTSPOT_BYTES_DATA] = 4;
	code.n[HOTSPOT_HAS_LINES] = 1;
	for (size_t i = 0; i < ARRAY_SIZE(there); i++)
		code.has[there[i]] = true;
	pool = fake_room(&f, 128);
	tags = fake_room(&f, 16);
	class = fake_room(&f, 64);
	fake_word(&f, pool + 8, tags);
	fake_word(&f, pool + 24, class);
	fake_put(&f, pool + 52, &length, 4);
	fake_put(&f, pool + 56, &file, 2);
	for (int i = 1; i < 4; i++)
		fake_put(&f, tags + 4 + i, &utf8, 1);
	fake_word(&f, pool + 72 + 8, symbol("open"));
	fake_word(&f, pool + 72 + 24, symbol("Shop.java"));
	fake_word(&f, class + 24, symbol("net/example/Shop$$Lambda+0x00007f01"));
}

/* 20 bytes of code from line 10 on, one line every 4 bytes. */
static uint64_t method(void)
{
	uint64_t fixed = fake_room(&f, 4096), at = fake_room(&f, 16);
	const uint16_t name = 1, size = 20, flags = 1;
	uint8_t lines[16] = {0 << 3 | 7, 0 << 3 | 3};
	size_t n = 2;

	while (n < 7)
		lines[n++] = 4 << 3 | 1;
	fake_word(&f, at + 8, fixed);
	fake_word(&f, fixed + 8, pool);
	fake_put(&f, fixed + 40, &size, 2);
	fake_put(&f, fixed + 42, &name, 2);
	fake_put(&f, fixed + 36, &flags, 2);
	fake_put(&f, fixed + 56 + 20, lines, sizeof(lines));
	return at;
}

TEST(a_method_says_class_name_file_and_line)
{
	struct script_place p = {0};
	uint64_t at, fixed;

	begin();
	at = method();
	assert_true(hotspotcode_method(&code, at, 9, &p));
	assert_string_equal(p.function, "net.example.Shop$$Lambda/0x00007f01.open");
	assert_string_equal(p.file, "Shop.java");
	assert_int_equal(p.line, 12);
	script_place_release(&p);
	assert_true(hotspotcode_method(&code, at, 20, &p)); /* no place in its code */
	assert_int_equal(p.line, 0);
	script_place_release(&p);
	memcpy(&fixed, f.bytes + (at + 8 - FAKE_BASE), 8);
	assert_int_equal(hotspotcode_bci(&code, at, fixed + 56 + 9), 9);
	assert_int_equal(hotspotcode_bci(&code, at, fixed + 56 + 20), -1);
	assert_int_equal(hotspotcode_bci(&code, at, 0), -1);
}

TEST(what_is_no_method_has_no_name)
{
	const uint8_t class_tag = 7;
	const uint16_t no_name = 9;
	struct script_place p = {0};
	uint64_t at, fixed;

	begin();
	at = method();
	assert_false(hotspotcode_method(&code, 0, 0, &p));
	assert_false(hotspotcode_method(&code, at + 4, 0, &p));
	assert_false(hotspotcode_method(&code, FAKE_BASE + FAKE_SIZE, 0, &p));
	fake_put(&f, tags + 4 + 1, &class_tag, 1); /* the name is no text */
	assert_false(hotspotcode_method(&code, at, 0, &p));
	begin();
	at = method();
	memcpy(&fixed, f.bytes + (at + 8 - FAKE_BASE), 8);
	fake_put(&f, fixed + 42, &no_name, 2); /* outside of the pool */
	assert_false(hotspotcode_method(&code, at, 0, &p));
}

/* ---- compiled code, as JDK 17 has it ---- */

static struct hotspot_blob compiled(uint64_t method, uint64_t inlined)
{
	static const int32_t pcs[2][4] = {{16, 1, 0, 0}, {40, 4, 0, 0}};
	struct hotspot_blob b = {
		.at = fake_room(&f, 512), .size = 512, .frame = 32, .compiled = true};
	const uint32_t offsets[3] = {256, 288, 128}; /* pcs, their end, metadata */
	const uint8_t scopes[16] = {0, 0, 1, 6, 1, 2, 10, 4, 1, 2, 6};

	b.code = b.at + 400;
	code.n[HOTSPOT_NM_METHOD] = 0;
	code.n[HOTSPOT_NM_PCS] = 8;
	code.n[HOTSPOT_NM_PCS_END] = 12;
	code.n[HOTSPOT_NM_METADATA] = 16;
	code.n[HOTSPOT_NM_SCOPES] = 24;
	code.n[HOTSPOT_PC_SCOPE] = 4;
	code.n[HOTSPOT_SIZE_PC] = 16;
	fake_word(&f, b.at, method);
	fake_put(&f, b.at + 8, offsets, sizeof(offsets));
	fake_word(&f, b.at + 24, b.at + 200);
	fake_word(&f, b.at + 128, method);
	fake_word(&f, b.at + 136, inlined);
	fake_put(&f, b.at + 200, scopes, sizeof(scopes));
	fake_put(&f, b.at + 256, pcs, sizeof(pcs));
	return b;
}

TEST(what_was_inlined_comes_first)
{
	struct script_stack s = {0};
	struct hotspot_blob b;
	uint64_t outer, inner;

	begin();
	outer = method();
	inner = method();
	b = compiled(outer, inner);
	assert_true(hotspotcode_scopes(&code, &b, b.code + 16, 3, &s));
	assert_int_equal(s.n, 1);
	assert_int_equal(s.frames[0].place.line, 11);
	script_stack_release(&s);
	assert_true(hotspotcode_scopes(&code, &b, b.code + 40, 3, &s));
	assert_int_equal(s.n, 2);
	assert_true(s.frames[0].place.line == 12 && s.frames[1].place.line == 11 &&
		    s.frames[1].at == 3);
	script_stack_release(&s);
	assert_false(hotspotcode_scopes(&code, &b, b.code + 41, 3, &s)); /* no call returns there */
	fake_word(&f, b.at, inner); /* the compiled method is not the one that its scopes name */
	assert_false(hotspotcode_scopes(&code, &b, b.code + 40, 3, &s));
	assert_int_equal(s.n, 0);
}

/* Each scope, and each method's table of lines, reads sensibly one way only. */
TEST(a_jvm_of_an_unknown_version_says_itself_how_it_packs_numbers)
{
	struct script_stack s = {0};
	struct hotspot_blob b;
	uint64_t outer, inner;

	begin();
	packing = (struct hotspot_packing){0};
	outer = method();
	inner = method();
	b = compiled(outer, inner);
	assert_false(hotspotcode_scopes(&code, &b, b.code + 40, 3, &s)); /* it reads both ways */
	for (int i = 0; i < 3; i++) {
		assert_false(packing.proved);
		assert_true(hotspotcode_scopes(&code, &b, b.code + 16, 3, &s));
		assert_int_equal(s.n, 1);
		assert_string_equal(s.frames[0].place.function,
				    "net.example.Shop$$Lambda/0x00007f01.open");
		assert_int_equal(s.frames[0].place.line, 0);
		script_stack_release(&s);
	}
	assert_true(packing.proved && packing.x == 0);
	assert_true(hotspotcode_scopes(&code, &b, b.code + 40, 3, &s));
	assert_int_equal(s.n, 2);
	assert_int_equal(s.frames[0].place.line, 12);
	script_stack_release(&s);
}

TEST(a_libjvm_that_has_not_begun_is_not_read)
{
	struct hotspot_layout l = {.format = HOTSPOT_FORMAT};

	begin();
	assert_null(hotspot_open(&f.m, &l, sizeof(l), 0));
	assert_null(hotspot_open(&f.m, &l, sizeof(l) - 1, 0));
	for (unsigned i = 0; i < HOTSPOT_N; i++)
		l.at[i] = FAKE_BASE;
	assert_null(hotspot_open(&f.m, &l, sizeof(l), 0));
	l.format++;
	assert_null(hotspot_open(&f.m, &l, sizeof(l), 0));
}
