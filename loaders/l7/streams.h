/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams: records of the probes (probes/l7.h) as connections, and those as requests. Pure but for
 * the array of wants, which it writes: what of a connection is not to be copied.
 *
 * 1. Records come in any order within HOLD_NS: of a write the time of its begin is told when it
 * ends. They are held so long, and taken in order of time.
 * 2. A connection that was not told (its record was lost, or who read before is gone) is asked for.
 * What came of it meanwhile is blind.
 * 3. A body that nobody reads, and a connection that speaks no known protocol, are not copied any
 * more (l7_want).
 * 4. Of each connection and direction: bytes seen = parsed + skipped + blind. Skipped: not copied,
 * because nobody needs to read it. Blind: missing, or what could not be made sense of after that.
 * 5. Datagrams: each pair of ends is a connection of its own, that is over when it is silent for
 * UDP_IDLE_NS.
 *
 * Bounds: STREAMS_MOST connections, HOLD_BYTES of records.
 */
#ifndef SONDE_L7_STREAMS_H
#define SONDE_L7_STREAMS_H

#include "loaders/l7/sums.h"
#include "probes/l7.h"

#define STREAMS_MOST 131072
#define HOLD_NS      20000000ll
#define HOLD_BYTES   (16u << 20)
#define UDP_IDLE_NS  (30ll * 1000000000)

struct streams;

struct streams_stat {
	uint64_t records, malformed, evicted, late; /* late: older than what was taken before it */
	uint64_t connections, datagram_flows, open; /* so far; open: now */
};

/* `wants`: L7_WANT_ENTRIES of them, borrowed; NULL: nobody reads what is wanted. */
struct streams *streams_new(struct l7_want *wants, struct saying *to, uint32_t bucket_s,
			    int64_t offset_ns);
void streams_free(struct streams *s);
void streams_clock(struct streams *s, int64_t offset_ns);
/* One record, copied. */
void streams_record(struct streams *s, const void *record, size_t size);
/* Takes what was held long enough at now_ns (boot clock); INT64_MAX: all. */
void streams_take(struct streams *s, int64_t now_ns);
bool streams_held(const struct streams *s); /* something is not taken yet */
/* Says what lies in buckets that have ended; with `all` everything, and of open connections how
 * many bytes there were. */
void streams_say(struct streams *s, int64_t now_ns, bool all);
/* This socket is there no more (Unix, UDP): an end like any other, behind the records that it had
 * before. */
void streams_gone(struct streams *s, uint64_t sk, uint64_t ino, int64_t now_ns);
/* Everything ends: the capture does. What has no answer yet is blind. */
void streams_end(struct streams *s, int64_t now_ns);
void streams_stat(const struct streams *s, struct streams_stat *out);
size_t streams_memory(const struct streams *s);

#endif
