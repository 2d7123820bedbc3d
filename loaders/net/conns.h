/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conns: open connections, and closed ones that are not stored yet.
 *
 * 1. A closed one waits until sonde-maps has reported all events before it (so that its process is
 *    known), until it is known who closed it if that comes separately, and for the other end if
 *    that is on this host: for CONNS_MATE_NS, and, while few wait, until the open connections have
 *    been read since, however late the other end's process closes it. Then it is stored and
 *    forgotten.
 * 2. Both ends are found by their first sequence numbers (record_pair).
 * 3. An open one is stored at each reading, with what moved since the previous one.
 * 4. One whose end was lost (the ring was full) is missing at two readings: it is stored as closed.
 */
#ifndef SONDE_NET_CONNS_H
#define SONDE_NET_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/net/record.h"
#include "schema/base/idmap.h"

#define CONNS_MATE_NS      1000000000ll
#define CONNS_MATE_MOST_NS 15000000000ll /* longer than between two readings */
#define CONNS_FEW          4096          /* ends that wait for a reading */
#define CONNS_OWNER_NS     500000000ll
#define CONNS_MAPS_NS      3000000000ll
#define CONNS_WAIT_MOST    32768 /* ends that may wait: past it the oldest is stored as it is */

struct conn_key {
	uint64_t sk, begin_ns;
};

/* What is already stored of it. */
struct conn_told {
	bool attempt, open;
	uint64_t tx, rx;
	uint32_t segs_out, segs_in, retrans, lost;
	int64_t at_ns; /* boot clock; 0: nothing */
};

struct conn {
	struct conn_key key;
	struct net_record r; /* the last one of it */
	struct conn_told told;
	struct conn *mate; /* the other end, while it is known here */
	struct net_owner mate_owner;
	uint64_t pair[3]; /* its keys in conns.pairs, by side; 0: none */
	enum net_side side;
	uint32_t reading; /* the last one that it was seen at */
	bool ended;
	struct conn *prev, *next;    /* of those that wait */
	struct conn *before, *after; /* of all */
};

struct conns {
	struct conn *all, *waiting;
	struct conn *spare; /* by `next`: memory to use again */
	size_t n_spare;
	struct idmap by_key;
	size_t n, n_waiting;
	struct idmap pairs[3];  /* by the side that it is taken for */
	struct idmap listeners; /* by namespace and port */
	uint32_t reading;
};

#define CONNS_EACH(cs_, c_, next_)                                             \
	for (struct conn *c_ = (cs_)->all, *next_ = c_ ? c_->after : NULL; c_; \
	     c_ = next_, next_ = c_ ? c_->after : NULL)

void conns_release(struct conns *cs);
/* Take a record in; the connection, NULL: it is of none that is known. */
struct conn *conns_take(struct conns *cs, const struct net_record *r);
/* The next closed one to store; NULL: none. `known_ns`: sonde-maps has reported all events before;
 * `all`: do not wait. */
struct conn *conns_next(struct conns *cs, int64_t now_ns, int64_t known_ns, bool all);
void conns_forget(struct conns *cs, struct conn *c);
/* The listener at that port of its namespace; NULL: unknown. */
struct conn *conns_listener(const struct conns *cs, uint32_t netns, uint16_t port);
/* Whose it is, as far as it is known; *how says how. */
struct net_owner conns_owner(const struct conns *cs, const struct conn *c, enum net_owner_how *how);
/* The other end's process, on this host; {0}: unknown. */
struct net_owner conns_mate(const struct conns *cs, const struct conn *c);
/* Client or server, if that is known. */
enum net_side conns_side(const struct conns *cs, const struct conn *c);

#endif
