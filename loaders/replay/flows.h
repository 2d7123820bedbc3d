/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flows: packets as connections. Each TCP connection's two streams are put in order (what came
 * twice or overlaps is passed over, what came too early is held until what was before it comes),
 * and go to loaders/lib/protocols. Bytes are missing for good once the other side has acknowledged
 * what lies beyond them, too much is held, or the connection ends.
 *
 * Bounds: FLOWS_MAX flows (the one that was silent longest goes), HELD_MAX bytes held of a side.
 */
#ifndef SONDE_REPLAY_FLOWS_H
#define SONDE_REPLAY_FLOWS_H

#include "loaders/lib/protocols/conn.h"
#include "loaders/replay/packet.h"

#define FLOWS_MAX 100000
#define HELD_MAX  (4u << 20)

struct flows;

/* Who a request's connection (proto_request.user) is between. */
struct flow_ends {
	struct packet_end client, server;
	bool v6, udp;
};

struct flows_stat {
	uint64_t packets, others, bytes; /* others: neither TCP nor UDP; bytes: of payload */
	uint64_t fragments;              /* of IP packets that did not come whole */
	uint64_t connections, datagram_flows, evicted;
	uint64_t again_bytes;   /* came twice */
	uint64_t missing_bytes; /* never came, or not captured */
	uint64_t blind_bytes;   /* of connections whose protocol is known: what could not be made
				   sense of, missing ones with it */
	uint64_t unknown;       /* connections with payload that no protocol knows */
	uint64_t unknown_bytes;
	uint64_t answers_only; /* connections whose client's side was not captured */
	uint64_t unfinished;   /* questions that were open when the capture ended, or whose server's
				  side was not captured */
};

/* The protocols' names and options are `s`'s. */
struct flows *flows_new(struct protocols *s);
void flows_packet(struct flows *f, const struct packet *p, int64_t at_ns);
/* The capture has ended: open questions of connections that go on become blind. */
void flows_end(struct flows *f);
void flows_stat(const struct flows *f, struct flows_stat *out);
void flows_free(struct flows *f);
/* Of a request's user. */
void flow_ends(const void *user, struct flow_ends *out);

#endif
