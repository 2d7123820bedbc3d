/* SPDX-License-Identifier: Apache-2.0 */
/* Code objects and strings of all kinds, in memory laid out by hand, sound and damaged. */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/runtimes/fake.h"

static struct fake f;

static struct script_place place(uint64_t code, uint64_t at)
{
	struct script_place p = {0};

	assert_true(pycode_read(&f.m, &f.l, FAKE_BIAS, code, at, &p));
	return p;
}

static char *name_of(uint64_t text)
{
	struct script_place p = place(fake_code(&f, text, text, 1), 0);
	char *name = p.function;

	p.function = NULL;
	script_place_release(&p);
	return name;
}

static void check_name(uint64_t text, const char *want)
{
	char *name = name_of(text);

	if (want)
		assert_string_equal(name, want);
	else
		assert_null(name);
	free(name);
}

TEST(a_place_has_its_function_file_and_line)
{
	struct script_place p;
	uint64_t code;

	fake_begin(&f);
	code = fake_code(&f, fake_ascii(&f, "Box.held"), fake_ascii(&f, "/srv/app.py"), 40);
	p = place(code, code + 184 + 2 * 5);
	assert_string_equal(p.function, "Box.held");
	assert_string_equal(p.file, "/srv/app.py");
	assert_int_equal(p.line, 45);
	script_place_release(&p);
	p = place(code, code + 184 - 2); /* has not begun */
	assert_int_equal(p.line, 40);
	script_place_release(&p);
	p = place(code, code + 184 + 2 * 16); /* behind its end: another one's */
	assert_int_equal(p.line, 0);
	assert_string_equal(p.function, "Box.held");
	script_place_release(&p);
	p = place(code, 0);
	assert_int_equal(p.line, 0);
	script_place_release(&p);
}

TEST(texts_of_all_widths_become_utf8)
{
	static const uint16_t two[] = {0x20ac, 'x', 0xd800, 0xdcff};
	static const uint32_t four[] = {0x1f40d, 0x20ac, 0xe9, 0x110000};

	fake_begin(&f);
	check_name(fake_ascii(&f, "plain"), "plain");
	check_name(fake_text(&f, "caf\xe9", 4, 1, false), "caf\xc3\xa9");
	check_name(fake_text(&f, two, 4, 2, false),
		   "\xe2\x82\xacx\xef\xbf\xbd\xff"); /* a lone surrogate; an escaped byte */
	check_name(fake_text(&f, four, 4, 4, false),
		   "\xf0\x9f\x90\x8d\xe2\x82\xac\xc3\xa9\xef\xbf\xbd");
	check_name(fake_text(&f, "a\0b", 3, 1, true), "a\xef\xbf\xbd"
						      "b");
}

TEST(a_long_text_is_cut)
{
	char long_name[3000], *name;

	fake_begin(&f);
	memset(long_name, 'n', sizeof(long_name));
	name = name_of(fake_text(&f, long_name, sizeof(long_name), 1, true));
	assert_int_equal(strlen(name), PYCODE_TEXT_MAX + 3);
	assert_string_equal(name + PYCODE_TEXT_MAX, "...");
	free(name);
}

TEST(what_is_no_text_names_nothing)
{
	uint64_t good, bad;
	uint32_t states[] = {0, 3u << 2 | 1u << 5, 4u << 2 | 3u << 5, 1u << 2 | 1u << 6,
			     UINT32_MAX};

	fake_begin(&f);
	good = fake_ascii(&f, "name");
	check_name(good, "name");
	check_name(0, NULL);
	check_name(FAKE_BASE - 64, NULL);
	check_name(good + 1, NULL);
	check_name(fake_bytes(&f, "name", 4), NULL);
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		bad = fake_ascii(&f, "name");
		fake_put(&f, bad + f.l.text_state, &states[i], 4);
		check_name(bad, NULL);
	}
	bad = fake_ascii(&f, "name");
	fake_word(&f, bad + f.l.text_length, UINT64_MAX);
	check_name(bad, NULL);
	fake_word(&f, bad + f.l.text_length, 0);
	check_name(bad, NULL);
}

TEST(what_is_no_code_object_is_refused)
{
	struct script_place p = {0};
	uint64_t code;

	fake_begin(&f);
	code = fake_code(&f, fake_ascii(&f, "a"), fake_ascii(&f, "b"), 1);
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS, 0, 0, &p));
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS, code + 8, 0, &p));
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS + 16, code, 0, &p));
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS, fake_ascii(&f, "a"), 0, &p));
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS, FAKE_BASE + FAKE_SIZE - 8, 0, &p));
	f.l.code_type = 0; /* what is not known proves nothing */
	assert_false(pycode_read(&f.m, &f.l, FAKE_BIAS, code, 0, &p));
	assert_null(p.function);
}

TEST(a_line_table_that_cannot_be_read_says_no_line)
{
	struct script_place p;
	uint64_t code, table;

	fake_begin(&f);
	code = fake_code(&f, fake_ascii(&f, "a"), fake_ascii(&f, "b"), 1);
	table = fake_bytes(&f, "x", 1);
	fake_word(&f, code + f.l.code_lines, table);
	fake_word(&f, table + f.l.bytes_length, PYCODE_TABLE_MAX + 1);
	p = place(code, code + 184);
	assert_int_equal(p.line, 0);
	assert_string_equal(p.function, "a");
	script_place_release(&p);
	fake_word(&f, table + f.l.bytes_length, FAKE_SIZE);
	p = place(code, code + 184);
	assert_int_equal(p.line, 0);
	script_place_release(&p);
	fake_word(&f, code + f.l.code_lines, fake_ascii(&f, "text"));
	p = place(code, code + 184);
	assert_int_equal(p.line, 0);
	script_place_release(&p);
}

TEST(names_of_2_7_are_bytes)
{
	struct script_place p;

	fake_begin(&f);
	f.l.lines = PYTHON_LINES_27;
	f.l.shape = PYTHON_OBJECTS;
	f.l.at_scale = 1;
	f.l.code_qualname = 0;
	f.l.bytes_data = 36;
	p = place(fake_code(&f, fake_bytes(&f, "f\xc3\xa9", 3), fake_bytes(&f, "/a\xff", 3), 9),
		  UINT64_MAX);
	assert_string_equal(p.function, "f\xc3\xa9");
	assert_string_equal(p.file, "/a\xff");
	assert_int_equal(p.line, 9);
	script_place_release(&p);
	check_name(fake_ascii(&f, "text"), NULL);
}
