/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream: one connection, or one remote end of a datagram socket, as the parser child sees it:
 * whose it is, where in its bytes it is, and what was reported of them. Private to streams.c and
 * stream.c.
 */
#ifndef SONDE_L7_STREAM_H
#define SONDE_L7_STREAM_H

#include "loaders/l7/serving.h"
#include "loaders/l7/sums.h"
#include "probes/l7.h"

/* For which request a client's piece was written: the last ASKS pieces, by their time. */
#define ASKS 8
struct asks {
	struct {
		int64_t at_ns;
		uint64_t tag; /* 0: it is not known */
		uint8_t how;  /* enum link_how */
	} of[ASKS];
	uint32_t n;
};

struct stream {
	struct stream *newer, *older; /* by their last record */
	uint64_t key, sk, ino;
	struct msg_process process;
	uint32_t tid;
	struct proto_conn *conn; /* NULL: not made yet, or its protocol is unknown */
	char *service;
	struct asks *asks;     /* NULL: none of its pieces had a tag */
	struct l7_data *early; /* clear text of before the connection's record; NULL: none */
	struct serving_end serving;
	uint64_t opened_for; /* the only request of the thread that opened it; 0: unknown */
	uint64_t ends;       /* hash of its two ends, the same on both; 0: unknown */
	uint64_t pos[2];     /* of the next byte, by enum l7_dir */
	uint64_t tls_pos[2];
	uint64_t copied;
	uint64_t reported_seen, reported_blind, reported_skipped, reported_blind_requests,
		blind_requests;
	uint64_t lost;  /* seen before the connection's record, or unreadable before its protocol
			   was known */
	uint64_t outer; /* seen before TLS began to be read */
	uint64_t tls_calls;
	int64_t first_ns, last_ns;
	int64_t busy_ns; /* when the request before the current one was answered */
	uint32_t datagrams;
	uint16_t family, lport, dport;
	uint8_t local[16], peer[16];
	uint8_t side, service_side; /* enum l7_side: as its pieces are fed; as `service` was made */
	uint32_t limit[2], needed[2]; /* bytes to copy of a call; the most that was read of one */
	uint32_t seq0[2];             /* TCP's sequence number at position 0 */
	uint8_t calls[2];             /* large ones since `limit` was set */
	bool whole;                   /* a limit was too small once */
	bool seq_known[2];
	bool described, begun, tls, datagram, silent, asked, ended;
	bool met[2]; /* a piece of this direction was fed */
	bool torn;   /* bytes were lost while it was not known what it speaks */
};

/* Its side, as far as is known by now: an enum l7_side. */
uint8_t stream_side(const struct stream *x);
/* Whose requests it has, and the service that follows from its side; valid until the next call. */
struct sums_of stream_sums_of(struct stream *x);
/* Bytes that the socket moved, both directions. */
uint64_t stream_seen(const struct stream *x);
/* Adds to `sums` what happened to its bytes since the last report. While it is not known what the
 * connection speaks, they are reported later, or at the `last` report. */
void stream_report(struct stream *x, struct sums *sums, int64_t now_ns, bool last);
/* The key of a datagram's flow: of the socket, and of the remote end unless it is the connected
 * peer. */
uint64_t stream_datagram_key(const struct stream *sock, const struct l7_data *d);
/* Takes its two ends, and by them its side and service, from its record. */
void stream_ends_set(struct stream *x, const struct l7_conn *c);
void stream_free(struct stream *x);

#endif
