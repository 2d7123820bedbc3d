/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protocol_fuzz: any two streams of bytes, cut, lost and ended in any way, through one protocol: no
 * memory error, bounded memory, and each request is emitted once, with times in order.
 *
 * An input is a list of pieces: FLAGS:8 LEN:8 BYTES. Flags: 1 from the server, 2 bytes are lost
 * before it, 4 only half of it is known, 8 it represents 256 times its length, 16 this side ends
 * after it, 32 LEN times 16. The first byte: begun or not, datagrams or not, 32 the second half is
 * said inside TLS.
 */
#ifndef SONDE_FUZZ_PROTOCOL_H
#define SONDE_FUZZ_PROTOCOL_H

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

#define FUZZ_MEMORY (4u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fuzz_hear(void *ctx, const struct proto_request *r)
{
	struct protocols **of = ctx;
	const char *now = protocols_operation_now(*of, r->operation, r->protocol, 80);

	if (!now[0] || strlen(now) >= PROTO_NAME_MAX)
		abort();
	if (!r->operation[0] || strlen(r->operation) >= PROTO_NAME_MAX ||
	    strlen(r->status) >= PROTO_STATUS_MAX)
		abort();
	if (r->begin_ns > r->sent_ns || (r->end_ns && r->end_ns < r->begin_ns))
		abort();
}

static inline void fuzz_pieces(struct proto_conn *c, const uint8_t *p, size_t n)
{
	const size_t how = n % 3;
	uint64_t pos[2] = {0, 0};
	int64_t now = 1;

	while (n >= 2) {
		unsigned flags = p[0];
		size_t len = p[1];
		int side = flags & 1;
		struct proto_piece piece = {.from = side ? PROTO_SERVER : PROTO_CLIENT,
					    .at_ns = now++};

		p += 2;
		n -= 2;
		len *= flags & 32 ? 16 : 1;
		len = len < n ? len : n;
		pos[side] += flags & 2 ? 1 + len % 7 : 0;
		piece.pos = pos[side];
		piece.bytes = p;
		piece.len = flags & 4 ? len / 2 : len;
		piece.size = flags & 8 ? len * 256 : len;
		pos[side] += piece.size;
		proto_conn_feed(c, &piece);
		if (flags & 16)
			proto_conn_end(c, piece.from, now);
		p += len;
		n -= len;
		if (proto_conn_memory(c) > FUZZ_MEMORY)
			abort();
	}
	if (how == 0)
		proto_conn_close(c, now);
	else if (how == 1)
		proto_conn_reset(c, now);
	else
		proto_conn_stop(c, now);
	if (proto_conn_open(c) && *proto_conn_protocol(c))
		abort();
}

static volatile uint8_t fuzz_read;

/* All of it can be read. */
static inline void fuzz_named(void *ctx, const struct proto_named *x)
{
	(void)ctx;
	if (x->len != 4 && x->len != 16)
		abort();
	for (size_t i = 0; i < x->len; i++)
		fuzz_read ^= x->address[i];
}

/* What follows is said inside TLS. */
static inline void fuzz_inside(struct protocols *of, struct proto_conn *outer, const uint8_t *p,
			       size_t n)
{
	struct proto_conn *c = proto_conn_new(of, true, false, 53, NULL);

	proto_conn_inside(c, outer);
	fuzz_pieces(c, p, n);
	proto_conn_free(c);
}

static inline int fuzz_protocol(const struct protocol *protocol, const uint8_t *data, size_t size)
{
	static struct protocols
		*of[3]; /* tables of names stay: a table for each input would be all the work */
	static unsigned n;
	struct proto_opts opts = {.emit = fuzz_hear, .named = fuzz_named};
	struct proto_conn *c;
	int which;

	if (size < 1)
		return 0;
	which = data[0] / 4 % 3;
	if (++n % 10000 == 0)
		for (int i = 0; i < 3; i++) {
			protocols_free(of[i]);
			of[i] = NULL;
		}
	opts.payload = (enum proto_payload)which;
	opts.ctx = &of[which];
	if (!of[which])
		of[which] = protocols_new(&opts);
	c = proto_conn_new(of[which], data[0] & 1,
			   protocol && protocol->datagram && (!protocol->stream_too || data[0] & 2),
			   data[0] & 64 ? 5353 : 53, NULL);
	if (protocol && !(data[0] & 128))
		proto_switch(c, protocol);
	fuzz_pieces(c, data + 1, data[0] & 32 ? (size - 1) / 2 : size - 1);
	if (data[0] & 32)
		fuzz_inside(of[which], c, data + 1 + (size - 1) / 2, size - 1 - (size - 1) / 2);
	proto_conn_free(c);
	return 0;
}

#endif
