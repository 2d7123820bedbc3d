/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pace: how many stacks a second a recording with short buckets takes, for what it costs. On a host
 * whose CPUs are all busy, caches are cold and each stack and its name cost several times as much
 * as on a quiet one: a constant rate took half a core there. Sums by thread are exact at any rate;
 * sums by stack are estimates, with their error (probes/offcpu_draw.h).
 *
 *   1. Each second the cost of the last one is looked at: CPU time of the loader and run time of
 * its programs. Where it is above PACE_MOST of a core, the rate falls in proportion, to half at
 *      most; where it is below PACE_FEW of that, the rate rises by half.
 *   2. It is PACE_LEAST at least and what was asked for at most. The first two seconds are the
 *      start's: files are read.
 *
 * Pure.
 */
#ifndef SONDE_OFFCPU_PACE_H
#define SONDE_OFFCPU_PACE_H

#include <stdint.h>

#define PACE_MOST  0.12
#define PACE_FEW   0.6
#define PACE_LEAST 100

struct pace {
	uint32_t asked, rate; /* stacks a second on each CPU */
	int64_t begun_ns, at_ns;
	uint64_t cost_ns; /* up to at_ns */
};

void pace_init(struct pace *p, uint32_t asked);
/* The rate from now on. `cost_ns`: so far. */
uint32_t pace_next(struct pace *p, uint64_t cost_ns, int64_t now_ns);

#endif
