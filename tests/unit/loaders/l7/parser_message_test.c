/* SPDX-License-Identifier: Apache-2.0 */
/* Messages are read as they were written, and invalid ones are refused. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "loaders/l7/inorder.h"
#include "loaders/l7/parser_message.h"
#include "tests/unit/test.h"

static uint64_t packet[MSG_PACKET_MAX / 8];
static size_t packet_len, packets;

static void keep(void *ctx, const void *p, size_t size)
{
	(void)ctx;
	memcpy(packet, p, size);
	packet_len = size;
	packets++;
}

TEST(an_entry_comes_through_with_its_texts_and_steps)
{
	static struct message_writer to;
	const uint32_t steps[3] = {4, 0, 9};
	const struct message_tail tail = {.text = {[MSG_PROTOCOL] = "http",
						   [MSG_SERVICE] = "127.0.0.1:80",
						   [MSG_OPERATION] = "GET /",
						   [MSG_TRACE] = "abc"},
					  .steps = steps,
					  .first_step = 500,
					  .n_steps = 3};
	struct msg_sum s = {.about = {.process = {5, 6, 7}, .utc_ns = 99, .side = 2, .result = 1},
			    .n = 3,
			    .total_ns = 4};
	struct message m;
	size_t at = 0;

	to = (struct message_writer){.send = keep};
	message_write(&to, MSG_SUM, &s, &tail);
	message_flush(&to);
	assert_true(message_read(packet, packet_len, &at, &m));
	assert_int_equal(m.kind, MSG_SUM);
	assert_string_equal(m.text[MSG_OPERATION], "GET /");
	assert_string_equal(m.text[MSG_STATUS], "");
	assert_string_equal(m.text[MSG_TRACE], "abc");
	assert_int_equal(m.steps[2], 9);
	assert_int_equal(m.first_step, 500);
	assert_int_equal(m.about->process.tgid, 6);
	assert_int_equal(m.about->side, 2);
	assert_int_equal(m.sum->n, 3);
	assert_int_equal(m.sum->total_ns, 4);
	assert_false(message_read(packet, packet_len, &at, &m));
}

TEST(entries_fill_messages_and_none_is_lost)
{
	static struct message_writer to;
	const struct message_tail tail = {.text = {[MSG_PROTOCOL] = "redis",
						   [MSG_SERVICE] = "10.0.0.1:6379",
						   [MSG_OPERATION] = "GET key",
						   [MSG_STATUS] = "",
						   [MSG_TRACE] = ""}};
	struct message m;
	size_t read = 0;

	to = (struct message_writer){.send = keep};
	packets = 0;
	for (int i = 0; i < 1000; i++) {
		struct msg_sum s = {0};
		size_t before = packets, at = 0;

		message_write(&to, MSG_SUM, &s, &tail);
		while (packets > before && message_read(packet, packet_len, &at, &m))
			read++;
	}
	message_flush(&to);
	for (size_t at = 0; at < packet_len;) {
		assert_true(message_read(packet, packet_len, &at, &m));
		read++;
	}
	assert_int_equal(read, 1000);
}

/* Written, spoilt by `spoil`, read. */
static bool spoilt_is_read(enum msg_kind kind, void *message, void (*spoil)(void *in))
{
	static struct message_writer to;
	struct message m;

	to = (struct message_writer){.send = keep};
	message_write(&to, kind, message, NULL);
	message_flush(&to);
	if (spoil)
		spoil(packet);
	return message_read(packet, packet_len, &(size_t){0}, &m);
}

static void no_part(void *in)
{
	((struct msg_part *)in)->part = 0;
}

static void other_part(void *in)
{
	((struct msg_part *)in)->part = REQUEST_PARTS + 1;
}

static void other_why(void *in)
{
	((struct msg_single *)in)->why = SINGLE_RING + 1;
}

static void other_how(void *in)
{
	((struct msg_single *)in)->how = LINK_HOWS;
}

static void other_partial(void *in)
{
	((struct msg_single *)in)->partial = 2;
}

static void other_result(void *in)
{
	((struct msg_bytes *)in)->about.result = 6;
}

/* A sum has more numbers than a part, of a size that fits no part. */
static void other_kind(void *in)
{
	((struct msg_head *)in)->kind = MSG_SUM;
}

static void no_kind(void *in)
{
	((struct msg_head *)in)->kind = MSG_KINDS;
}

TEST(each_kind_is_refused_with_a_number_out_of_its_range)
{
	struct msg_part part = {.part = PART_QUEUED};
	struct msg_single single = {.why = SINGLE_SLOW, .how = LINK_BY_GOROUTINE, .partial = 1};
	struct msg_bytes bytes = {0};
	struct msg_named named = {0};
	struct msg_running running = {0};
	struct msg_head flushed;

	assert_true(spoilt_is_read(MSG_PART, &part, NULL));
	assert_false(spoilt_is_read(MSG_PART, &part, no_part));
	assert_false(spoilt_is_read(MSG_PART, &part, other_part));
	assert_false(spoilt_is_read(MSG_PART, &part, other_kind));
	assert_true(spoilt_is_read(MSG_SINGLE, &single, NULL));
	assert_false(spoilt_is_read(MSG_SINGLE, &single, other_why));
	assert_false(spoilt_is_read(MSG_SINGLE, &single, other_how));
	assert_false(spoilt_is_read(MSG_SINGLE, &single, other_partial));
	assert_true(spoilt_is_read(MSG_BYTES, &bytes, NULL));
	assert_false(spoilt_is_read(MSG_BYTES, &bytes, other_result));
	assert_true(spoilt_is_read(MSG_NAMED, &named, NULL));
	assert_false(spoilt_is_read(MSG_NAMED, &named, no_kind));
	assert_true(spoilt_is_read(MSG_RUNNING, &running, NULL));
	assert_false(spoilt_is_read(MSG_RUNNING, &running, other_result));
	assert_true(spoilt_is_read(MSG_FLUSHED, &flushed, NULL));
	assert_false(spoilt_is_read(MSG_FLUSHED, &flushed, no_kind));
}

TEST(what_is_not_sound_is_not_heard)
{
	static struct message_writer to;
	const struct message_tail tail = {.text = {[MSG_PROTOCOL] = "http",
						   [MSG_SERVICE] = "s\x1b[31m\xff",
						   [MSG_OPERATION] = "o\xc3\xa9",
						   [MSG_STATUS] = "200",
						   [MSG_TRACE] = ""}};
	struct msg_sum s = {0}, *in = (struct msg_sum *)packet;
	struct message m;
	size_t at = 0;

	to = (struct message_writer){.send = keep};
	message_write(&to, MSG_SUM, &s, &tail);
	message_flush(&to);
	assert_true(message_read(packet, packet_len, &at, &m));
	assert_string_equal(m.text[MSG_SERVICE], "s?[31m?");
	assert_string_equal(m.text[MSG_OPERATION], "o\xc3\xa9");
	at = 0;
	assert_false(message_read(packet, packet_len - 8, &at, &m));
	in->head.n_steps = 600;
	assert_false(message_read(packet, packet_len, &at, &m));
	in->head.n_steps = 0;
	in->about.side = 9;
	assert_false(message_read(packet, packet_len, &at, &m));
	in->about.side = 0;
	in->head.text[0] = 60000;
	assert_false(message_read(packet, packet_len, &at, &m));
	in->head.text[0] = 5;
	in->head.size = 0;
	assert_false(message_read(packet, packet_len, &at, &m));
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
