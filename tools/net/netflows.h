/* SPDX-License-Identifier: Apache-2.0 */
/*
 * netflows: connections of a selection, added up (view flows), and who listens (view listeners).
 *
 * The other end has the name of its process where that is on this host, else its address. How many
 * are open is as of the last reading in the range, where that is at most NETFLOWS_IDLE_S before its
 * beginning: what does not move has a row so often only.
 */
#ifndef SONDE_TOOLS_NETFLOWS_H
#define SONDE_TOOLS_NETFLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

#define NETFLOWS_IDLE_S 70

enum netflows_by {
	NETFLOWS_BY_PROCESS,
	NETFLOWS_BY_COMMAND,
	NETFLOWS_BY_CONTAINER,
	NETFLOWS_BY_PEER
};
#define NETFLOWS_BY_NAMES "process, command, container, peer"
/* false: there is no such word. */
bool netflows_by(const char *word, enum netflows_by *by);

enum netflows_sum {
	NET_ATTEMPTS,
	NET_OPENED,
	NET_REFUSED,
	NET_TIMED_OUT,
	NET_UNREACHABLE,
	NET_GIVEN_UP,
	NET_FAILED,
	NET_CLOSED,
	NET_RESET_IN,
	NET_RESET_OUT,
	NET_BROKEN,
	NET_TX,
	NET_RX,
	NET_SEGS_OUT,
	NET_SEGS_IN,
	NET_RETRANS,
	NET_LOST,
	NET_RTT_SUM,
	NET_RTT_N,
	NET_CONNECT_US,
	NET_LIFE_US,
	NET_SUMS
};
extern const char *const NETFLOWS_SUMS[NET_SUMS]; /* the columns' names, and JSON's keys */

struct netflows_end {
	char *host;             /* of several stores; "" of one */
	char *container, *comm; /* "": none */
	int64_t pid;            /* 0: several, or not known */
	bool many;              /* several pids */
};

struct netflows_row {
	struct netflows_end who,
		mate; /* mate.comm "": the other end is not on this host, or not known */
	char *side, *protocol, *peer; /* peer: an address, of several that were added the first */
	char *name; /* what its process calls that address (netnames.h); NULL: nothing that is known
		     */
	char *more_peers; /* of a server: the other peers, a line each; NULL: none */
	int64_t port;     /* 0: none */
	uint64_t sums[NET_SUMS];
	uint64_t peers;       /* different addresses that were added */
	int64_t open_now, at; /* at: of the last reading, seconds */
	bool self;
	bool apart; /* it has several other ends, on other hosts, whose rows count instead
		       (netfar.h) */
};

struct netflows {
	struct netflows_row *rows;
	size_t n, shown; /* shown: the caller's */
	bool known;      /* family net was recorded in the range */
};

/* Sorted by bytes and connections. An empty one is no error. Release in any case. */
int netflows_read(const struct selection *sel, enum netflows_by by, struct netflows *out,
		  struct err *e);
/* The same, but `at` and open_now are of the first reading within the range. */
int netflows_read_first(const struct selection *sel, enum netflows_by by, struct netflows *out,
			struct err *e);
void netflows_release(struct netflows *f);
/* `line` is one of `lines`, each of which ends in a newline. */
bool netflows_has_line(const char *lines, const char *line);
/* Connections that were not opened; that ended otherwise than in good order. */
uint64_t netflows_failed(const struct netflows_row *r);
uint64_t netflows_broken(const struct netflows_row *r);

struct netlisteners_row {
	struct netflows_end who;
	char *protocol, *address, *open_to;
	int64_t port, backlog, backlog_max, dropped, repeated;
};
struct netlisteners {
	struct netlisteners_row *rows;
	size_t n;
	bool known;
};
int netlisteners_read(const struct selection *sel, struct netlisteners *out, struct err *e);
void netlisteners_release(struct netlisteners *l);

/* How it is known to be QUIC: "first bytes" (family net saw a message begin so), "port" (UDP to
 * 443, and nothing else says so); NULL: it is not known to be. */
const char *netflows_quic(const char *protocol, int64_t port);
/* Of several stores the name of its host, else "", into `buf`. Its container there is called
 * HOST/NAME, and outside of one HOST. */
#define NETFLOWS_HOST 65
const char *netflows_host(const struct store_process_row *p, char buf[NETFLOWS_HOST]);
/* Its container; "": none. */
const char *netflows_container(const struct store_process_row *p);
/* "loopback", "lan" (addresses that are routed at home only), "public"; "" where it is no address.
 */
const char *netflows_class(const char *address);

#endif
