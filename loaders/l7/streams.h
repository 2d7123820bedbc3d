/* SPDX-License-Identifier: Apache-2.0 */
/*
 * streams: turns the probes' records (probes/l7.h) into connections, and those into requests. Pure,
 * except that it writes the array of wants: what the probes need not copy of a connection.
 *
 * 1. Records arrive in any order within HOLD_NS: a write is recorded when it ends, with the time at
 *    which it began. They are held that long and taken in order of time.
 * 2. If a connection's own record is missing (it was lost, or went to an earlier parser), it is
 *    requested. Bytes that arrive before it are blind.
 * 3. The probes stop copying bodies that need not be read, and connections whose protocol is
 *    unknown (l7_want).
 * 4. Of each connection and direction: bytes seen = parsed + skipped + blind. Skipped: not copied,
 *    because they need not be read. Blind: missing, or unreadable because of missing ones.
 * 5. Requests that last are reported while they run (running.h).
 * 6. Datagrams: each pair of ends is a connection, which ends after UDP_IDLE_NS of silence.
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
	uint64_t records, malformed, evicted, late; /* late: older than one already taken */
	uint64_t connections, datagram_flows, open; /* so far; open: now */
};

/* `wants`: L7_WANT_ENTRIES of them, borrowed; NULL: there are no probes. */
struct streams *streams_new(struct l7_want *wants, struct message_writer *to, uint32_t bucket_s,
			    int64_t offset_ns);
void streams_free(struct streams *s);
/* All requests are reported, for the flight ring (sums.h). */
void streams_ring(struct streams *s);
void streams_clock(struct streams *s, int64_t offset_ns);
/* One record, copied. */
void streams_record(struct streams *s, const void *record, size_t size);
/* Takes the records that were held long enough at now_ns (boot clock); INT64_MAX: all. */
void streams_take(struct streams *s, int64_t now_ns);
bool streams_held(const struct streams *s); /* some record is not taken yet */
/* Writes the buckets that have ended, with `all` every bucket, and the byte counts of open
 * connections. */
void streams_write(struct streams *s, int64_t now_ns, bool all);
/* This socket (Unix, UDP) no longer exists: ends it after the records that are held of it. */
void streams_gone(struct streams *s, uint64_t sk, uint64_t ino, int64_t now_ns);
/* The capture ends: writes everything. Requests without an answer are reported as running. */
void streams_end(struct streams *s, int64_t now_ns);
void streams_stat(const struct streams *s, struct streams_stat *out);

#endif
