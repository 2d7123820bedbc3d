/* SPDX-License-Identifier: Apache-2.0 */
/*
 * talk: a conversation as a table, played to a connection in several ways, and what came out of it
 * as lines "OPERATION RESULT STATUS", to be compared with the lines that the test expects.
 */
#ifndef SONDE_TESTS_PROTOCOLS_TALK_H
#define SONDE_TESTS_PROTOCOLS_TALK_H

#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/protocols/conn.h"
#include "schema/base/array.h"
#include "tests/unit/test.h"

#define TALK_IDLE_MAX 4096 /* bytes that an idle connection may hold */

struct turn {
	char from; /* 'c', 's'; 0 ends the table */
	const char *bytes;
	size_t len;
};

#define C(text)                             \
	{                                   \
		'c', text, sizeof(text) - 1 \
	}
#define S(text)                             \
	{                                   \
		's', text, sizeof(text) - 1 \
	}
#define END                \
	{                  \
		0, NULL, 0 \
	}

struct heard {
	char text[65536];
	size_t len;
	int64_t latency_ns, first_ns, begin_ns; /* of the last one */
	uint64_t request_bytes, response_bytes;
	char trace[160];
	uint64_t caller, begin_pos;
};

struct talk {
	struct heard heard;
	struct proto_opts opts;
	struct protocols *of;
	struct proto_conn *conn;
	uint64_t pos[2];
	int64_t now_ns;
};

static void hear(void *ctx, const struct proto_request *r)
{
	struct talk *t = ctx;
	struct heard *h = &t->heard;

	h->len += (size_t)snprintf(h->text + h->len, sizeof(h->text) - h->len, "%s %s%s%s\n",
				   r->operation, proto_result_name(r->result),
				   *r->status ? " " : "", r->status);
	h->len = h->len < sizeof(h->text) ? h->len : sizeof(h->text) - 1;
	h->latency_ns = r->end_ns - r->begin_ns;
	h->first_ns = r->first_ns - r->begin_ns;
	h->begin_ns = r->begin_ns;
	h->request_bytes = r->request_bytes;
	h->response_bytes = r->response_bytes;
	h->caller = r->caller;
	h->begin_pos = r->begin_pos;
	if (r->trace)
		snprintf(h->trace, sizeof(h->trace), "%s", r->trace);
}

static inline void talk_begin(struct talk *t, bool begun, bool datagram, uint16_t port,
			      enum proto_payload payload)
{
	memset(t, 0, sizeof(*t));
	t->opts = (struct proto_opts){.emit = hear, .ctx = t, .payload = payload};
	t->of = protocols_new(&t->opts);
	t->conn = proto_conn_new(t->of, begun, datagram, port, NULL);
	t->pos[0] = 1000;
	t->pos[1] = UINT64_MAX - 10; /* wraps */
	t->now_ns = 1000;
}

/* `copied` of the bytes are known. */
static inline void talk_say(struct talk *t, char from, const char *bytes, size_t len, size_t copied)
{
	int side = from == 's';
	struct proto_piece p = {.from = side ? PROTO_SERVER : PROTO_CLIENT,
				.pos = t->pos[side],
				.at_ns = t->now_ns,
				.bytes = (const uint8_t *)bytes,
				.len = copied < len ? copied : len,
				.size = len};
	/* of exactly that size, so that a sanitizer finds a read beyond it */
	uint8_t *own = malloc(p.len ? p.len : 1);

	memcpy(own, bytes, p.len);
	p.bytes = own;
	proto_conn_feed(t->conn, &p);
	free(own);
	t->pos[side] += len;
	t->now_ns += 10;
}

static inline void talk_lose(struct talk *t, char from, size_t len)
{
	t->pos[from == 's'] += len;
}

static inline void talk_end(struct talk *t, bool close)
{
	if (close)
		proto_conn_close(t->conn, t->now_ns);
	proto_conn_free(t->conn);
	protocols_free(t->of);
}

static inline void talk_play(struct talk *t, const struct turn *turns, size_t piece, size_t copied)
{
	for (const struct turn *u = turns; u->from; u++)
		for (size_t at = 0; at < u->len; at += piece)
			talk_say(t, u->from, u->bytes + at,
				 u->len - at < piece ? u->len - at : piece, copied);
}

/* The memory that a connection holds after this conversation, without the names, which all
 * connections share. */
static inline size_t talk_idle_bytes(const struct turn *turns, bool begun, bool datagram,
				     uint16_t port)
{
	struct talk *t = malloc(sizeof(*t));
	size_t before, held;

	talk_begin(t, begun, datagram, port, PROTO_MASKED);
	talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX); /* the names */
	proto_conn_free(t->conn);
	before = mallinfo2().uordblks;
	t->conn = proto_conn_new(t->of, begun, datagram, port, NULL);
	t->pos[0] = t->pos[1] = 0;
	t->heard.len = 0;
	talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX);
	held = mallinfo2().uordblks - before;
	talk_end(t, true);
	free(t);
	return held;
}

/* Bytes of a whole conversation that cannot be parsed; set by the test. */
static uint64_t talk_blind;

/* Expects the same lines with the turns whole and cut into pieces of one, two, three and seven
 * bytes. Seen from the middle of a connection, turns are whole: there a piece begins a message. */
static inline void talk_expect_of(const struct turn *turns, const char *protocol, const char *lines,
				  bool begun, bool datagram, uint16_t port,
				  enum proto_payload payload)
{
	static const size_t pieces[] = {SIZE_MAX / 2, 1, 2, 3, 7};
	struct talk *t = malloc(sizeof(*t));

	for (size_t i = 0; i < (datagram || !begun ? 1 : ARRAY_SIZE(pieces)); i++) {
		talk_begin(t, begun, datagram, port, payload);
		talk_play(t, turns, pieces[i], SIZE_MAX);
		assert_string_equal(proto_conn_protocol(t->conn), protocol);
		proto_conn_close(t->conn, t->now_ns);
		assert_string_equal(t->heard.text, lines);
		assert_int_equal(proto_conn_blind_bytes(t->conn), talk_blind);
		talk_end(t, false);
	}
	free(t);
	if (payload == PROTO_MASKED)
		assert_true(talk_idle_bytes(turns, begun, datagram, port) <=
			    TALK_IDLE_MAX); /* malloc of a sanitizer tells 0 */
}

static inline void talk_expect(const struct turn *turns, const char *protocol, const char *lines)
{
	talk_expect_of(turns, protocol, lines, true, false, 0, PROTO_MASKED);
}

/* The conversation yields no request, seen from its beginning or from its middle. */
static inline void talk_expect_nothing(const struct turn *turns)
{
	struct talk *t = malloc(sizeof(*t));

	for (int begun = 0; begun < 2; begun++) {
		talk_begin(t, begun, false, 0, PROTO_MASKED);
		talk_play(t, turns, SIZE_MAX / 2, SIZE_MAX);
		proto_conn_close(t->conn, t->now_ns);
		assert_string_equal(t->heard.text, "");
		talk_end(t, false);
	}
	free(t);
}

#endif
