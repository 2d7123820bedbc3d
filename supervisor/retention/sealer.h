/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealer: has the finished segments of the store archived (schema/store/archive/seal.h) while
 * sonded runs, one sonde-seal at a time.
 *
 *   1. It looks four times in the life of a file, every 5 s to 10 min. The newest segments stay
 * rows while they take less than a quarter of the budget, and the last two hours while they take
 * less than half of it.
 *   2. What the largest archive to be made may take (at most half of the budget) has to be free
 * within the budget, else retention makes that room first; and on the disk above its reserve, else
 * it waits.
 *   3. A pass that failed is tried again a minute later, then twice as late each time, an hour at
 * most: a disk that someone else fills is soon empty again, a helper that is not there may never
 * come.
 *   4. Archives that are older than the fine age get minutes (schema/store/archive/minutes.h), but
 * in the hour after the wall clock was set. It archives at the lowest priority, and holds locks as
 * everybody else does.
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
