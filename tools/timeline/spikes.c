/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/timeline/spikes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define LEAST_STEPS   12
#define MEAN_TO_SIGMA 1.2533141373155 /* sqrt(pi / 2) */

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool is_recorded(double x)
{
	return x >= 0;
}

/* Median and deviation of what was recorded; how many steps that were. */
static size_t describe(const double *x, size_t n, double unit, double *median, double *deviation)
{
	cleanup_free double *v = mem_array(n + 1, sizeof(*v));
	size_t m = 0, zeros = 0;
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		if (is_recorded(x[i])) {
			zeros += x[i] == 0;
			v[m++] = x[i];
		}
	*median = 0;
	if (m && zeros <= m / 2) { /* of most groups it is 0, with no need to sort */
		qsort(v, m, sizeof(*v), by_value);
		*median = m % 2 ? v[m / 2] : (v[m / 2 - 1] + v[m / 2]) / 2;
	}
	for (size_t i = 0; i < m; i++)
		sum += fabs(v[i] - *median);
	if (!m)
		return 0;
	*deviation = fmax(MEAN_TO_SIGMA * sum / (double)m, sqrt(fmax(*median, unit) * unit));
	return m;
}

static struct spike spike_at(const double *x, size_t n, size_t at, double median, double deviation)
{
	const double edge = median + SPIKES_EDGE * deviation;
	struct spike s = {.first = at, .end = at + 1, .usual = median, .deviation = deviation};

	while (s.first && x[s.first - 1] > edge)
		s.first--;
	for (size_t i = s.end, rest = 0; i < n && rest <= SPIKES_REST && is_recorded(x[i]); i++) {
		rest = x[i] > edge ? 0 : rest + 1;
		if (!rest)
			s.end = i + 1;
	}
	for (size_t i = s.first; i < s.end; i++) {
		s.mean += x[i] / (double)(s.end - s.first);
		s.peak = fmax(s.peak, x[i]);
		s.excess += x[i] - median;
	}
	return s;
}

struct spike *spikes_find(const double *x, size_t n, double unit, double least, size_t *n_out)
{
	struct spike *out = NULL;
	size_t n_spikes = 0, cap = 0;
	double median = 0, deviation = 0, high;

	*n_out = 0;
	if (describe(x, n, unit, &median, &deviation) < LEAST_STEPS)
		return NULL;
	high = median + fmax(least, SPIKES_SIGMAS * deviation);
	for (size_t i = 0; i < n; i++) {
		if (x[i] <= high)
			continue;
		mem_grow(out, n_spikes, cap);
		out[n_spikes] = spike_at(x, n, i, median, deviation);
		i = out[n_spikes++].end - 1;
	}
	*n_out = n_spikes;
	return out;
}
