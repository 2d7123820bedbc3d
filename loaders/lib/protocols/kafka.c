/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kafka: Kafka's protocol (kafka.apache.org/protocol). Numbers are big endian.
 *
 *   request    LEN:32 API:16 VERSION:16 CORRELATION:32 CLIENT(string) [TAGS, if flexible] BODY
 *   response   LEN:32 CORRELATION:32 [TAGS, if flexible and not ApiVersions] BODY
 *   string     LEN:16 (-1: null) BYTES; compact (flexible versions): LEN+1 as uvarint; arrays alike
 *              with 32 bits; uuid: 16 bytes
 *   Produce (0)  flexible from 9: [3-: transactional id] ACKS:16 TIMEOUT:32 topics; from 13 topic
 *                ids
 *   Fetch (1)    flexible from 12: [-14: REPLICA:32] WAIT:32 MIN:32 [3-: MAX:32] [4-: ISOLATION:8]
 *                [7-: SESSION:32 EPOCH:32] topics; from 13 ids
 *   Metadata (3) flexible from 9: the response tells names and, from 10, ids of topics
 *
 * Matched by correlation id. A Produce with acks 0 has no response. Operation: API and topic (the
 * first, "+N" for more). The topic of an id is known from a Metadata response on any
 * connection; else it is <topic id>.
 *
 * A response is an error if it contains a nonzero error code: its own, or that of a topic or
 * partition; the first one is the status. APIS describes where the codes are, by version. The walk
 * over a response keeps its state between steps and skips records and strings, so that it also
 * finds a code behind megabytes of records.
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

/*
 * An API: its name, the first flexible version (FIXED: none is), and the shape of its responses up
 * to the last error code. A field is a letter, optionally with the versions that have it: 3 (from 3
 * on), 0-9. Letters:
 * - b h i l u: a number of 1, 2, 4, 8 bytes, a uuid of 16
 * - E: an error code, of 2 bytes; P: a partition's in Metadata
 * - s y: a string, bytes; a: an array of numbers of 4 bytes
 * - [ ... ]: an array of what is inside
 */
#define FIXED 127

/* clang-format off */
static const struct api {
	const char *name;
	uint8_t flexible;
	const char *shape;
} APIS[] = {
	[0] = {"PRODUCE", 9, "[s0-12 u13 [i E l l2 l5 [8 i s] s8]]"},
	[1] = {"FETCH", 12, "i1 E7 i7 [s0-12 u13 [i E l l4 l5 [4 l l] i11 y]]"},
	[2] = {"LIST OFFSETS", 6, "i2 [s [i E [0-0 l] l1 l1 i4]]"},
	[3] = {"METADATA", 9, "i3 [i s i s1] s2 i1 [E s u10 b1 [P i i i7 a a a5] i8] i8-10 E13"},
	[4] = {"LEADER AND ISR", 4, "E"},
	[5] = {"STOP REPLICA", 2, "E"},
	[6] = {"UPDATE METADATA", 6, "E"},
	[7] = {"CONTROLLED SHUTDOWN", 3, "E"},
	[8] = {"OFFSET COMMIT", 8, "i3 [s0-9 u10 [i E]]"},
	[9] = {"OFFSET FETCH", 6, "i3 [0-7 s [i l i5 s E]] E2-7 [8 s [s0-9 u10 [i l i s E]] E]"},
	[10] = {"FIND COORDINATOR", 3, "i1 E0-3 s1-3 i0-3 s0-3 i0-3 [4 s i s i E s]"},
	[11] = {"JOIN GROUP", 6, "i2 E"},
	[12] = {"HEARTBEAT", 4, "i1 E"},
	[13] = {"LEAVE GROUP", 4, "i1 E [3 s s E]"},
	[14] = {"SYNC GROUP", 4, "i1 E"},
	[15] = {"DESCRIBE GROUPS", 5, "i1 [E s6 s s s s [s s4 s s y y] i3]"},
	[16] = {"LIST GROUPS", 3, "i1 E"},
	[17] = {"SASL HANDSHAKE", FIXED, "E"},
	[18] = {"API VERSIONS", 3, "E"},
	[19] = {"CREATE TOPICS", 5, "i2 [s u7 E s1 i5 h5 [5 s s b b b]]"},
	[20] = {"DELETE TOPICS", 4, "i1 [s u6 E s5]"},
	[21] = {"DELETE RECORDS", 2, "i [s [i l E]]"},
	[22] = {"INIT PRODUCER ID", 2, "i E"},
	[23] = {"OFFSET FOR LEADER EPOCH", 4, "i2 [s [E i i1 l]]"},
	[24] = {"ADD PARTITIONS TO TXN", 3, "i E4 [4 s [s [i E]]] [0-3 s [i E]]"},
	[25] = {"ADD OFFSETS TO TXN", 3, "i E"},
	[26] = {"END TXN", 3, "i E"},
	[27] = {"WRITE TXN MARKERS", 1, "[l [s [i E]]]"},
	[28] = {"TXN OFFSET COMMIT", 3, "i [s [i E]]"},
	[29] = {"DESCRIBE ACLS", 2, "i E"},
	[30] = {"CREATE ACLS", 2, "i [E s]"},
	[31] = {"DELETE ACLS", 2, "i [E s [E s b s b1 s s b b]]"},
	[32] = {"DESCRIBE CONFIGS", 4, "i [E s b s [s s b b0-0 b1 b [1 s s b] b3 s3]]"},
	[33] = {"ALTER CONFIGS", 2, "i [E s b s]"},
	[34] = {"ALTER REPLICA LOG DIRS", 2, "i [s [i E]]"},
	[35] = {"DESCRIBE LOG DIRS", 2, "i E3 [E s [s [i l l b]] l4 l4]"},
	[36] = {"SASL AUTHENTICATE", 2, "E"},
	[37] = {"CREATE PARTITIONS", 2, "i [s E s]"},
	[38] = {"CREATE DELEGATION TOKEN", 2, "E"},
	[39] = {"RENEW DELEGATION TOKEN", 2, "E"},
	[40] = {"EXPIRE DELEGATION TOKEN", 2, "E"},
	[41] = {"DESCRIBE DELEGATION TOKEN", 2, "E"},
	[42] = {"DELETE GROUPS", 2, "i [s E]"},
	[43] = {"ELECT LEADERS", 2, "i E1 [s [i E s]]"},
	[44] = {"INCREMENTAL ALTER CONFIGS", 1, "i [E s b s]"},
	[45] = {"ALTER PARTITION REASSIGNMENTS", 0, "i b1 E s [s [i E s]]"},
	[46] = {"LIST PARTITION REASSIGNMENTS", 0, "i E"},
	[47] = {"OFFSET DELETE", FIXED, "E i [s [i E]]"},
	[48] = {"DESCRIBE CLIENT QUOTAS", 1, "i E"},
	[49] = {"ALTER CLIENT QUOTAS", 1, "i [E s [s s]]"},
	[50] = {"DESCRIBE USER SCRAM CREDENTIALS", 0, "i E s [s E s [b i]]"},
	[51] = {"ALTER USER SCRAM CREDENTIALS", 0, "i [s E s]"},
	[52] = {"VOTE", 0, "E"},
	[53] = {"BEGIN QUORUM EPOCH", 1, "E"},
	[54] = {"END QUORUM EPOCH", 1, "E"},
	[55] = {"DESCRIBE QUORUM", 0, "E"},
	[56] = {"ALTER PARTITION", 0, "i E"},
	[57] = {"UPDATE FEATURES", 0, "i E s [0-1 s E s]"},
	[59] = {"FETCH SNAPSHOT", 0, "i E"},
	[60] = {"DESCRIBE CLUSTER", 0, "i E"},
	[61] = {"DESCRIBE PRODUCERS", 0, "i [s [i E s [l i i l i l]]]"},
	[62] = {"BROKER REGISTRATION", 0, "i E"},
	[63] = {"BROKER HEARTBEAT", 0, "i E"},
	[64] = {"UNREGISTER BROKER", 0, "i E"},
	[65] = {"DESCRIBE TRANSACTIONS", 0, "i [E s s i l l h [s a]]"},
	[66] = {"LIST TRANSACTIONS", 0, "i E"},
	[67] = {"ALLOCATE PRODUCER IDS", 0, "i E"},
	[68] = {"CONSUMER GROUP HEARTBEAT", 0, "i E"},
	[69] = {"CONSUMER GROUP DESCRIBE", 0, "i [E"},
	[70] = {"CONTROLLER REGISTRATION", 0, "i E"},
	[71] = {"GET TELEMETRY SUBSCRIPTIONS", 0, "i E"},
	[72] = {"PUSH TELEMETRY", 0, "i E"},
	[73] = {"ASSIGN REPLICAS TO DIRS", 0, "i E"},
	[74] = {"LIST CONFIG RESOURCES", 0, "i E"},
	[75] = {"DESCRIBE TOPIC PARTITIONS", 0, "i [E s u b [E i i i a a a a a] i]"},
	[76] = {"SHARE GROUP HEARTBEAT", 0, "i E"},
	[77] = {"SHARE GROUP DESCRIBE", 0, "i [E"},
	[78] = {"SHARE FETCH", 0, "i E"},
	[79] = {"SHARE ACKNOWLEDGE", 0, "i E"},
	[80] = {"ADD RAFT VOTER", 0, "i E"},
	[81] = {"REMOVE RAFT VOTER", 0, "i E"},
	[82] = {"UPDATE RAFT VOTER", 0, "i E"},
};
/* clang-format on */

/* REPLICA_NOT_AVAILABLE in a partition of Metadata (P) is no error: clients ignore it. */
#define NOT_AVAILABLE 9

#define DEPTH 4

/* The state of the walk over a response. */
struct walk {
	const char *at; /* in the shape; NULL: no walk is in progress */
	uint32_t id;
	int version, code;
	bool flexible;
	uint32_t left; /* bytes of the response */
	int depth;
	struct {
		const char *from; /* behind its '[' */
		int32_t left;     /* elements, including the current one */
	} in[DEPTH];
};

struct kafka {
	struct walk walk;
};

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

static const struct api *api_of(int api)
{
	return api < (int)ARRAY_SIZE(APIS) && APIS[api].name ? &APIS[api] : NULL;
}

static bool is_flexible(int api, int version)
{
	const struct api *a = api_of(api);

	return a && version >= a->flexible;
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
	else if (api_of(api))
		op = proto_name(c, APIS[api].name, strlen(APIS[api].name));
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

/* Reads a field's letter at *at and whether this version has the field; advances *at. */
static char field(const char **at, int version, bool *has)
{
	int low = 0, high = FIXED;
	char kind;

	while (**at == ' ')
		++*at;
	kind = **at;
	*at += kind ? 1 : 0;
	if (byte_is_digit((uint8_t) * *at)) {
		for (; byte_is_digit((uint8_t) * *at); ++*at)
			low = low * 10 + (**at - '0');
		if (**at == '-')
			for (high = 0, ++*at; byte_is_digit((uint8_t) * *at); ++*at)
				high = high * 10 + (**at - '0');
	}
	*has = version >= low && version <= high;
	return kind;
}

static const char *behind_array(const char *at)
{
	for (int depth = 1; *at && depth; at++)
		depth += (*at == '[') - (*at == ']');
	return at;
}

/* The size of a field of this kind, which may exceed b. *looked: how many bytes were read to know
 * it; SIZE_MAX: they are not all here. */
static uint64_t field_size(struct cursor b, char kind, size_t *looked)
{
	const struct cursor begin = b;
	int64_t n = 0;

	switch (kind) {
	case 'b':
		return *looked = 0, 1;
	case 'h':
		return *looked = 0, 2;
	case 'i':
		return *looked = 0, 4;
	case 'l':
		return *looked = 0, 8;
	case 'u':
		return *looked = 0, 16;
	case 'E':
	case 'P':
		return *looked = 2, 2;
	case 's':
		n = b.flexible ? (int64_t)uvarint(&b) - 1 : int16(&b);
		break;
	case 'y':
		n = array(&b);
		break;
	case 'a':
		n = array(&b);
		n = n > 0 ? n * 4 : 0;
		break;
	}
	*looked = b.bad ? SIZE_MAX : (size_t)(b.p - begin.p);
	return (uint64_t)(b.p - begin.p) + (n > 0 ? (uint64_t)n : 0);
}

/* Walks over one field or bracket of the shape. Returns its size, which may exceed b; -1: more
 * bytes are needed. Sets w->at to NULL at the end of the shape or at an error code. */
static int64_t walk_field(struct walk *w, struct cursor b)
{
	const struct cursor begin = b;
	const char *at = w->at;
	size_t looked;
	uint64_t size;
	int32_t count;
	bool has;
	char kind = field(&at, w->version, &has);

	if (!kind) {
		w->at = NULL;
		return 0;
	}
	if (kind == ']') {
		tags(&b);
		if (b.bad)
			return -1;
		if (--w->in[w->depth - 1].left > 0)
			w->at = w->in[w->depth - 1].from;
		else
			w->depth--, w->at = at;
		return b.p - begin.p;
	}
	if (!has) {
		w->at = kind == '[' ? behind_array(at) : at;
		return 0;
	}
	if (kind == '[') {
		count = array(&b);
		if (b.bad)
			return -1;
		if (count > 0 && w->depth < DEPTH) {
			w->in[w->depth].from = at;
			w->in[w->depth++].left = count;
			w->at = at;
		} else {
			w->at = count > 0 ? NULL : behind_array(at);
		}
		return b.p - begin.p;
	}
	size = field_size(b, kind, &looked);
	if (looked == SIZE_MAX || looked > b.n)
		return -1;
	w->at = at;
	if (kind == 'E' || kind == 'P') {
		w->code = (int16_t)be16(b.p);
		w->code = kind == 'P' && w->code == NOT_AVAILABLE ? 0 : w->code;
		w->at = w->code ? NULL : at;
	}
	return (int64_t)size;
}

static int64_t walk_over(struct proto_conn *c, struct walk *w, uint64_t done)
{
	struct proto_pending *q = proto_find(c, w->id);
	char status[12] = "";

	w->at = NULL;
	if (w->code)
		snprintf(status, sizeof(status), "%d", w->code);
	if (q)
		proto_answer(c, q, w->code ? PROTO_ERROR : PROTO_OK, status);
	return (int64_t)(done + w->left);
}

/* Continues the walk at p + done. */
static int64_t walk(struct proto_conn *c, struct walk *w, const uint8_t *p, size_t n, size_t done,
		    bool last)
{
	uint64_t at = done;

	while (w->at && at <= n) {
		const size_t here = n - (size_t)at < w->left ? n - (size_t)at : w->left;
		const struct cursor b = {.p = p + at, .n = here, .flexible = w->flexible};
		int64_t k = walk_field(w, b);

		/* the shape does not fit: probably a newer version */
		if (k > (int64_t)w->left || (k < 0 && here == w->left))
			return walk_over(c, w, at);
		if (k < 0) {
			if (last || at == done)
				break;
			proto_goes_on(c);
			return (int64_t)at;
		}
		at += (uint64_t)k;
		w->left -= (uint32_t)k;
	}
	if (!w->at || !w->left) /* or its last field ends it, which may be yet to come */
		return walk_over(c, w, at);
	if (at > done || done) {
		proto_goes_on(c);
		return (int64_t)at;
	}
	if (!last)
		return PROTO_MORE;
	w->at = NULL;
	return PROTO_LOST;
}

static int64_t response(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct walk *w = &((struct kafka *)proto_state(c))->walk;
	struct proto_pending *q;
	const struct api *api;
	struct cursor b;
	int version;
	uint32_t len;
	size_t see;

	if (w->at)
		return walk(c, w, p, n, 0, last);
	if (n < 8)
		return PROTO_MORE;
	len = be32(p);
	if (len < 4 || len > LENGTH_MAX)
		return PROTO_LOST;
	q = proto_find(c, be32(p + 4));
	if (!q) {
		proto_unowned(c);
		return (int64_t)len + 4;
	}
	api = api_of((int)(q->tag >> 16));
	version = (int)(q->tag & 0xffff);
	see = len + 4u < LOOK ? len + 4u : LOOK;
	if (n < (q->tag >> 16 == METADATA && version >= 10 ? see : len < 5 ? 8 : 9) && !last)
		return PROTO_MORE;
	b = (struct cursor){.p = p + 8,
			    .n = (see < n ? see : n) - 8,
			    .flexible = is_flexible((int)(q->tag >> 16), version)};
	if (q->tag >> 16 != API_VERSIONS)
		tags(&b);
	if (b.bad && !last && n < see)
		return PROTO_MORE;
	proto_first_byte(c, q);
	*w = (struct walk){.at = api && !b.bad ? api->shape : NULL,
			   .id = be32(p + 4),
			   .version = version,
			   .flexible = b.flexible,
			   .left = len + 4 - (uint32_t)(b.p - p)};
	if (q->tag >> 16 == METADATA && version >= 10)
		learn_topics(c, &(struct cursor){.p = b.p, .n = b.n, .flexible = b.flexible},
			     version);
	if (!w->at)
		return walk_over(c, w, (uint64_t)(b.p - p));
	return walk(c, w, p, n, (size_t)(b.p - p), last);
}

static void kafka_lost(struct proto_conn *c, enum proto_side from)
{
	struct walk *w = &((struct kafka *)proto_state(c))->walk;

	if (from == PROTO_SERVER)
		w->at = NULL;
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
	/* zeros are everywhere; and in the midst of a connection a client without a name may be one
	 * of ZooKeeper's */
	if (!is_request(f->client, f->n_client) ||
	    ((!be32(f->client + 8) || !f->begun) && (int16_t)be16(f->client + 12) <= 0))
		return PROTO_NO;
	if (f->last && !f->n_server) {
		while (at + 14 <= f->n_client && is_request(f->client + at, f->n_client - at) &&
		       api_of(be16(f->client + at + 4)))
			at += be32(f->client + at) + 4u;
		return at == f->n_client && (int16_t)be16(f->client + 12) > 0 ? PROTO_YES :
										PROTO_NO;
	}
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
	.state_size = sizeof(struct kafka),
	.recognise = kafka_recognise,
	.step = kafka_step,
	.starts = kafka_starts,
	.lost = kafka_lost,
};
