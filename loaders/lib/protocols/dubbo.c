/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dubbo: Dubbo 2's protocol (dubbo.apache.org, "Dubbo2 Protocol Specification").
 *
 *   head       da bb | REQUEST:1 TWO_WAY:1 EVENT:1 SERIALIZATION:5 | STATUS:8 | ID:64 | LEN:32 (big
 *              endian), then the body
 *   body       of a request: the strings Dubbo's version, service, its version, method, ... as the
 *              serialization writes a string
 *
 * A string, by the number of the serialization:
 * - 2, 10 (Hessian 2): LEN:8 (0..31) BYTES, or 30..33: two bits and a byte of length
 * - 3, 4 (Java): in the first block (77 LEN:8 or 7a LEN:32) of an object stream, COUNT:32 LEN:16
 *   BYTES
 * - 7 (native Java): the same without COUNT
 * - 6, 16, 21 (JSON): "TEXT" LF
 * - 8, 25 (Kryo): ASCII with bit 7 set in the last byte; or 80 + COUNT + 1 in 6 bits (40: a byte of
 *   7 more bits follows) BYTES
 * - 9 (FST): COUNT (a byte; 80: then 16 bits, 81: then 32, little endian), a byte each
 * - 11 (Avro): LEN (zigzag, 7 bits a byte) BYTES
 * - 12 (Protostuff): LEN:32 BYTES
 * - 22 (Protobuf): SIZE of a StringValue: 0a LEN BYTES
 * - 23 (Fastjson 2): SIZE:32 of JSONB: 49 + LEN BYTES, or 79 LEN BYTES
 * - 27 (MessagePack): a0 + LEN BYTES, or d9 LEN:8 BYTES, or da LEN:16 BYTES
 *
 * Matched by id. Operation: SERVICE/METHOD; REQUEST for another serialization, or if
 * these are no names. Status 20 is fine, unless the body begins with 0 or 3 (with attachments):
 * what the method threw. That number is read in Hessian 2, Java, JSON, Kryo and FST. Heartbeats
 * (EVENT) are not counted.
 */
#include <stdio.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

#define HEAD       16
#define LENGTH_MAX (64u << 20)
#define LOOK       512
#define TEXT_MAX   1024
#define KIND_LOOK  16 /* bytes of an answer's body, to see what kind it is */

enum {
	HESSIAN2 = 2,
	JAVA,
	JAVA_COMPACT,
	FASTJSON = 6,
	JAVA_NATIVE,
	KRYO,
	FST,
	HESSIAN_NATIVE,
	AVRO,
	PROTOSTUFF,
	GSON = 16,
	PROTOBUF_JSON = 21,
	PROTOBUF,
	FASTJSON2,
	KRYO2 = 25,
	MSGPACK = 27
};

#define STATUS_OK 20

static bool is_head(const uint8_t *p, size_t n, enum proto_side from)
{
	if (n < HEAD || p[0] != 0xda || p[1] != 0xbb || !(p[2] & 0x1f) || be32(p + 12) > LENGTH_MAX)
		return false;
	return p[2] & 0x20 || ((p[2] >> 7) == (from == PROTO_CLIENT) &&
			       (from == PROTO_CLIENT || (p[3] >= STATUS_OK && p[3] <= 100)));
}

/* ---- strings ---- */

struct reader {
	const uint8_t *p;
	size_t n, at;
	bool bad; /* it went beyond what is here, or what is here is no string */
};

static uint32_t byte(struct reader *r)
{
	if (r->at < r->n)
		return r->p[r->at++];
	r->bad = true;
	return 0;
}

static uint32_t number(struct reader *r, int bytes)
{
	uint32_t v = 0;

	while (bytes--)
		v = v << 8 | byte(r);
	return v;
}

/* 7 bits a byte, the least first. */
static uint32_t varint(struct reader *r)
{
	uint32_t v = 0, b = 128;

	for (int shift = 0; shift < 28 && b & 128; shift += 7) {
		b = byte(r);
		v |= (b & 127) << shift;
	}
	return v;
}

static size_t hessian(struct reader *r)
{
	uint32_t tag = byte(r);

	if (tag < 32)
		return tag;
	r->bad |= tag < 0x30 || tag > 0x33;
	return (tag & 3) << 8 | byte(r);
}

static size_t kryo(struct reader *r)
{
	uint32_t tag = byte(r), shift = 6, count = tag & 63, b = tag & 64 ? 128 : 0;

	if (!(tag & 128)) { /* its end is marked */
		size_t from = --r->at, i = from;

		while (i < r->n && i - from < TEXT_MAX && !(r->p[i] & 128))
			i++;
		r->bad |= i == r->n || i - from == TEXT_MAX;
		return i - from + 1;
	}
	for (; b & 128 && shift < 27; shift += 7) {
		b = byte(r);
		count |= (b & 127) << shift;
	}
	return count ? count - 1 : 0;
}

static size_t fst(struct reader *r)
{
	uint32_t low, tag = byte(r);

	if (tag != 0x80 && tag != 0x81)
		return tag;
	low = byte(r);
	low |= byte(r) << 8;
	if (tag == 0x81)
		r->bad |= number(r, 2) != 0;
	return low;
}

static size_t json(struct reader *r)
{
	size_t i;

	while (r->at < r->n && (r->p[r->at] == '\n' || r->p[r->at] == '\r'))
		r->at++;
	r->bad |= byte(r) != '"';
	for (i = r->at; i < r->n && r->p[i] != '"' && r->p[i] != '\\';)
		i++;
	r->bad |= i == r->n || r->p[i] == '\\';
	return i - r->at;
}

static size_t jsonb(struct reader *r)
{
	uint32_t size = number(r, 4), tag = byte(r), b;

	r->bad |= !size;
	if (tag >= 0x49 && tag < 0x79)
		return tag - 0x49;
	r->bad |= tag != 0x79;
	b = byte(r); /* a number: of one byte, -16 to 47; of two */
	r->bad |= b >= 0x40;
	return b < 0x30 ? b : (b & 7) << 8 | byte(r);
}

static size_t msgpack(struct reader *r)
{
	uint32_t tag = byte(r);

	r->bad |= (tag & 0xe0) != 0xa0 && tag != 0xd9 && tag != 0xda;
	return tag == 0xd9 ? byte(r) : tag == 0xda ? number(r, 2) : tag & 31;
}

static size_t protobuf(struct reader *r)
{
	if (!varint(r)) /* an empty text is an empty message */
		return 0;
	r->bad |= byte(r) != 0x0a;
	return varint(r);
}

static size_t java(struct reader *r, bool counted)
{
	if (counted)
		number(r, 4);
	return number(r, 2);
}

/* Behind an object stream's head, at the first block's data. */
static void java_begins(struct reader *r)
{
	if (r->n - r->at >= 4 && be16(r->p + r->at) == 0xaced)
		r->at += 4;
	else if (r->n > r->at && r->p[r->at] < 0x10) /* compact: its version alone */
		r->at++;
	if (r->at < r->n && r->p[r->at] == 0x7a)
		r->at += 5;
	else if (r->at < r->n && r->p[r->at] == 0x77)
		r->at += 2;
	else
		r->bad = true;
	r->at = r->at < r->n ? r->at : r->n;
}

static size_t size_of(struct reader *r, unsigned how)
{
	switch (how) {
	case HESSIAN2:
	case HESSIAN_NATIVE:
		return hessian(r);
	case JAVA:
	case JAVA_COMPACT:
	case JAVA_NATIVE:
		return java(r, how != JAVA_NATIVE);
	case FASTJSON:
	case GSON:
	case PROTOBUF_JSON:
		return json(r);
	case KRYO:
	case KRYO2:
		return kryo(r);
	case FST:
		return fst(r);
	case AVRO:
		return varint(r) >> 1;
	case PROTOSTUFF:
		return number(r, 4);
	case PROTOBUF:
		return protobuf(r);
	case FASTJSON2:
		return jsonb(r);
	case MSGPACK:
		return msgpack(r);
	}
	r->bad = true;
	return 0;
}

static void text(struct reader *r, unsigned how, char *out, size_t cap)
{
	size_t n = size_of(r, how), i = 0;
	const uint8_t *p = r->p + r->at;

	out[0] = '\0';
	if (r->bad || n > r->n - r->at) { /* a truncated name is not used */
		r->bad = true;
		return;
	}
	for (; i < n && i < cap - 1; i++)
		out[i] = (char)(p[i] & 127); /* Kryo's mark */
	out[i] = '\0';
	r->at += n;
	if (how == FASTJSON || how == GSON || how == PROTOBUF_JSON)
		byte(r); /* '"' */
}

static bool is_name(const char *s)
{
	for (size_t i = 0; s[i]; i++)
		if (!byte_is_letter((uint8_t)s[i]) && !byte_is_digit((uint8_t)s[i]) &&
		    !strchr("._$-/:", s[i]))
			return false;
	return *s;
}

static uint32_t operation(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = HEAD};
	char version[32], service[160], method[64];
	const unsigned how = p[2] & 0x1f;
	bool known;

	if (proto_payload(c) == PROTO_NONE)
		return proto_name(c, "REQUEST", 7);
	if (how == JAVA || how == JAVA_COMPACT || how == JAVA_NATIVE)
		java_begins(&r);
	text(&r, how, version, sizeof(version));
	text(&r, how, service, sizeof(service));
	known = !r.bad && is_name(service);
	text(&r, how, version, sizeof(version));
	text(&r, how, method, sizeof(method));
	return known ? proto_namef(c, "%s/%s", service, !r.bad && is_name(method) ? method : "?") :
		       proto_name(c, "REQUEST", 7);
}

/* An answer of status 20 has what the method threw, as far as the n bytes say. */
static bool is_thrown(const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = HEAD};
	const unsigned how = p[2] & 0x1f;
	uint32_t kind;

	switch (how) {
	case HESSIAN2:
	case HESSIAN_NATIVE:
		kind = byte(&r) - 0x90;
		break;
	case JAVA:
	case JAVA_COMPACT:
	case JAVA_NATIVE:
		java_begins(&r);
		kind = byte(&r);
		break;
	case FASTJSON:
	case GSON:
	case PROTOBUF_JSON:
		kind = byte(&r) - '0';
		break;
	case KRYO:
	case KRYO2:
	case FST:
		kind = byte(&r);
		break;
	default:
		return false;
	}
	return !r.bad && (kind == 0 || kind == 3);
}

static void answer(struct proto_conn *c, struct proto_pending *q, const uint8_t *p, size_t n)
{
	char status[16] = "";

	if (p[3] != STATUS_OK)
		snprintf(status, sizeof(status), "%u", p[3]);
	else if (is_thrown(p, n))
		snprintf(status, sizeof(status), "exception");
	proto_answer(c, q, *status ? PROTO_ERROR : PROTO_OK, status);
}

static int64_t dubbo_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct proto_pending *q;
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
	see = be32(p + 12) < KIND_LOOK ? HEAD + be32(p + 12) : HEAD + KIND_LOOK;
	if (n < see && !last)
		return PROTO_MORE;
	q = proto_find(c, be64(p + 4));
	if (q)
		answer(c, q, p, see < n ? see : n);
	else
		proto_unowned(c);
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
