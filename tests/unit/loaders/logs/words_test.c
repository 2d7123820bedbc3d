/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of messages, and which are one. */
#include <string.h>

#include "loaders/logs/words.h"
#include "schema/base/array.h"
#include "schema/base/tables/alike.h"
#include "tests/unit/test.h"

TEST(words_stay_and_what_changes_becomes_a_star)
{
	static const char *const of[][2] = {
		{"2026/11/29 18:00:00 [error] 29#29: *1 open() \"/usr/share/x.html\" failed (2: No such file or directory)",
		 "open * failed * No such file or directory"},
		{"2026-11-29 18:00:00.123 UTC [71] ERROR:  duplicate key value violates unique constraint \"users_pkey\"",
		 "duplicate key value violates unique constraint *"},
		{"{\"level\":\"error\",\"msg\":\"cannot reach db-3 after 5 tries\",\"err\":\"connection refused\"}",
		 "cannot reach * after * tries connection refused"},
		{"time=\"2026-11-29T18:00:00Z\" level=error msg=\"cannot connect to 10.0.0.1:5432\" try=3",
		 "cannot connect to *"},
		{"user=alice id=812 path=/x", "user=* id=* path=*"},
		{"deadbeefcafe at 0x7f12 of 550e8400-e29b-41d4-a716-446655440000", "at * of *"},
		{"can't open 'the file' don't", "can't open * don't"},
		{"1:M 29 Nov 2026 18:00:00.123 # Can't save in background: fork",
		 "Can't save in background fork"},
		{"12 34 56", "*"},
		{"{\"a\":1,\"b\":{\"c\":2}}", "a b"},
	};
	struct words w;

	for (size_t i = 0; i < ARRAY_SIZE(of); i++) {
		words_of(of[i][0], strlen(of[i][0]), &w);
		assert_string_equal(w.text, of[i][1]);
		assert_int_equal(w.len, strlen(w.text));
	}
}

TEST(patterns_that_differ_in_a_word_are_alike)
{
	char general[64];

	assert_true(
		alike("user alice not found", "user bob not found", 1, general, sizeof(general)));
	assert_string_equal(general, "user * not found");
	assert_true(alike("user * not found", "user carol not found", 1, general, sizeof(general)));
	assert_string_equal(general, "user * not found");
	assert_false(alike("user alice not found", "user bob not found", 0, NULL, 0));
	assert_true(alike("user * not found", "user bob not found", 0, NULL, 0));
	assert_false(alike("disk full", "disk gone", 1, general, sizeof(general)));
	assert_false(alike("a b c d", "a b x y", 1, general, sizeof(general)));
	assert_false(alike("a b c", "a b c d", 1, general, sizeof(general)));
	assert_false(alike("* * *", "x y z", 1, NULL, 0));
	assert_false(alike("", "", 1, NULL, 0));
	assert_false(alike("user alice not found", "user bob not found", 1, general, 5));
}

TEST(a_long_message_has_bounded_words)
{
	char s[60000];
	struct words w;

	memset(s, 'a', sizeof(s));
	for (size_t i = 0; i < sizeof(s); i += 7)
		s[i] = ' ';
	words_of(s, sizeof(s), &w);
	assert_true(w.n <= WORDS_MOST && w.len <= WORDS_BYTES);
	for (size_t i = 0; i < sizeof(s); i += 2)
		s[i] = '\'';
	words_of(s, sizeof(s), &w);
	assert_true(w.n <= WORDS_MOST && w.len <= WORDS_BYTES);
}
