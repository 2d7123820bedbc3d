/* SPDX-License-Identifier: Apache-2.0 */
/*
 * totals: the series of all metrics, and what each has come to.
 *
 * The store holds differences, bucket by bucket, and removes the oldest; who scrapes wants sums
 * that never fall. A counter here is
 *
 *   settled   the sum of all buckets before a time that its source has passed (struct
 * totals.settled_ts) open      the sum of those since, read anew each time: buckets that are being
 * written still grow
 *
 * and is shown as settled + open, or as it was shown last where that is more (a finer capture that
 * takes the place of a coarser one may have counted a little less). A gauge is its latest value.
 *
 *  1. Names of things (containers, units, disks...) are made up by strangers: from max_series on a
 * thing that has no series yet is counted as "~other", gauges of it are left out, and `folded`
 * counts these values once they settle.
 *  2. A gauge that nothing was told of for 3 minutes is not shown, a counter is forgotten after a
 * day: a series that ends must end.
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
	int64_t begun_ts;                   /* since when it counts; 0: nothing was read yet */
	int64_t settled_ts[TOTALS_SOURCES]; /* by source (export/source.h) */
	uint64_t missed_s, folded;          /* removed from the store before it was read; rule 1 */
	bool clamped;                       /* something would have fallen */
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
/* What is open begins anew. */
void totals_reopen(struct totals *t);
/* A value of a bucket that is open; `settled`: it was added as an open one since totals_reopen, and
 * is none any more. */
void totals_add(struct totals *t, const struct totals_value *v, bool settled);
/* After all values: what is shown, and what is forgotten. */
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
