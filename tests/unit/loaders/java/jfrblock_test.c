/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/test.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/java/jfrblock.h"
#include "loaders/java/jfrpick.h"

#define TEXTS "\0Shop.pay\0java.lang.Object\0main"

struct made {
	struct jfrblock_head head;
	char *bytes;
	size_t len;
	struct jfrblock_places at;
};

/* One event with a stack of two frames. */
static struct made make(void)
{
	struct made m = {.head = {.magic = JFRBLOCK_MAGIC,
				  .n_frames = 2,
				  .n_words = 2,
				  .n_stacks = 2,
				  .n_events = 1,
				  .text_bytes = sizeof(TEXTS)}};
	const struct jfrblock_frame frames[] = {{1, 7}, {10, 0}};
	const uint32_t words[] = {0, 1};
	const struct jfrblock_stack stacks[] = {{0, 0}, {0, 2}};
	const struct jfrblock_event event = {.start_ns = 1800000000000000000,
					     .value = 5,
					     .what = JFRBLOCK_LOCK,
					     .stack = 1,
					     .name = 10,
					     .other = 27,
					     .thread = 27};

	jfrblock_places(&m.head, &m.at);
	m.len = m.at.end;
	m.bytes = calloc(1, m.len);
	memcpy(m.bytes, &m.head, sizeof(m.head));
	memcpy(m.bytes + m.at.texts, TEXTS, sizeof(TEXTS));
	memcpy(m.bytes + m.at.frames, frames, sizeof(frames));
	memcpy(m.bytes + m.at.words, words, sizeof(words));
	memcpy(m.bytes + m.at.stacks, stacks, sizeof(stacks));
	memcpy(m.bytes + m.at.events, &event, sizeof(event));
	return m;
}

TEST(a_block_is_taken_as_it_was_made)
{
	struct made m = make();
	struct jfrblock b;

	assert_int_equal(jfrblock_open(m.bytes, m.len, &b), 0);
	assert_string_equal(b.texts + b.frames[b.words[b.stacks[1].first]].function, "Shop.pay");
	assert_string_equal(b.texts + b.events[0].name, "java.lang.Object");
	assert_string_equal(b.texts + b.events[0].thread, "main");
	free(m.bytes);
}

static void set32(struct made *m, size_t at, uint32_t v)
{
	memcpy(m->bytes + at, &v, sizeof(v));
}

static void refused(struct made *m)
{
	struct jfrblock b;

	assert_int_equal(jfrblock_open(m->bytes, m->len, &b), -EBADMSG);
	free(m->bytes);
}

TEST(what_points_outside_is_refused)
{
	struct made m = make();

	set32(&m, m.at.frames, sizeof(TEXTS));
	refused(&m);
	m = make();
	set32(&m, m.at.words, 2);
	refused(&m);
	m = make();
	set32(&m, m.at.stacks + 8, UINT32_MAX);
	refused(&m);
	m = make();
	set32(&m, m.at.stacks + 12, 3);
	refused(&m);
	m = make();
	set32(&m, m.at.events + offsetof(struct jfrblock_event, stack), 2);
	refused(&m);
	m = make();
	set32(&m, m.at.events + offsetof(struct jfrblock_event, what), JFRBLOCK_KINDS);
	refused(&m);
	m = make();
	set32(&m, m.at.events + offsetof(struct jfrblock_event, other), UINT32_MAX);
	refused(&m);
	m = make();
	memset(m.bytes + m.at.events + offsetof(struct jfrblock_event, value), 0xff, 8);
	refused(&m);
	m = make();
	m.bytes[m.at.texts + sizeof(TEXTS) - 1] = 'x';
	refused(&m);
	m = make();
	set32(&m, offsetof(struct jfrblock_head, n_events), UINT32_MAX);
	refused(&m);
	m = make();
	m.len--;
	refused(&m);
}

TEST(a_header_tells_whether_a_chunk_can_be_read)
{
	unsigned char h[JFRPICK_HEADER] = {'F', 'L', 'R', 0, 0, 2, 0, 1};
	bool finished;

	assert_false(jfrpick_header(h, NULL)); /* it has no metadata yet */
	h[31] = 100;
	assert_true(jfrpick_header(h, &finished));
	assert_true(finished);
	h[64] = 4;
	assert_true(jfrpick_header(h, &finished));
	assert_false(finished);
	h[64] = 255;
	assert_false(jfrpick_header(h, NULL));
	h[64] = 0;
	h[5] = 3;
	assert_false(jfrpick_header(h, NULL));
}

TEST(bytes_that_are_no_recording_are_refused)
{
	const struct jfrpick_opts live = {.live = true}, file = {0};
	void *block = NULL;
	size_t size;

	assert_int_equal(jfrpick("FLR", 3, &live, &block, &size), -EBADMSG);
	assert_int_equal(jfrpick("nothing", 7, &file, &block, &size), -EBADMSG);
	assert_null(block);
}
