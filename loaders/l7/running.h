/* SPDX-License-Identifier: Apache-2.0 */
/*
 * running: reports the requests that have no complete answer yet. All open ones are looked at from
 * time to time (running_walk, running_seen, running_walked). Each that has lasted RUNNING_LEAST_NS
 * gets a message: when it is that old, then every RUNNING_ROUND_NS, from RUNNING_YOUNG_NS on every
 * RUNNING_OLD_NS, and a last one when it is over. A request that disappears without an outcome (its
 * connection is no longer read) ends as blind. While some are reported, a mark each
 * RUNNING_ROUND_NS says until when this is complete, and since when: another parser knows nothing
 * of the requests of the one before.
 *
 * Bounds: RUNNING_MOST requests at a time, RUNNING_EACH of one operation, RUNNING_FRESH new ones in
 * a round. The first ones are reported, the mark counts the rest.
 */
#ifndef SONDE_L7_RUNNING_H
#define SONDE_L7_RUNNING_H

#include "loaders/l7/parser_message.h"
#include "loaders/l7/sums.h"
#include "loaders/lib/protocols/conn.h"

#define RUNNING_LEAST_NS (2ll * 1000000000)
#define RUNNING_ROUND_NS (10ll * 1000000000)
#define RUNNING_YOUNG_NS (60ll * 1000000000)
#define RUNNING_OLD_NS   (60ll * 1000000000)
#define RUNNING_MOST     1000
#define RUNNING_EACH     200
#define RUNNING_FRESH    100

struct running;

/* Times are of the boot clock. */
struct running *running_new(struct protocols *p, struct message_writer *to);
void running_free(struct running *r);

/* What a connection's end is called: "" and 0: it has no address. */
struct running_client {
	char address[64];
	uint16_t port;
};

/* Looks at all open requests: running_walk, running_seen for each, running_walked. Younger ones
 * than RUNNING_LEAST_NS are passed over. `last`: the capture ends, and each gets a message. UTC =
 * boot clock + offset_ns. */
void running_walk(struct running *r, int64_t now_ns, int64_t offset_ns, bool last);
void running_seen(struct running *r, uint64_t id, const struct sums_of *of,
		  const struct running_client *client, const struct proto_request *q);
void running_walked(struct running *r);
/* This request was answered, or has ended otherwise (at_ns). */
void running_over(struct running *r, uint64_t id, const struct proto_request *q, int64_t at_ns);
/* Is any reported now? Otherwise running_over has nothing to do. */
bool running_any(const struct running *r);

#endif
