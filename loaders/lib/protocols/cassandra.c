/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cassandra: CQL's native protocol, versions 3 to 5 (Cassandra's doc/native_protocol_v3.spec to
 * v5.spec). Numbers are big endian.
 *
 *   envelope   VERSION:8 (80 added in answers) FLAGS:8 (1 compressed, 2 tracing, 4 custom payload,
 *              8 warnings) STREAM:16 OPCODE:8 LEN:32 BODY
 *   opcodes    0 ERROR 1 STARTUP 2 READY 3 AUTHENTICATE 5 OPTIONS 6 SUPPORTED 7 QUERY 8 RESULT 9
 *              PREPARE a EXECUTE b REGISTER c EVENT d BATCH e AUTH_CHALLENGE f AUTH_RESPONSE 10
 *              AUTH_SUCCESS
 *   frames     version 5, after READY or AUTHENTICATE: LEN:17 WHOLE:1 0:6 CRC:24 (little endian),
 *              envelopes, CRC:32; with compression LEN:17 PLAIN_LEN:17 WHOLE:1 0:5 CRC:24
 *   QUERY, PREPARE  LEN:32 TEXT
 *   EXECUTE    LEN:16 ID
 *   BATCH      KIND:8 N:16 (0 LEN:32 TEXT | 1 LEN:16 ID) ...
 *   RESULT     KIND:32; 4: prepared: LEN:16 ID
 *   ERROR      CODE:32
 *
 * Matched by stream. An id is made of the statement, so what one connection prepared names it on
 * all. What is compressed has no text: <compressed>; version 5 compresses whole frames, and all of
 * it is blind. An envelope that goes over several frames is passed over by its length.
 */
#include <stdio.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/sql.h"
#include "loaders/lib/protocols/table.h"

#define HEAD       9
#define LENGTH_MAX (256u << 20)
#define FRAME_HEAD 6

enum {
	ERROR = 0,
	STARTUP = 1,
	READY = 2,
	AUTHENTICATE = 3,
	OPTIONS = 5,
	SUPPORTED = 6,
	QUERY = 7,
	RESULT = 8,
	PREPARE = 9,
	EXECUTE = 10,
	REGISTER = 11,
	EVENT = 12,
	BATCH = 13,
	AUTH_RESPONSE = 15,
	OPCODE_MAX = 16
};

struct cassandra {
	bool compression; /* asked for in STARTUP */
	struct side {
		bool framed, sealed; /* frames have begun; of a compressed kind, that nothing is
					seen of */
		bool at_checksum;
		uint32_t left;          /* of the frame's payload */
		uint32_t envelope_left; /* of an envelope that goes on in the next frame */
	} side[2];
};

static bool is_envelope(enum proto_side from, const uint8_t *p, size_t n)
{
	static const uint8_t client[] = {STARTUP, OPTIONS,  QUERY, PREPARE,
					 EXECUTE, REGISTER, BATCH, AUTH_RESPONSE},
			     server[] = {ERROR,  READY, AUTHENTICATE, SUPPORTED,
					 RESULT, EVENT, 14,           OPCODE_MAX};
	uint8_t version;

	if (n < HEAD)
		return false;
	version = p[0] & 0x7f;
	return (p[0] >> 7) == (from == PROTO_SERVER) && version >= 3 && version <= 5 &&
	       !(p[1] & 0xe0) && memchr(from == PROTO_CLIENT ? client : server, p[4], 8) &&
	       be32(p + 5) <= LENGTH_MAX;
}

static uint32_t statement(struct proto_conn *c, const char *before, const uint8_t *text, size_t n,
			  size_t len)
{
	char sql[SQL_MAX];

	sql_operation(text, n < len ? n : len, n < len, SQL_STANDARD, proto_payload(c), sql);
	return proto_namef(c, "%s%s", before, sql[0] ? sql : "(empty)");
}

static uint64_t statement_key(const uint8_t *id, size_t n)
{
	return idtable_text(id, n) & ~1ull;
}

static uint32_t by_id(struct proto_conn *c, const uint8_t *p, size_t n)
{
	size_t len = n >= 2 ? be16(p) : 0;
	uint32_t op = len && len <= n - 2 ?
			      idtable_get(protocols_shared(c->of), statement_key(p + 2, len)) :
			      0;

	return op ? op : proto_name(c, "<prepared>", 10);
}

static uint32_t batch(struct proto_conn *c, const uint8_t *p, size_t n)
{
	uint32_t first = 0;

	if (n < 4)
		return proto_name(c, "BATCH", 5);
	if (p[3] == 0 && n >= 8)
		first = statement(c, "", p + 8, n - 8, be32(p + 4));
	else if (p[3] == 1)
		first = by_id(c, p + 4, n - 4);
	return proto_namef(c, "BATCH of %s%s", proto_name_text(c, first),
			   be16(p + 1) > 1 ? " and others" : "");
}

static void client(struct proto_conn *c, const uint8_t *head, const uint8_t *p, size_t n)
{
	static const char *const names[OPCODE_MAX + 1] = {[STARTUP] = "STARTUP",
							  [OPTIONS] = "OPTIONS",
							  [REGISTER] = "REGISTER",
							  [AUTH_RESPONSE] = "AUTH"};
	struct cassandra *s = proto_state(c);
	struct proto_pending *q;
	uint32_t op = 0, of = 0;

	if (head[4] == STARTUP && !s->side[PROTO_CLIENT].framed)
		s->compression = memmem(p, n, "COMPRESSION", 11);
	if (names[head[4]]) {
		op = proto_name(c, names[head[4]], strlen(names[head[4]]));
	} else if (head[1] & 1) {
		op = proto_name(c, "<compressed>", 12);
	} else if ((head[4] == QUERY || head[4] == PREPARE) && n >= 4) {
		of = statement(c, "", p + 4, n - 4, be32(p));
		op = head[4] == QUERY ? of : proto_namef(c, "PREPARE %s", proto_name_text(c, of));
	} else if (head[4] == EXECUTE) {
		op = by_id(c, p, n);
	} else if (head[4] == BATCH) {
		op = batch(c, p, n);
	}
	q = proto_ask(c, op, be16(head + 2));
	q->tag = head[4] == PREPARE ? of : 0;
}

static void begin_frames(struct proto_conn *c)
{
	struct cassandra *s = proto_state(c);

	for (int i = 0; i < 2; i++) {
		s->side[i].framed = true;
		s->side[i].sealed = s->compression;
	}
}

/* LEN:16 TYPE ...: an event that the client registered for. */
static void event(struct proto_conn *c, const uint8_t *p, size_t n)
{
	size_t len = n >= 2 ? be16(p) : 0;

	for (size_t i = 0; i < len && len <= n - 2; i++)
		if (!byte_is_letter(p[2 + i]) && p[2 + i] != '_')
			len = 0;
	if (!len || len > n - 2 || len > 32)
		proto_one_way(c, proto_name(c, "EVENT", 5));
	else
		proto_one_way(c, proto_namef(c, "EVENT %.*s", (int)len, (const char *)p + 2));
}

static void server(struct proto_conn *c, const uint8_t *head, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_find(c, be16(head + 2));
	bool plain = !(head[1] & 1);
	size_t skip = head[1] & 2 ? 16 : 0;
	char status[12] = "";

	if ((head[4] == READY || head[4] == AUTHENTICATE) && (head[0] & 0x7f) == 5)
		begin_frames(c);
	if (head[4] == EVENT)
		event(c, p, plain ? n : 0);
	if (!q && head[4] != EVENT)
		proto_unowned(c);
	if (!q || head[4] == EVENT)
		return;
	p += skip < n ? skip : n;
	n -= skip < n ? skip : n;
	if (head[4] == RESULT && plain && q->tag && n >= 6 && be32(p) == 4 && n >= 6u + be16(p + 4))
		idtable_put(protocols_shared(c->of), statement_key(p + 6, be16(p + 4)), q->tag);
	if (head[4] == ERROR && plain && n >= 4)
		snprintf(status, sizeof(status), "0x%04x", be32(p) & 0xffff);
	proto_answer(c, q, head[4] == ERROR ? PROTO_ERROR : PROTO_OK, status);
}

/* One envelope; its size with the head, as for step. */
static int64_t envelope(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			bool last)
{
	size_t see;

	if (n < HEAD)
		return PROTO_MORE;
	if (!is_envelope(from, p, n))
		return PROTO_LOST;
	see = be32(p + 5) < 2048 ? be32(p + 5) : 2048;
	if (n - HEAD < see && !last)
		return PROTO_MORE;
	see = see < n - HEAD ? see : n - HEAD;
	if (from == PROTO_CLIENT)
		client(c, p, p + HEAD, see);
	else
		server(c, p, p + HEAD, see);
	return HEAD + (int64_t)be32(p + 5);
}

static int64_t frame_head(struct side *s, const uint8_t *p, size_t n)
{
	uint32_t word;

	if (n < FRAME_HEAD)
		return PROTO_MORE;
	word = le24(p);
	if (word >> 18)
		return PROTO_LOST;
	s->left = word & 0x1ffff;
	if (!s->left)
		s->at_checksum = true;
	return FRAME_HEAD;
}

static int64_t framed(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		      bool last)
{
	struct side *s = &((struct cassandra *)proto_state(c))->side[from];
	int64_t k;

	if (s->envelope_left) /* the envelope continues in the next frame */
		proto_goes_on(c);
	if (s->at_checksum) {
		s->at_checksum = false;
		return 4;
	}
	if (!s->left)
		return frame_head(s, p, n);
	if (s->envelope_left) {
		k = s->envelope_left < s->left ? s->envelope_left : s->left;
		s->envelope_left -= (uint32_t)k;
	} else {
		bool cut = n >= s->left; /* what is beyond belongs to another frame */

		k = envelope(c, from, p, cut ? s->left : n, last || cut);
		if (k <= 0)
			return k;
		if (k > s->left) {
			s->envelope_left = (uint32_t)k - s->left;
			k = s->left;
		}
	}
	s->left -= (uint32_t)k;
	s->at_checksum = !s->left;
	if (s->envelope_left)
		proto_goes_on(c);
	return k;
}

static int64_t cassandra_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n, bool last)
{
	struct cassandra *s = proto_state(c);

	if (s->side[from].sealed)
		return PROTO_LOST;
	return s->side[from].framed ? framed(c, from, p, n, last) : envelope(c, from, p, n, last);
}

/* Only complete envelopes, at least one of which carries a statement. */
static bool is_chain(const uint8_t *p, size_t n)
{
	bool statement = false;

	for (size_t at = 0; at < n;) {
		if (!is_envelope(PROTO_CLIENT, p + at, n - at) || be32(p + at + 5) > n - at - HEAD)
			return false;
		if (p[at + 4] == QUERY || p[at + 4] == PREPARE)
			statement |= be32(p + at + 5) > 8 &&
				     be32(p + at + HEAD) <= be32(p + at + 5) - 4 &&
				     byte_is_letter(p[at + HEAD + 4]);
		at += HEAD + be32(p + at + 5);
	}
	return statement;
}

static enum proto_guess cassandra_recognise(const struct proto_first *f)
{
	uint32_t len;

	if (!f->n_client)
		return f->n_server || !f->begun ? PROTO_NO : PROTO_MAYBE;
	if (f->client[0] < 3 || f->client[0] > 5)
		return PROTO_NO;
	if (f->n_client < HEAD)
		return PROTO_MAYBE;
	if (!is_envelope(PROTO_CLIENT, f->client, f->n_client))
		return PROTO_NO;
	if (f->last && !f->n_server && f->client[4] != STARTUP)
		return is_chain(f->client, f->n_client) ? PROTO_YES : PROTO_NO;
	len = be32(f->client + 5);
	if (f->client[4] == OPTIONS)
		return len ? PROTO_NO :
		       f->n_server >= HEAD ?
			     (is_envelope(PROTO_SERVER, f->server, f->n_server) ? PROTO_YES :
										  PROTO_NO) :
			     PROTO_MAYBE;
	if (f->client[4] == STARTUP)
		return f->n_client < HEAD + 4 + 11                       ? PROTO_MAYBE :
		       memmem(f->client, f->n_client, "CQL_VERSION", 11) ? PROTO_YES :
									   PROTO_NO;
	if (f->begun)
		return PROTO_NO;
	if (f->n_server < HEAD)
		return PROTO_MAYBE;
	return is_envelope(PROTO_SERVER, f->server, f->n_server) &&
			       be16(f->client + 2) == be16(f->server + 2) &&
			       (f->server[4] == RESULT || f->server[4] == ERROR) ?
		       PROTO_YES :
		       PROTO_NO;
}

/* After a loss in frames the next begins where a piece does, with a whole envelope behind it. */
static bool cassandra_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	const struct cassandra *s = proto_state(c);

	if (s->side[from].sealed)
		return false;
	if (!s->side[from].framed)
		return is_envelope(from, p, n) && (p == c->piece || n == HEAD + be32(p + 5));
	return p == c->piece && n >= FRAME_HEAD + HEAD && !(le24(p) >> 18) &&
	       is_envelope(from, p + FRAME_HEAD, n - FRAME_HEAD);
}

static void cassandra_lost(struct proto_conn *c, enum proto_side from)
{
	struct side *s = &((struct cassandra *)proto_state(c))->side[from];

	s->left = s->envelope_left = 0;
	s->at_checksum = false;
}

const struct protocol protocol_cassandra = {
	.name = "cassandra",
	.ids_again = true,
	.state_size = sizeof(struct cassandra),
	.recognise = cassandra_recognise,
	.step = cassandra_step,
	.starts = cassandra_starts,
	.lost = cassandra_lost,
};
