/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source: what metrics are read from: the queries of export/queries, each over the rows of one file
 * of the store.
 *
 * A query has the parameters :from and :to (seconds since the file's t0, from <= ts < to) and :t0.
 * Its columns say by their names what they are:
 *
 *   ts                              the latest bucket of the row, seconds since t0
 *   sonde_NAME{label="value",...}, also node_NAME
 *                                   a value of that metric (export/metric.h); NULL: not measured.
 *                                   Of a histogram NAME_bucket{le="..."} and NAME_sum, or NAME
 *                                   itself, which is a text of hist_all (export/spread.h)
 *   anything else                   a label of the row, left out where it is empty
 */
#ifndef SONDE_EXPORT_SOURCE_H
#define SONDE_EXPORT_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "export/totals.h"
#include "schema/base/err.h"

struct source_segment;

size_t source_count(void);
const char *source_name(size_t i);
/* The number of a source, -1. */
int source_find(const char *name);

/* A file, read as it is at this moment until it is closed. -errno. */
int source_open(const char *path, struct source_segment **out, struct err *e);
void source_close(struct source_segment *s); /* NULL is fine */
/* Adds to `t` what source `i` has in from <= ts < to (UTC seconds). *newest is raised to the latest
 * bucket. A file that is older than the query's tables has nothing. */
int source_read(struct source_segment *s, size_t i, int64_t from_ts, int64_t to_ts, bool settled,
		struct totals *t, int64_t *newest, struct err *e);

#endif
