/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heapsites: memory by the line that allocated it, or touched it first: memory in use at the end of
 * a range, what was allocated in it, and the growth. A leak keeps growing; a cache goes up and
 * down. The range is cut into STEPS; a line grows if its memory at their ends (heapsites_grows)
 *
 *   1. is HEAPSITES_LEAST more at the end than at the beginning,
 *   2. rises from one end to a later one by far more often than it falls (Kendall's S over all
 *      pairs is at least HEAPSITES_TREND of 28),
 *   3. did not come in one step (a start, a table that is made larger): none has three fifths,
 *   4. falls by a third of what it rises at most, and
 *   5. goes on: a seventh of it came in the second half.
 *
 * What family mem knows of a line is an estimate: such a line grows only if its processes do, too,
 * as the kernel counts them (heaptotals.h), and by what HEAPSITES_SAMPLES of its samples represent
 * at least. n samples are off by the root of n, so that is three times the error of what grew.
 * Where only the difference of two times is asked it is twice the error.
 *
 * Its rate is the median of the slopes between each two ends (Theil and Sen's estimate). A process
 * that ended counts in the step in which it did and not later: what processes that come and go hold
 * does not add up.
 *
 * Three families know of it: goheap has the heap of Go programs as their runtime counts it; mem has
 * all programs, by who touched each page first (memsite.h); java has what Java programs allocate,
 * and not what they hold. A process that goheap has is taken from there alone, and what one
 * allocated that java has from there.
 *
 * HEAPSITES_PAGES is another view: all pages of the host that are in use, the kernel's too, by who
 * took them and what for (loaders/mem/hostpages.h). What a process took may outlive it: pages of
 * files do.
 */
#ifndef SONDE_TOOLS_HEAPSITES_H
#define SONDE_TOOLS_HEAPSITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"
#include "tools/fold/ranking/heapjava.h"

#define HEAPSITES_STEPS 8
/* between steps, at least: two readings would make a leak of anything */
#define HEAPSITES_CHANGES 3
#define HEAPSITES_LEAST   (1u << 20) /* bytes */
#define HEAPSITES_TREND   16
#define HEAPSITES_SAMPLES 9
#define HEAPSITES_DIFFER  4 /* samples, of a difference */

struct heapsite {
	char *who; /* its container, or else its command; never NULL, nor are these: */
	char *function, *module, *file;
	char *use;     /* of pages of the host: "page cache"; else "" */
	uint32_t line; /* 0: not known */
	uint64_t inuse_bytes, inuse_objects, alloc_bytes, alloc_objects;
	uint64_t at[HEAPSITES_STEPS + 1]; /* bytes in use: at the beginning, at the end of each step
					   */
	uint64_t
		weight; /* bytes that the largest sample of it represents; 0: none is an estimate */
	uint64_t grown; /* bytes, from the beginning to the end; 0: it does not grow */
	double growth;  /* bytes a second */
};

/* BY_DIFFERENCE: what is HEAPSITES_LEAST more at the end than at the beginning, however it came. */
enum heapsites_order {
	HEAPSITES_BY_INUSE,
	HEAPSITES_BY_ALLOC,
	HEAPSITES_BY_GROWTH,
	HEAPSITES_BY_DIFFERENCE
};

enum heapsites_of { HEAPSITES_PROCESSES, HEAPSITES_PAGES };

struct heapsites {
	struct heapsite *rows;
	size_t n;
	struct fold *inuse;   /* for times and units */
	bool touched;         /* some rows are of first touches: what they allocated they touched */
	struct heapjava java; /* programs whose lines that allocate are not known */
};

/* The most first, without what has nothing of it. EXIT_NOTHING where no memory was recorded, or too
 * little for growth. Growth is found only where it is the order. */
int heapsites_make(const struct selection *sel, enum heapsites_of of, enum heapsites_order order,
		   struct heapsites *out, struct err *e);
void heapsites_release(struct heapsites *h);
/* Does it grow, by the five conditions above? */
bool heapsites_grows(const uint64_t at[HEAPSITES_STEPS + 1]);
/* The median of the slopes between each two of n values at equal distances. n at most
 * HEAPSITES_STEPS. */
double heapsites_slope(const uint64_t *values, size_t n, double step);

#endif
