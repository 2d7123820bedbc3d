/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealer: archives the finished segments of the store (schema/store/archive/seal.h) while sonded
 * runs, with one sonde-seal at a time.
 *
 *   1. It looks four times in the life of a segment, every 5 s to 10 min. The newest segments stay
 *      as rows while they take less than a quarter of the budget, those of the last two hours while
 *      they take less than half of it.
 *   2. The largest archive to be written (at most half of the budget) must fit into the budget,
 *      else retention first makes room; and into the disk above its reserve, else the sealer waits.
 *   3. It retries a failed pass after a minute, then after twice as long each time, at most an
 *      hour: a disk filled by another program is often free again soon; a missing helper may never
 *      appear.
 *   4. Archives older than the fine age are reduced to one-minute sums
 *      (schema/store/archive/minutes.h), except in the hour after the wall clock was set.
 * sonde-seal runs at the lowest priority and takes the same locks as all writers.
 */
#ifndef SONDE_SUPERVISOR_SEALER_H
#define SONDE_SUPERVISOR_SEALER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/children/pass.h"
#include "supervisor/retention/retain.h"

struct sealer {
	const char *store; /* borrowed */
	bool wanted;
	struct pass pass;
	const char *state; /* in words */
	int64_t every_ns, fine_age_ns;
	unsigned int failures; /* since the last pass that did not fail */
	int64_t look_ns;       /* when to look again; monotonic clock */
	uint64_t segments, bytes_before, bytes_after, thinned; /* since sonded started */
	int64_t last_ns; /* UTC of the last archive made, 0: none yet */
};

void sealer_init(struct sealer *s, const char *store);
void sealer_release(struct sealer *s);
/* A configuration, also a new one. */
void sealer_follow(struct sealer *s, bool wanted, int64_t segment_age_ns, int64_t fine_age_ns);
void sealer_tick(struct sealer *s, struct retain *r);
void sealer_stop(struct sealer *s);
void sealer_ended(struct sealer *s, int status);
json_t *sealer_json(const struct sealer *s);

#endif
