/* SPDX-License-Identifier: Apache-2.0 */
/* rareparts: what sealrare.c (what there is), rarehour.c (one hour) and raresweep.c (what nothing points to) share. */
#ifndef SONDE_STORE_RAREPARTS_H
#define SONDE_STORE_RAREPARTS_H

#include <stdbool.h>

#include "schema/store/sealdict.h"

struct rare_hours {
	int64_t *ts; /* starts, seconds since the day's t0 */
	size_t n, cap;
};

struct rare {
	struct sealdict *d;
	int64_t t0;
	uint32_t mark;                 /* frame.id of "[rare]" */
	struct rare_group {
		uint32_t run, exe, container;
	} *groups;
	size_t n_groups, cap_groups;
	struct idmap group_of;         /* hash -> index */
	struct rare_series {           /* by id */
		uint32_t task, stack, group;
		bool counted;          /* of CPU samples */
	} *series;
	size_t n_series, cap_series;
	struct idmap by_place;         /* task << 32 | stack -> series */
	struct rare_frame {            /* by id */
		uint32_t function, outer;
	} *frames;
	size_t n_frames, cap_frames;
	uint32_t *node;                /* by stack.id: its last one in d->tree */
	size_t n_stacks;
};

/* Rules 2 to 5 for the hour that begins at ts; what it cut off is added to *samples. A SQLite code. */
int rare_hour(struct rare *r, int64_t ts, uint64_t *samples);
/* Rule 6. A SQLite code. */
int rare_sweep(struct rare *r);

#endif
