/* SPDX-License-Identifier: Apache-2.0 */
/* The small parsers of sonde-index: notes, debuglink, xz, pclntab, names. */
#include "schema/base/array.h"
#include "tests/unit/loaders/index/testing.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>

#include "loaders/index/elf/debuglink.h"
#include "loaders/index/elf/demangle.h"
#include "loaders/index/elf/minidebug.h"
#include "loaders/index/elf/note.h"
#include "loaders/index/go/pclntab.h"
#include "schema/base/strbuf.h"

/* ---- notes ---- */

static void add_note(struct strbuf *b, const char *name, uint32_t type, const void *desc,
		     uint32_t len, size_t align)
{
	const uint32_t head[3] = {(uint32_t)strlen(name) + 1, len, type};

	strbuf_add(b, head, sizeof(head));
	strbuf_add(b, name, head[0]);
	while (b->len % align)
		strbuf_addch(b, 0);
	strbuf_add(b, desc, len);
	while (b->len % align)
		strbuf_addch(b, 0);
}

TEST(the_build_id_is_found_behind_other_notes)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct note_facts f = {0};

	strbuf_add(&b, "\4\0\0\0\4\0\0\0\4\0\0\0Go\0\0abcd", 20); /* as Go 1.26 writes it */
	add_note(&b, "GNU", NT_GNU_ABI_TAG, "1234567890123456", 16, 4);
	add_note(&b, "GNU", NT_GNU_BUILD_ID, "0123456789", 10, 4);
	add_note(&b, "GNU", NT_GNU_BUILD_ID, "another", 7, 4);
	note_scan(b.buf, b.len, 4, &f);
	assert_true(f.go);
	assert_int_equal(f.build_id_len, 10);
	assert_memory_equal(f.build_id, "0123456789", 10);
}

TEST(a_note_segment_aligned_to_eight_is_read_by_eights)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct note_facts f = {0};

	add_note(&b, "GNU", NT_GNU_PROPERTY_TYPE_0, "12345678901", 11, 8);
	add_note(&b, "GNU", NT_GNU_BUILD_ID, "xyz", 3, 8);
	note_scan(b.buf, b.len, 8, &f);
	assert_int_equal(f.build_id_len, 3);
}

TEST(a_note_that_does_not_fit_ends_the_search)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct note_facts f = {0};
	const uint32_t lying[3] = {4, 0xfffffff0u, NT_GNU_BUILD_ID};

	strbuf_add(&b, lying, sizeof(lying));
	strbuf_add(&b, "GNU", 4);
	note_scan(b.buf, b.len, 4, &f);
	assert_int_equal(f.build_id_len, 0);
	for (size_t len = 0; len < b.len; len++)
		note_scan(b.buf, len, 4, &f);
	note_scan(NULL, 0, 4, &f);
	assert_int_equal(f.build_id_len, 0);
}

TEST(a_build_id_longer_than_the_room_is_none)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct note_facts f = {0};
	char huge[BUILD_ID_MAX + 1] = {0};

	add_note(&b, "GNU", NT_GNU_BUILD_ID, huge, sizeof(huge), 4);
	note_scan(b.buf, b.len, 4, &f);
	assert_int_equal(f.build_id_len, 0);
}

/* ---- debuglink ---- */

TEST(a_debuglink_gives_name_and_crc)
{
	static const char raw[] = "ab.debug\0\0\0\0\x78\x56\x34\x12";
	struct debuglink d;

	assert_true(debuglink_parse(raw, 16, &d));
	assert_string_equal(d.name, "ab.debug");
	assert_int_equal(d.crc, 0x12345678);
	assert_false(debuglink_parse(raw, 15, &d));
	assert_false(debuglink_parse(raw, 8, &d));
	assert_false(debuglink_parse(raw, 0, &d));
}

TEST(a_debuglink_with_a_path_is_refused)
{
	char longer[400];
	struct debuglink d;

	assert_false(debuglink_parse("../a\0\0\0\0\1\2\3\4", 12, &d));
	assert_false(debuglink_parse("/etc/aaaaaa\0\1\2\3\4", 16, &d));
	assert_false(debuglink_parse("..\0\0\1\2\3\4", 8, &d));
	assert_false(debuglink_parse("\0\0\0\0\1\2\3\4", 8, &d));
	memset(longer, 'a', sizeof(longer));
	longer[sizeof(longer) - 8] = 0;
	assert_false(debuglink_parse(longer, sizeof(longer), &d));
}

/* ---- xz ---- */

static void pack(const void *data, size_t len, uint8_t **out, size_t *out_len)
{
	const size_t bound = lzma_stream_buffer_bound(len);

	*out = malloc(bound);
	*out_len = 0;
	assert_int_equal(
		lzma_easy_buffer_encode(1, LZMA_CHECK_CRC32, NULL, data, len, *out, out_len, bound),
		LZMA_OK);
}

TEST(packed_debug_data_unpacks_to_what_it_was)
{
	size_t len = 1000003, packed_len, out_len;
	char *data = malloc(len);
	uint8_t *packed;
	void *out;

	for (size_t i = 0; i < len; i++)
		data[i] = (char)(i * i / 7);
	pack(data, len, &packed, &packed_len);
	assert_int_equal(minidebug_unpack(packed, packed_len, &out, &out_len), 0);
	assert_int_equal(out_len, len);
	assert_memory_equal(out, data, len);
	free(out);
	assert_int_equal(minidebug_unpack(packed, packed_len - 9, &out, &out_len), -EBADMSG);
	packed[packed_len / 2] ^= 0xff;
	assert_int_equal(minidebug_unpack(packed, packed_len, &out, &out_len), -EBADMSG);
	assert_int_equal(minidebug_unpack("", 0, &out, &out_len), -EBADMSG);
	free(packed);
	free(data);
}

TEST(a_compressed_bomb_is_refused_at_its_limit)
{
	size_t len = MINIDEBUG_MAX + 1, packed_len, out_len;
	uint8_t *data = calloc(1, len), *packed;
	void *out;

	pack(data, len, &packed, &packed_len);
	assert_true(packed_len < len / 1000);
	assert_int_equal(minidebug_unpack(packed, packed_len, &out, &out_len), -EFBIG);
	free(packed);
	free(data);
}

/* ---- pclntab ---- */

static void add_word(struct strbuf *b, uint64_t v, size_t size)
{
	strbuf_add(b, &v, size);
}

static void put_word(struct strbuf *b, size_t at, uint64_t v, size_t size)
{
	memcpy(b->buf + at, &v, size);
}

/* A table of two functions, main.a [0x1000, 0x1040) and main.b [0x1040, 0x10a0), as `generation`
 * writes it. */
static void go_table(struct strbuf *b, unsigned generation, size_t word)
{
	static const uint32_t magics[] = {
		[2] = 0xfffffffb, [16] = 0xfffffffa, [18] = 0xfffffff0, [20] = 0xfffffff1};
	const size_t entry = generation >= 18 ? 4 : word;
	const uint64_t base = generation >= 18 ? 0x1000 : 0;
	const size_t words = generation == 2 ? 1 : generation == 16 ? 7 : 8;
	const size_t names_slot = 8 + (words - 5) * word;
	size_t names, funcs, tab;

	strbuf_reset(b);
	add_word(b, magics[generation], 4);
	add_word(b, 0, 2);
	add_word(b, 1, 1);
	add_word(b, word, 1);
	add_word(b, 2, word);
	for (size_t i = 1; i < words; i++)
		add_word(b, i == 2 && generation == 18 ? 0x1000 : 0, word);
	names = b->len;
	if (generation != 2) {
		strbuf_add(b, "main.a\0main.b", 14);
		put_word(b, names_slot, names, word);
		put_word(b, names_slot + 4 * word, b->len, word);
	}
	tab = generation == 2 ? 8 + word : b->len;
	funcs = generation == 2 ? 0 : tab;
	for (size_t i = 0; i < 5; i++)
		add_word(b, 0, entry);
	for (uint64_t i = 0; i < 2; i++) {
		put_word(b, tab + 2 * i * entry, 0x1000 + i * 0x40 - base, entry);
		put_word(b, tab + (2 * i + 1) * entry, b->len - funcs, entry);
		add_word(b, 0x1000 + i * 0x40 - base, entry);
		add_word(b, generation == 2 ? b->len + 4 + 24 - i * 0 : i * 7, 4);
		strbuf_add(b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
		if (generation == 2)
			strbuf_add(b, i ? "main.b" : "main.a", 7);
	}
	put_word(b, tab + 4 * entry, 0x10a0 - base, entry);
}

TEST(every_generation_gives_the_same_functions)
{
	static const unsigned generations[] = {2, 16, 18, 20};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	for (size_t g = 0; g < 4; g++)
		for (size_t word = 4; word <= 8; word += 4) {
			struct pclntab t;
			struct pclntab_func f;

			go_table(&b, generations[g], word);
			assert_int_equal(pclntab_parse(b.buf, b.len, &t), 0);
			assert_int_equal(t.generation, generations[g]);
			assert_int_equal(t.func_count, 2);
			assert_int_equal(t.text_start, generations[g] == 18 ? 0x1000 : 0);
			assert_true(pclntab_func(&t, 0x1000, 0, &f));
			assert_string_equal(f.name, "main.a");
			assert_true(f.start == 0x1000 && f.end == 0x1040);
			assert_true(pclntab_func(&t, 0x1000, 1, &f));
			assert_string_equal(f.name, "main.b");
			assert_true(f.start == 0x1040 && f.end == 0x10a0);
			assert_false(pclntab_func(&t, 0x1000, 2, &f));
		}
}

TEST(a_table_cut_anywhere_is_refused_or_stays_inside)
{
	static const unsigned generations[] = {2, 16, 18, 20};
	cleanup_strbuf struct strbuf b = STRBUF_INIT;

	for (size_t g = 0; g < 4; g++) {
		go_table(&b, generations[g], 8);
		for (size_t len = 0; len < b.len; len++) {
			/* an exact copy: a read beyond it is seen by the sanitizer */
			char *copy = malloc(len ? len : 1);
			struct pclntab_func f;
			struct pclntab t;

			memcpy(copy, b.buf, len);
			if (!pclntab_parse(copy, len, &t))
				for (uint32_t i = 0; i <= t.func_count; i++)
					pclntab_func(&t, 0, i, &f);
			free(copy);
		}
	}
}

TEST(offsets_that_lead_out_of_the_table_give_no_function)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT;
	struct pclntab_func f;
	struct pclntab t;
	uint32_t far = 0xfffffff0u;
	size_t tab;

	go_table(&b, 20, 8);
	assert_int_equal(pclntab_parse(b.buf, b.len, &t), 0);
	tab = t.functab;
	memcpy(b.buf + tab + 4, &far, 4); /* where _func is */
	assert_false(pclntab_func(&t, 0, 0, &f));
	assert_true(pclntab_func(&t, 0, 1, &f));
	assert_false(pclntab_func(&t, UINT64_MAX - 0x10, 1, &f));
	memcpy(b.buf + 8, &far, 4); /* how many there are */
	assert_int_equal(pclntab_parse(b.buf, b.len, &t), -EBADMSG);
}

TEST(the_magic_is_found_among_other_bytes)
{
	cleanup_strbuf struct strbuf b = STRBUF_INIT, table = STRBUF_INIT;
	struct pclntab t;
	size_t at;

	go_table(&table, 20, 8);
	for (int i = 0; i < 100; i++)
		strbuf_add(&b, "\xf1\xff\xff\xff\x00\x00\x01\x09\xff\xff\xff\xff", 12);
	strbuf_add(&b, table.buf, table.len);
	at = pclntab_scan(b.buf, b.len, 0);
	assert_int_equal(at, 1200);
	assert_int_equal(pclntab_parse(b.buf + at, b.len - at, &t), 0);
	assert_int_equal(pclntab_scan(b.buf, 1200, 0), 1200);
	assert_int_equal(pclntab_scan(b.buf, 3, 0), 3);
}

/* ---- names ---- */

TEST(names_of_three_manglings_become_readable)
{
	static const char *const pairs[][2] = {
		{"_ZN3foo3barEiPKc", "foo::bar(int, char const*)"},
		{"_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"},
		{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
		{"_RNvNtCs1234_7mycrate3foo3bar", "mycrate::foo::bar"},
	};
	cleanup_strbuf struct strbuf out = STRBUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		assert_true(demangle(pairs[i][0], &out));
		assert_string_equal(strbuf_str(&out), pairs[i][1]);
	}
	assert_false(demangle("main", &out));
	assert_false(demangle("", &out));
	assert_false(demangle("_Z", &out));
	assert_false(demangle("_ZN", &out));
	assert_false(demangle("_R", &out));
}

/* f(a<int, int>, a<a<int, int>, a<int, int> >, ...): each parameter prints twice the one before. */
static void exploding_name(struct strbuf *b, int depth)
{
	strbuf_reset(b);
	strbuf_addstr(b, "_Z1f1aIiiE");
	for (int i = 0; i < depth; i++) {
		const char c = (char)(i < 10 ? '0' + i : 'A' + i - 10);

		strbuf_addf(b, "S_IS%c_S%c_E", c, c);
	}
}

TEST(a_name_that_would_explode_stays_mangled)
{
	cleanup_strbuf struct strbuf in = STRBUF_INIT, out = STRBUF_INIT;

	exploding_name(&in, 2);
	assert_true(demangle(strbuf_str(&in), &out));
	assert_non_null(strstr(strbuf_str(&out),
			       "a<a<a<int, int>, a<int, int> >, a<a<int, int>, a<int, int> > >"));
	exploding_name(&in, 36);
	assert_true(in.len < 500);
	assert_false(demangle(strbuf_str(&in), &out));
	strbuf_reset(&in);
	strbuf_addstr(&in, "_Z");
	for (int i = 0; i < DEMANGLE_INPUT_MAX; i++)
		strbuf_addch(&in, 'P');
	assert_false(demangle(strbuf_str(&in), &out));
}
