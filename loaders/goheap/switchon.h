/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switchon: memory profiling of a Go process that has it off is switched on (--mode force), and
 * later off again (force.h).
 *
 * 1. Off is MemProfileRate 0, where its place is proven; nothing else is ever changed. Once in a
 *    process.
 * 2. What the profile contained before is left out: it is from the runtime's start.
 * 3. The first allocation of each of the runtime's Ps after the switch is recorded regardless of
 *    its size, and would be scaled up far too much. These records cannot be recognized. So as many
 *    of the first records are left out as there may be Ps (the CPUs that the process may use, but
 *    at most its threads); of those in one reading, the smallest objects': sampling prefers large
 *    ones, but the first allocation is as small as most are. With rate 1 every allocation is
 *    recorded anyway.
 */
#ifndef SONDE_GOHEAP_SWITCHON_H
#define SONDE_GOHEAP_SWITCHON_H

#include <stdbool.h>
#include <stdint.h>

struct family_host;
struct force;
struct goproc;

struct switchon {
	struct force *force; /* own; NULL: nothing was changed in it */
	bool tried;
	uint32_t to_leave_out; /* records that are yet to be */
	uint32_t left_out;     /* records that were, since the switch */
	uint32_t readings;     /* since it was switched on, up to SWITCHON_READINGS */
	char why[128];         /* for people; "": nothing to say */
};

/* readings in quick succession while there are records to leave out */
#define SWITCHON_READINGS 10u

struct switchon_opts {
	int dirfd; /* of the records, -1: nothing is changed */
	uint64_t rate;
};

/* After a reading: is it off, and may be switched on? Then it is. */
void switchon_try(const struct switchon_opts *o, struct goproc *p, const struct family_host *h,
		  const char *comm);
/* After its buckets were read, before they are stored. */
void switchon_leave_out(struct goproc *p);
/* Are there more records to leave out, so that it must be read again soon? */
bool switchon_settles(const struct goproc *p);
/* Put back. */
void switchon_release(struct goproc *p);

#endif
