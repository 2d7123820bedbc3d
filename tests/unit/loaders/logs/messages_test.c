/* SPDX-License-Identifier: Apache-2.0 */
/* Which lines belong together. */
#include <stdio.h>
#include <string.h>

#include "loaders/logs/messages.h"
#include "tests/unit/test.h"

struct seen {
	size_t n;
	uint64_t lines, bytes;
	char head[8][120], last[8][120];
	bool trace[8];
	uint64_t of[8];
};

static void take(void *ctx, const struct message *m)
{
	struct seen *s = ctx;
	size_t i = s->n++ % 8;

	s->lines += m->lines;
	s->bytes += m->bytes;
	s->of[i] = m->lines;
	s->trace[i] = m->trace;
	snprintf(s->head[i], sizeof(s->head[i]), "%.*s", (int)m->head, m->text);
	snprintf(s->last[i], sizeof(s->last[i]), "%.*s", m->last ? (int)(m->len - m->last) : 0,
		 m->text + m->last);
}

static void feed(struct messages *m, const char *text, struct seen *s)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		messages_record(m, &(struct log_record){.text = text, .len = n}, 0, -1, take, s);
		text += n + (text[n] == '\n');
	}
	messages_end(m, true, take, s);
	messages_release(m);
}

TEST(a_trace_of_python_is_one_message_with_what_was_raised)
{
	struct messages m = {0};
	struct seen s = {0};

	feed(&m,
	     "INFO before\nTraceback (most recent call last):\n  File \"x.py\", line 1\n    f()\nValueError: bad\n\n"
	     "During handling of the above exception, another exception occurred:\n\nTraceback (most recent call last):\n  File \"y.py\"\nKeyError: 'x'\nINFO after\n",
	     &s);
	assert_int_equal(s.n, 3);
	assert_int_equal(s.of[1], 10);
	assert_string_equal(s.last[1], "KeyError: 'x'");
	assert_true(s.trace[1]);
	assert_string_equal(s.head[2], "INFO after");
	assert_int_equal(s.lines, 12);
}

TEST(traces_of_others_are_one_message)
{
	struct messages m = {0};
	struct seen s = {0};

	feed(&m,
	     "2026-11-29 18:00:00 ERROR failed\njava.lang.IllegalStateException: bad\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: x\n\t... 3 more\n"
	     "panic: boom\n\ngoroutine 1 [running]:\nmain.main()\n\t/x/main.go:3 +0x1\nexit status 2\n"
	     "2026-11-29 18:00:00 UTC [7] ERROR:  duplicate key\n2026-11-29 18:00:00 UTC [7] DETAIL:  Key exists.\n2026-11-29 18:00:00 UTC [7] STATEMENT:  INSERT\n"
	     "thread 'main' panicked at src/main.rs:2:5:\nboom\nnote: run with\nnext line\n",
	     &s);
	assert_int_equal(s.n, 5);
	assert_int_equal(s.of[0], 5);
	assert_int_equal(s.of[1], 6);
	assert_int_equal(s.of[2], 3);
	assert_int_equal(s.of[3], 3);
	assert_string_equal(s.head[4], "next line");
}

TEST(pieces_are_one_line_and_all_of_it_counts)
{
	static char piece[16384];
	struct messages m = {0};
	struct seen s = {0};

	memset(piece, 'x', sizeof(piece));
	for (int i = 0; i < 5; i++)
		messages_record(
			&m,
			&(struct log_record){.text = piece, .len = sizeof(piece), .piece = true}, 0,
			-1, take, &s);
	messages_record(&m, &(struct log_record){.text = "end", .len = 3}, 0, -1, take, &s);
	messages_end(&m, true, take, &s);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.lines, 1);
	assert_int_equal(s.bytes, 5 * sizeof(piece) + 3);
	messages_release(&m);
}

TEST(lines_that_only_continue_end_in_messages_all_the_same)
{
	struct messages m = {0};
	struct seen s = {0};

	for (int i = 0; i < 1000; i++)
		messages_record(&m, &(struct log_record){.text = " more", .len = 5}, 0, -1, take,
				&s);
	messages_end(&m, true, take, &s);
	assert_int_equal(s.lines, 1000);
	assert_int_equal(s.n, (1000 + MESSAGES_LINES - 1) / MESSAGES_LINES);
	messages_release(&m);
}

/* Its lines say nothing of what they are: alone they could not be masked. */
TEST(a_private_key_is_one_message_and_what_is_left_of_a_long_one_has_no_text)
{
	struct messages m = {0};
	struct seen s = {0};
	char text[64];

	feed(&m,
	     "ERROR bad key\n-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEvQIBADAN\nqhki=\n"
	     "-----END RSA PRIVATE KEY-----\nMIIEafter\nERROR with -----BEGIN PRIVATE KEY-----\nMIIE\nINFO next\nMIIE\n",
	     &s);
	assert_int_equal(s.n, 6);
	assert_int_equal(s.of[1], 6);
	assert_string_equal(s.head[2], "MIIEafter");
	assert_int_equal(s.of[3], 2);
	assert_string_equal(s.head[4], "INFO next");
	assert_string_equal(s.head[5], "MIIE");
	s = (struct seen){0};
	messages_record(&m, &(struct log_record){.text = "-----BEGIN PRIVATE KEY-----", .len = 27},
			0, -1, take, &s);
	for (int i = 0; i < MESSAGES_LINES; i++) {
		snprintf(text, sizeof(text), "MIIE%d", i);
		messages_record(&m, &(struct log_record){.text = text, .len = strlen(text)}, 0, -1,
				take, &s);
		if (i == 9)
			messages_end(&m, false, take, &s); /* nothing came for a second */
	}
	messages_end(&m, true, take, &s);
	assert_int_equal(s.lines, MESSAGES_LINES + 1);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.head[1], "");
	messages_release(&m);
}

TEST(control_sequences_of_a_terminal_are_no_part_of_a_line)
{
	struct messages m = {0};
	struct seen s = {0};

	feed(&m,
	     "\033[1;31mERROR\033[0m it \033]8;;http://x\ablew\033]8;;\033\\ up\n"
	     "\033[36m  at x\033[0m\nINFO \033(Bplain\nINFO cut \033[3\nINFO \033",
	     &s);
	assert_int_equal(s.n, 4);
	assert_string_equal(s.head[0], "ERROR it blew up");
	assert_string_equal(s.last[0], "  at x");
	assert_string_equal(s.head[1], "INFO plain");
	assert_string_equal(s.head[2], "INFO cut ");
	assert_string_equal(s.head[3], "INFO ");
	assert_int_equal(s.lines, 5);
}
