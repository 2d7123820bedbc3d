/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/run/hold.h"
#include "tests/unit/test.h"

/* A record whose bytes are derived from its number, so that a mix-up shows. */
static size_t record_make(uint8_t *buf, uint32_t number)
{
	size_t size = 64 + number * 37 % 2000;

	for (size_t i = 0; i < size; i++)
		buf[i] = (uint8_t)(number * 31 + i);
	return size;
}

static void record_check(const struct hold *h, uint32_t number)
{
	uint8_t expected[4096];
	size_t size, want = record_make(expected, number);
	const void *got = hold_peek(h, &size);

	assert_non_null(got);
	assert_int_equal((uintptr_t)got % 8, 0);
	assert_int_equal(size, want);
	assert_memory_equal(got, expected, want);
}

TEST(records_come_out_in_order_and_whole_over_any_mix_of_push_and_pop)
{
	uint32_t in = 0, out = 0;
	uint8_t buf[4096];
	struct hold h;

	hold_init(&h, 1 << 20);
	srand(7);
	for (int i = 0; i < 200000; i++) {
		if (rand() % 100 < (i / 20000 % 2 ? 35 : 60)) {
			if (!hold_push(&h, buf, record_make(buf, in)))
				in++;
		} else if (out < in) {
			record_check(&h, out++);
			hold_pop(&h);
		}
		assert_int_equal(h.n, in - out);
	}
	for (; out < in; out++) {
		record_check(&h, out);
		hold_pop(&h);
	}
	assert_int_equal(h.n, 0);
	assert_int_equal(h.used, 0);
	hold_release(&h);
}

TEST(a_full_queue_refuses_and_keeps_what_it_has)
{
	uint32_t in = 0;
	uint8_t buf[4096];
	struct hold h;

	hold_init(&h, 128 << 10);
	while (!hold_push(&h, buf, record_make(buf, in)))
		in++;
	assert_int_equal(hold_push(&h, buf, 2000), -ENOBUFS);
	assert_true(h.cap <= 128 << 10);
	assert_true(in > 50);
	for (uint32_t i = 0; i < in; i++) {
		record_check(&h, i);
		hold_pop(&h);
	}
	assert_int_equal(hold_push(&h, buf, record_make(buf, 3)), 0);
	record_check(&h, 3);
	hold_release(&h);
}

TEST(after_a_burst_the_memory_is_given_back)
{
	uint8_t buf[4096] = {0};
	struct hold h;

	hold_init(&h, 8 << 20);
	for (int i = 0; i < 2000; i++)
		assert_int_equal(hold_push(&h, buf, 2000), 0);
	assert_true(h.cap >= 4 << 20);
	while (h.n)
		hold_pop(&h);
	assert_int_equal(h.cap, 0);
	hold_release(&h);
}

TEST(an_empty_queue_has_nothing_and_a_monster_does_not_fit)
{
	static uint8_t monster[70000];
	struct hold h;
	size_t size;

	hold_init(&h, 1 << 20);
	assert_null(hold_peek(&h, &size));
	hold_pop(&h);
	assert_int_equal(hold_push(&h, monster, sizeof(monster)), -EMSGSIZE);
	assert_int_equal(hold_push(&h, monster, 0), 0);
	assert_non_null(hold_peek(&h, &size));
	assert_int_equal(size, 0);
	hold_release(&h);
}
