/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket: RFC 6455, after HTTP's 101. A frame:
 *
 *   FIN:1 RSV:3 OPCODE:4 | MASK:1 LEN:7 | 126: LEN:16, 127: LEN:64 (big endian) |
 *   MASK: KEY:32 | DATA
 *
 * Opcodes: 0 continuation, 1 text, 2 binary, 8 close (CODE:16, a text), 9 ping, 10 pong. Each
 * message of data is reported as one-way, including all of its frames; there is no latency, as
 * there is no question. Pings, pongs and an ordinary close are not reported. A close whose code
 * says that something failed (any but 1000, 1001 and 1005) is an error, once for a connection: the
 * other side repeats the code, so that who closed first is not told.
 */
#include <stdio.h>

#include "loaders/lib/protocols/table.h"

enum { CLOSE = 8, NORMAL = 1000, GOING_AWAY = 1001, NO_CODE = 1005 };

struct websocket {
	bool goes_on[2]; /* a fragmented message is in progress */
	bool closed;
};

static bool plausible(enum proto_side from, const uint8_t *p, size_t n)
{
	uint8_t op = p[0] & 15;

	return n >= 2 && !(p[0] & 0x30) &&
	       (op <= 2 || (op >= 8 && op <= 10 && p[0] & 0x80 && (p[1] & 127) < 126)) &&
	       (p[1] >> 7) == (from == PROTO_CLIENT);
}

static bool websocket_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	size_t len;

	(void)c;
	if (!plausible(from, p, n))
		return false;
	len = (p[1] & 127) + 2u +
	      (from == PROTO_CLIENT ?
		       4 :
		       0); /* a small frame, and another one or the piece's end behind it */
	return (p[1] & 127) < 126 &&
	       (len == n || (len + 2 <= n && plausible(from, p + len, n - len)));
}

/* A close with a code, at `head` in p. */
static void closes(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t head)
{
	struct websocket *s = proto_state(c);
	unsigned code = be16(p + head);
	char status[8];

	if (from == PROTO_CLIENT) /* masked, with the four bytes before it */
		code ^= be16(p + head - 4);
	if (s->closed)
		return;
	s->closed = true;
	if (code == NORMAL || code == GOING_AWAY || code == NO_CODE)
		return;
	snprintf(status, sizeof(status), "%u", code);
	proto_begins_anew(c);
	s->goes_on[from] = false;
	proto_refused(c, proto_name(c, "close", 5), status);
}

static int64_t websocket_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n, bool last)
{
	struct websocket *s = proto_state(c);
	size_t head = 2 + (from == PROTO_CLIENT ? 4u : 0);
	uint64_t len;

	if (n < 2)
		return PROTO_MORE;
	if (!plausible(from, p, n))
		return PROTO_LOST;
	len = p[1] & 127;
	head += len == 126 ? 2 : len == 127 ? 8 : 0;
	if (n < head)
		return PROTO_MORE;
	len = len == 126 ? be16(p + 2) : len == 127 ? be64(p + 2) : len;
	if (len > PROTO_STEP_MAX / 2)
		return PROTO_LOST;
	if ((p[0] & 15) == CLOSE && len >= 2) {
		if (n < head + 2 && !last)
			return PROTO_MORE;
		if (n >= head + 2)
			closes(c, from, p, head);
	}
	if ((p[0] & 15) == 1 || (p[0] & 15) == 2) {
		proto_begins_anew(c);
		proto_one_way(c, proto_namef(c, "%s to %s", (p[0] & 15) == 1 ? "text" : "binary",
					     from == PROTO_CLIENT ? "server" : "client"));
	}
	if ((p[0] & 15) <= 2)
		s->goes_on[from] = !(p[0] & 0x80);
	if (s->goes_on[from]) /* control frames may come in between */
		proto_goes_on(c);
	return (int64_t)(head + len);
}

static void websocket_lost(struct proto_conn *c, enum proto_side from)
{
	((struct websocket *)proto_state(c))->goes_on[from] = false;
}

static enum proto_guess websocket_recognise(const struct proto_first *f)
{
	(void)f; /* only behind HTTP */
	return PROTO_NO;
}

const struct protocol protocol_websocket = {
	.name = "websocket",
	.state_size = sizeof(struct websocket),
	.recognise = websocket_recognise,
	.step = websocket_step,
	.starts = websocket_starts,
	.lost = websocket_lost,
};
