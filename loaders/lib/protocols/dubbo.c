/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dubbo: Dubbo 2's protocol (dubbo.apache.org, "Dubbo2 Protocol Specification").
 *
 *   head       da bb | REQUEST:1 TWO_WAY:1 EVENT:1 SERIALIZATION:5 | STATUS:8 | ID:64 | LEN:32 (big
 * endian), then the body body       of a request, Hessian 2 (serialization 2): strings dubbo
 * version, service, service version, method, ... string     LEN:8 (0..31) BYTES | 30..33: two bits
 * and a byte of length
 *
 * Matched by id. Operation: SERVICE/METHOD; of another serialization REQUEST. Status 20 is fine.
 * Heartbeats (EVENT) are not counted.
 */
#include <stdio.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

#define HEAD       16
#define LENGTH_MAX (64u << 20)
#define LOOK       512
#define HESSIAN2   2
#define STATUS_OK  20

static bool is_head(const uint8_t *p, size_t n, enum proto_side from)
{
	if (n < HEAD || p[0] != 0xda || p[1] != 0xbb || !(p[2] & 0x1f) || be32(p + 12) > LENGTH_MAX)
		return false;
	return p[2] & 0x20 || ((p[2] >> 7) == (from == PROTO_CLIENT) &&
			       (from == PROTO_CLIENT || (p[3] >= STATUS_OK && p[3] <= 100)));
}

static size_t text(const uint8_t *p, size_t n, size_t *at, char *out, size_t cap)
{
	size_t len, i = 0;

	out[0] = '\0';
	if (*at >= n)
		return 0;
	if (p[*at] < 32) {
		len = p[(*at)++];
	} else if (p[*at] >= 0x30 && p[*at] <= 0x33 && *at + 1 < n) {
		len = (size_t)(p[*at] - 0x30) << 8 | p[*at + 1];
		*at += 2;
	} else {
		*at = n;
		return 0;
	}
	if (len > n - *at) { /* a part of a name is none */
		*at = n;
		return 0;
	}
	for (; i < len && i < cap - 1 && p[*at + i] > ' ' && p[*at + i] < 0x7f; i++)
		out[i] = (char)p[*at + i];
	out[i] = '\0';
	*at += len;
	return i;
}

static uint32_t operation(struct proto_conn *c, const uint8_t *p, size_t n)
{
	char version[32], service[160], method[64];
	size_t at = HEAD;

	if ((p[2] & 0x1f) != HESSIAN2 || proto_payload(c) == PROTO_NONE)
		return proto_name(c, "REQUEST", 7);
	text(p, n, &at, version, sizeof(version));
	text(p, n, &at, service, sizeof(service));
	text(p, n, &at, version, sizeof(version));
	text(p, n, &at, method, sizeof(method));
	return *service ? proto_namef(c, "%s/%s", service, *method ? method : "?") :
			  proto_name(c, "REQUEST", 7);
}

static int64_t dubbo_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct proto_pending *q;
	char status[8] = "";
	size_t see;

	if (n < HEAD)
		return PROTO_MORE;
	if (!is_head(p, n, from))
		return PROTO_LOST;
	see = be32(p + 12) + HEAD < LOOK ? be32(p + 12) + HEAD : LOOK;
	if (p[2] & 0x20)
		return HEAD + (int64_t)be32(p + 12);
	if (from == PROTO_CLIENT) {
		if (n < see && !last)
			return PROTO_MORE;
		if (p[2] & 0x40)
			proto_ask(c, operation(c, p, see < n ? see : n), be64(p + 4));
		else
			proto_one_way(c, operation(c, p, see < n ? see : n));
		return HEAD + (int64_t)be32(p + 12);
	}
	q = proto_find(c, be64(p + 4));
	if (p[3] != STATUS_OK)
		snprintf(status, sizeof(status), "%u", p[3]);
	if (q)
		proto_answer(c, q, *status ? PROTO_ERROR : PROTO_OK, status);
	return HEAD + (int64_t)be32(p + 12);
}

static enum proto_guess dubbo_recognise(const struct proto_first *f)
{
	static const uint8_t magic[] = {0xda, 0xbb};

	if (f->n_client && memcmp(f->client, magic, f->n_client < 2 ? f->n_client : 2))
		return PROTO_NO;
	if (f->n_server && memcmp(f->server, magic, f->n_server < 2 ? f->n_server : 2))
		return PROTO_NO;
	if (f->n_client < HEAD && f->n_server < HEAD)
		return PROTO_MAYBE;
	if (f->n_client >= HEAD)
		return is_head(f->client, f->n_client, PROTO_CLIENT) ? PROTO_YES : PROTO_NO;
	return is_head(f->server, f->n_server, PROTO_SERVER) ? PROTO_YES : PROTO_NO;
}

static bool dubbo_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	(void)c;
	return is_head(p, n, from);
}

const struct protocol protocol_dubbo = {
	.name = "dubbo",
	.recognise = dubbo_recognise,
	.step = dubbo_step,
	.starts = dubbo_starts,
};
