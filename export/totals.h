/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals: the series of all metrics, with their values.
 *
 * The store holds differences, bucket by bucket, and removes the oldest; a scraper needs sums that
 * never fall. A counter here is the sum of two parts:
 *
 *   settled   all buckets before a time that its source has passed (totals.settled_ts)
 *   open      the buckets since, read again each time, since they may still grow
 *
 * If that sum is less than the value shown last, the last value is shown: a finer capture that
 * replaces a coarser one may have counted a little less. A gauge is its latest value.
 *
 *  1. Names of things (containers, units, disks...) come from outside: once there are max_series, a
 * thing without a series is counted as "~other", its gauges are left out, and `folded` counts these
 * values once they settle.
 *  2. A gauge without a value for 3 minutes is not shown; a counter without one for a day is
 * forgotten: a series that ends must end.
 */
#ifndef SONDE_EXPORT_TOTALS_H
#define SONDE_EXPORT_TOTALS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "export/metric.h"

#define TOTALS_SERIES      5000
#define TOTALS_GAUGE_S     180
#define TOTALS_FORGOTTEN_S 86400
#define TOTALS_SOURCES     32
#define TOTALS_OTHER       "~other"

struct totals_series; /* of uthash */

struct totals {
	struct totals_series *series;
	size_t n, max_series;
	int64_t begun_ts;                   /* start of counting; 0: nothing was read yet */
	int64_t settled_ts[TOTALS_SOURCES]; /* by source (export/source.h) */
	uint64_t missed_s, folded;          /* removed from the store before it was read; rule 1 */
	bool clamped;                       /* a counter would have fallen */
};

/* One value of a row. `labels`: `a="x",b="y"`, escaped; `other`: the same with TOTALS_OTHER for the
 * names of things, may be NULL. */
struct totals_value {
	unsigned metric, part;
	const char *labels, *other;
	int64_t ts;
	uint64_t value;
};

void totals_init(struct totals *t, size_t max_series);
void totals_release(struct totals *t);
/* Clears the open parts. */
void totals_reopen(struct totals *t);
/* A value of an open bucket; `settled`: it was added as an open one since totals_reopen, and has
 * settled. */
void totals_add(struct totals *t, const struct totals_value *v, bool settled);
/* After all values: computes what is shown, and forgets old series. */
void totals_close(struct totals *t, int64_t now_ts);

/* A line of each series, for a file, and back; see export/state.h. */
struct totals_row {
	unsigned metric, part;
	const char *labels;
	int64_t ts;
	uint64_t settled, shown;
};
void totals_put(struct totals *t, const struct totals_row *r);
/* All of them, sorted by metric, labels, part; the array is the caller's, its strings are not. */
struct totals_row *totals_rows(struct totals *t, size_t *n);

#endif
