/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: breaks lines between words, and only where a width is given. */
#include <locale.h>

#include "tests/unit/test.h"
#include "tools/print/wrap.h"

static void assert_wrapped(const char *text, unsigned width, unsigned indent, const char *expect)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	wrap_add(&s, text, width, indent);
	assert_string_equal(strbuf_str(&s), expect);
}

TEST(lines_break_between_words)
{
	assert_wrapped("one two three four", 9, 2, "one two\n  three\n  four");
	assert_wrapped("one two", 7, 0, "one two");
	assert_wrapped("one  two   three", 80, 4, "one  two   three");
	assert_wrapped("", 10, 2, "");
}

TEST(without_a_width_nothing_is_broken)
{
	assert_wrapped("one two three four five six", 0, 2, "one two three four five six");
}

TEST(a_long_word_stands_alone)
{
	assert_wrapped("a abcdefghijklmnop b", 8, 1, "a\n abcdefghijklmnop\n b");
	assert_wrapped("abcdefghijklmnop", 8, 1, "abcdefghijklmnop");
}

TEST(colours_take_no_room)
{
	assert_wrapped("\033[1mone\033[0m two", 7, 0, "\033[1mone\033[0m two");
	assert_wrapped("an \033[1mend", 6, 0, "an \033[1mend");
	assert_wrapped("an end\033[", 80, 0, "an end\033[");
}

TEST(columns_are_counted_not_bytes)
{
	assert_wrapped("\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6", 6, 0,
		       "\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6");
}

static int set_locale(void **state)
{
	(void)state;
	return !setlocale(LC_CTYPE, "C.UTF-8");
}

const struct test_group test_group = {set_locale, NULL};
