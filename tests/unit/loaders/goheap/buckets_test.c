/* SPDX-License-Identifier: Apache-2.0 */
/* buckets.h on memory laid out by the test: what it reads from sound lists, and from a process that
 * changes meanwhile. */
#include <errno.h>
#include <stdlib.h>

#include "tests/unit/loaders/goheap/fake.h"
#include "tests/unit/test.h"

#define MANY 10000u

/* Replaces libc's: buckets.h allocates with it. */
static unsigned grants = UINT32_MAX;

void *reallocarray(void *p, size_t n, size_t size)
{
	return grants && grants-- ? realloc(p, n * size) : NULL;
}

/* What one collection reported. */
struct told {
	struct bucket of[64];
	uint64_t first_pc[64];
	size_t count;
	uint64_t allocs, frees, bytes; /* published, of all */
	uint64_t pending;
	uint32_t fresh;
};

static int tell(void *ctx, const struct bucket *b)
{
	struct told *t = ctx;
	const struct bucket_amounts a = bucket_published(b), p = bucket_pending(b);

	if (t->count < 64) {
		t->of[t->count] = *b;
		t->first_pc[t->count] = b->depth ? b->pcs[0] : 0;
	}
	t->count++;
	t->allocs += a.allocs;
	t->frees += a.frees;
	t->bytes += a.alloc_bytes;
	t->pending += p.allocs;
	t->fresh += b->fresh;
	return 0;
}

static struct told collect(struct buckets *b, struct buckets_sum *sum)
{
	struct told t = {0};

	assert_int_equal(buckets_collect(b, tell, &t, sum), 0);
	return t;
}

TEST(every_bucket_of_every_list_is_told_once)
{
	struct fake f = fake_init(1 << 20);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;
	double three = 3;
	uint64_t bits;

	for (unsigned i = 0; i < 5; i++)
		fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 64, 1000 + i, 3), 0, 10, i);
	memcpy(&bits, &three, 8);
	fake_set(&f, fake_record(&f, fake_bucket(&f, BUCKETS_BLOCK, 0, 2000, 2)), bits);
	fake_set(&f, fake_record(&f, fake_bucket(&f, BUCKETS_MUTEX, 0, 3000, 1)),
		 4); /* Go 1.15: an integer */
	t = collect(b, &sum);
	assert_int_equal(t.count, 7);
	assert_int_equal(t.fresh, 7);
	assert_int_equal(t.allocs, 50);
	assert_int_equal(t.frees, 10);
	assert_int_equal(t.bytes, 50 * 64);
	assert_int_equal(sum.count[BUCKETS_MEMORY], 5);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_OK);
	assert_true(sum.mem_rate_known && sum.mem_rate == 524288 && !sum.nothing_published);
	assert_true(t.of[5].kind == BUCKETS_BLOCK && t.of[5].count == 3);
	assert_true(t.of[6].kind == BUCKETS_MUTEX && t.of[6].count == 4);
	assert_int_equal(t.first_pc[0], 1000);
	t = collect(b, &sum);
	assert_int_equal(t.count, 7);
	assert_int_equal(t.fresh, 0);
	buckets_close(b);
	free(f.bytes);
}

TEST(where_memory_is_short_the_next_collection_knows_all)
{
	struct fake f = fake_init(1 << 20);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t = {0};

	for (unsigned i = 0; i < 600; i++)
		fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 64, 1000 + i, 3), 0, 10, i);
	for (unsigned most = 0; most < 2; most++) { /* none, then room for 256 */
		grants = most;
		assert_int_equal(buckets_collect(b, tell, &t, &sum), -ENOMEM);
		grants = UINT32_MAX;
	}
	fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 64, 9000, 3), 0, 10, 1);
	t = collect(b, &sum);
	assert_int_equal(t.count, 601);
	assert_int_equal(t.allocs, 6010);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_OK);
	buckets_close(b);
	free(f.bytes);
}

TEST(what_waits_for_the_next_cycle_is_pending)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	const uint64_t one = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 1);
	struct buckets_sum sum;
	struct told t;

	fake_amounts(&f, one, 0, 100, 40);
	fake_amounts(&f, one, 1 + (7 + 2) % 3, 5, 0); /* allocations of now */
	fake_amounts(&f, one, 1 + (7 + 1) % 3, 0, 6); /* frees of the running sweep */
	t = collect(b, &sum);
	assert_int_equal(t.allocs, 100);
	assert_int_equal(t.frees, 40);
	assert_int_equal(t.pending, 5);
	/* cycle 8 has begun, and mProf_Flush has not yet published the values of 7 + 1 */
	fake_set(&f, FAKE_CYCLE, 8 << 1);
	fake_amounts(&f, one, 1 + 8 % 3, 7, 6);
	t = collect(b, &sum);
	assert_int_equal(t.allocs, 107);
	assert_int_equal(t.frees, 46);
	buckets_close(b);
	free(f.bytes);
}

TEST(before_the_first_collection_of_garbage_all_is_pending)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;

	fake_set(&f, FAKE_CYCLE, 0);
	fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 1), 1 + 2, 9, 0);
	t = collect(b, &sum);
	assert_true(sum.nothing_published);
	assert_int_equal(t.pending, 9);
	buckets_close(b);
	free(f.bytes);
}

TEST(short_records_are_known_by_their_distance)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;

	f.record_len = BUCKET_RECORD_SHORT;
	for (unsigned i = 0; i < 3; i++)
		fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 100, 1000 + i, 2), 0, 3, 1);
	t = collect(b, &sum);
	assert_int_equal(t.allocs, 9);
	assert_int_equal(t.bytes, 900);
	assert_int_equal(t.of[0].record_len, 64);
	buckets_close(b);
	free(f.bytes);
}

TEST(a_record_by_itself_is_parsed_as_in_its_bucket)
{
	const uint64_t whole[16] = {3, 1, 24, 8, 0, 0, 0, 0, 2, 0, 16},
		       counts[8] = {3, 1, 0, 0, 2, 0, 0, 0};
	const uint64_t torn[16] = {4, 1, 24, 8};
	struct bucket b = {.cycle = 0, .cycle_known = true};

	assert_true(bucket_record_parse(whole, 128, 8, &b));
	assert_true(bucket_published(&b).alloc_bytes == 24 && bucket_pending(&b).allocs == 2);
	b = (struct bucket){.cycle = 0, .cycle_known = true};
	assert_true(bucket_record_parse(counts, 64, 8, &b));
	assert_true(bucket_published(&b).alloc_bytes == 24 && bucket_published(&b).free_bytes == 8);
	assert_int_equal(bucket_pending(&b).alloc_bytes, 16);
	assert_false(bucket_record_parse(torn, 128, 8, &b));
	assert_false(bucket_record_parse(whole, 96, 8, &b));
}

TEST(ticks_are_measured_where_no_program_says_them)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	double measured;

	collect(b, &sum);
	assert_true(sum.ticks_per_second == 0); /* nothing to divide */
	fake_bucket(&f, BUCKETS_MUTEX, 0, 1000, 1);
	collect(b, &sum);
	measured = sum.ticks_per_second;
	collect(b, &sum);
	assert_true(sum.ticks_per_second == measured);
#ifdef __x86_64__
	assert_true(measured > 1e8 && measured < 1e10);
#endif
	fake_set(&f, FAKE_TICKS, 2000000000);
	collect(b, &sum);
	assert_true(sum.ticks_per_second == 2e9);
	buckets_close(b);
	free(f.bytes);
}

TEST(records_of_a_length_that_no_go_has_are_not_read)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;

	f.record_len = 96;
	for (unsigned i = 0; i < 3; i++)
		fake_bucket(&f, BUCKETS_MEMORY, 100, 1000 + i, 2);
	t = collect(b, &sum);
	assert_int_equal(t.count, 0);
	assert_int_equal(sum.state[BUCKETS_MEMORY], BUCKETS_UNKNOWN_LAYOUT);
	buckets_close(b);
	free(f.bytes);
}

TEST(ten_thousand_known_buckets_take_few_reads)
{
	struct fake f = fake_init(16 << 20);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;

	for (unsigned i = 0; i < MANY; i++) {
		fake_amounts(&f, fake_bucket(&f, BUCKETS_MEMORY, 16, 1000 + i, 1 + i % 40), 0, 1,
			     0);
		f.used += i % 97 ? 0 : 5000; /* others allocate there, too */
	}
	collect(b, &sum);
	assert_int_equal(sum.fresh, MANY);
	assert_true(sum.reads < 600);
	t = collect(b, &sum);
	assert_int_equal(t.count, MANY);
	assert_int_equal(t.allocs, MANY);
	assert_true(sum.reads <= 32);
	fake_bucket(&f, BUCKETS_MEMORY, 16, 99, 3);
	t = collect(b, &sum);
	assert_int_equal(sum.fresh, 1);
	assert_int_equal(t.count, MANY + 1);
	assert_true(sum.reads <= 32);
	buckets_close(b);
	free(f.bytes);
}

/* ---- a process that changes while it is read ---- */

static void heal(struct fake *f)
{
	if (f->reads == f->mark)
		fake_amounts(f, fake_get(f, FAKE_HEAD(BUCKETS_MEMORY)), 0, 8, 0);
}

TEST(a_record_caught_half_written_is_read_again)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	const uint64_t one = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 1);
	struct buckets_sum sum;
	struct told t;

	fake_amounts(&f, one, 0, 7, 0);
	collect(b, &sum);
	fake_set(&f, fake_record(&f, one), 8); /* allocs, but not yet alloc_bytes */
	f.before = heal;
	f.mark = f.reads + 4;
	t = collect(b, &sum);
	assert_int_equal(t.count, 1);
	assert_int_equal(t.allocs, 8);
	assert_int_equal(t.bytes, 64);
	assert_true(sum.torn && !sum.dropped);
	f.before = NULL;
	fake_set(&f, fake_record(&f, one), 9); /* for good */
	t = collect(b, &sum);
	assert_int_equal(t.count, 0);
	assert_int_equal(sum.dropped, 1);
	assert_int_equal(sum.state[0], BUCKETS_OK);
	buckets_close(b);
	free(f.bytes);
}

static void publish(struct fake *f)
{
	const uint64_t one = fake_get(f, FAKE_HEAD(BUCKETS_MEMORY));

	if (f->reads != f->mark)
		return;
	fake_amounts(f, one, 1 + 8 % 3, 0, 0);
}

TEST(a_record_in_the_middle_of_its_publication_does_not_count_twice)
{
	struct fake f = fake_init(1 << 16);
	struct buckets *b = fake_open(&f);
	const uint64_t one = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 1);
	struct buckets_sum sum;
	struct told t;

	fake_amounts(&f, one, 0, 10, 0);
	collect(b, &sum);
	/* by mProf_Flush, and by a call to MemProfile */
	for (unsigned flushed = 0; flushed < 2; flushed++) {
		fake_set(&f, FAKE_CYCLE, 8 << 1 | flushed);
		fake_amounts(&f, one, 0, 15, 0);
		fake_amounts(&f, one, 1 + 8 % 3, 5, 0); /* added to active, not zeroed yet */
		f.before = publish;
		f.mark = f.reads + 3;
		t = collect(b, &sum);
		assert_int_equal(t.count, 1);
		assert_int_equal(t.allocs, 15);
		assert_true(sum.torn);
	}
	buckets_close(b);
	free(f.bytes);
}

static void turn(struct fake *f)
{
	fake_set(f, FAKE_CYCLE, (uint64_t)f->reads << 1 | 1);
}

static long turn_read(void *ctx, const struct buckets_range *ranges, size_t count)
{
	struct fake *f = ctx;
	long n = fake_read(f, ranges, count - 1);

	if (count < 2)
		return fake_read(f, ranges, count);
	turn(f); /* a collection of garbage ends between the records and the cycle's second reading
		  */
	return n + fake_read(f, ranges + count - 1, 1);
}

TEST(what_is_read_across_a_change_of_cycle_is_left_out_and_counted)
{
	struct fake f = fake_init(1 << 16);
	const struct buckets_layout l = fake_layout();
	const struct buckets_memory m = {turn_read, &f};
	struct buckets *b = buckets_open(&l, &m);
	struct buckets_sum sum;
	struct told t;

	for (unsigned i = 0; i < 40; i++)
		fake_bucket(&f, BUCKETS_MEMORY, 8, 1000 + i, 1);
	t = collect(b, &sum);
	assert_int_equal(t.count, 0);
	assert_int_equal(sum.dropped, 40);
	assert_true(sum.reads < 200);
	buckets_close(b);
	free(f.bytes);
}

TEST(what_is_unmapped_is_left_out_and_the_rest_is_told)
{
	struct fake f = fake_init(1 << 20);
	struct buckets *b = fake_open(&f);
	struct buckets_sum sum;
	struct told t;

	for (unsigned i = 0; i < 100; i++)
		fake_bucket(&f, BUCKETS_MEMORY, 8, 1000 + i, 10);
	collect(b, &sum);
	f.hole = FAKE_BASE + 8192;
	f.hole_len = 1000;
	t = collect(b, &sum);
	assert_int_equal(t.count + sum.dropped, 100);
	assert_in_range(sum.dropped, 4, 6);
	assert_true(sum.reads < 400);
	buckets_close(b);
	free(f.bytes);
}

TEST(a_process_that_ends_or_becomes_another_is_told)
{
	struct fake f = fake_init(1 << 20);
	struct buckets *b = fake_open(&f);
	const uint64_t one = fake_bucket(&f, BUCKETS_MEMORY, 8, 1000, 4);
	struct buckets_sum sum;

	collect(b, &sum);
	fake_set(&f, one + 24, 1); /* its hash */
	assert_int_equal(collect(b, &sum).count, 0);
	assert_int_equal(sum.state[0], BUCKETS_GONE);
	fake_set(&f, FAKE_HEAD(BUCKETS_MEMORY), 0);
	collect(b, &sum);
	assert_int_equal(sum.state[0], BUCKETS_GONE);
	f.error = -ESRCH;
	collect(b, &sum);
	assert_int_equal(sum.state[0], BUCKETS_GONE);
	f.error = -EPERM;
	collect(b, &sum);
	assert_int_equal(sum.state[0], BUCKETS_UNREADABLE);
	assert_string_equal(buckets_state_text(sum.state[0]),
			    "no permission to read its memory (CAP_SYS_PTRACE)");
	buckets_close(b);
	free(f.bytes);
}
