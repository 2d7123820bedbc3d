/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spikes: where one series of equal time steps exceeds what is usual for it. Pure arithmetic.
 *
 *  1. Usual is the median of the steps that were recorded. Their deviation is the mean distance
 * from it times sqrt(pi / 2) (the standard deviation of a normal distribution). Repeated peaks make
 * it large, so a job that runs every minute is not a spike. It is never below the counting error of
 * the samples.
 *  2. A spike begins where a step exceeds the median by SPIKES_SIGMAS deviations and by `least`. It
 * continues while steps exceed the median by SPIKES_EDGE deviations, across up to SPIKES_REST steps
 * that do not. Steps that were not recorded end it.
 *  3. So what takes more than about a seventh of the time is usual, not a spike.
 */
#ifndef SONDE_TOOLS_SPIKES_H
#define SONDE_TOOLS_SPIKES_H

#include <stdbool.h>
#include <stddef.h>

#define SPIKES_SIGMAS 5.0
#define SPIKES_EDGE   2.0
#define SPIKES_REST   2

struct spike {
	size_t first, end;       /* steps, half-open */
	double usual, deviation; /* of the series */
	double mean, peak;       /* within it */
	double excess;           /* sum over its steps of what is above usual */
};

/* `x` has n steps; a negative one was not recorded. `unit`: what one sample adds to a step. Returns
 * the spikes in order of time, the caller's (free); NULL with *n_out 0 if there is no spike, or
 * fewer than 12 steps. */
struct spike *spikes_find(const double *x, size_t n, double unit, double least, size_t *n_out);

#endif
