/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the parser process: sound ones arrive unchanged, others are refused. */
#include <string.h>

#include "loaders/l7/inorder.h"
#include "loaders/l7/parser_message.h"
#include "tests/unit/test.h"

static uint64_t message[SAID_MESSAGE / 8];
static size_t message_len, messages;

static void keep(void *ctx, const void *m, size_t size)
{
	(void)ctx;
	memcpy(message, m, size);
	message_len = size;
	messages++;
}

TEST(an_entry_comes_through_with_its_texts_and_steps)
{
	static struct saying to;
	const uint32_t steps[3] = {4, 0, 9};
	const char *const text[SAID_TEXTS] = {"http", "127.0.0.1:80", "GET /", NULL, "abc"};
	struct said s = {.what = SAID_SUM,
			 .side = 2,
			 .result = 1,
			 .who = {5, 6, 7},
			 .utc_ns = 99,
			 .number = {3, 4},
			 .first_step = 500,
			 .n_steps = 3};
	struct heard h;
	size_t at = 0;

	to = (struct saying){.send = keep};
	saying_add(&to, &s, text, steps);
	saying_flush(&to);
	assert_true(said_next(message, message_len, &at, &h));
	assert_string_equal(h.text[SAID_OPERATION], "GET /");
	assert_string_equal(h.text[SAID_STATUS], "");
	assert_string_equal(h.text[SAID_TRACE], "abc");
	assert_int_equal(h.steps[2], 9);
	assert_int_equal(h.s->who.tgid, 6);
	assert_false(said_next(message, message_len, &at, &h));
}

TEST(entries_fill_messages_and_none_is_lost)
{
	static struct saying to;
	const char *const text[SAID_TEXTS] = {"redis", "10.0.0.1:6379", "GET key", "", ""};
	size_t heard = 0;

	to = (struct saying){.send = keep};
	messages = 0;
	for (int i = 0; i < 1000; i++) {
		struct said s = {.what = SAID_SUM};
		struct heard h;
		size_t before = messages, at = 0;

		saying_add(&to, &s, text, NULL);
		while (messages > before && said_next(message, message_len, &at, &h))
			heard++;
	}
	saying_flush(&to);
	for (size_t at = 0; at < message_len;) {
		struct heard h;

		assert_true(said_next(message, message_len, &at, &h));
		heard++;
	}
	assert_int_equal(heard, 1000);
}

TEST(what_is_not_sound_is_not_heard)
{
	static struct saying to;
	const char *const text[SAID_TEXTS] = {"http", "s\x1b[31m\xff", "o\xc3\xa9", "200", ""};
	struct said s = {.what = SAID_SUM}, *in = (struct said *)message;
	struct heard h;
	size_t at = 0;

	to = (struct saying){.send = keep};
	saying_add(&to, &s, text, NULL);
	saying_flush(&to);
	assert_true(said_next(message, message_len, &at, &h));
	assert_string_equal(h.text[SAID_SERVICE], "s?[31m?");
	assert_string_equal(h.text[SAID_OPERATION], "o\xc3\xa9");
	at = 0;
	assert_false(said_next(message, message_len - 8, &at, &h));
	in->n_steps = 600;
	assert_false(said_next(message, message_len, &at, &h));
	in->n_steps = 0;
	in->side = 9;
	assert_false(said_next(message, message_len, &at, &h));
	in->side = 0;
	in->text[0] = 60000;
	assert_false(said_next(message, message_len, &at, &h));
	in->text[0] = 5;
	in->size = 0;
	assert_false(said_next(message, message_len, &at, &h));
}

static char order[16];

static void taken(void *ctx, const void *record, size_t size)
{
	(void)ctx;
	strncat(order, record, size);
}

TEST(records_come_out_in_order_of_time_and_the_young_ones_later)
{
	struct inorder h = {0};

	*order = '\0';
	inorder_put(&h, "b", 1, 20);
	inorder_put(&h, "a", 1, 10);
	inorder_put(&h, "d", 1, 40);
	inorder_put(&h, "c", 1, 20);
	inorder_take(&h, 30, taken, NULL);
	assert_string_equal(order, "abc");
	inorder_put(&h, "e", 1, 35);
	inorder_take(&h, INT64_MAX, taken, NULL);
	assert_string_equal(order, "abced");
	assert_int_equal(h.n, 0);
	inorder_release(&h);
}
