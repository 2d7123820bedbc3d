/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heapsites: memory by the line that allocated it: memory in use at the end of a range, what was
 * allocated in it, and the growth. A leak keeps growing; a cache goes up and down: growth is the
 * median of the slopes between each two of STEPS points in time (Theil and Sen's estimate), which
 * neither a start nor a peak moves.
 */
#ifndef SONDE_TOOLS_HEAPSITES_H
#define SONDE_TOOLS_HEAPSITES_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

#define HEAPSITES_STEPS 8
/* between steps, at least: two readings would make a leak of anything */
#define HEAPSITES_CHANGES 3

struct heapsite {
	char *function, *module, *file; /* never NULL */
	uint32_t line;                  /* 0: not known */
	uint64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
	uint64_t at[HEAPSITES_STEPS]; /* bytes in use at each step; the last is the end */
	double growth;                /* bytes a second */
};

enum heapsites_order { HEAPSITES_BY_INUSE, HEAPSITES_BY_ALLOC, HEAPSITES_BY_GROWTH };

struct heapsites {
	struct heapsite *rows;
	size_t n;
	struct fold *inuse; /* for times and units */
};

/* The most first, without what has nothing of it. EXIT_NOTHING where no memory was recorded, or too
 * little for growth. Growth is found only where it is the order. */
int heapsites_make(const struct selection *sel, enum heapsites_order order, struct heapsites *out,
		   struct err *e);
void heapsites_release(struct heapsites *h);
/* The median of the slopes between each two of n values at equal distances. n at most
 * HEAPSITES_STEPS. */
double heapsites_slope(const uint64_t *values, size_t n, double step);

#endif
