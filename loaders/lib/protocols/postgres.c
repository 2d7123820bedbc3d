/* SPDX-License-Identifier: Apache-2.0 */
/*
 * postgres: the frontend/backend protocol 3 (PostgreSQL's manual, "Message Formats").
 *
 *   first      LEN:32 CODE:32 ...   CODE 3.x: startup; 80877103 TLS, 80877104 GSSAPI (one
 *              byte answers), 80877102 cancel
 *   then       TYPE:8 LEN:32 (without TYPE) ...
 *   client     Q text\0 | P name\0 text\0 | B portal\0 statement\0 ... | E portal\0 rows:32 | D C H
 *              S | d c f (copy) | F | p | X
 *   server     R K S N A (at any time) | 1 2 3 n t T D G H W d c | C tag\0 | I | s | E (field:8
 *              text\0)* \0 | Z state:8
 *
 * What is counted: each Q, each E, a connection's start, a function call, and a Sync whose batch
 * executes nothing (a prepare, a close). The server answers each Q and each Sync with one Z; of a
 * batch of executes the last is reported at Z, those before at the next one's completion. After an
 * error the rest of a batch is skipped ("skipped"). An error before the first Z, or of severity
 * FATAL or PANIC, ends the connection: no Z follows; where nothing is open it is an error of the
 * CONNECTION. So is a client that leaves when the server offers no TLS. P, B, D and C belong
 * to the next E or S. A notification (A) is one-way, replication (W) an opened stream. A statement
 * that was prepared before anything was seen is <prepared NAME>. An error's status is its SQLSTATE.
 */
#include <stdio.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/sql.h"
#include "loaders/lib/protocols/table.h"

#define LENGTH_MAX  (1u << 30)
#define V3          3u /* the upper half of a version's code */
#define CODE_CANCEL 80877102u
#define CODE_TLS    80877103u
#define CODE_GSS    80877104u

enum {
	TAG_OPEN,
	TAG_OK,
	TAG_ERROR
}; /* TAG_OK, TAG_ERROR: completed, reported at the next completion or Z */

struct postgres {
	bool started;                      /* the startup message was seen */
	bool wait_tls, wait_gss;           /* the server's one byte comes */
	bool no_tls;                       /* the server has none, and the client asked for it */
	bool failed;                       /* an error since the last Z */
	uint32_t batch;                    /* of the client: counts Q and Sync */
	uint32_t n_executes;               /* in it */
	uint32_t prepared, unnamed_portal; /* operations */
	uint8_t first_type;                /* of the batch: what it is if nothing is executed */
	struct idtable statements, portals;
	char status[8];
	bool connected; /* the first Z came, or the capture began later */
	bool fatal;     /* the last error ends the connection */
	bool flushed;   /* the server answers the P, B and D so far before the E comes */
};

static const char CLIENT_TYPES[] = "QPBEDCHSdcfFpX", SERVER_TYPES[] = "RKSNA123ntTDGHWdcCIsEZVv";

static bool type_of(enum proto_side from, uint8_t t)
{
	return t && strchr(from == PROTO_CLIENT ? CLIENT_TYPES : SERVER_TYPES, t);
}

/* Whole messages to the end of n, or to one that goes on beyond it: how many are whole; SIZE_MAX:
 * it is something else. */
static size_t chain(enum proto_side from, const uint8_t *p, size_t n, bool *ready)
{
	size_t count = 0, at = 0;

	while (at < n) {
		uint32_t len;

		if (!type_of(from, p[at]))
			return SIZE_MAX;
		if (n - at < 5)
			return count ? count : SIZE_MAX;
		len = be32(p + at + 1);
		if (len < 4 || len > LENGTH_MAX ||
		    (strchr("SHX", p[at]) && from == PROTO_CLIENT && len != 4))
			return SIZE_MAX;
		if (from == PROTO_SERVER && p[at] == 'Z' &&
		    (len != 5 || (n - at >= 6 && !strchr("ITE", p[at + 5]))))
			return SIZE_MAX;
		*ready |= from == PROTO_SERVER && p[at] == 'Z';
		if (len + 1ull > n - at)
			return count;
		if (from == PROTO_CLIENT && p[at] == 'Q' && p[at + len])
			return SIZE_MAX;
		at += len + 1;
		count++;
	}
	return count;
}

/* Nothing but whole NotificationResponses: who listens, in mid-stream. */
static bool notifies(const uint8_t *p, size_t n)
{
	for (size_t at = 0, len; at < n; at += 1 + len) {
		const uint8_t *end;

		if (n - at < 12 || p[at] != 'A')
			return false;
		len = be32(p + at + 1);
		if (len < 11 || len > n - at - 1 || p[at + len])
			return false;
		end = memchr(p + at + 9, 0, len - 8);
		if (end == p + at + 9 || end == p + at + len ||
		    memchr(end + 1, 0, (size_t)(p + at + len - end - 1)))
			return false;
	}
	return n > 0;
}

static enum proto_guess postgres_recognise(const struct proto_first *f)
{
	bool ready = false;
	size_t q, r;

	if (f->n_client >= 8 && !f->client[0]) {
		uint32_t len = be32(f->client), code = be32(f->client + 4);

		if (((code == CODE_TLS || code == CODE_GSS) && len == 8) ||
		    (code == CODE_CANCEL && len >= 16 && len <= 268))
			return PROTO_YES;
		return code >> 16 == V3 && len >= 9 && len <= 10000 &&
				       (f->n_client < 9 || f->client[8] >= 'a') ?
			       PROTO_YES :
			       PROTO_NO;
	}
	if (f->begun)
		return f->n_client && f->n_client < 8 && !f->client[0] && !f->n_server ?
			       PROTO_MAYBE :
			       PROTO_NO;
	if (!f->n_client && notifies(f->server, f->n_server))
		return PROTO_YES;
	q = f->n_client ? chain(PROTO_CLIENT, f->client, f->n_client, &ready) : 0;
	r = f->n_server ? chain(PROTO_SERVER, f->server, f->n_server, &ready) : 0;
	if (q == SIZE_MAX || r == SIZE_MAX || f->n_client + f->n_server > 8000)
		return PROTO_NO;
	if (f->last && !f->n_server && q && strchr("QP", f->client[0]))
		return PROTO_YES;
	return q && r && ready ? PROTO_YES : PROTO_MAYBE;
}

/* ---- client ---- */

static uint32_t statement(struct proto_conn *c, const uint8_t *text, size_t n, const char *before)
{
	const uint8_t *end = memchr(text, 0, n);
	size_t len = end ? (size_t)(end - text) : n;
	char sql[SQL_MAX];

	sql_operation(text, len, !end, SQL_STANDARD, proto_payload(c), sql);
	return proto_namef(c, "%s%s", before, sql[0] ? sql : "(empty)");
}

static uint32_t unknown_statement(struct proto_conn *c, const uint8_t *name, size_t n)
{
	return proto_namef(c, "<prepared %.*s>", (int)(n < 60 ? n : 60), (const char *)name);
}

static size_t text_size(const uint8_t *p, size_t n)
{
	const uint8_t *end = memchr(p, 0, n);

	return end ? (size_t)(end - p) : n;
}

static void parse(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n)
{
	size_t name = text_size(p, n);

	if (name >= n)
		return;
	s->prepared = statement(c, p + name + 1, n - name - 1, "");
	idtable_put(&s->statements, idtable_text(p, name), s->prepared);
}

static void bind(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n)
{
	size_t portal = text_size(p, n),
	       name = portal < n ? text_size(p + portal + 1, n - portal - 1) : 0;
	uint32_t op;

	if (portal >= n)
		return;
	op = idtable_get(&s->statements, idtable_text(p + portal + 1, name));
	if (!op)
		op = unknown_statement(c, p + portal + 1, name);
	if (portal)
		idtable_put(&s->portals, idtable_text(p, portal), op);
	else
		s->unnamed_portal = op;
	s->prepared = op;
}

static void settle(struct proto_conn *c, struct postgres *s, struct proto_pending *q)
{
	bool failed = q->tag == TAG_ERROR || (q->tag == TAG_OPEN && s->failed);

	q->over_ns = failed ? 0 : q->over_ns;
	proto_answer(c, q, failed ? PROTO_ERROR : PROTO_OK,
		     q->tag == TAG_ERROR ? s->status :
		     failed              ? "skipped" :
					   "");
}

/* The client says more in the batch: what was answered had all of its answer before, for which it
 * may have asked by a Flush. */
static struct proto_pending *answered(struct proto_conn *c, const struct postgres *s)
{
	struct proto_pending *q = proto_oldest(c);

	if (!q || q->id != s->batch || q->tag != TAG_OK)
		return NULL;
	if (!q->over_ns)
		q->over_ns = c->dir[PROTO_SERVER].last_ns;
	return q;
}

static void execute(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n)
{
	size_t portal = text_size(p, n);
	uint32_t op =
		portal ? idtable_get(&s->portals, idtable_text(p, portal)) : s->unnamed_portal;
	struct proto_pending *before = answered(c, s);

	if (before)
		settle(c, s, before);
	proto_ask(c, op ? op : unknown_statement(c, p, portal), s->batch);
	s->n_executes++;
}

static void sync_batch(struct proto_conn *c, struct postgres *s)
{
	static const struct {
		uint8_t type;
		const char *name;
	} names[] = {{'P', "PREPARE "}, {'D', "DESCRIBE "}, {'B', "BIND "}};
	uint32_t op = proto_name(c, s->first_type == 'C' ? "CLOSE" : "SYNC",
				 s->first_type == 'C' ? 5 : 4);

	for (size_t i = 0; i < 3 && s->prepared; i++)
		if (s->first_type == names[i].type)
			op = proto_namef(c, "%s%s", names[i].name, proto_name_text(c, s->prepared));
	if (!s->n_executes)
		proto_ask(c, op, s->batch);
	answered(c, s);
	s->batch++;
	s->n_executes = 0;
	s->first_type = 0;
}

static void query(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_ask(c, statement(c, p, n, ""), s->batch++);
	const uint8_t *trace;
	size_t m = sql_trace(p, n, &trace);

	if (m)
		proto_trace(q, trace, m);
}

static int64_t startup(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n)
{
	uint32_t len, code;

	if (n < 8)
		return PROTO_MORE;
	len = be32(p);
	code = be32(p + 4);
	if (len < 8 || len > 10000)
		return PROTO_LOST;
	if (code == CODE_CANCEL) {
		proto_one_way(c, proto_name(c, "CANCEL", 6));
	} else if (code == CODE_TLS || code == CODE_GSS) {
		s->wait_tls = code == CODE_TLS;
		s->wait_gss = !s->wait_tls;
	} else if (code >> 16 == V3) {
		s->started = true;
		proto_ask(c, proto_name(c, "CONNECT", 7), s->batch++);
	} else {
		return PROTO_LOST;
	}
	return len;
}

static int64_t client(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n,
		      bool last)
{
	size_t body, see;
	uint32_t len;

	if (!s->started)
		return startup(c, s, p, n);
	if (!type_of(PROTO_CLIENT, p[0]))
		return PROTO_LOST;
	if (n < 5)
		return PROTO_MORE;
	len = be32(p + 1);
	if (len < 4 || len > LENGTH_MAX)
		return PROTO_LOST;
	body = len - 4;
	see = body < PROTO_LOOK ? body : PROTO_LOOK;
	if (strchr("QPBEC", p[0]) && n - 5 < see && !last)
		return PROTO_MORE;
	see = see < n - 5 ? see : n - 5;
	if (!s->first_type && strchr("PBDC", p[0]))
		s->first_type = p[0];
	/* these belong to the next E or S */
	if (strchr("PBDC", p[0]) || (p[0] == 'H' && s->first_type && !s->n_executes))
		proto_goes_on(c);
	if (s->flushed)
		proto_begins_here(c);
	s->flushed = p[0] == 'H';
	switch (p[0]) {
	case 'Q':
		query(c, s, p + 5, see);
		break;
	case 'P':
		parse(c, s, p + 5, see);
		break;
	case 'B':
		bind(c, s, p + 5, see);
		break;
	case 'E':
		execute(c, s, p + 5, see);
		break;
	case 'S':
		sync_batch(c, s);
		break;
	case 'F':
		proto_ask(c, proto_name(c, "FUNCTION CALL", 13), s->batch++);
		break;
	case 'C':
		if (see > 1)
			idtable_put(p[5] == 'S' ? &s->statements : &s->portals,
				    idtable_text(p + 6, text_size(p + 6, see - 1)), 0);
		break;
	}
	return (int64_t)len + 1;
}

/* ---- server ---- */

static void sqlstate(struct postgres *s, const uint8_t *p, size_t n)
{
	s->status[0] = '\0';
	s->fatal = false;
	for (size_t at = 0; at < n && p[at];) {
		size_t len = text_size(p + at + 1, n - at - 1);

		if (p[at] == 'C' && len == 5) {
			memcpy(s->status, p + at + 1, 5);
			s->status[5] = '\0';
		}
		/* V is the severity in English, S in the server's language; V exists since 9.6 */
		if ((p[at] == 'V' || p[at] == 'S') &&
		    ((len == 5 && !memcmp(p + at + 1, "FATAL", 5)) ||
		     (len == 5 && !memcmp(p + at + 1, "PANIC", 5))))
			s->fatal = true;
		at += len + 2;
	}
}

/* One statement is done; of a Q with several only the whole counts. Of several executes each is
 * answered by itself, but for the last one: what follows it may still fail. */
static void complete(struct proto_conn *c, struct postgres *s, uint32_t tag)
{
	struct proto_pending *q = proto_oldest(c), *next = proto_second(c);

	if (!q || q->tag == TAG_ERROR)
		return;
	q->tag = tag;
	if (tag == TAG_OK && next && next->id == q->id)
		settle(c, s, q);
}

static void ready(struct proto_conn *c, struct postgres *s)
{
	struct proto_pending *q = proto_oldest(c);
	uint64_t batch = q ? q->id : 0;

	for (; q && q->id == batch; q = proto_oldest(c))
		settle(c, s, q);
	s->failed = false;
	s->connected = true;
}

/* PROCESS:32 CHANNEL\0 TEXT\0, at any time. */
static void notify(struct proto_conn *c, const uint8_t *p, size_t n)
{
	char channel[ROUTE_MAX];
	size_t len = n > 4 ? text_size(p + 4, n - 4) : 0;

	if (!len || len > 63 || proto_payload(c) == PROTO_NONE) {
		proto_one_way(c, proto_name(c, "NOTIFICATION", 12));
		return;
	}
	proto_route(c, NULL, 0, p + 4, len, '.', channel);
	proto_one_way(c, proto_namef(c, "NOTIFICATION %s", channel));
}

/* A postmaster that cannot begin a process for the connection says it as protocol 2 did: E text\0.
 */
static int64_t old_error(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n,
			 bool last)
{
	struct proto_pending *q = proto_oldest(c);
	size_t size = text_size(p, n);

	if (size == n && !last && n < PROTO_LOOK)
		return PROTO_MORE;
	s->status[0] = '\0';
	if (q)
		proto_answer(c, q, PROTO_ERROR, "");
	else
		proto_refused(c, proto_name(c, "CONNECT", 7), "");
	return (int64_t)(size < n ? size + 1 : n);
}

static int64_t server(struct proto_conn *c, struct postgres *s, const uint8_t *p, size_t n,
		      bool last)
{
	struct proto_pending *q;
	uint32_t len;
	size_t see;

	if ((s->wait_tls || s->wait_gss) && p[0] == 'E' && !s->connected)
		s->wait_tls = s->wait_gss = false; /* not even the request for TLS is answered */
	if (s->wait_tls || s->wait_gss) {
		bool yes = p[0] == 'S' || p[0] == 'G', tls = s->wait_tls;

		s->wait_tls = s->wait_gss = false;
		s->no_tls |= tls && p[0] == 'N';
		if (yes)
			proto_switch(c, tls ? &protocol_tls : NULL);
		return 1;
	}
	if (!type_of(PROTO_SERVER, p[0]))
		return PROTO_LOST;
	if (n < 5)
		return PROTO_MORE;
	len = be32(p + 1);
	if (p[0] == 'E' && !s->connected && len > LENGTH_MAX)
		return old_error(c, s, p, n, last);
	if (len < 4 || len > LENGTH_MAX)
		return PROTO_LOST;
	see = len - 4 < 1024 ? len - 4 : 1024;
	if (strchr("EA", p[0]) && n - 5 < see && !last)
		return PROTO_MORE;
	q = proto_oldest(c);
	if (q && !strchr("SNA", p[0]))
		proto_first_byte(c, q);
	if (!proto_newest(c) && strchr("12nTtDIs", p[0]))
		proto_unowned(c);
	switch (p[0]) {
	case 'E':
		sqlstate(s, p + 5, see < n - 5 ? see : n - 5);
		complete(c, s, TAG_ERROR);
		s->failed = true;
		q = proto_oldest(c);
		if (!q && !s->connected)
			proto_refused(c, proto_name(c, "CONNECT", 7), s->status);
		if (!c->count && s->connected && s->fatal)
			proto_refused(c, proto_name(c, "CONNECTION", 10), s->status);
		if (q && (s->fatal || !s->connected))
			settle(c, s, q);
		break;
	case 'C':
	case 'I':
	case 's':
	case 'V':
		complete(c, s, TAG_OK);
		break;
	case 'A':
		notify(c, p + 5, see < n - 5 ? see : n - 5);
		break;
	case 'W': /* replication: both sides stream */
		if (q)
			proto_opened(c, q, "");
		break;
	case 'Z':
		if (len != 5)
			return PROTO_LOST;
		ready(c, s);
		break;
	}
	return (int64_t)len + 1;
}

static int64_t postgres_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			     bool last)
{
	struct postgres *s = proto_state(c);

	return from == PROTO_CLIENT ? client(c, s, p, n, last) : server(c, s, p, n, last);
}

static bool postgres_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	bool is_ready = false;
	size_t count;

	if (p != c->piece)
		return false;
	count = chain(from, p, n, &is_ready);
	return count != SIZE_MAX && (count || n >= 16);
}

static void postgres_lost(struct proto_conn *c, enum proto_side from)
{
	struct postgres *s = proto_state(c);

	if (from == PROTO_SERVER)
		s->failed = false;
	s->started = s->connected = true;
	s->n_executes = 0;
	s->first_type = 0;
	s->flushed = false;
	if (from == PROTO_CLIENT) /* what was bound meanwhile is not known */
		s->unnamed_portal = 0;
	if (from == PROTO_CLIENT) {
		idtable_release(&s->portals);
		idtable_put(&s->statements, idtable_text("", 0), 0);
	}
}

static void postgres_begin(struct proto_conn *c, bool begun)
{
	struct postgres *s = proto_state(c);

	s->started = s->connected = !begun;
}

/* An error without a Z behind it was the final answer. */
static void postgres_ended(struct proto_conn *c, enum proto_side from)
{
	struct postgres *s = proto_state(c);
	struct proto_pending *q = from == PROTO_SERVER ? proto_oldest(c) : NULL;

	if (q && q->tag == TAG_ERROR)
		settle(c, s, q);
	if (from == PROTO_CLIENT && s->no_tls && !s->started)
		proto_refused(c, proto_name(c, "CONNECT", 7), "no TLS");
}

static void postgres_release(struct proto_conn *c)
{
	struct postgres *s = proto_state(c);

	idtable_release(&s->statements);
	idtable_release(&s->portals);
}

const struct protocol protocol_postgres = {
	.name = "postgres",
	.in_order = true,
	.state_size = sizeof(struct postgres),
	.recognise = postgres_recognise,
	.begin = postgres_begin,
	.step = postgres_step,
	.starts = postgres_starts,
	.lost = postgres_lost,
	.ended = postgres_ended,
	.release = postgres_release,
};
