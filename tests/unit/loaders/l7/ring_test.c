/* SPDX-License-Identifier: Apache-2.0 */
/* ring: records arrive in order and whole, also across the end of the data; a record that is still
 * being written is not read. */
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/l7/ring.h"
#include "tests/unit/test.h"

#define SIZE 128

struct made {
	uint64_t reader, writer;
	uint64_t data[SIZE / 8];
	char heard[256];
	size_t n;
};

static struct ring ring_of(struct made *m)
{
	return (struct ring){.reader = &m->reader,
			     .writer = &m->writer,
			     .data = (const uint8_t *)m->data,
			     .size = SIZE};
}

static void put(struct made *m, const char *text, uint32_t flags)
{
	uint8_t *data = (uint8_t *)m->data;
	uint32_t len = (uint32_t)strlen(text), head = len | flags;

	memcpy(data + m->writer % SIZE, &head, sizeof(head));
	for (uint32_t i = 0; i < len; i++)
		data[(m->writer + 8 + i) % SIZE] = (uint8_t)text[i];
	m->writer += (8 + len + 7) & ~7u;
}

static void hear(void *ctx, const void *record, size_t size)
{
	struct made *m = ctx;

	memcpy(m->heard + m->n, record, size);
	m->n += size;
	m->heard[m->n++] = '.';
	m->heard[m->n] = 0;
}

TEST(records_come_in_order_and_over_the_end_of_the_data_too)
{
	struct made m = {.reader = SIZE - 24, .writer = SIZE - 24};
	struct ring r = ring_of(&m);

	put(&m, "one", 0);
	put(&m, "what goes over the end of it", 0);
	put(&m, "", 0);
	put(&m, "last", 0);
	ring_read(&r, hear, &m);
	assert_string_equal(m.heard, "one.what goes over the end of it..last.");
	assert_int_equal(m.reader, m.writer);
	free(r.whole);
}

TEST(one_that_is_thrown_away_is_passed_over_and_one_being_written_is_waited_for)
{
	struct made m = {0};
	struct ring r = ring_of(&m);
	uint64_t at;

	put(&m, "no", BPF_RINGBUF_DISCARD_BIT);
	put(&m, "yes", 0);
	at = m.writer;
	put(&m, "later", BPF_RINGBUF_BUSY_BIT);
	ring_read(&r, hear, &m);
	assert_string_equal(m.heard, "yes.");
	assert_int_equal(m.reader, at);
	memcpy((uint8_t *)m.data + at, &(uint32_t){5}, 4);
	ring_read(&r, hear, &m);
	assert_string_equal(m.heard, "yes.later.");
}

TEST(a_length_that_cannot_be_ends_it)
{
	struct made m = {0};
	struct ring r = ring_of(&m);

	put(&m, "x", 0);
	memcpy(m.data, &(uint32_t){SIZE}, 4);
	ring_read(&r, hear, &m);
	assert_int_equal(m.n, 0);
	assert_int_equal(m.reader, 0);
}

TEST(what_is_no_ring_is_not_opened)
{
	struct ring r;

	assert_true(ring_open(&r, -1, 4096) < 0);
	assert_true(ring_open(&r, 0, 1000) < 0);
	assert_true(ring_open(&r, 0, 3 * 4096) < 0);
}
