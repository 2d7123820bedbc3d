/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spikes: where one series of equal steps of time stands out of what is usual for it. Pure
 * arithmetic.
 *
 *  1. Usual is the median of the steps that were recorded. Their deviation is the mean distance
 * from it times sqrt(pi / 2) (the standard deviation, were they spread normally): what happens
 * again and again makes it large, so a job of each minute is none. It is never below the error of
 * counting so many samples.
 *  2. A spike is where the median is passed by SPIKES_SIGMAS deviations, and by `least`. It goes on
 * while the median is passed by SPIKES_EDGE deviations, over up to SPIKES_REST steps that do not.
 * Steps that were not recorded end it.
 *  3. So what takes more than some seventh of the time is usual, and no spike.
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

/* `x` of n steps; what is negative was not recorded. `unit`: what one sample adds to a step. The
 * spikes in order of time are the caller's (free); NULL with *n_out 0 where there are none, or
 * fewer than 12 steps. */
struct spike *spikes_find(const double *x, size_t n, double unit, double least, size_t *n_out);

#endif
