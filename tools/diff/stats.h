/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: is a difference more than noise? Pure arithmetic; docs/decisions/0062 says why these
 * tests.
 *
 *  1. Welch's t-test: two series of equal slices of time with different variances. Slices
 * that follow each other are alike in most programs, so fewer of them are independent: the variance
 * of a mean grows by the larger of (1 + r) / (1 - r), r being the correlation of neighbours over
 * both series, and Bartlett's weighted sum of up to 8 lags; never below 1; the degrees of freedom
 * shrink by as much. A mean is never known better than to one sample
 *     (`unit`).
 *  2. The exact conditional test of two counts, where there is no series: given n = a + b, b is
 * binomial. What is missing on one side is compared by the number of slices that have it on the
 * other (hypergeometric).
 *  3. Benjamini and Hochberg's adjustment for many tests, weighted (Genovese, Roeder, Wasserman
 * 2006): what takes more of the time gets more of the error budget. Weights may depend on the sum
 * of both sides only.
 *  4. The place in one series where its level moved: the best split into two levels, times the
 * number of splits.
 */
#ifndef SONDE_TOOLS_STATS_H
#define SONDE_TOOLS_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stats_test {
	double before, after; /* means */
	double se, df;        /* standard error of the difference, degrees of freedom */
	double p;             /* two-sided */
};

/* Both n >= 2. `unit_*`: what one sample adds to the mean of that side. */
void stats_welch(const double *a, size_t n_a, double unit_a, const double *b, size_t n_b,
		 double unit_b, struct stats_test *out);
/* The same of values that do not depend on one another: rule 1 without correlation. */
void stats_welch_plain(const double *a, size_t n_a, double unit_a, const double *b, size_t n_b,
		       double unit_b, struct stats_test *out);
/* Two-sided p that `b` of a + b counts fell on the side which has `share_b` of the exposure. */
double stats_counts(double a, double b, double share_b);
/* Two-sided p that all `k` slices in which something was seen are among the `n` of one side, none
 * among the others. */
double stats_presence(size_t k, size_t n, size_t n_other);
/* The difference in means that such a test finds four times in five, at level `alpha`. */
double stats_detectable(double se, double df, double alpha);

/* q[i]: the smallest false-discovery rate at which test i counts; NULL weights: all the same.
 * Weights have any sum. */
void stats_adjust(const double *p, const double *weight, size_t n, double *q);

struct stats_shift {
	size_t at; /* index of the first value of the new level */
	double before, after;
	double p;
};
/* False where there are fewer than 6 values. */
bool stats_find_shift(const double *x, size_t n, double unit, struct stats_shift *out);

/* Tails of Student's t and its inverse, regularised incomplete beta. */
double stats_t_tails(double t, double df);        /* P(|T| > |t|) */
double stats_t_quantile(double upper, double df); /* t with P(T > t) = upper, 0 < upper <= 0.5 */
double stats_beta(double a, double b, double x);

#endif
