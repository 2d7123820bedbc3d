/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day_waits: what the archives of a day say of waits by stack, of who ended them and who had the
 * CPU, summed by key. Private to day.c and day_*.c.
 *
 *   1. Of amounts of kinds offcpu and runqueue: by thread, stack and class (WAIT_STACK_SUM), with
 *      their histograms and the variances of estimates. Wake-ups, culprits, objects, quotas and
 *      steal time: tables NAME_sum of NAME_row, without its times.
 *   2. A day has all of these tables or none. It has none where the archives have waits that were
 *      not over (kind standing: the last value holds, no sum), more than WAITS_MOST different keys,
 *      whose sums would be as many as their rows, or stacks of more than half of DAY_FRAMES_MOST.
 */
#ifndef SONDE_STORE_ARCHIVE_DAY_WAITS_H
#define SONDE_STORE_ARCHIVE_DAY_WAITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/archive/day_merge.h"
#include "schema/store/model/hist.h"

#define WAITS_MOST (1u << 20)
#define WAIT_KEYS  6
#define WAIT_SUMS  5

struct day_waits {
	struct idmap place; /* hash of table and key -> place in `v` */
	struct day_wait {
		uint32_t table;
		uint32_t key[WAIT_KEYS];
		int64_t sum[WAIT_SUMS];
		struct hist hist;
	} * v;
	size_t n, cap;
	bool unfit; /* rule 2 */
};

/* The archive at hand. SQLite's code. */
int day_waits_add(struct day_waits *w, struct day_merge *m);
/* Makes the tables, after day_stacks_end. SQLite's code. */
int day_waits_put(struct day_waits *w, struct day_merge *m);
void day_waits_release(struct day_waits *w);

#endif
