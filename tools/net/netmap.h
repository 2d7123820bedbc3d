/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netmap: the map of services. A node is a container, or outside of containers a command. A server
 * that is not on this host is a node by the name that its client uses, else by its address; a
 * client that is not on this host by its class (lan, public, ...). An edge goes from who opened
 * connections to who accepted them, one for each pair, protocol and port. Of a connection with both
 * ends here the client's row counts; a server's rows count where no client's row of that edge is in
 * the selection. docker-proxy is not an end: its clients talk to the container that it leads to.
 * Where a port is translated on the way (a published one), the edge has the one that was asked for.
 *
 * Of several stores a node of this host is HOST/NAME, and a private address too: those of two hosts
 * are never one. Connections between hosts are one edge where netfar.h has proof of it.
 */
#ifndef SONDE_TOOLS_NETMAP_H
#define SONDE_TOOLS_NETMAP_H

#include "tools/net/netflows.h"
#include "tools/requests/reqrows.h"

enum netmap_kind { NETMAP_CONTAINER, NETMAP_COMMAND, NETMAP_ADDRESS, NETMAP_CLASS };

struct netmap_node {
	char *name;
	enum netmap_kind kind;
	bool linked; /* an edge has it */
};

struct netmap_edge {
	size_t from, to; /* nodes */
	char *protocol;
	int64_t port;     /* 0: none */
	int64_t own_port; /* the server's own, where the client asks another one that is translated;
			     0: not so */
	uint64_t sums[NET_SUMS]; /* as the client sees it: tx_bytes goes from `from` to `to` */
	int64_t open_now;
	bool of_client;           /* counted from clients' rows */
	int64_t at;               /* seconds: the earliest `at` of its rows */
	char *addresses;          /* at which clients asked it, a line each; NULL: none is known */
	struct reqrows_row asked; /* only its sums: .requests 0: none is known */
};

struct netmap {
	struct netmap_node *nodes;
	size_t n_nodes;
	struct netmap_edge *edges;
	size_t n_edges; /* sorted by names */
	bool known;
	bool asked_known;  /* requests were recorded in the range */
	uint64_t unplaced; /* requests that are no edge's: who asked whom is not known */
};

int netmap_make(const struct selection *sel, struct netmap *out, struct err *e);
/*
 * Adds the requests of the selection (tools/requests/reqrows.h) to the edges that carried them.
 * What a client saw belongs to the edge from it to the service that it asked, by port and, where
 * several match, by address. What a server saw belongs to the one edge that leads to its port, if
 * the client's end was not recorded. If several edges match, the client is unknown: those requests
 * are only counted (`unplaced`), no edge gets a guess.
 */
int netmap_add_requests(const struct selection *sel, struct netmap *m, struct err *e);
void netmap_release(struct netmap *m);
/* Of rows that were read by process. */
void netmap_of(const struct netflows *f, struct netmap *out);
/* The `n` edges that carried the most (requests and connections, then bytes), in the order of the
 * names; the others are freed. */
void netmap_keep(struct netmap *m, size_t n);
uint64_t netmap_failed(const struct netmap_edge *x);
uint64_t netmap_broken(const struct netmap_edge *x);

#endif
