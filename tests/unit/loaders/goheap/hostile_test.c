/* SPDX-License-Identifier: Apache-2.0 */
/* buckets.h on lists that lie: it reads a bounded amount, gives a reason, and returns the sound
 * part. And lists without a symbol. */
#include "schema/base/array.h"
#include "tests/unit/loaders/goheap/fake.h"
#include "tests/unit/test.h"

static int count(void *ctx, const struct bucket *b)
{
	(void)b;
	++*(uint32_t *)ctx;
	return 0;
}

static uint32_t collect(struct buckets *b, struct buckets_sum *sum)
{
	uint32_t n = 0;

	assert_int_equal(buckets_collect(b, count, &n, sum), 0);
	return n;
}

TEST(a_list_in_a_circle_is_walked_once)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	uint64_t first;

	first = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 2);
	fake_bucket(&f, BUCKETS_MEMORY, 8, 2000, 2);
	fake_set(&f, first + 8, fake_bucket(&f, BUCKETS_MEMORY, 8, 3000, 2));
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(collect(b, &sum), 3);
		assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_BROKEN);
		assert_true(sum.reads < 12);
	}
	buckets_close(b);
	free(f.bytes);
}

TEST(a_bucket_that_is_its_own_next_ends_the_list)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	const uint64_t one = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 2);

	fake_set(&f, one + 8, one);
	assert_int_equal(collect(b, &sum), 1);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_BROKEN);
	buckets_close(b);
	free(f.bytes);
}

TEST(a_list_that_leads_into_another_kind_ends_there)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	const uint64_t memory = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 2),
		       block = fake_bucket(&f, BUCKETS_BLOCK, 0, 2000, 2);

	fake_set(&f, memory + 8, block);
	assert_int_equal(collect(b, &sum), 2);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_BROKEN);
	assert_int_equal(sum.state[BUCKETS_BLOCK], BUCKETS_OK);
	buckets_close(b);
	free(f.bytes);
}

/* The second of two buckets, with one lie each: offset in the bucket, value. */
static const struct {
	uint64_t place, value;
} lies[] = {
	{8, 0x10},               /* allnext: a wild pointer */
	{8, FAKE_BASE + 1},      /* not aligned */
	{8, 0xffff888000000000}, /* the kernel's */
	{16, 0},
	{16, 4},
	{16, 1ull << 32 | 1}, /* kind */
	{24, 1},              /* hash */
	{32, 0},
	{32, 1ull << 60}, /* size */
	{40, 1025},
	{40, UINT64_MAX},
	{40, 1ull << 61},
	{40, 1},  /* depth */
	{48, 77}, /* a pc */
};

TEST(a_bucket_that_lies_ends_the_list_and_those_before_it_are_told)
{
	for (size_t i = 0; i < ARRAY_SIZE(lies); i++) {
		struct fake f = fake_init(1 << 16);
		struct buckets *b = fake_open(&f);
		struct buckets_sum sum;
		uint64_t second;
		uint32_t told;

		fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 2);
		second = fake_bucket(&f, BUCKETS_MEMORY, 8, 2000, 2);
		fake_bucket(&f, BUCKETS_MEMORY, 8, 3000, 2);
		fake_set(&f, second + lies[i].place, lies[i].value);
		told = collect(b, &sum);
		assert_int_equal(told, lies[i].place == 8 && lies[i].value < 1ull << 47 &&
						       !(lies[i].value & 7) ?
					       2 :
					       1);
		assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_BROKEN);
		buckets_close(b);
		free(f.bytes);
	}
}

TEST(a_head_that_points_to_no_bucket_is_an_unknown_layout)
{
	static const uint64_t heads[] = {8,          FAKE_BASE + 100, FAKE_BASE + 104,
					 1ull << 60, UINT64_MAX,      FAKE_BASE + (1 << 16) - 8};

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		struct fake f = fake_init(1 << 16);
		struct buckets *b = fake_open(&f);
		struct buckets_sum sum;

		fake_set(&f, FAKE_HEAD(BUCKETS_MEMORY), heads[i]);
		assert_int_equal(collect(b, &sum), 0);
		assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_UNKNOWN_LAYOUT);
		buckets_close(b);
		free(f.bytes);
	}
}

TEST(more_buckets_than_the_limit_are_cut_and_told)
{
	struct fake f = fake_init(32 << 20);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;

	for (unsigned i = 0; i < BUCKETS_MAX + 100; i++)
		fake_bucket(&f, BUCKETS_MEMORY, 8, 1000 + i, 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(collect(b, &sum), BUCKETS_MAX);
		assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_TOO_MANY);
	}
	assert_true(sum.reads < 100);
	fake_bucket(&f, BUCKETS_MEMORY, 8, 1, 1);
	assert_int_equal(collect(b, &sum), BUCKETS_MAX);
	buckets_close(b);
	free(f.bytes);
}

/* ---- off, empty, not found ---- */

TEST(nothing_there_is_told_with_its_reason)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;

	collect(b, &sum);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_EMPTY);
	fake_set(&f, FAKE_RATE, 0);
	collect(b, &sum);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_OFF);
	fake_set(&f, FAKE_RATE, UINT64_MAX); /* no rate */
	collect(b, &sum);
	assert_false(sum.mem_rate_known);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_EMPTY);
	buckets_close(b);
	free(f.bytes);
}

/* ---- lists without a symbol ---- */

static struct buckets *searching(struct fake *f)
{
	const struct buckets_layout l = {.search = FAKE_BASE, .search_len = FAKE_VARS};
	const struct buckets_memory m = {fake_read, f};

	return buckets_open(&l, &m);
}

TEST(lists_without_names_are_found_by_what_they_point_to)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = searching(&f);
	struct buckets_sum sum;

	/* other variables, some of them pointers into the same memory */
	for (unsigned i = 0; i < 300; i++)
		fake_set(&f, FAKE_BASE + 256 + i * 8, i % 3 ? i * 12345 : FAKE_BASE + 8192 + i * 8);
	assert_int_equal(collect(b, &sum), 0);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_NOT_FOUND);
	for (unsigned i = 0; i < 4; i++)
		fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 8, 1000 + i, 2), 0, 2, 1);
	fake_bucket(&f, BUCKETS_MUTEX, 0, 2000, 1);
	assert_int_equal(collect(b, &sum), 0); /* the next search is not due yet */
	assert_int_equal(collect(b, &sum), 5);
	assert_true(sum.found_by_search && !sum.cycle_known && !sum.mem_rate_known);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_OK);
	assert_int_equal(sum.state[BUCKETS_BLOCK], BUCKETS_NOT_FOUND);
	assert_int_equal(sum.state[BUCKETS_MUTEX], BUCKETS_OK);
	buckets_close(b);
	free(f.bytes);
}

TEST(of_two_variables_that_may_be_the_head_none_is_believed)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = searching(&f);
	struct buckets_sum sum;

	fake_set(&f, FAKE_BASE + 800, fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 2));
	fake_bucket(&f, BUCKETS_MEMORY, 8, 2000, 2);
	assert_int_equal(collect(b, &sum), 0);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_NOT_FOUND);
	buckets_close(b);
	free(f.bytes);
}

/* ---- the layout ---- */

TEST(addresses_are_moved_by_the_load_bias)
{
	struct image_go_record go = {.version = "go1.22.3", .bss_start = 0x5000, .bss_end = 0x6000};
	struct buckets_layout l;

	go.variables[IMAGE_GO_MBUCKETS] = 0x5010;
	go.variables[IMAGE_GO_MPROF_CYCLE] = 0x5020;
	go.variables[IMAGE_GO_TICKS] = 0x5100;
	assert_true(buckets_layout_make(&go, 0x10000, &l));
	assert_true(l.heads[BUCKETS_MEMORY] == 0x15010 && !l.heads[BUCKETS_BLOCK] &&
		    l.cycle == 0x15020 && !l.old_cycle);
	assert_true(l.ticks == 0x15100 + 24 && l.ticks_started && l.record_len == 128);
	assert_true(l.search == 0x15000 && l.search_len == 0x1000);
	strcpy(go.version, "devel go1.27-abcdef");
	assert_true(buckets_layout_make(&go, 0, &l));
	assert_int_equal(l.record_len, 64);
	strcpy(go.version, "go1.15.15");
	go.variables[IMAGE_GO_MPROF] = go.variables[IMAGE_GO_MPROF_CYCLE];
	go.variables[IMAGE_GO_MPROF_CYCLE] = 0;
	assert_true(buckets_layout_make(&go, 0, &l));
	assert_true(l.old_cycle && l.ticks == 0x5100 + 16 && !l.ticks_started);
	assert_false(buckets_layout_make(&(struct image_go_record){.version = "go1.22"}, 0, &l));
}
