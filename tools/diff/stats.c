/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/diff/stats.h"

#include <math.h>
#include <string.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define TINY       1e-300
#define POWER_TAIL 0.2 /* a change is "seen" if it is found four times in five */
#define R_MAX      0.95

/* --- distributions --- */

/* The continued fraction of the incomplete beta function (Abramowitz and Stegun 26.5.8), evaluated
 * from the front. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), h;

	d = 1 / (fabs(d) < TINY ? TINY : d);
	h = d;
	for (int m = 1; m < 100000; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = fabs(c) < TINY ? TINY : c;
		h *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < TINY ? TINY : d);
		c = fabs(c) < TINY ? TINY : c;
		step = d * c;
		h *= step;
		if (fabs(step - 1) < 1e-14)
			break;
	}
	return h;
}

/* glibc's lgamma writes a global: the one that does not. */
static double log_gamma(double x)
{
	int sign;

	return lgamma_r(x, &sign);
}

double stats_beta(double a, double b, double x)
{
	double front;

	if (x <= 0)
		return 0;
	if (x >= 1)
		return 1;
	front = exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double stats_t_tails(double t, double df)
{
	return stats_beta(df / 2, 0.5, df / (df + t * t));
}

double stats_t_quantile(double upper, double df)
{
	double low = 0, high = 1;

	while (stats_t_tails(high, df) > 2 * upper && high < 1e12)
		high *= 2;
	for (int i = 0; i < 80; i++) {
		double mid = (low + high) / 2;

		if (stats_t_tails(mid, df) > 2 * upper)
			low = mid;
		else
			high = mid;
	}
	return high;
}

/* --- two series --- */

#define LAGS 8
#define FEW  128 /* values that fit on the stack */

struct moments {
	double mean, squares, lagged[LAGS]; /* sums of squared deviations, and of products of those
					       1, 2, ... apart */
	size_t n;
};

/* Deviations are in reverse order, zeros after the first: the previous ones follow each, so that
 * one step covers all lags. */
static struct moments moments_of(const double *x, size_t n)
{
	struct moments m = {.n = n};
	double few[FEW + LAGS], lagged[LAGS] = {0};
	cleanup_free double *many = n > FEW ? mem_array(n + LAGS, sizeof(*many)) : NULL;
	double *away = many ? many : few;

	for (size_t i = 0; i < n; i++)
		m.mean += x[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		away[n - 1 - i] = x[i] - m.mean;
	memset(away + n, 0, LAGS * sizeof(*away));
	for (const double *at = away + n; at-- > away;) {
		m.squares += *at * *at;
		for (size_t k = 0; k < LAGS; k++)
			lagged[k] += *at * at[k + 1];
	}
	memcpy(m.lagged, lagged, sizeof(lagged));
	return m;
}

/* (1 + r) / (1 - r), with r of neighbours. Estimated means make each r too small by about (1 + 3 r)
 * / n (Kendall 1954). An r above its own error is corrected by that much: among many tests, those
 * with a low estimate would be marked. */
static double inflation_next(double r, double n)
{
	if (r <= 0)
		return 1;
	if (r > 1 / sqrt(n))
		r += 1 / sqrt(n);
	r += (1 + 3 * r) * 2 / n;
	r = r > R_MAX ? R_MAX : r;
	return (1 + r) / (1 - r);
}

/* Variance of a mean of values that correlate, over that of independent ones: the larger of what
 * neighbours tell, and of Bartlett's weighted sum of several lags. */
static double inflation(const struct moments *a, const struct moments *b)
{
	double n = (double)(a->n + b->n), squares = a->squares + b->squares, sum = 1;
	size_t least = a->n < b->n ? a->n : b->n, lags = least / 4 < LAGS ? least / 4 : LAGS;

	if (squares <= 0)
		return 1;
	for (size_t k = 1; k <= lags; k++)
		sum += 2 * (1 - (double)k / (double)(lags + 1)) *
		       ((a->lagged[k - 1] + b->lagged[k - 1]) / squares + 2 / n);
	sum = fmax(1, fmax(sum, inflation_next((a->lagged[0] + b->lagged[0]) / squares, n)));
	return fmin(sum,
		    fmax(1, (double)least /
				    4)); /* a short series says little about how it correlates */
}

static void welch(const struct moments *a, double unit_a, const struct moments *b, double unit_b,
		  double more, struct stats_test *out)
{
	double n_a = (double)a->n, n_b = (double)b->n;
	double v_a = fmax(more * a->squares / (n_a - 1) / n_a, unit_a * unit_a);
	double v_b = fmax(more * b->squares / (n_b - 1) / n_b, unit_b * unit_b);
	double v = v_a + v_b, spread = v_a * v_a / (n_a - 1) + v_b * v_b / (n_b - 1);

	*out = (struct stats_test){
		.before = a->mean, .after = b->mean, .se = sqrt(v), .p = 1, .df = 1};
	if (v <= 0)
		return;
	out->df = fmax(1, v * v / spread / more);
	out->p = stats_t_tails((b->mean - a->mean) / out->se, out->df);
}

void stats_welch(const double *a, size_t n_a, double unit_a, const double *b, size_t n_b,
		 double unit_b, struct stats_test *out)
{
	struct moments x = moments_of(a, n_a), y = moments_of(b, n_b);

	welch(&x, unit_a, &y, unit_b, inflation(&x, &y), out);
}

void stats_welch_plain(const double *a, size_t n_a, double unit_a, const double *b, size_t n_b,
		       double unit_b, struct stats_test *out)
{
	struct moments x = moments_of(a, n_a), y = moments_of(b, n_b);

	welch(&x, unit_a, &y, unit_b, 1, out);
}

double stats_detectable(double se, double df, double alpha)
{
	if (alpha <= 0 || alpha > 1)
		alpha = alpha > 1 ? 1 : 1e-300;
	return se * (stats_t_quantile(alpha / 2, df) + stats_t_quantile(POWER_TAIL, df));
}

/* --- two counts --- */

/* P(X <= k) of a binomial (n, p), k >= 0. */
static double at_most(double k, double n, double p)
{
	return k >= n ? 1 : stats_beta(n - k, k + 1, 1 - p);
}

double stats_counts(double a, double b, double share_b)
{
	double n = a + b, low, high;

	if (n <= 0 || share_b <= 0 || share_b >= 1)
		return 1;
	low = at_most(b, n, share_b);
	high = b <= 0 ? 1 : stats_beta(b, n - b + 1, share_b);
	return fmin(1, 2 * fmin(low, high));
}

double stats_presence(size_t k, size_t n, size_t n_other)
{
	double p = 2;

	for (size_t i = 0; i < k && i < n; i++)
		p *= (double)(n - i) / (double)(n + n_other - i);
	return fmin(1, p);
}

/* --- many tests --- */

struct ranked {
	double scaled; /* p over its weight */
	size_t i;
};

static int by_scaled(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->scaled != y->scaled)
		return x->scaled < y->scaled ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i;
}

void stats_adjust(const double *p, const double *weight, size_t n, double *q)
{
	cleanup_free struct ranked *r = mem_array(n + 1, sizeof(*r));
	double sum = 0, least = 1;

	for (size_t i = 0; weight && i < n; i++)
		sum += weight[i];
	for (size_t i = 0; i < n; i++) {
		double w = weight && sum > 0 ? weight[i] * (double)n / sum : 1;

		r[i] = (struct ranked){.scaled = w > 0 ? p[i] / w : INFINITY, .i = i};
	}
	qsort(r, n, sizeof(*r), by_scaled);
	for (size_t k = n; k-- > 0;) {
		least = fmin(least, r[k].scaled * (double)n / (double)(k + 1));
		q[r[k].i] = least;
	}
}

/* --- one series --- */

/* The split that leaves least variance within the two parts; one variance for both, as either part
 * may be short. */
bool stats_find_shift(const double *x, size_t n, double unit, struct stats_shift *out)
{
	const size_t least = 2;
	struct moments a, b;
	double sum = 0, all = 0, best = -1, v, df;
	size_t at = 0;

	if (n < 6)
		return false;
	for (size_t i = 0; i < n; i++)
		all += x[i];
	for (size_t k = 1; k + least <= n; k++) {
		double step;

		sum += x[k - 1];
		step = (all - sum) / (double)(n - k) - sum / (double)k;
		step *= step * (double)k * (double)(n - k);
		if (k >= least && step > best) {
			best = step;
			at = k;
		}
	}
	a = moments_of(x, at);
	b = moments_of(x + at, n - at);
	v = inflation(&a, &b) * (a.squares + b.squares) / (double)(n - 2) *
	    (1.0 / (double)at + 1.0 / (double)(n - at));
	v = fmax(v, unit * unit);
	df = fmax(1, (double)(n - 2) / inflation(&a, &b));
	*out = (struct stats_shift){.at = at, .before = a.mean, .after = b.mean, .p = 1};
	if (v > 0)
		out->p = fmin(1, stats_t_tails((b.mean - a.mean) / sqrt(v), df) *
					 (double)(n - 2 * least + 1));
	return true;
}
