/* SPDX-License-Identifier: Apache-2.0 */
/*
 * site: one bucket of a Go process: its last reading, and what of it is stored. From cumulative
 * counts to amounts: pure, so that each rule can be tested.
 *
 * 1. Allocations are a counter: the difference since it was counted last. Published and pending
 *    ones together, so that they are up to date. If a process ran before the capture, its first
 *    reading is the base, and not part of the capture; a process that began later has no base.
 * 2. In use is a gauge, and what runtime.MemProfile says: published allocations less published
 *    frees; while a program has published nothing (no collection of garbage yet), all of them. It
 *    is stored again only when the bucket changes.
 * 3. Contentions and waits (mutex, block) are counters of (events, ns).
 * 4. A count that is lower than before is a torn reading or wrong: nothing is stored, and the
 *    higher one stays.
 * 5. `left_out`: what a bucket contained when sonde switched profiling on, and what was recorded
 *    then regardless of size (switchon.h): neither counted nor in use.
 */
#ifndef SONDE_GOHEAP_SITE_H
#define SONDE_GOHEAP_SITE_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/goheap/buckets.h"

struct site {
	uint64_t record; /* its address in the process */
	uint32_t record_len;
	uint64_t size;                      /* bytes of one object; 0: mutex, block */
	uint64_t allocs, frees;             /* published; mutex, block: events, ns */
	uint64_t allocs_later, frees_later; /* pending */
	uint64_t counted_n, counted_value;  /* of the counter: in the store, or its base */
	uint64_t left_out;                  /* objects */
	uint64_t standing;                  /* of the gauge, as stored: objects */
	uint64_t stack_at; /* index of its frames in this reading's, UINT64_MAX: not kept */
	uint32_t depth;
	uint32_t epoch, counter, gauge; /* series of the store, of that epoch; 0: none */
	uint64_t told_in; /* the segment of the store that has the gauge (goproc counts them from
			     1); 0: none */
	uint8_t kind;     /* enum buckets_kind, 0: not seen yet */
	bool read;        /* in this reading */
};

struct site_amounts {
	uint64_t n, value;
};

/* Take in a bucket as it was read. ns_per_tick: of mutex and block, 0: not known. */
void site_read(struct site *s, const struct bucket *b, double ns_per_tick);
/* What was there before it is counted. */
void site_base(struct site *s);
/* How many allocations since the last count are left out; UINT64_MAX: these, and all in use. */
void site_leave_out(struct site *s, uint64_t n);
/* To be added to the counter, {0}: nothing; site_counted when the store has it. */
struct site_amounts site_since(const struct site *s);
void site_counted(struct site *s);
/* What is in use now (memory alone). */
struct site_amounts site_standing(const struct site *s, bool nothing_published);
/* Is there anything that this segment of the store does not have? */
bool site_has_news(const struct site *s, bool nothing_published, uint64_t segment);

#endif
