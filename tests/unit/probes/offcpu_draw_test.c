/* SPDX-License-Identifier: Apache-2.0 */
/* offcpu_draw: sums over waits that are drawn, against sums over all of them, many times. */
#include <linux/types.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#include "probes/offcpu_draw.h"
#include "tests/unit/test.h"

#define RUNS 2000

static uint64_t seed = 88172645463325252ull;

static uint64_t chance(void) /* splitmix64: another one than that of the draws */
{
	uint64_t z = seed += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

struct sums {
	double n, ns, n_variance, variance;
};

/* waits of one stack: equally long, or evenly spread up to that; two places have one stratum */
struct place {
	unsigned count;
	uint64_t ns;
	bool spread;
};

/* All waits of all places, in any order, and what is drawn of them. */
static void play(const struct place *places, int n, const struct draw_limit *limit,
		 uint64_t every_ns, struct sums *did, struct sums *seen)
{
	struct offcpu_draw d = {.random = chance() | 1};
	struct draw_stratum s[8] = {{0}};
	unsigned left[8], all = 0;
	uint64_t now = 1ull << 40;

	for (int i = 0; i < n; i++) {
		left[i] = places[i].count;
		all += left[i];
		did[i] = seen[i] = (struct sums){0};
	}
	for (; all; all--, now += every_ns) {
		unsigned pick = (unsigned)(chance() % all);
		uint32_t weight;
		uint64_t ns;
		int at = 0;

		while (pick >= left[at])
			pick -= left[at++];
		left[at]--;
		ns = places[at].spread ? chance() % places[at].ns : places[at].ns;
		did[at].n++;
		did[at].ns += (double)ns;
		weight = draw_weight(&d, &s[at / 2], limit, now, ns);
		seen[at].n += weight;
		seen[at].ns += (double)weight * (double)ns;
		seen[at].n_variance += weight ? (double)weight * (weight - 1.0) : 0;
		seen[at].variance +=
			weight ? (double)weight * (weight - 1.0) * (double)ns * (double)ns : 0;
	}
}

/* Over many runs: the mean is what happened, to within four of its own standard errors; and the
 * variance that is told is not below the one that there is by more than chance. Of a stratum's
 * parts it is near it; of all of a stratum it is more.
 */
static void check(const struct place *places, int n, const struct draw_limit *limit,
		  uint64_t every_ns)
{
	double off[8] = {0}, off2[8] = {0}, n_off[8] = {0}, n_off2[8] = {0}, told[8] = {0};
	struct sums did[8], seen[8];

	for (int run = 0; run < RUNS; run++) {
		play(places, n, limit, every_ns, did, seen);
		for (int i = 0; i < n; i++) {
			double x = seen[i].ns - did[i].ns, y = seen[i].n - did[i].n;

			off[i] += x / RUNS;
			off2[i] += x * x / RUNS;
			n_off[i] += y / RUNS;
			n_off2[i] += y * y / RUNS;
			told[i] += seen[i].variance / RUNS;
		}
	}
	for (int i = 0; i < n; i++) {
		assert_true(fabs(off[i]) <= 4 * sqrt(off2[i] / RUNS));
		assert_true(fabs(n_off[i]) <= 4 * sqrt(n_off2[i] / RUNS));
		assert_true(i == 3 || off2[i] <= 1.25 * told[i]); /* of too few draws to say */
		if (i < 2)
			assert_true(told[i] <= 4 * off2[i]);
	}
}

TEST(a_wait_above_the_level_is_drawn_and_counts_for_itself)
{
	const struct draw_limit limit = {.most = 1u << 30, .least = 20};
	struct offcpu_draw d = {.random = 1};
	struct draw_stratum s = {0};

	for (uint64_t ns = 1 << 20; ns < 1ull << 40; ns = ns * 5 / 4)
		assert_int_equal(draw_weight(&d, &s, &limit, 1ull << 40, ns), 1);
}

TEST(below_its_limit_each_wait_is_drawn_whatever_its_length)
{
	const struct draw_limit limit = {.most = 134};
	struct offcpu_draw d = {.random = 1};
	struct draw_stratum s = {0};

	for (uint64_t i = 0; i < 100000; i++)
		assert_int_equal(
			draw_weight(&d, &s, &limit, (1ull << 40) + i * 1100000, chance() % 4096),
			1);
}

TEST(many_short_waits_and_few_long_ones_have_no_bias_and_the_error_that_is_told)
{
	const struct place places[] = {{3000, 15000, false},
				       {3000, 40000, true},
				       {300, 900000, true},
				       {20, 20000000, false}};
	const struct draw_limit fixed = {.most = 1u << 30, .least = 20};

	check(places, 3, &fixed, 20000);
}

TEST(while_the_level_follows_its_limit_there_is_no_bias)
{
	const struct place places[] = {{4000, 30000, true},
				       {1000, 300000, true},
				       {200, 3000000, true},
				       {50, 20000000, false}};
	const struct draw_limit limit = {.most = 13};

	check(places, 4, &limit, 300000);
}

TEST(equal_waits_of_a_thread_are_right_to_within_one_draw_at_any_moment)
{
	const struct draw_limit limit = {.most = 1u << 30, .least = 26};
	struct offcpu_draw d = {.random = 5};
	struct draw_stratum s = {0};
	int64_t seen = 0;

	for (int i = 1; i <= 10000; i++) { /* 20 ms: one in four */
		seen += draw_weight(&d, &s, &limit, 1ull << 40, 20000000);
		assert_in_range(seen + 4 - i, 0, 8);
	}
}

TEST(which_of_equal_waits_is_drawn_follows_no_pattern)
{
	const struct draw_limit limit = {.most = 1u << 30, .least = 26};
	struct offcpu_draw d = {.random = 5};
	struct draw_stratum s = {0};
	double seen[4] = {0};

	for (int i = 0; i < 40000; i++) /* a program that does four things in turn */
		seen[i % 4] += draw_weight(&d, &s, &limit, 1ull << 40, 20000000);
	for (int i = 0; i < 4; i++)
		assert_true(fabs(seen[i] - 10000) < 5 * 4 * sqrt(10000 * 0.25 * 0.75));
}

TEST(what_waits_for_some_seconds_is_exact_among_many_that_always_wait)
{
	const struct draw_limit limit = {.most = 13, .least = 20, .behind = 13};
	struct offcpu_draw d = {.random = 3};
	static struct draw_stratum others[60];
	struct draw_stratum s = {0};
	uint64_t now = 1ull << 40;

	for (int i = 0; i < 60 * 3000; i++, now += 500000) /* 60 threads, for 90 s */
		draw_weight(&d, &others[i % 60], &limit, now, 30000000);
	assert_true(d.level > 24);
	for (int i = 0; i < 40 * 100; i++, now += 500000) {
		draw_weight(&d, &others[i % 60], &limit, now, 30000000);
		if (i % 40 == 0) /* 100 waits of 20 ms */
			assert_int_equal(draw_weight(&d, &s, &limit, now, 20000000), 1);
	}
}

TEST(so_many_long_waits_are_exact_and_those_behind_them_have_no_bias)
{
	const struct draw_limit limit = {.most = 13, .least = 20, .longs = 65, .behind = 78};
	const struct place places[] = {{2000, 3000000, false}, {500, 9000000, true}};
	struct offcpu_draw d = {.random = 3};
	struct draw_stratum s = {0};
	uint64_t now = 1ull << 40;

	for (int i = 0; i < 4000;
	     i++, now += 2100000) /* 64 in a window, for longer than credit lasts */
		assert_int_equal(draw_weight(&d, &s, &limit, now, 2000000), 1);
	check(places, 2, &limit, 500000);
}

TEST(draws_keep_to_their_limit)
{
	const struct draw_limit limit = {.most = 13, .least = 0};
	struct offcpu_draw d = {.random = 99};
	struct draw_stratum s = {0};
	unsigned drawn = 0, windows = 200;
	uint64_t now = 1ull << 40, end = now + ((uint64_t)windows << DRAW_WINDOW_SHIFT);

	for (; now < end; now += 16000) /* 62 500 a second */
		drawn += draw_weight(&d, &s, &limit, now, 5000 + chance() % 20000) != 0;
	assert_in_range(drawn, windows * 13 / 4, windows * 13 * 3 / 2);
}

TEST(long_waits_in_a_storm_are_all_drawn)
{
	const struct draw_limit limit = {.most = 13, .least = 20};
	struct offcpu_draw d = {.random = 7};
	struct draw_stratum s = {0};
	uint64_t now = 1ull << 40;

	for (int i = 0; i < 600000; i++, now += 16000) {
		draw_weight(&d, &s, &limit, now, 5000 + chance() % 20000);
		if (i % 3000 == 2999)
			assert_int_equal(draw_weight(&d, &s, &limit, now, 20000000), 1);
	}
}

TEST(the_highest_bit_is_found)
{
	assert_int_equal(draw_log2(0), 0);
	for (unsigned i = 0; i < 64; i++)
		assert_int_equal(draw_log2(1ull << i | (i ? chance() & ((1ull << i) - 1) : 0)), i);
}
