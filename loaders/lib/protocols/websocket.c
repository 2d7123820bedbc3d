/* SPDX-License-Identifier: Apache-2.0 */
/*
 * websocket: RFC 6455, after HTTP's 101. A frame:
 *
 *   FIN:1 RSV:3 OPCODE:4 | MASK:1 LEN:7 | 126: LEN:16, 127: LEN:64 (big endian) |
 *   MASK: KEY:32 | DATA
 *
 * Opcodes: 0 continuation, 1 text, 2 binary, 8 close, 9 ping, 10 pong. Each message of data is
 * reported as one-way, including all of its frames; there is no latency, as there is no question.
 */
#include "loaders/lib/protocols/table.h"

struct websocket {
	bool goes_on[2]; /* a fragmented message is in progress */
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

static int64_t websocket_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n, bool last)
{
	struct websocket *s = proto_state(c);
	size_t head = 2 + (from == PROTO_CLIENT ? 4u : 0);
	uint64_t len;

	(void)last;
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
