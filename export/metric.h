/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metric: the metrics that there are: their names, what they mean, and the unit that the store has
 * them in. Names and units are those of Prometheus (prometheus.io, "Metric and label naming"): base
 * units, _total behind counters.
 */
#ifndef SONDE_EXPORT_METRIC_H
#define SONDE_EXPORT_METRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric {
	const char *name;
	enum metric_type type;
	unsigned decimals; /* stored numbers are in 10^-decimals of the unit: 6 for microseconds */
	const char *help;
	const char *const
		*bounds; /* of a histogram, as they are shown, NULL-terminated; NULL: those below */
};

/* By name, which is also the order that they are shown in. */
extern const struct metric METRICS[];
extern const size_t N_METRICS;

/* Bounds of the histograms that the store has by powers of two: values are whole nanoseconds, bound
 * i holds those below 2^exponent. */
#define METRIC_BOUNDS            11
#define METRIC_BOUND_EXPONENT(i) (13u + 2u * (i))

/* Number of a series' place within its metric: of a histogram a bound, in order of the bounds, then
 * +Inf, then the sum; else 0. */
enum metric_part { METRIC_INF = 100, METRIC_SUM = 101 };

/* `name` of `len` bytes; a histogram's may end in _sum or _bucket (*part is then METRIC_SUM, or 0).
 * -1: there is no such metric. */
int metric_find(const char *name, size_t len, unsigned *part);
/* Is it the same as another one, under the name that another program has for it? */
bool metric_is_alias(unsigned metric);
/* How bound `i` is shown. NULL: there is no such bound. */
const char *metric_bound(int metric, unsigned i, char buf[32]);
/* `value` with its decimals, without trailing zeros: 1500 of 3 decimals is "1.5". */
void metric_value(struct strbuf *out, uint64_t value, unsigned decimals);

#endif
