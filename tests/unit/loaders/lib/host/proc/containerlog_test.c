/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of logs: records in pieces, long lines, secrets, bytes that are not text, and
 * lines of the container's next start. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/proc/containerlog.h"
#include "tests/unit/test.h"

struct told {
	char line[CONTAINERLOG_LINES][CONTAINERLOG_LINE + 1];
	bool cut[CONTAINERLOG_LINES];
	size_t n;
};

static void note(void *ctx, const char *line, bool cut)
{
	struct told *t = ctx;

	assert_true(t->n < CONTAINERLOG_LINES);
	assert_true(strlen(line) <= CONTAINERLOG_LINE);
	t->cut[t->n] = cut;
	snprintf(t->line[t->n++], sizeof(t->line[0]), "%s", line);
}

static struct told told_of(enum containerlog_form form, const char *text, bool whole,
			   int64_t until_ns)
{
	struct containerlog l = {0};
	struct told t = {.n = 0};

	containerlog_read(&l, form, text, strlen(text), whole, until_ns);
	containerlog_each(&l, note, &t);
	containerlog_release(&l);
	return t;
}

static void add(struct strbuf *s, const char *log, const char *stream, const char *time)
{
	strbuf_addf(s, "{\"log\":\"%s\",\"stream\":\"%s\",\"time\":\"%s\"}\n", log, stream, time);
}

TEST(the_last_twenty_lines_are_told_in_order)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct told t;

	for (int i = 0; i < 50; i++) {
		char line[40];

		snprintf(line, sizeof(line), "line %d\\n", i);
		add(&s, line, i % 2 ? "stderr" : "stdout", "2026-11-25T20:00:00Z");
	}
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	assert_int_equal(t.n, 20);
	assert_string_equal(t.line[0], "line 30");
	assert_string_equal(t.line[19], "line 49");
	assert_false(t.cut[0]);
}

TEST(pieces_of_a_line_are_put_together_by_stream_and_what_was_never_ended_is_told)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct told t;

	add(&s, "half ", "stdout", "2026-11-25T20:00:00Z");
	add(&s, "of the other\\n", "stderr", "2026-11-25T20:00:00Z");
	add(&s, "a line\\n", "stdout", "2026-11-25T20:00:00Z");
	add(&s, "prompt: ", "stdout", "2026-11-25T20:00:00Z");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	assert_int_equal(t.n, 3);
	assert_string_equal(t.line[0], "of the other");
	assert_string_equal(t.line[1], "half a line");
	assert_string_equal(t.line[2], "prompt:");
}

TEST(a_line_of_a_megabyte_is_cut_and_said_to_be)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	char *piece = malloc(16385);
	struct told t;

	memset(piece, 'x', 16384);
	piece[16384] = 0;
	memcpy(piece + 600, " y ", 3);
	for (int i = 0; i < 64; i++)
		add(&s, piece, "stdout", "2026-11-25T20:00:00Z");
	add(&s, "\\n", "stdout", "2026-11-25T20:00:00Z");
	add(&s, "after\\n", "stdout", "2026-11-25T20:00:00Z");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	assert_int_equal(t.n, 2);
	assert_true(t.cut[0]);
	assert_int_equal(strlen(t.line[0]), CONTAINERLOG_LINE);
	assert_string_equal(t.line[1], "after");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s) + 100000, false,
		    INT64_MAX); /* from its middle */
	assert_int_equal(t.n, 2);
	assert_true(t.cut[0]);
	free(piece);
}

TEST(secrets_are_masked_also_where_a_line_is_cut_in_one)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT, line cleanup_strbuf = STRBUF_INIT;
	struct told t;

	add(&s,
	    "connect postgres://app:hunter2@db/x password=hunter2 Authorization: Bearer hunter2\\n",
	    "stderr", "x");
	for (int i = 0; i < 4090; i++)
		strbuf_addch(&line, ' ');
	strbuf_addstr(&line, "ghp_hunter2hunter2hunter2hunter2\\n");
	add(&s, strbuf_str(&line), "stderr", "x");
	strbuf_reset(&line);
	strbuf_addstr(&line, "token=");
	for (int i = 0; i < 4080; i++)
		strbuf_addch(&line, 'h');
	strbuf_addstr(&line,
		      " ghp_hunter2hunter2hunter2hunter2\\n"); /* what follows moves to the front as
								  the first is masked */
	add(&s, strbuf_str(&line), "stderr", "x");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	assert_int_equal(t.n, 3);
	for (size_t i = 0; i < t.n; i++) {
		assert_null(strstr(t.line[i], "hunter"));
		assert_null(strstr(t.line[i], "ghp_"));
	}
	assert_non_null(strstr(t.line[0], "postgres://app:***@db/x password=***"));
	assert_string_equal(t.line[2], "token=*** ");
}

TEST(what_is_no_text_stays_none)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct told t;

	add(&s, "\\u001b[31mred\\u001b[0m \\u0000\\u0007bell\\t\\u00e4\\n", "stdout", "x");
	strbuf_addstr(&s, "not json\n{\"log\":7}\n{\"log\":\"\xff\\n\"}\n{\"log\":\"unended");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.line[0], "red   bell \xc3\xa4");
}

TEST(lines_of_the_next_life_are_not_told)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;
	struct told t;

	add(&s, "it fails\\n", "stdout", "2026-11-25T20:00:00.5Z");
	add(&s, "it starts\\n", "stdout", "2026-11-25T20:00:01.5Z");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, 1795636801000000000);
	assert_int_equal(t.n, 1);
	assert_string_equal(t.line[0], "it fails");
}

TEST(podmans_form_is_read_as_well)
{
	struct told t = told_of(
		CONTAINERLOG_CRI,
		"2026-11-25T20:00:00.1+01:00 stdout P half \n2026-11-25T20:00:00.1+01:00 stderr F bad\n2026-11-25T20:00:00.1+01:00 stdout F line\n"
		"2026-11-25T20:00:00.1+01:00 stdout F\n2026-11-25T20:00:00.1+01:00 stdout F \nx\n2026-11-25T20:00:00.1+01:00 stdlog F no\n",
		true, INT64_MAX);

	assert_int_equal(t.n, 4);
	assert_string_equal(t.line[0], "bad");
	assert_string_equal(t.line[1], "half line");
	assert_string_equal(t.line[2], "");
}

TEST(no_more_than_eight_kib_are_told_the_last_ones)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT, line cleanup_strbuf = STRBUF_INIT;
	size_t all = 0;
	struct told t;

	for (int i = 0; i < 498; i++)
		strbuf_addch(&line, 'x');
	strbuf_addstr(&line, "\\n");
	for (int i = 0; i < 20; i++)
		add(&s, strbuf_str(&line), "stdout", "x");
	add(&s, "last\\n", "stdout", "x");
	t = told_of(CONTAINERLOG_DOCKER, strbuf_str(&s), true, INT64_MAX);
	for (size_t i = 0; i < t.n; i++)
		all += strlen(t.line[i]) + 1;
	assert_true(t.n == 17 && all <= CONTAINERLOG_BYTES);
	assert_string_equal(t.line[16], "last");
}
