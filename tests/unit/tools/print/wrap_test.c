/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: sentences are broken between words, and only where a width is given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <locale.h>

#include <cmocka.h>

#include "tools/print/wrap.h"

static void assert_wrapped(const char *text, unsigned width, unsigned indent, const char *expect)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	wrap_add(&s, text, width, indent);
	assert_string_equal(strbuf_str(&s), expect);
}

static void lines_break_between_words(void **state)
{
	(void)state;
	assert_wrapped("one two three four", 9, 2, "one two\n  three\n  four");
	assert_wrapped("one two", 7, 0, "one two");
	assert_wrapped("one  two   three", 80, 4, "one  two   three");
	assert_wrapped("", 10, 2, "");
}

static void without_a_width_nothing_is_broken(void **state)
{
	(void)state;
	assert_wrapped("one two three four five six", 0, 2, "one two three four five six");
}

static void a_long_word_stands_alone(void **state)
{
	(void)state;
	assert_wrapped("a abcdefghijklmnop b", 8, 1, "a\n abcdefghijklmnop\n b");
	assert_wrapped("abcdefghijklmnop", 8, 1, "abcdefghijklmnop");
}

static void colours_take_no_room(void **state)
{
	(void)state;
	assert_wrapped("\033[1mone\033[0m two", 7, 0, "\033[1mone\033[0m two");
	assert_wrapped("an \033[1mend", 6, 0, "an \033[1mend");
	assert_wrapped("an end\033[", 80, 0, "an end\033[");
}

static void columns_are_counted_not_bytes(void **state)
{
	(void)state;
	assert_wrapped("\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6", 6, 0,
		       "\xc3\xa4\xc3\xa4\xc3\xa4 \xc3\xb6\xc3\xb6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_break_between_words),
		cmocka_unit_test(without_a_width_nothing_is_broken),
		cmocka_unit_test(a_long_word_stands_alone),
		cmocka_unit_test(colours_take_no_room),
		cmocka_unit_test(columns_are_counted_not_bytes),
	};

	setlocale(LC_CTYPE, "C.UTF-8");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
