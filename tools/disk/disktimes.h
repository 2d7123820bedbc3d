/* SPDX-License-Identifier: Apache-2.0 */
/* disktimes: how long requests or calls took: the histogram of a row of family disk
 * (schema/facts/disk.h), summed. */
#ifndef SONDE_TOOLS_DISKTIMES_H
#define SONDE_TOOLS_DISKTIMES_H

#include <jansson.h>
#include <sqlite3.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "schema/facts/disk.h"

struct disktimes {
	uint64_t n[DISK_STEPS];
};

/* Appends ", sum(below_8us), ...": DISK_STEPS columns of a query. */
void disktimes_columns(struct strbuf *sql);
/* Adds those columns of a row, from `first` on. */
void disktimes_take(struct disktimes *t, sqlite3_stmt *st, int first);
void disktimes_merge(struct disktimes *t, const struct disktimes *more);
uint64_t disktimes_total(const struct disktimes *t);
/* The time below which a share `q` (0..1) lies, in us: interpolated within its step, a power of
 * two. 0: nothing was counted. */
double disktimes_quantile(const struct disktimes *t, double q);
/* [{"us", "n"}, ...]: where each step that has something begins, and how many. */
json_t *disktimes_json(const struct disktimes *t);

#endif
