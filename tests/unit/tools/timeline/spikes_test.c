/* SPDX-License-Identifier: Apache-2.0 */
/* spikes: which values differ clearly from the usual ones, and which do not. */
#include <stdlib.h>

#include "tests/unit/test.h"
#include "tools/timeline/spikes.h"

#define N     360
#define UNIT  0.005
#define LEAST 0.1

/* The numbers of a linear generator, -1 to 1. */
static double noise(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return (double)(*state >> 8) / (double)(1u << 23) - 1;
}

static void fill(double *x, double level, double spread, uint32_t seed)
{
	for (size_t i = 0; i < N; i++)
		x[i] = level + spread * noise(&seed);
}

TEST(a_block_above_noise_is_one_spike_with_its_edges)
{
	double x[N];
	struct spike *s;
	size_t n;

	for (uint32_t seed = 0; seed < 100; seed++) {
		fill(x, 0.5, 0.1, seed);
		for (size_t i = 100; i < 116; i++)
			x[i] += 1;
		s = spikes_find(x, N, UNIT, LEAST, &n);
		assert_int_equal(n, 1);
		assert_int_equal(s->first, 100);
		assert_int_equal(s->end, 116);
		assert_true(s->usual > 0.4 && s->usual < 0.6 && s->mean > 1.3 && s->mean < 1.7);
		assert_true(s->excess > 14 && s->excess < 18 && s->peak >= s->mean);
		free(s);
	}
}

TEST(steady_noise_and_what_happens_again_and_again_is_none)
{
	double x[N];
	size_t n;

	for (uint32_t seed = 0; seed < 100; seed++) {
		fill(x, 1, 0.4, seed);
		assert_null(spikes_find(x, N, UNIT, LEAST, &n));
		assert_int_equal(n, 0);
	}
	for (size_t i = 0; i < N; i++)
		x[i] = i % 6 == 0;
	assert_null(spikes_find(x, N, UNIT, LEAST, &n));
}

TEST(what_is_below_the_least_or_the_error_of_counting_is_none)
{
	double x[N] = {0};
	size_t n;

	x[50] = 0.09;
	assert_null(spikes_find(x, N, UNIT, LEAST, &n));
	x[50] = 0.2;
	assert_null(spikes_find(x, N, 0.05, LEAST, &n)); /* four samples */
	free(spikes_find(x, N, UNIT, LEAST, &n));
	assert_int_equal(n, 1);
}

TEST(a_gap_ends_a_spike_and_is_no_rest)
{
	double x[N] = {0};
	struct spike *s;
	size_t n;

	for (size_t i = 20; i < 30; i++)
		x[i] = i == 25 ? -1 : 1;
	x[40] = x[42] = 1;
	s = spikes_find(x, N, UNIT, LEAST, &n);
	assert_int_equal(n, 3);
	assert_int_equal(s[0].end, 25);
	assert_int_equal(s[1].first, 26);
	assert_int_equal(s[2].first, 40);
	assert_int_equal(s[2].end, 43);
	assert_true(s[2].excess == 2);
	free(s);
}

TEST(gaps_do_not_count_as_idle)
{
	double x[N];
	size_t n;

	for (size_t i = 0; i < N; i++)
		x[i] = i % 4 ? -1 : 1;
	assert_null(spikes_find(x, N, UNIT, LEAST, &n));
	for (size_t i = 0; i < N; i++)
		x[i] = -1;
	assert_null(spikes_find(x, N, UNIT, LEAST, &n));
	assert_null(spikes_find(x, 0, UNIT, LEAST, &n));
	x[0] = 5;
	assert_null(spikes_find(x, N, UNIT, LEAST, &n));
}
