/* SPDX-License-Identifier: Apache-2.0 */
/*
 * switchon: memory profiling of a Go process that has it off is switched on (--mode force), and off
 * again (force.h).
 *
 * 1. Off is MemProfileRate 0, where its place is proven; nothing else is ever changed. Once in a
 * process.
 * 2. What stood in the profile before is left out: it is of the runtime's start.
 * 3. The first allocation of each of the runtime's Ps after the switch is recorded whatever its
 * size, and would stand for far too much. Which records these are cannot be seen: of the first that
 * come so many are left out as there may be Ps (CPUs that it may use, but not more than it has
 * threads), and of those that come in one reading the smallest objects': a sample takes large ones,
 * the first allocation is as small as most are. With rate 1 every allocation is recorded anyway.
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

/* so many come soon after each other, while there is something to leave out */
#define SWITCHON_READINGS 10u

struct switchon_opts {
	int dirfd; /* of the records, -1: nothing is changed */
	uint64_t rate;
};

/* After a reading: is it off, and may be switched on? Then it is. */
void switchon_try(const struct switchon_opts *o, struct goproc *p, const struct family_host *h,
		  const char *comm);
/* When its buckets were read, before they are told. */
void switchon_leave_out(struct goproc *p);
/* Is there more to leave out, which is to be read soon? */
bool switchon_settles(const struct goproc *p);
/* Put back. */
void switchon_release(struct goproc *p);

#endif
