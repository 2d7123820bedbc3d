/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile: profile.proto, as Go's runtime/pprof writes it, read for its addresses: sonde finds the
 * names by its own rules. Pure over untrusted bytes; only what `profile_out` gets is kept.
 *
 *  1. Values are found by the names of their types: cpu "samples", "cpu"; heap "alloc_objects",
 * "alloc_space", "inuse_objects", "inuse_space"; goroutine "goroutine"; block and mutex
 * "contentions", "delay". Times are in nanoseconds.
 *  2. A sample's locations are leaf first; a location's address lies within the call, or is the
 *     sampled instruction.
 *  3. Labels are skipped: two samples of one stack are reported one after the other.
 *  4. A negative value, a missing location, a truncated message, or another kind of profile is an
 *     error.
 */
#ifndef SONDE_SCRAPE_PROFILE_H
#define SONDE_SCRAPE_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/scrape/wire.h"

struct profile_out {
	void *ctx;
	void (*mapping)(void *ctx, const struct wire_mapping *m);
	/* Called after all mappings. n <= WIRE_DEPTH. */
	void (*stack)(void *ctx, const uint64_t values[WIRE_VALUES], const uint64_t *addresses,
		      size_t n);
};

/* Not compressed. 0, or -EBADMSG. */
int profile_read(const void *data, size_t len, enum wire_ask ask, const struct profile_out *out,
		 struct wire_end *end);

#endif
