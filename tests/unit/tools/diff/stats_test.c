/* SPDX-License-Identifier: Apache-2.0 */
/* stats: the distributions match scipy's, and the rate of false alarms is the stated one. */
#include <math.h>
#include <stdlib.h>

#include "tests/unit/tools/diff/stats_cases.h"
#include "tools/diff/stats.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

/* Relative, as tails are small. */
static void close_to(double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance * fabs(want) + 1e-290)
		fail_msg("%.17g is not %.17g", got, want);
}

TEST(distributions_are_those_of_scipy)
{
	for (size_t i = 0; i < ARRAY_SIZE(beta_cases); i++)
		close_to(stats_beta(beta_cases[i].a, beta_cases[i].b, beta_cases[i].x),
			 beta_cases[i].value, 1e-7);
	for (size_t i = 0; i < ARRAY_SIZE(t_cases); i++)
		close_to(stats_t_tails(t_cases[i].t, t_cases[i].df), t_cases[i].tails, 1e-9);
	for (size_t i = 0; i < ARRAY_SIZE(counts_cases); i++)
		close_to(stats_counts(counts_cases[i].a, counts_cases[i].b, counts_cases[i].share),
			 counts_cases[i].p, 1e-7);
}

TEST(a_quantile_is_the_inverse_of_its_tail)
{
	for (double upper = 0.4; upper > 1e-12; upper /= 7)
		for (double df = 1; df < 1000; df *= 5)
			close_to(stats_t_tails(stats_t_quantile(upper, df), df), 2 * upper, 1e-6);
}

TEST(welch_is_scipys_where_neighbours_do_not_correlate)
{
	for (size_t i = 0; i < ARRAY_SIZE(welch_cases); i++) {
		struct stats_test t;

		stats_welch(welch_cases[i].a, 8, 0, welch_cases[i].b, 8, 0, &t);
		close_to(t.p, welch_cases[i].p, 1e-9);
		close_to(t.df, welch_cases[i].df, 1e-9);
	}
}

/* Table 1 of Benjamini and Hochberg (1995): fifteen tests, of which the first four count at 0.05.
 */
TEST(the_adjustment_is_that_of_the_paper)
{
	static const double p[] = {0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344,
				   0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.000};
	double q[ARRAY_SIZE(p)], shuffled[ARRAY_SIZE(p)], weight[ARRAY_SIZE(p)];
	size_t counted = 0;

	stats_adjust(p, NULL, ARRAY_SIZE(p), q);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		counted += q[i] <= 0.05;
	assert_int_equal(counted, 4);
	close_to(q[0], 0.0015, 1e-9);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
		weight[i] = 3;
		shuffled[i] = p[(i * 4 + 2) % ARRAY_SIZE(p)];
	}
	stats_adjust(shuffled, weight, ARRAY_SIZE(p), weight);
	for (size_t i = 0; i < ARRAY_SIZE(p); i++)
		close_to(weight[i], q[(i * 4 + 2) % ARRAY_SIZE(p)], 1e-12);
}

/* --- chance --- */

static uint64_t seed = 88172645463325252ull;

static double uniform(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (double)(seed >> 11) / 9007199254740992.0;
}

static double normal(void)
{
	double x = 0;

	for (int i = 0; i < 12; i++)
		x += uniform();
	return x - 6;
}

/* How often two series of `n` of the same kind differ at 5 %; neighbours correlate by r. */
static double alarms(size_t n, double r, bool counts)
{
	double x[2][64];
	int found = 0, tries = 4000;

	for (int k = 0; k < tries; k++) {
		struct stats_test t;

		for (int side = 0; side < 2; side++) {
			double level = normal();

			for (size_t i = 0; i < n; i++) {
				level = r * level + sqrt(1 - r * r) * normal();
				x[side][i] = counts ? (double)(uniform() < 0.05) : level;
			}
		}
		stats_welch(x[0], n, 1.0 / (double)n * counts, x[1], n, 1.0 / (double)n * counts,
			    &t);
		found += t.p < 0.05;
	}
	return (double)found / tries;
}

TEST(alarms_are_as_rare_as_said)
{
	assert_true(alarms(60, 0, false) < 0.06);
	assert_true(alarms(10, 0, false) < 0.06);
	assert_true(alarms(60, 0.5, false) < 0.08);
	assert_true(alarms(60, 0.8, false) < 0.10);
	assert_true(alarms(60, 0, true) < 0.06);
	assert_true(alarms(60, 0, false) > 0.03);
}

TEST(what_is_called_detectable_is_found_four_times_in_five)
{
	const double alpha = 0.001;
	int found = 0, tries = 3000;
	double a[40], b[40];

	for (int k = 0; k < tries; k++) {
		struct stats_test t;
		double add = 0;

		/* what the noise of one pair promises, another pair keeps */
		for (int again = 0; again < 2; again++) {
			for (size_t i = 0; i < 40; i++) {
				a[i] = normal();
				b[i] = normal() + add;
			}
			stats_welch(a, 40, 0, b, 40, 0, &t);
			add = stats_detectable(t.se, t.df, alpha);
		}
		found += t.p < alpha;
	}
	assert_true(found > 0.7 * tries && found < 0.88 * tries);
}

TEST(one_sample_more_is_no_change)
{
	const double none[4] = {0}, one[4] = {1, 1, 1, 1};
	struct stats_test t;

	stats_welch(none, 4, 0.25, none, 4, 0.25, &t);
	assert_true(t.p == 1);
	stats_welch(none, 4, 1, one, 4, 1, &t);
	assert_true(t.p > 0.4 && t.p < 1);
}

TEST(seen_on_one_side_only_counts_by_slices)
{
	close_to(stats_presence(10, 10, 10), 2 / 184756.0,
		 1e-12); /* of the ways to choose 10 of 20 */
	close_to(stats_presence(2, 60, 60), 2 * 60 * 59 / (120.0 * 119), 1e-12);
	close_to(stats_presence(1, 60, 60), 1, 1e-12);
	close_to(stats_presence(0, 60, 60), 1, 1e-12);
}

TEST(a_level_that_moved_is_found_where_it_moved)
{
	double x[48];
	struct stats_shift s;
	int false_alarms = 0;

	for (size_t at = 5; at < 44; at += 3) {
		for (size_t i = 0; i < 48; i++)
			x[i] = 10 + normal() + (i >= at ? 6 : 0);
		assert_true(stats_find_shift(x, 48, 0, &s));
		assert_true(s.p < 1e-3 && s.at + 1 >= at && s.at <= at + 1);
	}
	for (int k = 0; k < 1000; k++) {
		for (size_t i = 0; i < 48; i++)
			x[i] = normal();
		stats_find_shift(x, 48, 0, &s);
		false_alarms += s.p < 0.05;
	}
	assert_true(false_alarms < 80);
	assert_false(stats_find_shift(x, 5, 0, &s));
}
