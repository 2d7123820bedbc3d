/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clickhouse: ClickHouse's native protocol (docs/native-protocol of ClickHouse, its
 * ProtocolDefines.h and TCPHandler). Numbers are little endian; V is a LEB128 number, S a V and
 * that number of bytes. What a packet holds goes by the revision: the smaller one of both Hellos.
 *
 *   client     0 Hello: S name V major V minor V REVISION S database S user S password; after the
 *              server's: an addendum
 *              1 Query: S id, client info, settings, V stage V compression S TEXT, parameters
 *              2 Data, 7 Scalar: S table, block | 3 Cancel | 4 Ping
 *   server     0 Hello: S name V major V minor V REVISION ...
 *              1 Data, 7 Totals, 8 Extremes, 10 Log, 14 ProfileEvents: S table, block
 *              2 Exception: CODE:32 S name S message S stack NESTED:8
 *              3 Progress | 4 Pong | 5 EndOfStream | 6 ProfileInfo | 11 TableColumns: S S
 *              12 PartUUIDs: V n, 16 bytes each | 13 ReadTaskRequest | 17 TimezoneUpdate: S
 *   block      see clickhouse_block.h
 *
 * One question is open at a time: a query ends with EndOfStream or an exception. A query with a
 * block that cannot be followed is blind. From 54470 on both may agree on chunks, which say
 * themselves where a packet ends.
 */
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/protocols/clickhouse_block.h"
#include "loaders/lib/protocols/clickhouse_text.h"
#include "loaders/lib/protocols/table.h"

#define REVISION_MIN 50000
#define REVISION_MAX 60000

enum { C_HELLO = 0, C_QUERY = 1, C_DATA = 2, C_CANCEL = 3, C_PING = 4, C_SCALAR = 7 };
enum {
	S_HELLO = 0,
	S_DATA = 1,
	S_EXCEPTION = 2,
	S_PROGRESS = 3,
	S_PONG = 4,
	S_END = 5,
	S_PROFILE = 6,
	S_TOTALS = 7,
	S_EXTREMES = 8,
	S_LOG = 10,
	S_COLUMNS = 11,
	S_PARTS = 12,
	S_READ_TASK = 13,
	S_EVENTS = 14,
	S_TIMEZONE = 17
};
enum { IS_INSERT = 1 };

struct clickhouse {
	uint64_t revision[2], in_use; /* 0: not known */
	bool greeting; /* the server's Hello and what follows it, until the client goes on */
	bool addendum, chunked[2];
	bool in_packet[2]; /* of chunks */
	bool parameters;   /* of a query come next */
	struct block *block[2];
	uint8_t strings[2]; /* to pass over */
	bool nested;        /* then comes an exception's last byte */
	bool exception;     /* another exception's body comes */
	int32_t error;      /* of the exception that is being read; 0: none */
};

static bool since(const struct clickhouse *s, unsigned revision)
{
	return !s->in_use || s->in_use >= revision;
}

static void block_end(struct clickhouse *s, enum proto_side from)
{
	free(s->block[from]);
	s->block[from] = NULL;
}

static int64_t block_begin(struct clickhouse *s, enum proto_side from, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	read_past_strings(&r, 1, 4096);
	if (!r.more && !r.bad)
		s->block[from] = block_new(s->in_use >= 54454);
	return read_so_far(&r);
}

/* ---- the client ---- */

struct query {
	const uint8_t *text;
	size_t len; /* of which are there */
	uint64_t whole;
	const uint8_t *trace;
	uint64_t revision; /* the client's own */
	size_t end;        /* what comes before the text */
};

static void client_info(struct reader *r, const struct clickhouse *s, struct query *q,
			bool with_time)
{
	uint8_t kind = read_byte(r), via;

	if (!kind || r->more)
		return;
	r->bad |= kind > 2;
	read_past_strings(r, 3, 4096);
	if (with_time)
		read_past(r, 8);
	via = read_byte(r);
	r->bad |= !r->more && (via < 1 || via > 8);
	if (via == 2) {
		read_byte(r);
		read_past_strings(r, 1 + since(s, 54443) + since(s, 54447), 1 << 16);
	} else {
		read_past_strings(r, 3, 4096);
		read_past_numbers(r, 2);
		q->revision = read_number(r);
	}
	if (since(s, 54060))
		read_past_strings(r, 1, 4096);
	if (since(s, 54448))
		read_number(r);
	if (since(s, 54401) && via != 2)
		read_number(r);
	if (since(s, 54442) && read_byte(r) == 1) {
		q->trace = r->p + r->at;
		read_past(r, 24);
		read_past_strings(r, 1, 4096);
		read_byte(r);
	}
	if (since(s, 54453))
		read_past_numbers(r, 3);
	if (s->in_use >= 54475)
		read_past_numbers(r, 2);
	if (s->in_use >= 54476 && read_byte(r))
		read_past_strings(r, 1, 1 << 14);
}

static void settings(struct reader *r, const struct clickhouse *s)
{
	while (!r->more && !r->bad) {
		const uint8_t *name;

		if (!read_string(r, &name, 4096))
			return;
		read_number(r); /* flags; before 54429: the value of most */
		if (since(s, 54429))
			read_past_strings(r, 1, 1 << 16);
	}
}

/* A query up to the length of its text; what is there of the text. */
static int64_t query_read(const struct clickhouse *s, const uint8_t *p, size_t n, bool with_time,
			  struct query *q)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	*q = (struct query){0};
	read_past_strings(&r, 1, 256);
	client_info(&r, s, q, with_time);
	settings(&r, s);
	read_past_strings(&r, (s->in_use >= 54472) + since(s, 54441), 1 << 16);
	r.bad |= read_number(&r) > 16;
	r.bad |= read_number(&r) > 1;
	q->whole = read_number(&r);
	r.bad |= q->whole > STRING_MAX;
	if (r.more || r.bad)
		return read_so_far(&r);
	q->text = p + r.at;
	q->len = q->whole < n - r.at ? (size_t)q->whole : n - r.at;
	q->end = r.at;
	return (int64_t)(r.at + q->whole);
}

static void keep_trace(struct proto_pending *q, const uint8_t *id)
{
	char hex[33];

	/* two halves of 64 bits, the upper one first, as the server and ch-go have them */
	snprintf(hex, sizeof(hex), "%016llx%016llx", (unsigned long long)le64(id),
		 (unsigned long long)le64(id + 8));
	proto_trace(q, (const uint8_t *)hex, 32);
}

static int64_t query(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n,
		     bool last)
{
	struct proto_pending *asked;
	struct query q;
	int64_t k = query_read(s, p, n, s->in_use ? s->in_use >= 54449 : true, &q);

	if (k < 0 && !s->in_use)
		k = query_read(s, p, n, false, &q);
	if (k <= 0)
		return k;
	if (q.len < q.whole && q.len < PROTO_LOOK && !last)
		return PROTO_MORE;
	if (!s->in_use)
		s->in_use = q.revision;
	asked = proto_ask(c, clickhouse_operation(c, q.text, q.len, q.len < q.whole), 0);
	asked->tag = q.len >= 6 && (!memcmp(q.text, "INSERT", 6) || !memcmp(q.text, "insert", 6)) ?
			     IS_INSERT :
			     0;
	if (q.trace)
		keep_trace(asked, q.trace);
	s->parameters = s->in_use >= 54459;
	return k;
}

static int64_t client_hello(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t revision;

	read_past_strings(&r, 1, 128);
	read_past_numbers(&r, 2);
	revision = read_number(&r);
	read_past_strings(&r, 3, 1 << 14);
	if (r.more || r.bad)
		return read_so_far(&r);
	s->revision[PROTO_CLIENT] = revision;
	proto_ask(c, proto_name(c, "CONNECT", 7), 0);
	return (int64_t)r.at;
}

/* What the client adds once it knows the server's revision. */
static int64_t addendum(struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	bool chunked[2] = {false, false};

	read_past_strings(&r, 1, 4096);
	/* what the client sends, what it receives */
	for (int i = 0; i < 2 && s->in_use >= 54470; i++) {
		const uint8_t *text;
		size_t len = read_string(&r, &text, 64);

		chunked[i] = len >= 7 && !memcmp(text, "chunked", 7);
	}
	if (s->in_use >= 54471)
		read_number(&r);
	if (r.more || r.bad)
		return read_so_far(&r);
	memcpy(s->chunked, chunked, sizeof(chunked));
	s->addendum = false;
	return (int64_t)r.at;
}

/* A query's parameters: name, flags, value, until a name is empty. */
static int64_t parameter(struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n};
	const uint8_t *name;

	if (!read_string(&r, &name, 4096) && !r.more && !r.bad) {
		s->parameters = false;
		return (int64_t)r.at;
	}
	read_number(&r);
	read_past_strings(&r, 1, 1 << 16);
	return read_so_far(&r);
}

static int64_t client(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n,
		      bool last)
{
	if (s->greeting) {
		s->greeting = false;
		s->addendum = s->in_use >= 54458;
	}
	/* no byte of the server was captured: assume it speaks the client's revision */
	if (!s->in_use && s->revision[PROTO_CLIENT] && !c->dir[PROTO_SERVER].met) {
		s->in_use = s->revision[PROTO_CLIENT];
		s->addendum = s->in_use >= 54458;
	}
	if (s->addendum)
		return addendum(s, p, n);
	if (s->parameters)
		return parameter(s, p, n);
	switch (p[0]) {
	case C_HELLO:
		return s->in_use ? PROTO_LOST : client_hello(c, s, p, n);
	case C_QUERY:
		return query(c, s, p, n, last);
	case C_DATA:
	case C_SCALAR:
		return block_begin(s, PROTO_CLIENT, p, n);
	case C_CANCEL:
		return 1;
	case C_PING:
		proto_ask(c, proto_name(c, "PING", 4), 0);
		return 1;
	default:
		return PROTO_LOST;
	}
}

/* ---- the server ---- */

static void answer(struct proto_conn *c, enum proto_result result, const char *status)
{
	struct proto_pending *q = proto_oldest(c);

	if (q)
		proto_answer(c, q, result, status);
}

static void answer_error(struct proto_conn *c, struct clickhouse *s)
{
	char code[16];

	snprintf(code, sizeof(code), "%d", s->error);
	s->error = 0;
	s->greeting = false;
	answer(c, PROTO_ERROR, code);
}

static int64_t server_hello(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t revision, client = s->revision[PROTO_CLIENT];

	read_past_strings(&r, 1, 128);
	read_past_numbers(&r, 2);
	revision = read_number(&r);
	r.bad |= !r.more && (revision < REVISION_MIN || revision > REVISION_MAX);
	if (r.more || r.bad)
		return read_so_far(&r);
	s->in_use = client && client < revision ? client : revision;
	s->greeting = true;
	answer(c, PROTO_OK, "");
	return (int64_t)r.at;
}

static int64_t exception_begin(struct clickhouse *s, const uint8_t *p, size_t n, size_t at)
{
	if (n < at + 4)
		return PROTO_MORE;
	if (!s->error)
		s->error = (int32_t)le32(p + at);
	s->error = s->error ? s->error : -1;
	s->strings[PROTO_SERVER] = 3;
	s->nested = true;
	s->exception = false;
	return (int64_t)at + 4;
}

static int64_t exception_end(struct proto_conn *c, struct clickhouse *s, uint8_t nested)
{
	s->nested = false;
	s->exception = nested == 1;
	if (!nested)
		answer_error(c, s);
	return nested > 1 ? PROTO_LOST : 1;
}

static int64_t numbers(const struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};

	if (p[0] == S_PROGRESS) {
		read_past_numbers(&r, 2 + since(s, 51554) + since(s, 54463) + 2 * since(s, 54420) +
					      since(s, 54460));
	} else {
		read_past_numbers(&r, 3);
		read_byte(&r);
		read_number(&r);
		read_byte(&r);
		if (since(s, 54469)) {
			read_byte(&r);
			read_number(&r);
		}
	}
	return read_so_far(&r);
}

static int64_t parts(const uint8_t *p, size_t n)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	uint64_t count = read_number(&r);

	r.bad |= count > ROWS_MAX;
	return r.bad || r.more ? read_so_far(&r) : (int64_t)(r.at + count * 16);
}

static int64_t server(struct proto_conn *c, struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_oldest(c);

	if (s->greeting)
		return (int64_t)n; /* what else a Hello holds goes by its revision */
	if (s->nested)
		return exception_end(c, s, p[0]);
	if (s->exception)
		return exception_begin(s, p, n, 0);
	if (q && p[0] != S_COLUMNS && !(p[0] == S_DATA && q->tag == IS_INSERT))
		proto_first_byte(c, q);
	switch (p[0]) {
	case S_HELLO:
		return s->in_use ? PROTO_LOST : server_hello(c, s, p, n);
	case S_DATA:
	case S_TOTALS:
	case S_EXTREMES:
	case S_LOG:
	case S_EVENTS:
		return block_begin(s, PROTO_SERVER, p, n);
	case S_EXCEPTION:
		return exception_begin(s, p, n, 1);
	case S_PROGRESS:
	case S_PROFILE:
		return numbers(s, p, n);
	case S_PONG:
	case S_END:
		answer(c, PROTO_OK, "");
		return 1;
	case S_COLUMNS:
		if (block_is_frame(p + 1, n - 1))
			return 17 + (int64_t)le32(p + 18);
		if (n < 1 + FRAME_HEAD && n < 4)
			return PROTO_MORE;
		s->strings[PROTO_SERVER] = 2;
		return 1;
	case S_TIMEZONE:
		s->strings[PROTO_SERVER] = 1;
		return 1;
	case S_PARTS:
		return parts(p, n);
	case S_READ_TASK:
		return 1;
	default:
		return PROTO_LOST;
	}
}

/* A packet's first bytes, whose end is known otherwise. */
static void packet(struct proto_conn *c, struct clickhouse *s, enum proto_side from,
		   const uint8_t *p, size_t n)
{
	if (from == PROTO_CLIENT && (p[0] == C_QUERY || p[0] == C_PING)) {
		client(c, s, p, n, true);
		s->parameters = false;
	} else if (from == PROTO_SERVER && (p[0] == S_END || p[0] == S_PONG)) {
		server(c, s, p, n);
	} else if (from == PROTO_SERVER && p[0] == S_EXCEPTION && n >= 5) {
		s->error = (int32_t)le32(p + 1);
		answer_error(c, s);
	} else if (from == PROTO_SERVER && proto_oldest(c)) {
		proto_first_byte(c, proto_oldest(c));
	}
}

/* Chunks: LEN:32 and LEN bytes; a chunk of length 0 ends the packet. */
static int64_t chunk(struct proto_conn *c, struct clickhouse *s, enum proto_side from,
		     const uint8_t *p, size_t n, bool last)
{
	size_t see;

	if (n < 4)
		return PROTO_MORE;
	if (le32(p) > STRING_MAX)
		return PROTO_LOST;
	see = le32(p) < 2 * PROTO_LOOK ? le32(p) : 2 * PROTO_LOOK;
	if (see && !s->in_packet[from]) {
		if (n - 4 < see && !last)
			return PROTO_MORE;
		if (n > 4)
			packet(c, s, from, p + 4, n - 4 < see ? n - 4 : see);
	}
	s->in_packet[from] = see;
	return 4 + (int64_t)le32(p);
}

static int64_t clickhouse_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			       size_t n, bool last)
{
	struct clickhouse *s = proto_state(c);
	bool over = false;
	int64_t k;

	if (from == PROTO_SERVER && !s->greeting && !proto_newest(c) &&
	    !(s->chunked[from] && n >= 4 && !le32(p)))
		proto_unowned(c);
	if (s->chunked[from] && !s->greeting)
		return chunk(c, s, from, p, n, last);
	if (s->strings[from]) {
		struct reader r = {.p = p, .n = n};
		uint64_t len = read_number(&r);

		r.bad |= len > STRING_MAX;
		if (r.more || r.bad)
			return read_so_far(&r);
		s->strings[from]--;
		return (int64_t)(r.at + len);
	}
	if (s->block[from]) {
		k = block_step(s->block[from], p, n, last, &over);
		if (over)
			block_end(s, from);
		if (k || !over)
			return k;
	}
	return from == PROTO_CLIENT ? client(c, s, p, n, last) : server(c, s, p, n);
}

static bool is_text(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < ' ' && p[i] != '\n' && p[i] != '\t' && p[i] != '\r')
			return false;
	return true;
}

static bool server_begins(const uint8_t *p, size_t n)
{
	switch (p[0]) {
	case S_DATA:
	case S_LOG:
	case S_EVENTS:
		return n >= 2 + FRAME_HEAD ? !p[1] && (block_is_plain(p + 2, n - 2) ||
						       block_is_frame(p + 2, n - 2)) :
					     n >= 10 && !p[1] && block_is_plain(p + 2, n - 2);
	case S_EXCEPTION:
		return n >= 10 && le32(p + 1) < 10000 && p[5] < 64 &&
		       bytes_begin(p + 6, n - 6, "DB::");
	case S_COLUMNS:
		return n >= 4 && !p[1];
	case S_PROGRESS:
		return n >= 3 && n < 200;
	case S_PONG:
	case S_END:
		return n == 1;
	default:
		return false;
	}
}

static bool client_begins(const struct clickhouse *s, const uint8_t *p, size_t n)
{
	struct query q;

	if (p[0] == C_PING)
		return n == 1;
	if (p[0] == C_QUERY &&
	    query_read(s, p, n, s->in_use ? s->in_use >= 54449 : true, &q) <= 0 &&
	    (s->in_use || query_read(s, p, n, false, &q) <= 0))
		return false;
	return p[0] == C_QUERY &&
	       ((!q.revision && s->in_use) ||
		(q.revision >= REVISION_MIN && q.revision <= REVISION_MAX)) &&
	       q.len && is_text(q.text, q.len);
}

static bool is_hello(const uint8_t *p, size_t n, bool *more)
{
	struct reader r = {.p = p, .n = n, .at = 1};
	const uint8_t *name;
	uint64_t revision;
	size_t len = read_string(&r, &name, 64);

	r.bad |= p[0] != C_HELLO || (!r.more && (!len || !is_text(name, len)));
	r.bad |= !r.more && read_number(&r) > 1000;
	r.bad |= !r.more && read_number(&r) > 1000;
	revision = read_number(&r);
	r.bad |= !r.more && (revision < REVISION_MIN || revision > REVISION_MAX);
	read_past_strings(&r, 3, 1 << 14);
	*more = r.more && !r.bad;
	return !r.more && !r.bad;
}

static enum proto_guess clickhouse_recognise(const struct proto_first *f)
{
	struct clickhouse s = {0};
	bool more = false;

	if (!f->n_client)
		return f->n_server ? PROTO_NO : PROTO_MAYBE;
	if (f->begun)
		return is_hello(f->client, f->n_client, &more) ? PROTO_YES :
		       more                                    ? PROTO_MAYBE :
								 PROTO_NO;
	if (f->client[0] != C_QUERY)
		return PROTO_NO;
	if (!f->n_server)
		return f->last && client_begins(&s, f->client, f->n_client) ? PROTO_YES :
		       f->n_client < 1024                                   ? PROTO_MAYBE :
									      PROTO_NO;
	return client_begins(&s, f->client, f->n_client) && server_begins(f->server, f->n_server) ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool clickhouse_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n)
{
	const struct clickhouse *s = proto_state(c);

	if (p != c->piece || s->chunked[from])
		return false;
	return from == PROTO_CLIENT ? client_begins(s, p, n) : c->turn && server_begins(p, n);
}

static void clickhouse_lost(struct proto_conn *c, enum proto_side from)
{
	struct clickhouse *s = proto_state(c);

	block_end(s, from);
	s->strings[from] = 0;
	if (from == PROTO_CLIENT) {
		s->addendum = s->parameters = false;
		return;
	}
	s->nested = s->exception = false;
	if (s->error) /* what it says of itself is missing, that it is one is not */
		answer_error(c, s);
}

static void clickhouse_release(struct proto_conn *c)
{
	struct clickhouse *s = proto_state(c);

	block_end(s, PROTO_CLIENT);
	block_end(s, PROTO_SERVER);
}

const struct protocol protocol_clickhouse = {
	.name = "clickhouse",
	.in_order = true,
	.state_size = sizeof(struct clickhouse),
	.recognise = clickhouse_recognise,
	.step = clickhouse_step,
	.starts = clickhouse_starts,
	.lost = clickhouse_lost,
	.release = clickhouse_release,
};
