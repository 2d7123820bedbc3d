/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foundationdb: FoundationDB's fdbrpc, between clients and servers and among servers, from 6.3 on
 * (FlowTransport, flat_buffers.h and the file_identifier of each request, of FoundationDB). Numbers
 * are little endian.
 *
 *   connect    LEN:32 VERSION:64 (0FDB00Bmmnn.... with flags in the uppermost 4 bits) PORT:16 ID:64
 *              ... : each side's first packet
 *   packet     LEN:32 CHECKSUM TOKEN:128 MESSAGE; LEN counts TOKEN and MESSAGE. CHECKSUM: XXH3, 64
 *              bits, from 7.0 on; CRC32C, 32 bits, before; none inside TLS
 *   message    a FlatBuffer: ROOT:32 (from here) KIND:32, the vtables, the tables, the outermost
 *              first; the root is a table of one field (of two for a union) that holds the message
 *   table      VTABLE:s32 (how far before this) ...; its vtable: SIZE:16 TABLE_SIZE:16 (OFFSET:16
 *              of each field in the table; < 4: none) ...
 *   request    KIND below 2^24. Its reply promise is a table whose only field is a token: (6, 20,
 *              4) is its vtable. The token's first bit says stream of replies; its third 32 bits
 *              are an index, a small number
 *   reply      TOKEN is that token; KIND 02xxxxxx: ErrorOr: a union (TYPE:8, offset), 1 Error
 *              (CODE:16), 2 a value
 *
 * Matched by the token that a request carries: its first 64 bits are random. Both sides may ask on
 * a connection; only requests of the side that opened it are reported, without pings. Operation:
 * the kind of request; keys and values are in none. A request whose token lies beyond what is
 * looked at is blind. So is a reply with a value or an error to a token that no request had: its
 * request was not seen.
 */
#include <stdio.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define LENGTH_MAX    (100u << 20)
#define TOKEN         16
#define LOOK          2048
#define INDEX_MAX     (1u << 24)
#define CONNECT_MIN   14 /* with LEN */
#define CONNECT_MAX   128
#define XXH3_SINCE    0x70 /* of the version: 7.0 */
#define KIND_ERROR_OR 2
#define REPLY_VOID    0x021ead4au /* also of a ping, which is not kept */

struct foundationdb {
	struct {
		bool connected;
		uint8_t checksum; /* bytes of it, once that is known */
		bool known;
	} side[2];
	uint8_t version; /* 0x71: 7.1 */
};

static const struct kind {
	uint32_t id;
	const char *name;
} KINDS[] = {
	{93948, "CommitTransaction"},
	{838566, "GetReadVersion"},
	{8454530, "GetValue"},
	{6795746, "GetKeyValues"},
	{6795747, "GetMappedKeyValues"},
	{10457870, "GetKey"},
	{14747733, "WatchValue"},
	{9144680, "GetKeyServerLocations"},
	{214728, "OpenDatabaseCoord"},
	{2828131, "GlobalConfigRefresh"},
	{13290999, "GetStorageMetrics"},
	{4022206, "TLogCommit"},
	{11001131, "TLogPeek"},
	{10072821, "TLogPeekStream"},
	{14419140, "Status"},
	{9467439, "GetServerDBInfo"},
	{9467438, "UpdateServerDBInfo"},
	{14332605, "RegisterWorker"},
	{1254174, "GetWorkers"},
	{905920, "RecruitStorage"},
	{16665642, "InitializeStorage"},
	{8265613, "InitializeGrvProxy"},
	{10344153, "InitializeCommitProxy"},
	{15604392, "InitializeTLog"},
	{6416816, "InitializeRatekeeper"},
	{4150141, "BlobGranuleFile"},
	{2508597, "GetBlobGranuleLocations"},
	{923040, "ConfigTransactionGet"},
	{103841, "ConfigTransactionCommit"},
	{178935, "ConfigFollowerGetChanges"},
	{601281, "ConfigBroadcastChanges"},
	{4146513, "NetworkTest"},
	{10624019, "Echo"},
	{4707015, NULL /* Ping */},
};

static const struct kind *kind_of(uint32_t id)
{
	for (size_t i = 0; i < ARRAY_SIZE(KINDS); i++)
		if (KINDS[i].id == id)
			return &KINDS[i];
	return NULL;
}

static const char *error_name(uint16_t code, char buf[8])
{
	static const struct {
		uint16_t code;
		const char *name;
	} names[] = {{1001, "wrong_shard_server"},    {1004, "timed_out"},
		     {1007, "transaction_too_old"},   {1009, "future_version"},
		     {1020, "not_committed"},         {1021, "commit_unknown_result"},
		     {1031, "transaction_timed_out"}, {1034, "watch_cancelled"},
		     {1037, "process_behind"},        {1038, "database_locked"},
		     {1042, "proxy_memory_limit"},    {1051, "batch_throttled"},
		     {1100, "broken_promise"},        {1101, "operation_cancelled"},
		     {1213, "tag_throttled"},         {2130, "tenant_name_required"},
		     {2131, "tenant_not_found"},      {6000, "permission_denied"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].code == code)
			return names[i].name;
	snprintf(buf, 8, "%u", code);
	return buf;
}

/* ---- the tables of a message ---- */

/* Where table `at` has its field number `i`; 0: nowhere, or not within n. */
static size_t field(const uint8_t *m, size_t n, size_t at, unsigned i, size_t size)
{
	int64_t vtable;
	size_t entry, off;

	if (at + 4 > n)
		return 0;
	vtable = (int64_t)at - (int32_t)le32(m + at);
	if (vtable < 8 || (size_t)vtable + 4 > n || (vtable & 1))
		return 0;
	entry = 4 + 2 * (size_t)i;
	if (le16(m + vtable) < entry + 2 || (size_t)vtable + entry + 2 > n)
		return 0;
	off = le16(m + vtable + entry);
	return off < 4 || off + size > le16(m + vtable + 2) || at + off + size > n ? 0 : at + off;
}

/* The table that the field at `at` points to; 0: not within n. */
static size_t follow(const uint8_t *m, size_t n, size_t at)
{
	return at && le32(m + at) <= n && at + le32(m + at) + 4 <= n ? at + le32(m + at) : 0;
}

/* Does a message begin here? `n` of its `size` bytes are there. */
static bool is_message(const uint8_t *m, size_t n, size_t size)
{
	return n >= 12 && le32(m) >= 8 && le32(m) < size && !(le32(m) & 3) && le32(m + 4) &&
	       le32(m + 4) >> 24 <= KIND_ERROR_OR &&
	       (le32(m) + (size_t)4 > n || field(m, n, le32(m), 0, 1));
}

/* The token of the reply promise; NULL: none is seen. */
static const uint8_t *reply_token(const uint8_t *m, size_t n)
{
	for (size_t at = le32(m); at + 4 + TOKEN <= n; at += 4) {
		int64_t vtable = (int64_t)at - (int32_t)le32(m + at);
		const uint8_t *token = m + at + 4;

		if (vtable < 8 || (size_t)vtable + 6 > n || le16(m + vtable) != 6 ||
		    le16(m + vtable + 2) != 4 + TOKEN || le16(m + vtable + 4) != 4)
			continue;
		/* a transaction's debug id has a random number there */
		if (le32(token + 8) < INDEX_MAX && le64(token))
			return token;
	}
	return NULL;
}

static uint64_t token_id(const uint8_t *token)
{
	return le64(token) ^ le64(token + 8) * 0x9e3779b97f4a7c15ull;
}

/* ---- packets ---- */

static void ask(struct proto_conn *c, const uint8_t *m, size_t n, size_t size)
{
	const struct kind *k = kind_of(le32(m + 4));
	const uint8_t *token;
	struct proto_pending *q;
	uint32_t op;

	if (le32(m + 4) >> 24 || (k && !k->name))
		return;
	token = reply_token(m, n);
	op = k ? proto_name(c, k->name, strlen(k->name)) : proto_name(c, "REQUEST", 7);
	if (!token && n < size)
		proto_blind(c, op);
	else if (!token && k)
		proto_one_way(c, op);
	if (!token)
		return;
	q = proto_ask(c, op, token_id(token));
	q->tag = token[0] & 1;
}

static void reply(struct proto_conn *c, const uint8_t *token, const uint8_t *m, size_t n)
{
	struct proto_pending *q = proto_find(c, token_id(token));
	size_t root = le32(m), type, error;
	char buf[8];

	if (!q) {
		if (!(token[0] & 1) && le32(m + 4) >> 24 == KIND_ERROR_OR &&
		    le32(m + 4) != REPLY_VOID)
			proto_unowned(c);
		return;
	}
	if (q->tag) {
		proto_opened(c, q, "");
		return;
	}
	type = le32(m + 4) >> 24 == KIND_ERROR_OR ? field(m, n, root, 0, 1) : 0;
	error = type && m[type] == 1 ? field(m, n, follow(m, n, field(m, n, root, 1, 4)), 0, 2) : 0;
	proto_answer(c, q, type && m[type] == 1 ? PROTO_ERROR : PROTO_OK,
		     error ? error_name(le16(m + error), buf) : "");
}

static bool is_connect(const uint8_t *p, size_t n)
{
	return n >= CONNECT_MIN && le32(p) + 4 >= CONNECT_MIN && le32(p) <= CONNECT_MAX &&
	       (le16(p + 10) & 0xfff) == 0xfdb && !p[9] && p[8] >= 0xa0;
}

/* Is it a packet whose checksum has `checksum` bytes? */
static bool fits(const uint8_t *p, size_t n, size_t checksum)
{
	size_t head = 4 + checksum + TOKEN;

	return n >= head + 12 && le32(p) >= TOKEN + 12 && le32(p) <= LENGTH_MAX &&
	       is_message(p + head, n - head, le32(p) - TOKEN);
}

static bool find_checksum(const struct foundationdb *s, const uint8_t *p, size_t n, uint8_t *out)
{
	static const uint8_t sizes[2][3] = {{8, 0, 4}, {4, 0, 8}};
	const uint8_t *of = sizes[s->version && s->version < XXH3_SINCE];

	/* of two that fit, the one whose root is here: a large message has room for any number */
	for (int i = 0; i < 6; i++) {
		const size_t head = 4u + of[i % 3] + TOKEN;

		if (fits(p, n, of[i % 3]) && (i >= 3 || le32(p + head) + (size_t)4 <= n - head)) {
			*out = of[i % 3];
			return true;
		}
	}
	return false;
}

static int64_t foundationdb_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
				 size_t n, bool last)
{
	struct foundationdb *s = proto_state(c);
	size_t head, see;

	if (n < CONNECT_MIN)
		return PROTO_MORE;
	if (!s->side[from].connected && is_connect(p, n)) {
		s->side[from].connected = true;
		s->version = p[7];
		return (int64_t)le32(p) + 4;
	}
	s->side[from].connected = true;
	if (le32(p) < TOKEN || le32(p) > LENGTH_MAX)
		return PROTO_LOST;
	see = le32(p) + 12 < LOOK ? le32(p) + 12 : LOOK;
	if (n < see && !last) {
		uint8_t sum = s->side[from].checksum;

		/* one that ends here exactly: the first inside TLS, where nothing follows it */
		if (n < le32(p) + 4u + sum ||
		    (!s->side[from].known &&
		     (!find_checksum(s, p, n, &sum) || n != le32(p) + 4u + sum)))
			return PROTO_MORE;
		see = n;
	}
	if (!s->side[from].known && !find_checksum(s, p, n, &s->side[from].checksum))
		return PROTO_LOST;
	s->side[from].known = true;
	head = 4 + s->side[from].checksum + TOKEN;
	if (!fits(p, n, s->side[from].checksum))
		return PROTO_LOST;
	see = le32(p) - TOKEN < n - head ? le32(p) - TOKEN : n - head;
	if (from == PROTO_CLIENT)
		ask(c, p + head, see, le32(p) - TOKEN);
	else
		reply(c, p + head - TOKEN, p + head, see);
	return (int64_t)le32(p) + 4 + s->side[from].checksum;
}

static enum proto_guess foundationdb_recognise(const struct proto_first *f)
{
	struct foundationdb s = {0};
	uint8_t client, server;
	const uint8_t *m, *token;
	size_t head;

	if (f->begun) {
		if (f->n_client < CONNECT_MIN)
			return f->n_server || (f->n_client >= 4 && le32(f->client) > CONNECT_MAX) ?
				       PROTO_NO :
				       PROTO_MAYBE;
		return is_connect(f->client, f->n_client) ? PROTO_YES : PROTO_NO;
	}
	if (f->last && f->n_client && !f->n_server &&
	    find_checksum(&s, f->client, f->n_client, &client)) {
		m = f->client + 4 + client + TOKEN;
		return kind_of(le32(m + 4)) &&
				       reply_token(m, f->n_client - (size_t)(m - f->client)) ?
			       PROTO_YES :
			       PROTO_NO;
	}
	if (!f->n_client || !f->n_server)
		return f->n_client + f->n_server < 1024 ? PROTO_MAYBE : PROTO_NO;
	if (!find_checksum(&s, f->client, f->n_client, &client) ||
	    !find_checksum(&s, f->server, f->n_server, &server))
		return PROTO_NO;
	head = 4u + client + TOKEN;
	m = f->client + head;
	token = reply_token(m, f->n_client - head);
	return kind_of(le32(m + 4)) && token && !memcmp(token, f->server + 4 + server, TOKEN) ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool foundationdb_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p,
				size_t n)
{
	const struct foundationdb *s = proto_state(c);
	size_t head = 4u + s->side[from].checksum + TOKEN;

	if (!s->side[from].known || p != c->piece || !fits(p, n, s->side[from].checksum))
		return false;
	return le32(p + head + 4) >> 24 == KIND_ERROR_OR || kind_of(le32(p + head + 4));
}

const struct protocol protocol_foundationdb = {
	.name = "foundationdb",
	.state_size = sizeof(struct foundationdb),
	.recognise = foundationdb_recognise,
	.step = foundationdb_step,
	.starts = foundationdb_starts,
};
