/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka: Kafka's protocol (kafka.apache.org/protocol). Numbers are big endian.
 *
 *   request    LEN:32 API:16 VERSION:16 CORRELATION:32 CLIENT(string) [TAGS, if flexible] BODY
 *   response   LEN:32 CORRELATION:32 [TAGS, if flexible and not ApiVersions] BODY
 *   string     LEN:16 (-1: null) BYTES; compact (flexible versions): LEN+1 as uvarint; arrays alike
 * with 32 bits; uuid: 16 bytes Produce (0)  flexible from 9: [3-: transactional id] ACKS:16
 * TIMEOUT:32 topics; from 13 topic ids Fetch (1)    flexible from 12: [-14: REPLICA:32] WAIT:32
 * MIN:32 [3-: MAX:32] [4-: ISOLATION:8] [7-: SESSION:32 EPOCH:32] topics; from 13 ids Metadata (3)
 * flexible from 9: the response tells names and, from 10, ids of topics
 *
 * Matched by correlation id. A Produce with acks 0 has no response. Operation: API and topic (the
 * first, "+N" for more). What topic an id stands for is known from a Metadata response on any
 * connection; else it is <topic id>. An error is the first partition's code of a Produce, or a
 * Fetch's own.
 */
#include <stdio.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define API_MAX     92
#define VERSION_MAX 22
#define LENGTH_MAX  (256u << 20)
#define LOOK        8192
#define TOPIC_MAX   249

enum { PRODUCE = 0, FETCH = 1, METADATA = 3, API_VERSIONS = 18 };

/* clang-format off */
static const char *const APIS[] = {
	"PRODUCE", "FETCH", "LIST OFFSETS", "METADATA", "LEADER AND ISR", "STOP REPLICA", "UPDATE METADATA", "CONTROLLED SHUTDOWN", "OFFSET COMMIT",
	"OFFSET FETCH", "FIND COORDINATOR", "JOIN GROUP", "HEARTBEAT", "LEAVE GROUP", "SYNC GROUP", "DESCRIBE GROUPS", "LIST GROUPS",
	"SASL HANDSHAKE", "API VERSIONS", "CREATE TOPICS", "DELETE TOPICS", "DELETE RECORDS", "INIT PRODUCER ID", "OFFSET FOR LEADER EPOCH",
	"ADD PARTITIONS TO TXN", "ADD OFFSETS TO TXN", "END TXN", "WRITE TXN MARKERS", "TXN OFFSET COMMIT", "DESCRIBE ACLS", "CREATE ACLS",
	"DELETE ACLS", "DESCRIBE CONFIGS", "ALTER CONFIGS", "ALTER REPLICA LOG DIRS", "DESCRIBE LOG DIRS", "SASL AUTHENTICATE", "CREATE PARTITIONS",
};
/* clang-format on */

struct cursor {
	const uint8_t *p;
	size_t n;
	bool flexible, bad; /* bad: went beyond what is here */
};

static bool skip(struct cursor *c, size_t n)
{
	if (c->n < n) {
		c->bad = true;
		c->n = 0;
		return false;
	}
	c->p += n;
	c->n -= n;
	return true;
}

static uint32_t uvarint(struct cursor *c)
{
	uint32_t v = 0;

	for (int shift = 0; shift < 32 && c->n; shift += 7) {
		uint8_t b = *c->p;

		skip(c, 1);
		v |= (uint32_t)(b & 127) << shift;
		if (!(b & 128))
			return v;
	}
	c->bad = true;
	return 0;
}

static int32_t int32(struct cursor *c)
{
	const uint8_t *p = c->p;

	return skip(c, 4) ? (int32_t)be32(p) : 0;
}

static int16_t int16(struct cursor *c)
{
	const uint8_t *p = c->p;

	return skip(c, 2) ? (int16_t)be16(p) : 0;
}

/* A string; *n its length. NULL: null or bad. */
static const uint8_t *string(struct cursor *c, size_t *n)
{
	int32_t len = c->flexible ? (int32_t)uvarint(c) - 1 : int16(c);
	const uint8_t *p = c->p;

	*n = 0;
	if (len < 0 || !skip(c, (size_t)len))
		return NULL;
	*n = (size_t)len;
	return p;
}

static int32_t array(struct cursor *c)
{
	return c->flexible ? (int32_t)uvarint(c) - 1 : int32(c);
}

static void tags(struct cursor *c)
{
	uint32_t count = c->flexible ? uvarint(c) : 0;

	while (count-- && !c->bad) {
		uvarint(c);
		skip(c, uvarint(c));
	}
}

static bool is_flexible(int api, int version)
{
	static const int8_t from[] = {
		[PRODUCE] = 9, [FETCH] = 12, [2] = 6,  [METADATA] = 9, [8] = 8,
		[9] = 6,       [10] = 3,     [11] = 6, [12] = 4,       [13] = 4,
		[14] = 4,      [15] = 5,     [16] = 3, [17] = 127,     [API_VERSIONS] = 3,
		[19] = 5,      [20] = 4,     [21] = 2, [22] = 2,       [36] = 2};

	return api < (int)sizeof(from) && from[api] && version >= from[api];
}

static uint64_t topic_key(const uint8_t *id)
{
	return idtable_text(id, 16) | 1; /* apart from other users of the table */
}

/* ---- requests ---- */

static uint32_t topics(struct proto_conn *c, struct cursor *b, const char *api, bool by_id)
{
	int32_t count = array(b);
	const uint8_t *name;
	char more[16] = "", route[ROUTE_MAX];
	uint32_t known;
	size_t n = 0;

	if (count < 1 || b->bad || proto_payload(c) == PROTO_NONE)
		return proto_name(c, api, strlen(api));
	if (count > 1)
		snprintf(more, sizeof(more), " +%d", count - 1);
	if (by_id) {
		name = b->p;
		if (!skip(b, 16))
			return proto_name(c, api, strlen(api));
		known = idtable_get(protocols_shared(c->of), topic_key(name));
		return proto_namef(c, "%s %s%s", api,
				   known ? proto_name_text(c, known) : "<topic id>", more);
	}
	name = string(b, &n);
	if (!name || n > TOPIC_MAX)
		return proto_name(c, api, strlen(api));
	for (size_t i = 0; i < n; i++)
		if (!byte_is_letter(name[i]) && !byte_is_digit(name[i]) &&
		    !memchr("._-", name[i], 3))
			return proto_name(c, api, strlen(api));
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %.*s%s", api, (int)n, (const char *)name, more);
	proto_route(c, NULL, 0, name, n, '.', route);
	return proto_namef(c, "%s %s%s", api, route, more);
}

static uint32_t produce(struct proto_conn *c, struct cursor *b, int version, bool *silent)
{
	size_t n;

	if (version >= 3)
		string(b, &n);
	*silent = int16(b) == 0 && !b->bad;
	int32(b);
	return topics(c, b, "PRODUCE", version >= 13);
}

static uint32_t fetch(struct proto_conn *c, struct cursor *b, int version)
{
	skip(b, (version < 15 ? 4 : 0) + 8 + (version >= 3 ? 4 : 0) + (version >= 4 ? 1 : 0) +
			(version >= 7 ? 8 : 0));
	return topics(c, b, "FETCH", version >= 13);
}

static bool is_request(const uint8_t *p, size_t n)
{
	int client = n >= 14 ? (int16_t)be16(p + 12) : -1;

	if (n < 14 || be32(p) < 10 || be32(p) > LENGTH_MAX || be16(p + 4) > API_MAX ||
	    be16(p + 6) > VERSION_MAX || be32(p + 8) >> 31 || client < -1 || client > 255)
		return false;
	for (int i = 0; i < client && 14 + (size_t)i < n; i++)
		if (p[14 + i] < 0x20 || p[14 + i] >= 0x7f)
			return false;
	return client <= (int)be32(p) - 10;
}

static int64_t request(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct cursor b;
	int api, version;
	bool silent = false;
	uint32_t op, len;
	size_t see;

	if (n < 14)
		return PROTO_MORE;
	if (!is_request(p, n))
		return PROTO_LOST;
	len = be32(p);
	see = len + 4u < LOOK ? len + 4u : LOOK;
	if (n < see && !last)
		return PROTO_MORE;
	api = be16(p + 4);
	version = be16(p + 6);
	b = (struct cursor){.p = p + 12, .n = (see < n ? see : n) - 12};
	string(&b, &see);
	b.flexible = is_flexible(api, version);
	tags(&b);
	if (api == PRODUCE)
		op = produce(c, &b, version, &silent);
	else if (api == FETCH)
		op = fetch(c, &b, version);
	else if (api < (int)ARRAY_SIZE(APIS))
		op = proto_name(c, APIS[api], strlen(APIS[api]));
	else
		op = proto_namef(c, "API %d", api);
	if (silent)
		proto_one_way(c, op);
	else
		proto_ask(c, op, be32(p + 8))->tag = (uint32_t)api << 16 | (uint32_t)version;
	return (int64_t)len + 4;
}

/* ---- responses ---- */

static void learn_topics(struct proto_conn *c, struct cursor *b, int version)
{
	int32_t count;
	size_t n;

	skip(b, version >= 3 ? 4 : 0);
	for (count = array(b); count > 0 && !b->bad; count--) { /* brokers */
		skip(b, 4);
		string(b, &n);
		skip(b, 4);
		string(b, &n);
		tags(b);
	}
	string(b, &n);
	skip(b, 4);
	for (count = array(b); count > 0 && !b->bad; count--) {
		const uint8_t *name, *id;
		int32_t partitions;

		skip(b, 2);
		name = string(b, &n);
		id = b->p;
		if (!skip(b, 16) || !name || n > TOPIC_MAX)
			return;
		idtable_put(protocols_shared(c->of), topic_key(id),
			    proto_name(c, (const char *)name, n));
		skip(b, 1);
		for (partitions = array(b); partitions > 0 && !b->bad; partitions--) {
			skip(b, 14);
			for (int i = 0; i < 3; i++) {
				int32_t nodes = array(b);

				skip(b, nodes > 0 ? (size_t)nodes * 4 : 0);
			}
			tags(b);
		}
		skip(b, 4);
		tags(b);
	}
}

static int error_of(struct cursor *b, int api, int version)
{
	size_t n;

	if (api == FETCH && version >= 7) {
		skip(b, 4);
		return int16(b);
	}
	if (api != PRODUCE || array(b) < 1)
		return 0;
	if (version >= 13)
		skip(b, 16);
	else
		string(b, &n);
	if (array(b) < 1)
		return 0;
	skip(b, 4);
	return int16(b);
}

static int64_t response(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct proto_pending *q;
	struct cursor b;
	uint32_t len;
	size_t see;
	int api, version, code = 0;
	char status[12] = "";

	if (n < 8)
		return PROTO_MORE;
	len = be32(p);
	if (len < 4 || len > LENGTH_MAX)
		return PROTO_LOST;
	see = len + 4u < LOOK ? len + 4u : LOOK;
	if (n < see && !last)
		return PROTO_MORE;
	q = proto_find(c, be32(p + 4));
	if (!q)
		return (int64_t)len + 4;
	api = (int)(q->tag >> 16);
	version = (int)(q->tag & 0xffff);
	b = (struct cursor){
		.p = p + 8, .n = (see < n ? see : n) - 8, .flexible = is_flexible(api, version)};
	if (api != API_VERSIONS)
		tags(&b);
	if (api == METADATA && version >= 10)
		learn_topics(c, &b, version);
	else
		code = error_of(&b, api, version);
	if (code && !b.bad)
		snprintf(status, sizeof(status), "%d", code);
	proto_answer(c, q, *status ? PROTO_ERROR : PROTO_OK, status);
	return (int64_t)len + 4;
}

static int64_t kafka_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	return from == PROTO_CLIENT ? request(c, p, n, last) : response(c, p, n, last);
}

/* A request alone looks like much else; an answer with its number does not. */
static enum proto_guess kafka_recognise(const struct proto_first *f)
{
	size_t at = 0;

	if (!f->n_client)
		return f->n_server ? PROTO_NO : PROTO_MAYBE;
	if (f->n_client < 14)
		return f->client[0] ? PROTO_NO : PROTO_MAYBE;
	/* zeros are everywhere */
	if (!is_request(f->client, f->n_client) ||
	    (!be32(f->client + 8) && (int16_t)be16(f->client + 12) <= 0))
		return PROTO_NO;
	if (f->n_server < 8)
		return PROTO_MAYBE;
	if (be32(f->server) < 4 || be32(f->server) > LENGTH_MAX)
		return PROTO_NO;
	while (at + 14 <= f->n_client && is_request(f->client + at, f->n_client - at)) {
		if (be32(f->client + at + 8) == be32(f->server + 4))
			return PROTO_YES;
		at += be32(f->client + at) + 4u;
	}
	return PROTO_NO;
}

static bool kafka_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	if (from == PROTO_CLIENT)
		return p == c->piece && is_request(p, n);
	return n >= 8 && be32(p) >= 4 && be32(p) <= LENGTH_MAX && proto_find(c, be32(p + 4)) &&
	       be32(p + 4);
}

const struct protocol protocol_kafka = {
	.name = "kafka",
	.recognise = kafka_recognise,
	.step = kafka_step,
	.starts = kafka_starts,
};
