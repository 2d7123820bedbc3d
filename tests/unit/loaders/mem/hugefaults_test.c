/* SPDX-License-Identifier: Apache-2.0 */
/* hugefaults: when faults that bring huge pages are sampled, and in which part of the time. */
#include "loaders/mem/hugefaults.h"

#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tests/unit/test.h"

TEST(the_kernels_counts_are_read)
{
	static const char text[] = "nr_free_pages 5\npgalloc_dma 1\npgalloc_normal 20\n"
				   "thp_fault_alloc 7\nthp_fault_fallback 9\npgalloc_movable 300\n";
	uint64_t faults = 0, allocs = 0;

	assert_int_equal(hugefaults_parse(text, strlen(text), &faults, &allocs), 0);
	assert_int_equal(faults, 7);
	assert_int_equal(allocs, 321);
	assert_true(hugefaults_parse("pgalloc_dma 1", 13, &faults, &allocs) < 0);
	assert_true(hugefaults_parse("", 0, &faults, &allocs) < 0);
	assert_int_equal(faults, 7);
}

TEST(a_host_without_huge_pages_has_no_order)
{
	assert_int_equal(hugefaults_order_of("always [madvise] never\n", "2097152\n"), 9);
	assert_int_equal(hugefaults_order_of("[always] madvise never\n", "33554432\n"), 13);
	assert_int_equal(hugefaults_order_of("always madvise [never]\n", "2097152\n"), 0);
	assert_int_equal(hugefaults_order_of("[always] madvise never\n", "12345"), 0);
	assert_int_equal(hugefaults_order_of("[always] madvise never\n", ""), 0);
}

#define SPAN HUGEFAULTS_ASK_NS

TEST(it_is_on_while_there_are_some_and_a_minute_longer)
{
	struct hugefaults x = {.fd = -1, .turns = 1};
	int64_t now = SPAN;

	hugefaults_decide(&x, 1000, 0, now);
	assert_false(x.on);
	hugefaults_decide(&x, 1000, 0, now += SPAN);
	assert_false(x.on);
	hugefaults_decide(&x, 1001, 0, now += SPAN);
	assert_true(x.on);
	hugefaults_decide(&x, 1001, 0, now += HUGEFAULTS_OVER_NS - 1);
	assert_true(x.on);
	hugefaults_decide(&x, 1001, 0, now += 1);
	assert_false(x.on);
	hugefaults_decide(&x, 1002, 0, now += SPAN);
	assert_true(x.on);
}

/* Spans in which it is on, each of which represents `turns`, are as many as there are. */
TEST(a_host_that_allocates_much_is_watched_in_a_part_of_the_time)
{
	const uint64_t rates[] = {HUGEFAULTS_ALLOCS / 2, HUGEFAULTS_ALLOCS * 2,
				  HUGEFAULTS_ALLOCS * 20, HUGEFAULTS_ALLOCS * 1000};
	const uint32_t expected[] = {1, 3, 21, HUGEFAULTS_TURNS};

	for (size_t i = 0; i < 4; i++) {
		struct hugefaults x = {.fd = -1, .turns = 1, .random = 5};
		uint64_t allocs = 0, represented = 0, spans = 20000;
		int64_t now = SPAN;

		hugefaults_decide(&x, 1, 0, now);
		for (uint64_t n = 0; n < spans; n++) {
			allocs += rates[i] * (SPAN / NSEC_PER_SEC);
			hugefaults_decide(&x, n + 2, allocs, now += SPAN);
			represented += x.on ? x.turns : 0;
			if (n)
				assert_int_equal(x.turns, expected[i]);
		}
		assert_in_range(represented, spans * 8 / 10, spans * 12 / 10);
	}
}

TEST(who_gets_huge_pages_for_two_rows_of_turns_is_met_at_least_once)
{
	struct hugefaults x = {.fd = -1, .turns = 1, .random = 5};
	uint64_t allocs = 0, off = 0, faults = 2;
	int64_t now = SPAN;

	hugefaults_decide(&x, 1, 0, now);
	for (uint64_t n = 0; n < 2000; n++) {
		allocs += HUGEFAULTS_ALLOCS * (9 + n % 3) * (SPAN / NSEC_PER_SEC);
		hugefaults_decide(&x, faults++, allocs, now += SPAN);
		off = x.on ? 0 : off + 1;
		assert_true(off <= 2 * 12);
	}
}
