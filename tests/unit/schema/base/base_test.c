/* SPDX-License-Identifier: Apache-2.0 */
/* base: strings, tables, clocks and cursors do what their headers promise. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/cursor.h"
#include "schema/base/err.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"

TEST(an_error_keeps_what_fix_and_exit_code)
{
	struct err e = {0};

	assert_int_equal(err_set(&e, -ENOENT, EXIT_STORE, "cannot open %s", "/x"), -ENOENT);
	err_fix(&e, "mkdir %s", "/x");
	assert_string_equal(e.what, "cannot open /x");
	assert_string_equal(e.fix, "mkdir /x");
	assert_int_equal(e.exit, EXIT_STORE);
	assert_int_equal(err_set(NULL, -EIO, EXIT_RUNTIME, "nobody listens"), -EIO);
}

TEST(a_strbuf_grows_and_is_always_terminated)
{
	struct strbuf s = STRBUF_INIT;
	char *took;

	assert_string_equal(strbuf_str(&s), "");
	for (int i = 0; i < 1000; i++)
		strbuf_addf(&s, "%d,", i);
	assert_int_equal(strlen(s.buf), s.len);
	took = strbuf_take(&s);
	assert_memory_equal(took, "0,1,2,", 6);
	assert_null(s.buf);
	free(took);
	took = strbuf_take(&s);
	assert_string_equal(took, "");
	free(took);
}

TEST(numbers_are_added_as_printf_writes_them)
{
	static const uint64_t all[] = {
		0, 9, 10, 4294967295, 4294967296, 9999999999999999999ull, UINT64_MAX};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cleanup_strbuf struct strbuf s = STRBUF_INIT;
		char same[32];

		strbuf_addu(&s, all[i]);
		snprintf(same, sizeof(same), "%" PRIu64, all[i]);
		assert_string_equal(strbuf_str(&s), same);
	}
}

TEST(hostile_bytes_become_valid_utf8)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain", "plain"},
		{"\xf0\x9f\x94\xa5", "\xf0\x9f\x94\xa5"}, /* a flame */
		{"a\xff"
		 "b",
		 "a\xef\xbf\xbd"
		 "b"},                                                    /* never valid */
		{"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong '/' */
		{"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate */
		{"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* cut short */
		{"\x1b[31m\n", "\\x1b[31m\\x0a"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf s = STRBUF_INIT;

		strbuf_addutf8(&s, cases[i].in, strlen(cases[i].in));
		assert_string_equal(strbuf_str(&s), cases[i].out);
		strbuf_release(&s);
	}
}

TEST(what_a_terminal_would_obey_is_shown)
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{"plain \xc3\xa9 \xf0\x9f\x94\xa5 \\u202e",
		 "plain \xc3\xa9 \xf0\x9f\x94\xa5 \\u202e"},
		{"\x1b[31m\xff", "\\x1b[31m\xef\xbf\xbd"},
		{"\xc2\x80\xc2\x9b"
		 "31m\xc2\x9f\xc2\xa0",
		 "\\u0080\\u009b"
		 "31m\\u009f\xc2\xa0"},
		{"\xe2\x80\x8d\xe2\x80\x8e\xe2\x80\x8f\xe2\x80\x90",
		 "\xe2\x80\x8d\\u200e\\u200f\xe2\x80\x90"}, /* a joiner, a hyphen */
		{"\xe2\x80\xa7\xe2\x80\xa8\xe2\x80\xaa\xe2\x80\xae\xe2\x80\xaf",
		 "\xe2\x80\xa7\\u2028\\u202a\\u202e\xe2\x80\xaf"},
		{"\xe2\x81\x9f\xe2\x81\xa0\xe2\x81\xa6\xe2\x81\xa9\xe2\x81\xaf\xe2\x81\xb0",
		 "\xe2\x81\x9f\\u2060\\u2066\\u2069\\u206f\xe2\x81\xb0"},
		/* "hi" in tags, as a flag of a region has them; a space without a width */
		{"\xf3\xa0\x81\xa8\xf3\xa0\x81\xa9 a\xe2\x80\x8b"
		 "b\xef\xbb\xbf",
		 "\\U000e0068\\U000e0069 a\\u200b"
		 "b\\ufeff"},
		{"\xe2\x98\x80\xef\xb8\x8f\xef\xb8\x80\xf3\xa0\x84\x80",
		 "\xe2\x98\x80\xef\xb8\x8f\\ufe00\\U000e0100"},
		{"\xd8\x9c\xd7\x90",
		 "\\u061c\xd7\x90"}, /* an Arabic mark; a Hebrew letter is a letter */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf s = STRBUF_INIT, again = STRBUF_INIT;

		strbuf_addshown(&s, cases[i].in, strlen(cases[i].in));
		assert_string_equal(strbuf_str(&s), cases[i].out);
		strbuf_addshown(&again, s.buf, s.len);
		assert_string_equal(strbuf_str(&again), cases[i].out);
		strbuf_release(&s);
		strbuf_release(&again);
	}
}

TEST(an_idmap_agrees_with_a_plain_array)
{
	enum { N = 4096 };
	static uint64_t have[N];
	struct idmap m = {0};
	uint32_t seed = 1;

	for (int i = 0; i < 200000; i++) {
		uint64_t key, value;

		seed = seed * 1664525u + 1013904223u;
		key = (seed >> 8) % N;
		if (seed & 0x40) {
			assert_int_equal(idmap_del(&m, key), have[key] != 0);
			have[key] = 0;
		} else {
			have[key] = (uint64_t)i + 1;
			idmap_set(&m, key, have[key]);
		}
		assert_int_equal(idmap_get(&m, key, &value), have[key] != 0);
	}
	for (uint64_t k = 0; k < N; k++) {
		uint64_t value = 0;

		idmap_get(&m, k, &value);
		assert_int_equal(value, have[k]);
	}
	idmap_release(&m);
}

TEST(an_idmap_finds_and_adds_in_one_step)
{
	struct idmap m = {0};
	bool fresh;

	idmap_reserve(&m, 1000);
	assert_true(m.cap * 5 >= 8 * 1000);
	for (uint64_t round = 0; round < 2; round++)
		for (uint64_t k = 0; k < 5000; k++) {
			uint64_t *v = idmap_ref(&m, k * k, &fresh);

			assert_int_equal(fresh, round == 0);
			assert_int_equal(*v, round ? k + 1 : 0);
			*v = k + 1;
		}
	assert_int_equal(m.n, 5000);
	idmap_release(&m);
}

TEST(a_cursor_never_reads_past_its_end)
{
	const uint8_t bytes[] = {1, 2, 3, 4, 'a', 'b', 0, 'c'};
	struct cursor c = cursor_init(bytes, sizeof(bytes));
	size_t len;

	assert_int_equal(cursor_u32(&c), 0x04030201);
	assert_string_equal(cursor_str(&c, &len), "ab");
	assert_int_equal(len, 2);
	assert_null(cursor_str(&c, &len)); /* no NUL before the end */
	assert_true(c.bad);
	assert_int_equal(cursor_u8(&c), 0);
	c = cursor_init(bytes, 3);
	assert_int_equal(cursor_u64(&c), 0);
	assert_true(c.bad);
	c = cursor_init(bytes, 3);
	cursor_seek(&c, 4);
	assert_true(c.bad);
}

TEST(the_boot_offset_turns_boot_time_into_utc)
{
	int64_t diff;

	diff = clock_boot_ns() + clock_boot_offset_ns() - clock_utc_ns();
	assert_true(diff < 5000000 && diff > -5000000);
}

TEST(hashes_of_stored_values_never_change)
{
	/* Files contain these values: a change here is a change of format. */
	assert_true(hash_bytes(HASH_SEED, "", 0) == hash_bytes(HASH_SEED, NULL, 0));
	assert_true(hash_str(HASH_SEED, "sonde") != hash_str(HASH_SEED, "sondf"));
	assert_true(hash_bytes(HASH_SEED, "\0", 1) != hash_bytes(HASH_SEED, "\0\0", 2));
}

TEST(a_wide_hash_changes_with_each_bit_and_with_the_length)
{
	uint8_t bytes[100] = {0};

	for (size_t len = 0; len < sizeof(bytes); len++) {
		const uint64_t h = hash_wide(HASH_SEED, bytes, len);

		assert_true(h != hash_wide(HASH_SEED, bytes, len + 1));
		assert_true(h != hash_wide(HASH_SEED + 1, bytes, len));
		for (size_t bit = 0; bit < 8 * len; bit++) {
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
			assert_true(h != hash_wide(HASH_SEED, bytes, len));
			bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
		}
	}
}

/* The memory is all there, zeroed where the header says so, also after it moved. */
TEST(memory_is_the_same_in_huge_pages)
{
	static const size_t sizes[] = {1, 4095, 100000, 2097152, 2097153, 5000000, 40000000};
	const size_t n = ARRAY_SIZE(sizes);
	unsigned char *p[7];

	mem_use_huge_pages();
	for (int round = 0; round < 3; round++) { /* freed memory is used again */
		for (size_t i = 0; i < n; i++) {
			p[i] = mem_array(sizes[i], 1);
			assert_true(!p[i][0] && !memcmp(p[i], p[i] + 1, sizes[i] - 1));
			memset(p[i], (int)i + 1, sizes[i]);
		}
		for (size_t i = 0; i < n; i++) {
			p[i] = mem_realloc(p[i], 2 * sizes[i]);
			memset(p[i] + sizes[i], (int)i + 1, sizes[i]);
		}
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(p[i][0], i + 1);
			assert_memory_equal(p[i], p[i] + 1, 2 * sizes[i] - 1);
			free(p[i]);
		}
	}
}
