/* SPDX-License-Identifier: Apache-2.0 */
/*
 * zookeeper: ZooKeeper's client protocol (jute records, zookeeper.jute of Apache ZooKeeper).
 * Numbers are big endian.
 *
 *   connect    LEN:32 VERSION:32 (0) ZXID:64 TIMEOUT:32 SESSION:64 PASSWORD(buffer) [READ_ONLY:8]
 *              -> LEN:32 VERSION:32 TIMEOUT:32 SESSION:64 PASSWORD ...
 *   request    LEN:32 XID:32 OP:32 [PATH: LEN:32 BYTES ...]
 *   response   LEN:32 XID:32 ZXID:64 ERROR:32 ...; XID -1: a watch's event, -2: a ping's, -4
 *              auth's, -8 set watches'
 *
 *   words      four letters, instead of all that ("ruok", "mntr", ...; the administrator's guide),
 *              answered by a text up to the connection's end
 *
 * Matched by xid, in order. Operation: the op and its path, as a route. An error is reported by its
 * name; a failed multi has code 0 itself, the code is in its results. "no node" and "node exists"
 * are answers like others. A word that the server does not allow or serve is an error.
 */
#include <stdio.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define LENGTH_MAX    (64u << 20)
#define LOOK          512
#define CONNECT_ID    (1ull << 40)
#define OP_MULTI      14
#define OP_MULTI_READ 22
#define STAT          68 /* bytes of a Stat record */
#define WORD          4
#define PORT          2181
#define WORD_ID       (CONNECT_ID + 1)
#define REFUSAL_LOOK  80 /* bytes of an answer that may refuse a word */

struct zookeeper {
	bool connected[2];
	char word[WORD]; /* that was asked, instead of connecting; 0: none */
};

/* The four letters at p; NULL: they are no word. */
static const char *word_of(const uint8_t *p, size_t n)
{
	static const char *const words[] = {"conf", "cons", "crst", "dirs", "dump", "envi",
					    "gtmk", "hash", "isro", "lead", "mntr", "orst",
					    "obsr", "ruok", "sysp", "srst", "srvr", "stat",
					    "stmk", "wchc", "wchp", "wchs"};

	for (size_t i = 0; n >= WORD && i < ARRAY_SIZE(words); i++)
		if (!memcmp(p, words[i], WORD))
			return words[i];
	return NULL;
}

/* A word is all that the client says, with an end of the line at most ("stmk" has a mask of 8
 * bytes). */
static bool is_word(const uint8_t *p, size_t n)
{
	const char *word = word_of(p, n);
	size_t more = n - WORD;

	if (!word)
		return false;
	if (!strcmp(word, "stmk"))
		return more <= 10;
	return more <= 2 && (more < 1 || p[WORD] == '\r' || p[WORD] == '\n') &&
	       (more < 2 || p[WORD + 1] == '\n');
}

/* The beginning of what ZooKeeper says to such a word. Redis and memcached have commands like
 * some. */
static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n && i < REFUSAL_LOOK; i++)
		if ((p[i] < ' ' && p[i] != '\n' && p[i] != '\r' && p[i] != '\t') || p[i] == 0x7f)
			return false;
	return n && p[0] != '-' && p[0] != '+' && p[0] != '$' && p[0] != '*' && p[0] != ':' &&
	       !bytes_begin(p, n, "ERROR\r") && !bytes_begin(p, n, "HTTP/") &&
	       !bytes_begin(p, n, "STAT ");
}

static const char *op_name(int32_t op, bool *path)
{
	static const struct {
		int32_t op;
		const char *name;
		bool path;
	} ops[] = {{1, "create", true},
		   {2, "delete", true},
		   {3, "exists", true},
		   {4, "getData", true},
		   {5, "setData", true},
		   {6, "getACL", true},
		   {7, "setACL", true},
		   {8, "getChildren", true},
		   {9, "sync", true},
		   {11, "ping", false},
		   {12, "getChildren2", true},
		   {13, "check", true},
		   {14, "multi", false},
		   {15, "create2", true},
		   {16, "reconfig", false},
		   {17, "checkWatches", true},
		   {18, "removeWatches", true},
		   {19, "createContainer", true},
		   {21, "createTTL", true},
		   {22, "multiRead", false},
		   {100, "auth", false},
		   {101, "setWatches", false},
		   {102, "sasl", false},
		   {103, "getEphemerals", true},
		   {104, "getAllChildrenNumber", true},
		   {105, "setWatches2", false},
		   {106, "addWatch", true},
		   {107, "whoAmI", false},
		   {-11, "closeSession", false}};

	for (size_t i = 0; i < ARRAY_SIZE(ops); i++)
		if (ops[i].op == op)
			return *path = ops[i].path, ops[i].name;
	return NULL;
}

static bool is_connect(const uint8_t *p, size_t n)
{
	return n >= 32 && (be32(p) == 44 || be32(p) == 45) && !be32(p + 4) &&
	       be32(p + 16) < 1u << 28 && be32(p + 28) == 16;
}

static bool is_request(const uint8_t *p, size_t n)
{
	bool path = false;

	if (n < 12 || be32(p) < 8 || be32(p) > LENGTH_MAX ||
	    !op_name((int32_t)be32(p + 8), &path) || (int32_t)be32(p + 4) < -8)
		return false;
	return !path || (n >= 17 && be32(p + 12) && be32(p + 12) + 12 <= be32(p) && p[16] == '/');
}

/* What a request without a path must have besides its operation: its length, its number, or the
 * operation that it begins with. */
static bool op_fits(int32_t op, int32_t xid, const uint8_t *p, size_t n)
{
	const uint32_t len = be32(p);
	bool path;

	switch (op) {
	case 11: /* ping */
		return xid == -2 && len == 8;
	case OP_MULTI:
	case OP_MULTI_READ: /* OP:32 DONE:8 (0) ERROR:32 (-1) */
		return xid >= 0 && n >= 21 && op_name((int32_t)be32(p + 12), &path) && !p[16] &&
		       be32(p + 17) == UINT32_MAX;
	case 100: /* auth */
		return xid == -4 && len >= 20;
	case 101: /* setWatches, setWatches2 */
	case 105:
		return xid == -8 && len >= 28;
	case 107: /* whoAmI, closeSession */
	case -11:
		return xid >= 0 && len == 8;
	default:
		return xid >= 0 && len > 8;
	}
}

/* A request, where another protocol's message may be. */
static bool is_plain_request(const uint8_t *p, size_t n)
{
	return is_request(p, n) && op_fits((int32_t)be32(p + 8), (int32_t)be32(p + 4), p, n);
}

static uint32_t operation(struct proto_conn *c, const uint8_t *p, size_t n)
{
	char route[ROUTE_MAX];
	bool path = false;
	const char *name = op_name((int32_t)be32(p + 8), &path);
	size_t len = path && n >= 16 ? be32(p + 12) : 0;

	/* a truncated path is not used */
	if (!path || proto_payload(c) == PROTO_NONE || n < 17 || len > n - 16)
		return proto_name(c, name, strlen(name));
	for (size_t i = 0; i < len; i++)
		if (p[16 + i] <= ' ' || p[16 + i] >= 0x7f)
			len = i;
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %.*s", name, (int)len, (const char *)p + 16);
	proto_route(c, NULL, 0, p + 16, len, '/', route);
	return proto_namef(c, "%s %s", name, route);
}

static const char *error_name(int32_t e, char buf[16])
{
	static const struct {
		int32_t e;
		const char *name;
	} names[] = {{-4, "connectionloss"},     {-6, "unimplemented"}, {-8, "badarguments"},
		     {-101, "nonode"},           {-102, "noauth"},      {-103, "badversion"},
		     {-108, "noephemeralchild"}, {-110, "nodeexists"},  {-111, "notempty"},
		     {-112, "sessionexpired"},   {-114, "invalidacl"},  {-115, "authfailed"},
		     {-118, "sessionmoved"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].e == e)
			return names[i].name;
	snprintf(buf, 16, "%d", e);
	return buf;
}

/* WORD is not executed because it is not in the whitelist; This ZooKeeper instance is not currently
 * serving requests. NULL: neither. *more: it may become one. */
static const char *refusal(const char *word, const uint8_t *p, size_t n, bool *more)
{
	static const char NOT_SERVING[] =
		"This ZooKeeper instance is not currently serving requests";
	char not_allowed[REFUSAL_LOOK];

	snprintf(not_allowed, sizeof(not_allowed),
		 "%.4s is not executed because it is not in the whitelist", word);
	*more = (n < strlen(NOT_SERVING) && bytes_agree(p, n, NOT_SERVING)) ||
		(n < strlen(not_allowed) && bytes_agree(p, n, not_allowed));
	return bytes_begin(p, n, NOT_SERVING) ? "not serving" :
	       bytes_begin(p, n, not_allowed) ? "not allowed" :
						NULL;
}

static int64_t word_asked(struct proto_conn *c, struct zookeeper *s, const uint8_t *p, size_t n)
{
	memcpy(s->word, p, WORD);
	proto_ask(c, proto_name(c, (const char *)p, WORD), WORD_ID);
	return (int64_t)n;
}

static int64_t word_answered(struct proto_conn *c, const struct zookeeper *s, const uint8_t *p,
			     size_t n, bool last)
{
	struct proto_pending *q = proto_find(c, WORD_ID);
	bool more;
	const char *why = refusal(s->word, p, n, &more);

	if (more && !last)
		return PROTO_MORE;
	if (q)
		proto_answer(c, q, why ? PROTO_ERROR : PROTO_OK, why ? why : "");
	return PROTO_ALL;
}

static int64_t client(struct proto_conn *c, struct zookeeper *s, const uint8_t *p, size_t n,
		      bool last)
{
	uint32_t len = be32(p);
	size_t see = len + 4u < LOOK ? len + 4u : LOOK;

	if (n < see && !last)
		return PROTO_MORE;
	if (!s->connected[PROTO_CLIENT] && is_connect(p, n)) {
		s->connected[PROTO_CLIENT] = true;
		proto_ask(c, proto_name(c, "connect", 7), CONNECT_ID);
		return (int64_t)len + 4;
	}
	if (!is_request(p, n))
		return PROTO_LOST;
	proto_ask(c, operation(c, p, see < n ? see : n), be32(p + 4))->tag = be32(p + 8);
	return (int64_t)len + 4;
}

/* The first error among a multi's results: TYPE:32 DONE:8 ERROR:32, then the type's own fields. In
 * a failed multi all results have type -1; those with code 0, and -2 (rolled back), are not the
 * cause. */
static int32_t error_within(const uint8_t *p, size_t n)
{
	size_t at = 20, len;

	while (at + 9 <= n && !p[at + 4]) {
		const int32_t type = (int32_t)be32(p + at);

		at += 9;
		if (type == -1) {
			const int32_t e = at + 4 <= n ? (int32_t)be32(p + at) : 0;

			if (e && e != -2)
				return e;
			at += 4;
		} else if (type == 5) { /* setData */
			at += STAT;
		} else if (type == 1 || type == 4 || type == 15) { /* create, getData, create2 */
			len = at + 4 <= n && (int32_t)be32(p + at) > 0 ? be32(p + at) : 0;
			at += 4 + (len < LENGTH_MAX ? len : LENGTH_MAX) + (type == 1 ? 0 : STAT);
		} else if (type == 8) { /* getChildren */
			uint32_t count = at + 4 <= n ? be32(p + at) : 0;

			for (at += 4; count && at + 4 <= n && be32(p + at) < LENGTH_MAX; count--)
				at += 4 + be32(p + at);
			if (count)
				return 0;
		} else if (type != 2 && type != 13) {
			return 0;
		}
	}
	return 0;
}

static int64_t server(struct proto_conn *c, struct zookeeper *s, const uint8_t *p, size_t n,
		      bool last)
{
	struct proto_pending *q;
	uint32_t len = be32(p);
	size_t see;
	char buf[16];
	int32_t e;

	if (len < 16)
		return PROTO_LOST;
	if (n < 20)
		return PROTO_MORE;
	q = s->connected[PROTO_SERVER] ? NULL : proto_find(c, CONNECT_ID);
	if (q) {
		s->connected[PROTO_SERVER] = true;
		proto_answer(c, q, be32(p + 8) ? PROTO_OK : PROTO_ERROR,
			     be32(p + 8) ? "" : "sessionexpired");
		return (int64_t)len + 4;
	}
	if (be32(p + 4) == UINT32_MAX) { /* an event */
		proto_one_way(c, proto_name(c, "event", 5));
		return (int64_t)len + 4;
	}
	q = proto_find(c, be32(p + 4));
	e = (int32_t)be32(p + 16);
	if (q && (q->tag == OP_MULTI || q->tag == OP_MULTI_READ)) {
		see = len + 4u < LOOK ? len + 4u : LOOK;
		if (n < see && !last)
			return PROTO_MORE;
		e = e ? e : error_within(p, see < n ? see : n);
	}
	if (q)
		proto_answer(c, q, e && e != -101 && e != -110 ? PROTO_ERROR : PROTO_OK,
			     e ? error_name(e, buf) : "");
	else
		proto_unowned(c);
	return (int64_t)len + 4;
}

static int64_t zookeeper_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n, bool last)
{
	struct zookeeper *s = proto_state(c);

	if (from == PROTO_CLIENT && s->word[0])
		return (int64_t)n; /* the end of its line */
	if (from == PROTO_SERVER && s->word[0])
		return word_answered(c, s, p, n, last);
	if (n < 4)
		return PROTO_MORE;
	if (from == PROTO_CLIENT && !s->connected[PROTO_CLIENT] && is_word(p, n))
		return word_asked(c, s, p, n);
	if (be32(p) < 8 || be32(p) > LENGTH_MAX)
		return PROTO_LOST;
	return from == PROTO_CLIENT ? client(c, s, p, n, last) : server(c, s, p, n, last);
}

/* Only complete requests, at least one of which has a path. */
static bool is_chain(const uint8_t *p, size_t n)
{
	bool path = false, one = false;

	for (size_t at = 0; at < n; at += be32(p + at) + 4u) {
		if (!is_plain_request(p + at, n - at))
			return false;
		op_name((int32_t)be32(p + at + 8), &one);
		path |= one;
		if (be32(p + at) + 4u >= n - at)
			return path && be32(p + at) + 4u == n - at;
	}
	return false;
}

static enum proto_guess word_recognise(const struct proto_first *f)
{
	if (!f->n_server)
		return f->last ? PROTO_YES : PROTO_MAYBE;
	return is_text(f->server, f->n_server) ? PROTO_YES : PROTO_NO;
}

static enum proto_guess zookeeper_recognise(const struct proto_first *f)
{
	if ((f->begun || f->port == PORT) && f->n_client && is_word(f->client, f->n_client))
		return word_recognise(f);
	if (f->begun) {
		if (!f->n_client)
			return f->n_server ? PROTO_NO : PROTO_MAYBE;
		if (f->n_client < 32)
			return f->client[0] || (f->n_client >= 4 && be32(f->client) != 44 &&
						be32(f->client) != 45) ?
				       PROTO_NO :
				       PROTO_MAYBE;
		if (!is_connect(f->client, f->n_client))
			return PROTO_NO;
		if (f->n_server < 20)
			return f->last && !f->n_server ? PROTO_YES : PROTO_MAYBE;
		return (be32(f->server) == 36 || be32(f->server) == 37) && !be32(f->server + 4) ?
			       PROTO_YES :
			       PROTO_NO;
	}
	if (f->last && !f->n_server)
		return is_chain(f->client, f->n_client) ? PROTO_YES : PROTO_NO;
	if (f->n_client < 12 || f->n_server < 20)
		return f->n_client + f->n_server < 1024 ? PROTO_MAYBE : PROTO_NO;
	return is_plain_request(f->client, f->n_client) && be32(f->client) + 4u == f->n_client &&
			       be32(f->client + 4) == be32(f->server + 4) &&
			       be32(f->server) >= 16 && (int32_t)be32(f->server + 16) <= 0 &&
			       (int32_t)be32(f->server + 16) > -200 ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool zookeeper_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	if (p != c->piece || n < 20 || be32(p) > LENGTH_MAX)
		return from == PROTO_CLIENT && p == c->piece && is_plain_request(p, n);
	return from == PROTO_CLIENT ? is_plain_request(p, n) :
				      be32(p) >= 16 && ((int32_t)be32(p + 16) <= 0 &&
							(int32_t)be32(p + 16) > -200);
}

const struct protocol protocol_zookeeper = {
	.name = "zookeeper",
	.state_size = sizeof(struct zookeeper),
	.recognise = zookeeper_recognise,
	.step = zookeeper_step,
	.starts = zookeeper_starts,
};
