/* SPDX-License-Identifier: Apache-2.0 */
/*
 * midway: what a connection speaks whose begin was not seen. Private to this room.
 *
 * Where a connection begins, each protocol has its sign. In its midst many have nothing but a
 * length and small numbers, and those of one are as well those of another. There a protocol is
 * taken only if
 *
 *   1. its `recognise` says yes of the first bytes;
 *   2. it reads all pieces that are kept, as a trial connection, and each message begins where one
 *      can;
 *   3. no other protocol satisfies 1 and 2.
 *
 * Else more pieces are waited for; when no more are kept, the connection stays unknown.
 */
#ifndef SONDE_PROTOCOLS_MIDWAY_H
#define SONDE_PROTOCOLS_MIDWAY_H

#include "loaders/lib/protocols/protocol.h"

#define SEEN_BYTES  16384 /* kept until the protocol is known */
#define SEEN_PIECES 48

struct proto_seen {
	struct seen_piece {
		enum proto_side from;
		uint64_t pos;
		int64_t at_ns, came_ns,
			last_ns; /* last_ns: time of the bytes from offset `last` on */
		bool together;
		uint32_t at, len, last; /* last: 0: all bytes came at at_ns */
		size_t size;
		uint64_t missing; /* before it */
	} pieces[SEEN_PIECES];
	uint32_t n, n_bytes;
	uint8_t bytes[SEEN_BYTES];
};

/* Condition 2, of the pieces from number `skip` on. `swapped`: their sides are the other way round.
 */
bool midway_reads(const struct proto_conn *c, uint32_t skip, bool swapped,
		  const struct protocol *p);

#endif
