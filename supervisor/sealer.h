/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealer: has the finished files of the store packed into one a day (schema/store/seal.h) while sonded runs, one sonde-seal at a
 * time: once a day is over, and before that once two files of it are finished.
 *
 *   1. It looks four times in the life of a file, every 5 s to 10 min. To make a packed day anew is to unpack and pack all of it: one that is
 *      not over is, once as many bytes are new as it has as rows, or an eighth of the budget: so each row is packed a few times, and not
 *      each hour.
 *   2. What the new make of a day may take (the make before, and three quarters of what goes into it, at most a quarter of the budget; of
 *      several days that are due, the largest) has to be free within the budget, else retention makes that room first; and on the disk
 *      above its reserve, else it waits.
 *   3. What was packed goes a grace later, with the next pass.
 *   4. A pass that failed is tried again a minute later, then twice as late each time, an hour at most: a disk that someone
 *      else fills is soon empty again, a helper that is not there may never come.
 * It packs at the lowest priority, and holds locks as everybody else does.
 */
#ifndef SONDE_SUPERVISOR_SEALER_H
#define SONDE_SUPERVISOR_SEALER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "supervisor/pass.h"
#include "supervisor/retain.h"

struct sealer {
	const char *store;       /* borrowed */
	bool wanted;
	struct pass pass;
	const char *state;       /* in words */
	int64_t every_ns;
	unsigned int failures;   /* since the last pass that did not fail */
	int64_t look_ns;         /* when to look again; monotonic clock */
	int64_t clean_ns;        /* when what was packed may go; 0: nothing is left */
	uint64_t segments, bytes_before, bytes_after; /* since sonded started */
	int64_t last_ns;         /* UTC of the last day made, 0: none yet */
};

/* What of the store could be packed, by names and sizes alone. */
struct sealer_day {
	uint32_t files;      /* finished ones */
	uint64_t bytes;      /* what they take */
	uint64_t make_bytes; /* what the make that the day has takes while it is made anew, 0: none */
	uint64_t make_rows;  /* of it what stands in columns, as rows */
};
struct sealer_work {
	uint32_t files; /* of all days that are due; 0: none is */
	uint64_t room;  /* for the make of one of them, at most */
};
/* `now_s`: UTC. Days before today are due with one file, today with `min` that are worth it, or `most` bytes (rule 1). */
void sealer_count(const char *store, int64_t now_s, uint32_t min, uint64_t most, struct sealer_work *out);

void sealer_init(struct sealer *s, const char *store);
void sealer_release(struct sealer *s);
/* A configuration, also a new one. */
void sealer_follow(struct sealer *s, bool wanted, int64_t segment_age_ns);
void sealer_tick(struct sealer *s, struct retain *r);
void sealer_stop(struct sealer *s);
void sealer_ended(struct sealer *s, int status);
json_t *sealer_json(const struct sealer *s);

#endif
