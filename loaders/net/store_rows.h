/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_rows: stores connections as rows. Sums are kept by (bucket, process, side, protocol, peer,
 * port, other end's process) until they are flushed, which each reading does.
 *
 * Bounded: a process has STORE_ROWS_PEERS_OF flows in a flush, all processes have STORE_ROWS_FLOWS,
 * and an hour has STORE_ROWS_NAMES different peers and ports; beyond that, flows are counted under
 * "~other": sums stay exact. Single connections that failed, and those that lived longest, have
 * rows: STORE_ROWS_SINGLES_OF of a process and STORE_ROWS_SINGLES in all in a flush.
 */
#ifndef SONDE_NET_STORE_ROWS_H
#define SONDE_NET_STORE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/net/conns.h"
#include "loaders/net/hostnames.h"
#include "loaders/net/marks.h"
#include "loaders/net/others.h"
#include "loaders/net/talks.h"

#define STORE_ROWS_PEERS_OF   256
#define STORE_ROWS_FLOWS      4096
#define STORE_ROWS_NAMES      16384
#define STORE_ROWS_SINGLES_OF 16 /* a port scan does not hide other failures */
#define STORE_ROWS_SINGLES    128
#define STORE_ROWS_IDLE_NS    60000000000ll /* what is open and does not move has a row so often */
#define STORE_ROWS_OTHER      "~other"

struct store_rows_proc;
struct store_rows_flow;

struct store_rows {
	struct store_rows_proc *procs;
	struct store_rows_flow *flows;
	size_t n_flows, n_singles, n_marks;
	struct hostnames hosts;
	struct marks marks;
	uint32_t mark_epoch;
	struct idmap names, edges; /* of this hour; already stored */
	struct idmap quic;         /* flows of UDP that began as QUIC does */
	bool fresh;                /* some are not stored yet */
	int64_t hour;
	int64_t reading_ts;     /* bucket of the reading that goes on */
	uint64_t stored, other; /* connections that ended, and those of them under ~other */
};

void store_rows_release(struct store_rows *b);
/* What is new of a connection, which ended or is read. `now_ns`: when it was like this. */
void store_rows_conn(struct store_rows *b, struct family_host *h, const struct conns *cs,
		     struct conn *c, int64_t now_ns);
/* What moved of a listener. */
void store_rows_listener(struct store_rows *b, struct family_host *h, struct conn *c,
			 int64_t now_ns);
/* An open connection of a Unix or UDP socket (`quic`: it is known to speak that); one that waits
 * for others. */
void store_rows_other(struct store_rows *b, struct family_host *h, const struct others_edge *x,
		      bool quic, int64_t now_ns);
void store_rows_waiting(struct store_rows *b, struct family_host *h, const struct others_edge *x,
			int64_t now_ns);
/* Traffic of Unix and UDP sockets since. `os`: as of the last reading of descriptors. */
void store_rows_talk(struct store_rows *b, struct family_host *h, const struct talks_sum *x,
		     const struct others *os, int64_t now_ns);
/* A reading begins: the number of open ones is counted from 0 again. */
void store_rows_reading(struct store_rows *b, const struct family_host *h, int64_t now_ns);
/* All sums go to the store; how many rows that are. */
size_t store_rows_flush(struct store_rows *b, struct family_host *h);

#endif
