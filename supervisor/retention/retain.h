/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain: keeps the store within its limits while sonded runs. It looks at the folder every few
 * seconds and starts sonde-prune when something must be removed: a child, so that a damaged file
 * cannot harm sonded. It logs what was removed.
 */
#ifndef SONDE_SUPERVISOR_RETAIN_H
#define SONDE_SUPERVISOR_RETAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "schema/store/retention/retention.h"
#include "supervisor/config/conf.h"
#include "supervisor/children/pass.h"

struct retain {
	const char *store; /* borrowed */
	struct retention_limits limits;
	struct pass prune;
	uint64_t kept_free;     /* of the budget, for the archiver (sealer.h) */
	int64_t look_ns;        /* when to look again; monotonic clock */
	struct usage use;       /* as of the last look */
	int64_t images_ns;      /* when images/ is looked through again */
	int64_t offset_ns;      /* of the boot clock, as of the last look */
	int64_t doubt_until_ns; /* the wall clock was set: until then nothing is removed by age */
	bool unmet;             /* it exceeds the limits, and nothing more may be removed */
};

void retain_init(struct retain *r, const char *store, const struct conf *c);
void retain_limits(struct retain *r, const struct conf *c); /* a new configuration */
void retain_release(struct retain *r);
void retain_tick(struct retain *r, bool now);
void retain_ended(struct retain *r, int status);
/* How much the store may grow until the next look may start to remove; 0: not at all. */
uint64_t retain_room(const struct retain *r);
/* Size limit of one segment. */
uint64_t retain_segment_bytes(const struct retain *r);
/* Limit of image indexes, 1 to 256 MiB. */
unsigned int retain_images_mb(const struct retain *r);
json_t *retain_json(const struct retain *r);

#endif
