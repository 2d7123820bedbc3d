/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: what a probe may cost. Pure.
 *
 *   1. Single events: where more hits come than its rate, one of `every` is sent, by lot, which
 *      follows the hits of the last second.
 *   2. A hit costs what its kind of hook costs and what its program does. Where that comes to more
 *      than PACE_SHARE of one CPU over the last look, the probe is taken away for as long as the
 *      average needs to come down to that share, PACE_OFF_MOST at most, and put back.
 */
#ifndef SONDE_PROBE_PACE_H
#define SONDE_PROBE_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define PACE_SHARE    0.1 /* of one CPU */
#define PACE_OFF_MOST 30000000000ll

struct pace {
	int64_t at_ns;        /* of the last look */
	uint64_t hits;        /* then */
	uint64_t spent_ns;    /* then */
	int64_t off_until_ns; /* 0: it is there */
};

/* Of a hook that fires `runs` times with `run_ns` in its program: what that costs those who run
 * into it. `hook_ns`: a hook's own price. */
static inline uint64_t pace_spent(uint64_t runs, uint64_t run_ns, uint64_t hook_ns)
{
	return runs * hook_ns + run_ns;
}

/* Rule 1: of how many hits one is sent. `hits`: since the last look. */
uint32_t pace_every(uint64_t hits, int64_t ns, uint32_t rate);
/* Rule 2: looks; until when it stays away, 0: it may stay. `spent_ns` since it was
 * begun. */
int64_t pace_look(struct pace *p, int64_t now_ns, uint64_t spent_ns);

#endif
