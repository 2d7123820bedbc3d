/* SPDX-License-Identifier: Apache-2.0 */
/* json, term and table: hostile text is printed as text, numbers are readable, columns are aligned.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <locale.h>
#include <stdio.h>

#include "tests/unit/test.h"
#include "tools/print/json.h"
#include "tools/print/table.h"
#include "tools/print/term.h"

TEST(any_bytes_become_a_json_string)
{
	json_t *s = json_text("a\"\\\n\t\x1b\x7f </script> \xff\xc0\xaf \xf0\x9f\x94\xa5");
	char *text = json_dumps(s, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	json_t *null = json_text(NULL);

	assert_string_equal(
		text,
		"\"a\\\"\\\\\\n\\t\\u001B\x7f </script> \\uFFFD\\uFFFD\\uFFFD \\uD83D\\uDD25\"");
	assert_true(json_is_null(null));
	free(text);
	json_decref(s);
}

TEST(the_envelope_has_its_five_parts)
{
	json_t *o = json_envelope("stacks", 1795183803250000000ll, 0), *rows = json_rows(o);

	assert_string_equal(json_string_value(json_object_get(o, "schema")), "sonde.stacks/1");
	assert_string_equal(json_string_value(json_object_get(o, "from")),
			    "2026-11-20T14:10:03.250Z");
	assert_int_equal(json_integer_value(json_object_get(o, "from_ns")), 1795183803250000000ll);
	assert_true(json_is_null(json_object_get(o, "to")));
	assert_true(json_is_array(rows));
	json_warn(o, "%d lost \x01", 3);
	assert_int_equal(json_array_size(json_object_get(o, "warnings")), 1);
	json_decref(o);
}

TEST(long_names_are_cut_in_the_middle_at_whole_characters)
{
	struct strbuf s = STRBUF_INIT;

	term_add_middle(&s, "com.example.long.Handler.run", 12);
	assert_string_equal(strbuf_str(&s), "com.e…er.run");
	assert_int_equal(term_columns(strbuf_str(&s)), 12);
	strbuf_reset(&s);
	term_add_middle(&s, "short", 12);
	assert_string_equal(strbuf_str(&s), "short");
	strbuf_reset(&s);
	term_add_middle(&s, "ööööööööööööööööö", 9);
	assert_string_equal(strbuf_str(&s), "öööö…öööö");
	strbuf_reset(&s);
	term_add_middle(&s, "a\x1b[31mb", 20);
	assert_string_equal(strbuf_str(&s), "a\\x1b[31mb");
	strbuf_release(&s);
}

static char *printed(const struct table *t, unsigned width)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);

	table_print(t, f, width);
	fclose(f);
	return text;
}

TEST(columns_are_aligned_and_cut_to_the_width)
{
	static const struct table_column columns[] = {
		{"N", TABLE_RIGHT}, {"NAME", TABLE_MIDDLE}, {"X", TABLE_LEFT}};
	struct table *t = table_new(columns, 3);
	char *text;

	term_set_color("never");
	table_cellf(t, "%d", 1);
	table_cell(t, "abcdefghijklmnopqrstuvwxyz");
	table_cell(t, "end");
	table_cell(t, "123");
	table_cell(t, "new\nline");
	table_cell(t, "é");
	text = printed(t, 0);
	assert_string_equal(text, "  N  NAME                        X\n"
				  "  1  abcdefghijklmnopqrstuvwxyz  end\n"
				  "123  new\\x0aline                 é\n");
	free(text);
	text = printed(t, 31);
	assert_string_equal(text, "  N  NAME                   X\n"
				  "  1  abcdefghij…qrstuvwxyz  end\n"
				  "123  new\\x0aline            é\n");
	free(text);
	text = printed(t, 20); /* no terminal: what is cut can still be read */
	assert_string_equal(text, "  N  NAME                  X\n"
				  "  1  abcdefghi…qrstuvwxyz  end\n"
				  "123  new\\x0aline           é\n");
	free(text);
	table_free(t);
}

TEST(columns_that_say_nothing_are_left_out)
{
	static const struct table_column columns[] = {
		{"N", TABLE_RIGHT}, {"DEAD", TABLE_LEFT}, {"SAME", TABLE_LEFT}, {"X", TABLE_LEFT}};
	struct table *t = table_new(columns, 4);
	char *text;

	table_omit_empty(t);
	assert_null(table_omit_equal(t, "SAME"));
	for (int i = 1; i <= 2; i++) {
		table_cellf(t, "%d", i);
		table_cell(t, "-");
		table_cell(t, "db");
		table_cellf(t, "x%d", i);
		if (i == 1)
			assert_null(table_omit_equal(
				t, "SAME")); /* of one row everything is the same */
	}
	table_omit_empty(t);
	assert_string_equal(table_omit_equal(t, "SAME"), "db");
	assert_null(table_omit_equal(t, "SAME")); /* no more */
	assert_null(table_omit_equal(t, "DEAD"));
	assert_null(table_omit_equal(t, "X"));
	text = printed(t, 0);
	assert_string_equal(text, "N  X\n1  x1\n2  x2\n");
	free(text);
	table_free(t);
}

TEST(colours_are_a_choice)
{
	assert_int_equal(term_set_color("sometimes"), -EINVAL);
	assert_int_equal(term_set_color("always"), 0);
	assert_string_equal(term_on(stdout, TERM_RED), "\033[31m");
	assert_int_equal(term_set_color("never"), 0);
	assert_string_equal(term_on(stdout, TERM_RED), "");
	assert_string_equal(term_off(stdout), "");
}

static int set_locale(void **state)
{
	(void)state;
	return !setlocale(LC_CTYPE, "C.UTF-8");
}

const struct test_group test_group = {set_locale, NULL};
