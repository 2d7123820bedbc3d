/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn: a connection's two byte streams, brought in pieces, as requests.
 *
 * A piece carries its position in its side's stream, so that bytes missing between two pieces are
 * known; it may cover more bytes than it brings (`size` > `len`: only the first were copied).
 * Pieces of one side come in order of position, those of both in order of time; what was seen
 * before is passed over.
 *
 * Requests come out through `emit`, each once: answered (ok or error), one way, without an answer
 * (the connection ended), a stream that was opened, or blind (it was seen, what became of it cannot
 * be known as bytes are missing). Nothing is guessed.
 *
 * Bounds, for each connection: 64 KiB of an unfinished message a side, 16 384 open questions, 16
 * KiB until it is known what it speaks, and what each protocol says of its state; for all:
 * PROTO_OPERATIONS names of operations.
 */
#ifndef SONDE_PROTOCOLS_CONN_H
#define SONDE_PROTOCOLS_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROTO_OPERATIONS 20000
#define PROTO_NAME_MAX   256 /* bytes of an operation */
#define PROTO_STATUS_MAX 28

enum proto_side { PROTO_CLIENT, PROTO_SERVER };
enum proto_payload { PROTO_MASKED, PROTO_FULL, PROTO_NONE };
enum proto_result {
	PROTO_OK,
	PROTO_ERROR,
	PROTO_ONE_WAY,
	PROTO_OPENED,
	PROTO_NO_ANSWER,
	PROTO_BLIND
};
#define PROTO_RESULTS 6

struct protocols;
struct proto_conn;

struct proto_piece {
	enum proto_side from;
	uint64_t pos; /* of its first byte; modulo 2^64 from any start */
	int64_t at_ns;
	int64_t came_ns; /* when its first byte came to the socket that it was read from; 0: that is
			    not known */
	bool together;   /* and all others with it */
	const uint8_t *bytes;
	size_t len, size; /* bytes here; bytes of the stream that it covers (>= len) */
};

/* Borrowed for the call. */
struct proto_request {
	const char *protocol, *operation;
	const char
		*status;   /* "200", "42P01", "MOVED", "NXDOMAIN"; "" where the protocol has none */
	const char *trace; /* a trace's id that it carried, or NULL */
	uint32_t operation_id; /* the number of `operation` */
	enum proto_result result;
	int64_t begin_ns, sent_ns; /* first and last byte of the question */
	int64_t came_ns;           /* proto_piece.came_ns of its first byte; 0: not known */
	int64_t first_ns, end_ns;  /* first and last byte of the answer; 0: none */
	uint64_t request_bytes, response_bytes;
	uint64_t caller;    /* with a trace: the span of who sent it, as its header says; 0: none */
	uint64_t begin_pos; /* position of its first byte in the client's stream */
	void *user;         /* the connection's */
};

/* A name that was asked for, and an address of it that was answered. Borrowed for the call. */
struct proto_named {
	const char *name;
	const uint8_t *address;
	size_t len; /* of the address: 4 or 16 */
	int64_t at_ns;
	void *user; /* the connection's */
};

struct proto_opts {
	enum proto_payload payload;
	void (*emit)(void *ctx, const struct proto_request *r);
	void (*named)(void *ctx,
		      const struct proto_named *x); /* NULL: not wanted; never with PROTO_NONE */
	void *ctx;
};

/* What all connections share: names of operations. Outlives its connections. */
struct protocols *protocols_new(const struct proto_opts *opts);
void protocols_free(struct protocols *s);
enum proto_payload protocols_payload(const struct protocols *s);
/* The operation as it is named by all that is known by now: what had many siblings since is folded.
 * `port`: the server's, as given to the connection. Borrowed until the next call. */
const char *protocols_operation_now(struct protocols *s, const char *operation,
				    const char *protocol, uint16_t port);
/* Of "ADDRESS:PORT", as services are called; 0: it has none. */
uint16_t proto_service_port(const char *service);

/*
 * `begun`: from its first byte on, and `from` CLIENT is who opened it. Else either may be, and
 * pieces of the side that turns out to be the server are counted as such by proto_conn_swapped.
 * `port`: the server's, 0 if it is not known.
 */
struct proto_conn *proto_conn_new(struct protocols *s, bool begun, bool datagram, uint16_t port,
				  void *user);
void proto_conn_free(struct proto_conn *c);
/*
 * TLS has begun on the connection `outer`, and `c`, which has no piece yet, is the one inside:
 * it takes over what was said in clear, if that asked for TLS (MySQL's greeting, NATS's INFO).
 * `outer` is of no use after that, but for its counts.
 */
void proto_conn_inside(struct proto_conn *c, struct proto_conn *outer);
void proto_conn_feed(struct proto_conn *c, const struct proto_piece *piece);
/* This side will send no more (FIN). */
void proto_conn_end(struct proto_conn *c, enum proto_side from, int64_t at_ns);
/* Both sides have ended. Questions without a complete answer become no-answer. */
void proto_conn_close(struct proto_conn *c, int64_t at_ns);
/* The connection was reset. As proto_conn_close, and an answer that would have ended with the
 * connection is incomplete, too. */
void proto_conn_reset(struct proto_conn *c, int64_t at_ns);
/* The capture ends while the connection goes on. Open questions become blind, or no-answer if the
 * server's side has ended. Returns how many were open. */
size_t proto_conn_stop(struct proto_conn *c, int64_t at_ns);

const char *proto_conn_protocol(const struct proto_conn *c); /* "" while it is not known */
bool proto_conn_swapped(
	const struct proto_conn *c); /* the sides are the other way round than the pieces said */
uint64_t proto_conn_blind_bytes(const struct proto_conn *c); /* that were missing, or could not be
								made sense of after that */
/* That did not come, and were not needed: parts of bodies. */
uint64_t proto_conn_left_out(const struct proto_conn *c);
/* proto_conn_blind_bytes of one side. */
uint64_t proto_conn_blind_bytes_of(const struct proto_conn *c, enum proto_side side);
/* How many bytes of this side are not needed from here on; UINT64_MAX: all that will come. */
uint64_t proto_conn_skips(const struct proto_conn *c, enum proto_side from);
/* Of the piece that was fed last: its first bytes, up to the last one that anybody looked at. */
size_t proto_conn_needed(const struct proto_conn *c);
/* Its protocol is unknown, and will not be looked for any more. */
bool proto_conn_hopeless(const struct proto_conn *c);
size_t proto_conn_open(const struct proto_conn *c); /* questions without an answer so far */
/* Calls `each` for every question that certainly has no complete answer yet, as far as it is known:
 * end_ns is 0; `result` is PROTO_OPENED of a stream that was reported, else PROTO_BLIND. Questions
 * whose answer may lie in missing bytes are left out. The connection must not change meanwhile. */
void proto_conn_each_open(const struct proto_conn *c,
			  void (*each)(void *ctx, const struct proto_request *r), void *ctx);
size_t proto_conn_memory(const struct proto_conn *c); /* bytes that it holds */
const char *proto_result_name(enum proto_result r);

#endif
