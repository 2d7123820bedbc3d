/* SPDX-License-Identifier: Apache-2.0 */
/*
 * others: Unix and UDP sockets, which have no tracepoint: they are found by reading descriptors, so
 * only those that are open at that moment. Of a Unix socket both ends are known by their addresses
 * in the kernel; the server's has the path, for the client's mostly has none. Of a UDP socket that
 * has a peer, the other end is the socket that is bound there, in the same namespace; if no socket
 * is bound to that port, one that is bound to the same address with another port, to which the
 * kernel redirects: Docker's resolver at 127.0.0.11.
 */
#ifndef SONDE_NET_OTHERS_H
#define SONDE_NET_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "probes/net.h"
#include "schema/base/idmap.h"

struct others {
	struct net_other *items;
	size_t n, cap;
	struct idmap by_sk; /* place in items */
	struct idmap bound; /* of UDP: by namespace and port */
	struct idmap alone; /* of UDP: by namespace and the loopback address that it is bound to,
			       but 127.0.0.1 and ::1 */
};

/* One end of an open connection, or a socket that others can reach. */
struct others_edge {
	const struct net_other *own, *mate; /* mate NULL: not on this host, or closed */
	enum net_side side;
	char peer[NET_PATH + 4]; /* the path of a Unix socket ("@..." abstract), "" of none */
};

void others_release(struct others *os);
void others_clear(struct others *os); /* a reading begins */
void others_add(struct others *os, const struct net_other *o);
/* The owner of that Unix socket; or the owner of the port at a UDP socket's other end (`peer`, IPv4
 * the first four bytes), if that is on this host: as of the last reading. NULL: unknown. */
const struct net_other *others_socket(const struct others *os, uint64_t sk);
const struct net_other *others_bound(const struct others *os, uint32_t netns, uint16_t family,
				     const uint8_t peer[16], const uint8_t local[16],
				     uint16_t port);
/* The kernel's name of a Unix socket, for people. */
void others_path(const uint8_t *path, size_t len, char out[NET_PATH + 4]);
/* Each socket of the reading that has another end; with `listeners` those that wait for one
 * instead. */
void others_each(const struct others *os, bool listeners,
		 void (*each)(void *ctx, const struct others_edge *x), void *ctx);

#endif
