/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is read within a budget: the same bytes as without it, few reads, an end. */
#include "schema/base/array.h"
#include "tests/unit/loaders/lib/runtimes/fake.h"

#include "loaders/lib/runtimes/script.h"

static struct fake f;
static struct runtime_budget b;

static void begin(void)
{
	memset(&f, 0, sizeof(f));
	f.m = (struct runtime_memory){.ctx = &f, .read = fake_read};
	for (size_t i = 0; i < FAKE_SIZE; i++)
		f.bytes[i] = (uint8_t)(i * 2654435761u >> 24);
	runtime_budget_begin(&b, &f.m);
}

static bool get(uint64_t addr, void *to, size_t len)
{
	return b.counted.read(b.counted.ctx, addr, to, len);
}

TEST(bytes_are_those_of_the_memory_wherever_they_lie)
{
	static const size_t lens[] = {1, 2, 4, 8, 100, 511, 512, 513, 5000};
	uint8_t got[5000];

	begin();
	for (uint64_t at = 0; at < 2048; at += 37)
		for (size_t i = 0; i < ARRAY_SIZE(lens); i++) {
			assert_true(get(FAKE_BASE + at, got, lens[i]));
			assert_memory_equal(got, f.bytes + at, lens[i]);
		}
	assert_true(get(FAKE_BASE + FAKE_SIZE - 8, got, 8));
	assert_false(get(FAKE_BASE + FAKE_SIZE - 7, got, 8));
	assert_false(get(FAKE_BASE - 1, got, 2));
	assert_false(get(FAKE_BASE - 1, got, 1));
}

TEST(what_lies_together_is_read_once_and_anew_for_the_next_thread)
{
	uint64_t word = 0;

	begin();
	for (uint64_t i = 0; i < SCRIPT_READ_BYTES; i += 8)
		assert_true(get(FAKE_BASE + i, &word, 8));
	assert_int_equal(f.reads, 1);
	fake_word(&f, FAKE_BASE + 8, 7);
	runtime_budget_fresh(&b);
	assert_true(get(FAKE_BASE + 8, &word, 8));
	assert_int_equal(word, 7);
	assert_int_equal(f.reads, 2);
}

static size_t many;

/* All but what begins on the second line. */
static void fake_read_many(void *ctx, uint64_t *addr, void *const *to, size_t n, size_t len)
{
	for (size_t i = 0; i < n; i++, many++)
		if (addr[i] == FAKE_BASE + SCRIPT_READ_BYTES ||
		    !fake_read(ctx, addr[i], to[i], len))
			addr[i] = 0;
}

TEST(for_the_next_stack_what_was_used_last_is_read_anew_at_once)
{
	uint64_t word = 0;

	begin();
	f.m.read_many = fake_read_many;
	many = 0;
	for (uint64_t i = 0; i < 4; i++)
		assert_true(get(FAKE_BASE + i * SCRIPT_READ_BYTES, &word, 8));
	fake_word(&f, FAKE_BASE, 7);
	runtime_budget_again(&b);
	assert_int_equal(many, 4);
	f.reads = 0;
	assert_true(get(FAKE_BASE, &word, 8));
	assert_int_equal(word, 7);
	assert_int_equal(f.reads, 0);
	assert_true(get(FAKE_BASE + SCRIPT_READ_BYTES, &word, 8)); /* it could not be had at once */
	assert_int_equal(f.reads, 1);
	runtime_budget_again(&b);
	assert_int_equal(many, 6); /* the others were not used again */
}

static bool short_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	return addr - FAKE_BASE + len <= 100 && fake_read(ctx, addr, to, len);
}

TEST(the_end_of_what_is_mapped_is_read_alone)
{
	const struct runtime_memory part = {.ctx = &f, .read = short_read};
	uint64_t word = 0;

	begin();
	runtime_budget_begin(&b, &part);
	assert_true(get(FAKE_BASE + 92, &word, 8));
	assert_memory_equal(&word, f.bytes + 92, 8);
	assert_false(get(FAKE_BASE + 93, &word, 8));
}

TEST(a_budget_ends)
{
	uint64_t word, got = 0;

	begin();
	for (uint64_t i = 0; i < 2ull * SCRIPT_READS_MAX; i++)
		got += get(FAKE_BASE + i * SCRIPT_READ_BYTES % FAKE_SIZE, &word, 8);
	assert_true(f.reads <= SCRIPT_READS_MAX && got <= SCRIPT_READS_MAX &&
		    got > SCRIPT_READS_MAX / 2);
	assert_false(get(FAKE_BASE, &word, 8));
	assert_false(get(FAKE_BASE, &word, 1));
}
