/* SPDX-License-Identifier: Apache-2.0 */
/* dict: equal contents are one entry, whatever bytes they hold, and what is learnt later is kept.
 */
#include <stdio.h>
#include <string.h>

#include <sqlite3.h>

#include "schema/base/array.h"
#include "schema/store/model/argshare.h"
#include "schema/store/write/dict.h"
#include "tests/unit/test.h"

TEST(equal_contents_give_equal_ids)
{
	struct dict *d = dict_new();
	char name[32];

	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 1; i <= 5000; i++) {
			struct dict_function f = {.image = i % 7, .line = i % 3, .name = name};

			snprintf(name, sizeof(name), "function_%u", i);
			assert_int_equal(dict_intern(d, DICT_FUNCTION, &f), i);
		}
	}
	snprintf(name, sizeof(name), "function_1");
	assert_int_equal(
		dict_intern(d, DICT_FUNCTION, &(struct dict_function){.image = 2, .name = name}),
		5001);
	assert_string_equal(dict_at(d, DICT_FUNCTION, dict_function, 77)->name, "function_77");
	dict_free(d);
}

TEST(entries_never_move)
{
	struct dict *d = dict_new();
	struct dict_node key = {.parent = 0, .frame = 1};
	struct dict_node *first;

	dict_intern(d, DICT_NODE, &key);
	first = dict_at(d, DICT_NODE, dict_node, 1);
	for (uint32_t i = 1; i < 100000; i++)
		dict_intern(d, DICT_NODE, &(struct dict_node){.parent = i, .frame = i % 100});
	assert_ptr_equal(first, dict_at(d, DICT_NODE, dict_node, 1));
	assert_int_equal(first->frame, 1);
	assert_int_equal(dict_at(d, DICT_NODE, dict_node, 99999)->parent, 99998);
	dict_free(d);
}

TEST(hostile_strings_are_cleaned_before_they_are_compared)
{
	struct dict *d = dict_new();
	struct dict_text t = {.s = dict_clean(d, 0, "bad \xff name\n")};
	uint32_t a = dict_intern(d, DICT_TEXT, &t);

	t.s = dict_clean(d, 0, "bad \xff name\n");
	assert_int_equal(dict_intern(d, DICT_TEXT, &t), a);
	assert_string_equal(dict_at(d, DICT_TEXT, dict_text, a)->s, "bad \xef\xbf\xbd name\\x0a");
	assert_string_equal(dict_clean(d, 0, NULL), "");
	dict_free(d);
}

TEST(a_string_without_end_is_cut)
{
	static char huge[100000];
	struct dict *d = dict_new();

	memset(huge, 'x', sizeof(huge) - 1);
	assert_int_equal(strlen(dict_clean(d, 0, huge)), 16384);
	dict_free(d);
}

TEST(a_process_learns_and_never_forgets)
{
	struct dict *d = dict_new();
	struct dict_process p = {
		.pid = 7, .start_ticks = 1, .exec_id = 1, .comm = "early", .args = ""};
	uint32_t id = dict_intern(d, DICT_PROCESS, &p);

	p.comm = "";
	p.args = "early --all";
	assert_int_equal(dict_intern(d, DICT_PROCESS, &p), id);
	dict_process_learn(d, id, &p);
	dict_process_learn(d, id, &p);
	assert_string_equal(dict_at(d, DICT_PROCESS, dict_process, id)->comm, "early");
	assert_string_equal(dict_at(d, DICT_PROCESS, dict_process, id)->args, "early --all");
	assert_int_equal(d->dirty_processes.n, 1);
	dict_free(d);
}

TEST(a_frame_gains_a_name_once)
{
	struct dict *d = dict_new();
	struct dict_frame f = {.image = 1, .offset = 0x1a2b};
	uint32_t id = dict_intern(d, DICT_FRAME, &f);

	dict_frame_name(d, id, 5, 10, 2);
	dict_frame_name(d, id, 6, 11, 0);
	assert_int_equal(dict_at(d, DICT_FRAME, dict_frame, id)->named_function, 5);
	assert_int_equal(d->dirty_frames.n, 1);
	assert_int_equal(dict_intern(d, DICT_FRAME, &f),
			 id); /* the same place is still the same frame */
	dict_free(d);
}

TEST(a_frame_with_a_name_gains_a_line_once)
{
	struct dict *d = dict_new();
	struct dict_frame f = {.image = 1, .offset = 0x1a2b, .function = 3};
	struct dict_frame *at;
	uint32_t id = dict_intern(d, DICT_FRAME, &f);

	at = dict_at(d, DICT_FRAME, dict_frame, id);
	dict_frame_name(d, id, 4, 0, 0); /* tells nothing new */
	assert_int_equal(at->named_function, 0);
	dict_frame_name(d, id, 5, 10, 2);
	dict_frame_name(d, id, 6, 11, 0);
	assert_int_equal(at->named_function, 5);
	assert_int_equal(at->named_line, 10);
	assert_int_equal(at->named_outer, 2);
	assert_int_equal(d->dirty_frames.n, 1);
	dict_free(d);
}

TEST(command_lines_share_their_ends_at_whole_characters)
{
	static const struct {
		const char *base, *args;
		size_t keep, end;
		const char *middle;
	} cases[] = {
		{"cc -c a.c -o a.o", "cc -c a.c -o a.o", 16, 0, ""},
		{"cc -c a.c -o x", "cc -c bb.c -o x", 6, 7, "bb"},
		{"aaaa", "aa", 2, 0, ""},
		{"aa", "aaaa", 2, 0, "aa"},
		{"", "x", 0, 0, "x"},
		{"x", "", 0, 0, ""},
		{"\xc3\xa4 z", "\xc3\xb6 z", 0, 2,
		 "\xc3\xb6"}, /* same first byte, another character */
		{"a\xc3\xa4", "b\xe2\x82\xa4", 0, 0, "b\xe2\x82\xa4"}, /* same last byte */
		{"\xf0\x9f\x94\xa5 one", "\xf0\x9f\x94\xa5 two", 2, 0, "two"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct argshare s = argshare_of(cases[i].base, cases[i].args);

		assert_int_equal(s.keep, cases[i].keep);
		assert_int_equal(s.end, cases[i].end);
		assert_int_equal(s.middle_bytes, strlen(cases[i].middle));
		assert_memory_equal(s.middle, cases[i].middle, s.middle_bytes);
	}
}

TEST(the_stem_of_a_command_line_is_what_its_files_are_named_by)
{
	static const struct {
		const char *args, *stem, *form;
	} cases[] = {
		{"cc1 a/flame.c -MD b/flame.d -o /tmp/x.s", "flame",
		 "cc1 a/\x1f.c -MD b/\x1f.d -o /tmp/x.s"},
		{"cc -c abc.c -o abc.o", "abc", "cc -c \x1f.c -o \x1f.o"},
		{"cc -c c.c -o c.o", "c",
		 "cc -\x1f \x1f.\x1f -o \x1f.o"}, /* any whole name: it is put back as any */
		{"cc fl.c xfl.o fl.o fl_", "fl", "cc \x1f.c xfl.o \x1f.o fl_"},
		{"x.c x.d longer.c longer.d", "longer", "x.c x.d \x1f.c \x1f.d"},
		{"a.b/c a.b/d", NULL, NULL}, /* folders */
		{"once.c", NULL, NULL},
		{"v1.2.3 v1.2.3", NULL, NULL},
		{"", NULL, NULL},
		{"..", NULL, NULL},
		{".c .c", NULL, NULL},
		{"a.toolong a.toolong", NULL, NULL},
		{"a.c b.c d.c e.c f.c g.c h.c i.c j.c j.d", NULL,
		 NULL}, /* this many names are distinguished, and no more */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf form cleanup_strbuf = STRBUF_INIT;
		const char *stem = NULL;
		size_t len = argshare_stem(cases[i].args, &stem);

		assert_int_equal(len, cases[i].stem ? strlen(cases[i].stem) : 0);
		if (!len)
			continue;
		assert_memory_equal(stem, cases[i].stem, len);
		argshare_form(cases[i].args, stem, len, &form);
		assert_string_equal(strbuf_str(&form), cases[i].form);
	}
}

static const char *const WORDS[] = {
	"cc ",      "-c ",           "a",    "file.c ", "file.o ",          "file",
	"\xc3\xa4", "\xe2\x82\xac ", "x.c ", "-o ",     "\xf0\x9f\x94\xa5", "/"};

static void make_line(char *line, size_t size)
{
	static uint64_t state = 88172645463325252ull;
	size_t len = 0;

	*line = '\0';
	for (int left = 12; left; left--) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		len += (size_t)snprintf(line + len, size - len, "%s",
					WORDS[(state >> 33) % ARRAY_SIZE(WORDS)]);
		left -= left > 1 && state % 5 == 0;
	}
}

/* Its form; how long its stem is. */
static size_t form_of(const char *line, const char **stem, struct strbuf *form)
{
	size_t len = argshare_stem(line, stem);

	if (len)
		argshare_form(line, *stem, len, form);
	else
		strbuf_addstr(form, line);
	return len;
}

/* Whatever the base, the parts into which the writer splits a line (commitprocess.c) join to the
 * same line. */
TEST(a_command_line_is_whole_again)
{
	for (int i = 0; i < 2000; i++) {
		struct strbuf base cleanup_strbuf = STRBUF_INIT, form cleanup_strbuf = STRBUF_INIT,
				   own cleanup_strbuf = STRBUF_INIT,
				   whole cleanup_strbuf = STRBUF_INIT;
		const char *stem = NULL;
		char lines[2][256];
		struct argshare share;
		size_t len;

		make_line(lines[0], sizeof(lines[0]));
		make_line(lines[1], sizeof(lines[1]));
		form_of(lines[0], &stem, &base);
		len = form_of(lines[1], &stem, &form);
		share = argshare_of(strbuf_str(&base), strbuf_str(&form));
		if (len)
			strbuf_addf(&own, "\x1f%.*s\x1f", (int)len, stem);
		strbuf_add(&own, share.middle, share.middle_bytes);
		argshare_whole(strbuf_str(&base), share.keep, strbuf_str(&own), share.end, &whole);
		assert_string_equal(strbuf_str(&whole), lines[1]);
	}
}

static const char VIEW[] = /* of process.args and its base, as `processes` has it */
	"SELECT replace(substr(?1, 1, ?2) || substr(?3, iif(instr(substr(?3, 2), char(31)), instr(substr(?3, 2), char(31)) + 2, 1))"
	" || substr(?1, length(?1) - ?4 + 1), char(31), substr(?3, 2, instr(substr(?3, 2), char(31)) - 1))";

/* What no writer wrote, but a damaged or a strange file may have: as SQL reads it. */
TEST(a_command_line_is_that_of_the_view)
{
	static const struct {
		const char *base;
		int keep;
		const char *own;
		int end;
	} cases[] = {
		{"", 0, "", 0},
		{"", 0, "ls", 0},
		{"ab", 9, "-", 0},
		{"\xc3\xa4\x1f.c", 2, "\x1fx\x1f y", 2},
		{"ab", 1, "x", 1},
		{"ab", 2, "", 2},
		{"a\x1f", 2, "\x1fn\x1f", 0},
		{"ab", 0, "\x1f\x1f", 1},
		{"cc \x1f.c -o \x1f.o", 6,
		 "\x1f"
		 "flame\x1f-O2 \x1f ",
		 9},
	};
	sqlite3 *db;
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, VIEW, -1, &st, NULL), SQLITE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct strbuf whole cleanup_strbuf = STRBUF_INIT;

		sqlite3_bind_text(st, 1, cases[i].base, -1, SQLITE_STATIC);
		sqlite3_bind_int(st, 2, cases[i].keep);
		sqlite3_bind_text(st, 3, cases[i].own, -1, SQLITE_STATIC);
		sqlite3_bind_int(st, 4, cases[i].end);
		assert_int_equal(sqlite3_step(st), SQLITE_ROW);
		argshare_whole(cases[i].base, (size_t)cases[i].keep, cases[i].own,
			       (size_t)cases[i].end, &whole);
		assert_string_equal(strbuf_str(&whole), (const char *)sqlite3_column_text(st, 0));
		sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	sqlite3_close(db);
}
