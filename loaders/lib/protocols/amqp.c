/* SPDX-License-Identifier: Apache-2.0 */
/*
 * amqp: AMQP 0-9-1 (amqp0-9-1.xml of the AMQP working group; RabbitMQ's extensions). Numbers are
 * big endian.
 *
 *   client     begins with "AMQP" 0 0 9 1
 *   frame      TYPE:8 (1 method, 2 header, 3 body, 8 heartbeat) CHANNEL:16 SIZE:32 PAYLOAD ce
 *   method     CLASS:16 METHOD:16 ARGUMENTS; short string LEN:8 BYTES
 *   classes    10 connection, 20 channel, 40 exchange, 50 queue, 60 basic, 85 confirm, 90 tx
 *   basic      publish 40: RESERVED:16 EXCHANGE KEY
 *              deliver 60: CONSUMER TAG:64 REDELIVERED:8 EXCHANGE KEY | return 50
 *              ack 80, nack 120: TAG:64 MULTIPLE:8 | get 70, get-ok 71, get-empty 72 | consume 20
 *              declare (queue 10): RESERVED:16 QUEUE
 *
 * A login is one question, from start-ok (connection 11) to open-ok (41): a server may close the
 * connection instead, with a code or without a word.
 *
 * A synchronous method's answer is the method with the next number on the same channel. A publish
 * is one way; on a channel in confirm mode it is answered by the ack or nack with its number, which
 * counts from 1. A message that the server returned before it (no queue takes it) is an error with
 * the return's code. A close of the client's with another code than 0 and 200 is an error, too.
 * When the server closes a channel or the connection, each open question there ends
 * as an error; if none is open, the close itself is reported as an error. The content frames behind
 * a publish, deliver, return or get-ok belong to that message.
 */
#include <stdio.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define PREAMBLE      "AMQP\0\0\x09\x01"
#define FRAME_MAX     (16u << 20)
#define HEAD          7
#define LOOK          1024
#define END_BYTE      0xce
#define REPLY_SUCCESS 200
#define CONFIRM_ID    (1ull << 63)

enum {
	CONNECTION = 10,
	CHANNEL = 20,
	EXCHANGE = 40,
	QUEUE = 50,
	BASIC = 60,
	CONFIRM = 85,
	TX = 90
};
enum { METHOD = 1, HEADER, BODY, HEARTBEAT = 8 };

struct amqp {
	bool preamble; /* still to come */
	bool open;     /* connection.open was answered, or happened before the capture */
	struct content {
		bool comes, head_came, unowned;
		uint16_t channel;
		uint64_t left;
	} content[2];             /* frames still expected, per sender */
	struct idtable published; /* by channel in confirm mode: how many, and one */
	bool unowned;             /* the method at hand answers no known question */
};

struct method {
	unsigned channel, class, method;
	const uint8_t *p; /* arguments */
	size_t n;
};

static bool class_known(unsigned class)
{
	return class == CONNECTION || class == CHANNEL || class == EXCHANGE || class == QUEUE ||
	       class == BASIC || class == CONFIRM || class == TX;
}

/* Plausible as a frame; *whole: its end byte was seen. */
static bool is_frame(const uint8_t *p, size_t n, bool *whole)
{
	uint32_t size;

	if (n < HEAD || (p[0] != 1 && p[0] != 2 && p[0] != 3 && p[0] != 8))
		return false;
	size = be32(p + 3);
	if (size > FRAME_MAX || (p[0] == 8 && size) || (p[0] == 1 && size < 4) ||
	    (p[0] == 2 && size < 14))
		return false;
	if (p[0] == 1 && n >= HEAD + 4 && (!class_known(be16(p + 7)) || be16(p + 9) > 120))
		return false;
	if (n > HEAD + (size_t)size && p[HEAD + size] != END_BYTE)
		return false;
	*whole = n > HEAD + (size_t)size;
	return true;
}

static enum proto_guess amqp_recognise(const struct proto_first *f)
{
	bool q = false, r = false;

	if (f->n_client && !memcmp(f->client, PREAMBLE, f->n_client < 8 ? f->n_client : 8))
		return f->n_client >= 8 ? PROTO_YES : PROTO_MAYBE;
	if (f->begun)
		return PROTO_NO;
	if (f->n_client && !is_frame(f->client, f->n_client, &q))
		return PROTO_NO;
	if (f->n_server && !is_frame(f->server, f->n_server, &r))
		return PROTO_NO;
	if (q && f->client[0] == 1) /* who publishes, asks and acknowledges is the client */
		return be16(f->client + 7) == BASIC &&
				       (be16(f->client + 9) == 60 || be16(f->client + 9) == 50) ?
			       PROTO_NO :
			       PROTO_YES;
	if (r && f->server[0] == 1)
		return be16(f->server + 7) == BASIC && be16(f->server + 9) != 60 &&
				       be16(f->server + 9) != 50 ?
			       PROTO_MAYBE :
			       PROTO_YES;
	return f->n_client + f->n_server < 4096 ? PROTO_MAYBE : PROTO_NO;
}

static const uint8_t *short_string(struct method *m, size_t *n)
{
	const uint8_t *p = m->p;

	*n = 0;
	if (!m->n || m->n < 1u + p[0])
		return NULL;
	*n = p[0];
	m->p += 1 + *n;
	m->n -= 1 + *n;
	return p + 1;
}

static void skip(struct method *m, size_t n)
{
	n = n < m->n ? n : m->n;
	m->p += n;
	m->n -= n;
}

static void pattern(struct proto_conn *c, const uint8_t *p, size_t n, char out[ROUTE_MAX])
{
	uint8_t clean[120];

	n = n < sizeof(clean) ? n : sizeof(clean);
	for (size_t i = 0; i < n; i++)
		clean[i] = p[i] <= ' ' || p[i] == 0x7f ? '_' : p[i];
	if (n >= 8 && !memcmp(clean, "amq.gen-", 8))
		strcpy(out, "amq.gen-{id}");
	else if (proto_payload(c) == PROTO_FULL)
		snprintf(out, ROUTE_MAX, "%.*s", (int)n, (const char *)clean);
	else
		proto_route(c, NULL, 0, clean, n, '.', out);
}

static uint32_t exchange_and_key(struct proto_conn *c, const char *what, struct method *m)
{
	char exchange[ROUTE_MAX], key[ROUTE_MAX];
	size_t n_exchange, n_key;
	const uint8_t *e = short_string(m, &n_exchange), *k = short_string(m, &n_key);

	if (!e || !k || proto_payload(c) == PROTO_NONE)
		return proto_name(c, what, strlen(what));
	pattern(c, e, n_exchange, exchange);
	pattern(c, k, n_key, key);
	return proto_namef(c, "%s %s%s%s", what, n_exchange ? exchange : "(default)",
			   n_key ? " " : "", key);
}

static const char *method_name(unsigned class, unsigned method)
{
	static const struct {
		uint16_t class, method;
		const char *name;
	} names[] = {{10, 31, "CONNECTION TUNE-OK"},
		     {10, 40, "CONNECTION OPEN"},
		     {10, 50, "CONNECTION CLOSE"},
		     {20, 10, "CHANNEL OPEN"},
		     {20, 20, "CHANNEL FLOW"},
		     {20, 40, "CHANNEL CLOSE"},
		     {40, 10, "EXCHANGE DECLARE"},
		     {40, 20, "EXCHANGE DELETE"},
		     {40, 30, "EXCHANGE BIND"},
		     {50, 10, "QUEUE DECLARE"},
		     {50, 20, "QUEUE BIND"},
		     {50, 30, "QUEUE PURGE"},
		     {50, 40, "QUEUE DELETE"},
		     {50, 50, "QUEUE UNBIND"},
		     {60, 10, "QOS"},
		     {60, 20, "CONSUME"},
		     {60, 30, "CANCEL"},
		     {60, 70, "GET"},
		     {60, 110, "RECOVER"},
		     {85, 10, "CONFIRM SELECT"},
		     {90, 10, "TX SELECT"},
		     {90, 20, "TX COMMIT"},
		     {90, 30, "TX ROLLBACK"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].class == class && names[i].method == method)
			return names[i].name;
	return NULL;
}

static uint64_t id_of(const struct method *m, unsigned method)
{
	return (uint64_t)m->channel << 32 | m->class << 16 | method;
}

static void publish(struct proto_conn *c, struct amqp *s, struct method *m)
{
	uint32_t count = idtable_get(&s->published, m->channel), op;

	skip(m, 2);
	op = exchange_and_key(c, "PUBLISH", m);
	if (!count) {
		proto_one_way(c, op);
		return;
	}
	idtable_put(&s->published, m->channel, count + 1);
	proto_ask(c, op, CONFIRM_ID | (uint64_t)m->channel << 40 | count);
}

static bool closes(const struct method *m)
{
	return (m->class == CHANNEL && m->method == 40) ||
	       (m->class == CONNECTION && m->method == 50);
}

static void client_method(struct proto_conn *c, struct amqp *s, struct method *m)
{
	const char *name = method_name(m->class, m->method);
	char queue[ROUTE_MAX] = "";
	const uint8_t *q;
	uint32_t op, code = 0;
	size_t n;

	if (m->class == BASIC && m->method == 40) {
		publish(c, s, m);
		return;
	}
	if (m->class == CONNECTION && m->method == 11) {
		proto_ask(c, proto_name(c, "CONNECTION OPEN", 15), id_of(m, 40));
		return;
	}
	if (!name || (m->class == CONNECTION && m->method != 40 && m->method != 50) ||
	    (m->class == CONNECTION && m->method == 40 && proto_find(c, id_of(m, 40))))
		return;
	op = proto_name(c, name, strlen(name));
	if ((m->class == QUEUE || (m->class == BASIC && m->method != 10)) &&
	    proto_payload(c) != PROTO_NONE) {
		skip(m, 2);
		q = short_string(m, &n);
		if (q && n) {
			pattern(c, q, n, queue);
			op = proto_namef(c, "%s %s", name, queue);
		}
	}
	if (m->class == CONFIRM && m->method == 10)
		idtable_put(&s->published, m->channel, 1);
	if (closes(m) && m->n >= 2)
		code = be16(m->p);
	proto_ask(c, op, id_of(m, m->method))->tag = code > REPLY_SUCCESS ? code : 0;
}

static void confirm(struct proto_conn *c, struct proto_pending *q, bool yes)
{
	char status[16];

	if (!yes || !q->tag) {
		proto_answer(c, q, yes ? PROTO_OK : PROTO_ERROR, yes ? "" : "nack");
		return;
	}
	snprintf(status, sizeof(status), "%u", q->tag);
	proto_answer(c, q, PROTO_ERROR, status);
}

/* A message comes back with this code, before its ack: the oldest one that is open on its channel
 * and went where this one did. */
static void returned(struct proto_conn *c, const struct method *m, uint32_t operation,
		     unsigned code)
{
	const uint64_t base = CONFIRM_ID | (uint64_t)m->channel << 40;

	for (uint32_t i = 0; i < c->count; i++) {
		struct proto_pending *q = proto_slot(c, i);

		if (!q->live || q->tag || q->operation != operation || q->id < base ||
		    q->id > (base | 0xffffffffff))
			continue;
		q->tag = code;
		return;
	}
}

static void confirmed(struct proto_conn *c, struct method *m, bool yes)
{
	uint64_t base = CONFIRM_ID | (uint64_t)m->channel << 40, tag = m->n >= 8 ? be64(m->p) : 0;
	struct proto_pending *q;

	if (m->n < 9)
		return;
	if (!(m->p[8] & 1)) {
		q = proto_find(c, base | (tag & 0xffffffffff));
		if (q)
			confirm(c, q, yes);
		return;
	}
	/* all up to it; 0: all */
	tag = tag ? tag & 0xffffffffff : 0xffffffffff;
	while ((q = proto_between(c, base, base | tag)))
		confirm(c, q, yes);
}

/* A close that ends no open question refuses the login, or rejects a message that was sent one way.
 */
static void closed(struct proto_conn *c, struct amqp *s, const struct method *m)
{
	uint64_t base = (uint64_t)m->channel << 32;
	const char *what = m->class == CHANNEL ? "CHANNEL CLOSE" :
			   s->open             ? "CONNECTION CLOSE" :
						 "CONNECTION OPEN";
	struct proto_pending *q;
	bool any = false;
	char status[8];

	snprintf(status, sizeof(status), "%u", m->n >= 2 ? be16(m->p) : 0);
	while ((q = m->class == CONNECTION ? proto_between(c, 0, UINT64_MAX) :
					     proto_between(c, base, base | 0xffffffff))) {
		proto_answer(c, q, PROTO_ERROR, status);
		any = true;
	}
	if (m->class == CHANNEL) /* the next channel of this number counts from 1, if at all */
		idtable_put(&s->published, m->channel, 0);
	base = CONFIRM_ID | (uint64_t)m->channel << 40;
	while (m->class == CHANNEL && (q = proto_between(c, base, base | 0xffffffffff))) {
		proto_answer(c, q, PROTO_ERROR, status);
		any = true;
	}
	if (!any && m->n >= 2 && be16(m->p) > REPLY_SUCCESS)
		proto_refused(c, proto_name(c, what, strlen(what)), status);
}

/* As the client asked. What it published and is not confirmed may have been. */
static void channel_over(struct proto_conn *c, struct amqp *s, unsigned channel)
{
	const uint64_t base = CONFIRM_ID | (uint64_t)channel << 40;

	idtable_put(&s->published, channel, 0);
	for (uint32_t i = 0; i < c->count; i++)
		if (proto_slot(c, i)->live && proto_slot(c, i)->id >= base &&
		    proto_slot(c, i)->id <= (base | 0xffffffffff))
			proto_slot(c, i)->doubt = true;
}

static void server_method(struct proto_conn *c, struct amqp *s, struct method *m)
{
	struct proto_pending *q;
	char status[16];
	size_t n;

	if (m->class == BASIC && m->method == 60) {
		short_string(m, &n);
		skip(m, 9);
		proto_one_way(c, exchange_and_key(c, "DELIVER", m));
		return;
	}
	if (m->class == BASIC && m->method == 50) {
		const unsigned code = m->n >= 2 ? be16(m->p) : 0;
		struct method again;

		skip(m, 2);
		short_string(m, &n);
		again = *m;
		proto_one_way(c, exchange_and_key(c, "RETURN", m));
		returned(c, m, exchange_and_key(c, "PUBLISH", &again), code);
		return;
	}
	if (m->class == BASIC && (m->method == 80 || m->method == 120)) {
		confirmed(c, m, m->method == 80);
		return;
	}
	if (closes(m)) {
		closed(c, s, m);
		return;
	}
	s->open |= m->class == CONNECTION && m->method == 41;
	if (m->class == CHANNEL && m->method == 41)
		channel_over(c, s, m->channel);
	q = proto_find(c, id_of(m, m->class == BASIC && m->method == 72 ? 70 : m->method - 1));
	s->unowned = q && q->doubt;
	if (q && q->tag) { /* a close that says what failed */
		snprintf(status, sizeof(status), "%u", q->tag);
		proto_answer(c, q, PROTO_ERROR, status);
	} else if (q)
		proto_answer(c, q, PROTO_OK, m->class == BASIC && m->method == 72 ? "EMPTY" : "");
	else if (m->class != CONNECTION && (m->method & 1 || m->method == 72)) /* -ok */
		s->unowned = true;
}

static bool has_content(enum proto_side from, const struct method *m)
{
	return m->class == BASIC &&
	       (from == PROTO_CLIENT ? m->method == 40 :
				       m->method == 60 || m->method == 50 || m->method == 71);
}

/* The next frame continues the content, or starts another message. true: the content is of a
 * request that was not seen. */
static bool content(struct proto_conn *c, struct content *t, const uint8_t *p, size_t n)
{
	uint32_t size = be32(p + 3);

	if (!t->comes || p[0] == HEARTBEAT)
		return false;
	if (p[0] == METHOD || be16(p + 1) != t->channel) {
		t->comes = false;
		proto_begins_anew(c);
		return false;
	} else if (p[0] == HEADER && !t->head_came) {
		t->head_came = true;
		t->left = n >= HEAD + 12 ? be64(p + HEAD + 4) : 0;
		t->comes = t->left;
	} else if (p[0] == BODY) {
		t->left -= t->left < size ? t->left : size;
		t->comes = t->left;
	}
	return t->unowned;
}

static int64_t amqp_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			 bool last)
{
	struct amqp *s = proto_state(c);
	struct method m;
	bool whole, goes_unowned;
	uint32_t size;
	size_t see;

	if (from == PROTO_CLIENT && s->preamble) {
		if (n < 8)
			return PROTO_MORE;
		s->preamble = false;
		return memcmp(p, PREAMBLE, 8) ? PROTO_LOST : 8;
	}
	if (n < HEAD)
		return PROTO_MORE;
	if (from == PROTO_SERVER && n >= 8 && !memcmp(p, "AMQP", 4)) /* it wants another version */
		return 8;
	if (!is_frame(p, n, &whole))
		return PROTO_LOST;
	size = be32(p + 3);
	if (p[0] == HEADER && n < HEAD + 12 && !last)
		return PROTO_MORE;
	see = size < LOOK ? size : LOOK;
	if (p[0] == METHOD && n < HEAD + see && !last)
		return PROTO_MORE;
	s->unowned = false;
	goes_unowned = content(c, &s->content[from], p, n);
	if (p[0] == 1 && n >= HEAD + 4) {
		see = HEAD + see < n ? HEAD + see : n;
		m = (struct method){.channel = be16(p + 1),
				    .class = be16(p + 7),
				    .method = be16(p + 9),
				    .p = p + 11,
				    .n = see - 11};
		if (from == PROTO_CLIENT)
			client_method(c, s, &m);
		else
			server_method(c, s, &m);
		if (has_content(from, &m))
			s->content[from] = (struct content){
				.comes = true, .channel = be16(p + 1), .unowned = s->unowned};
	}
	if (s->unowned || goes_unowned)
		proto_unowned(c);
	if (s->content[from].comes)
		proto_goes_on(c);
	return HEAD + (int64_t)size + 1;
}

static bool amqp_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	bool whole = false;

	(void)c;
	(void)from;
	return is_frame(p, n, &whole) && (whole || p == c->piece) && (p[0] != 1 || n >= HEAD + 4);
}

static void amqp_lost(struct proto_conn *c, enum proto_side from)
{
	struct amqp *s = proto_state(c);

	s->preamble = false;
	s->open = true;
	s->content[from].comes = false;
	if (from == PROTO_CLIENT) /* how many were published is not known any more */
		idtable_release(&s->published);
}

static void amqp_begin(struct proto_conn *c, bool begun)
{
	struct amqp *s = proto_state(c);

	s->preamble = begun;
	s->open = !begun;
}

static void amqp_release(struct proto_conn *c)
{
	idtable_release(&((struct amqp *)proto_state(c))->published);
}

const struct protocol protocol_amqp = {
	.name = "amqp",
	.ids_again = true,
	.state_size = sizeof(struct amqp),
	.recognise = amqp_recognise,
	.begin = amqp_begin,
	.step = amqp_step,
	.starts = amqp_starts,
	.lost = amqp_lost,
	.release = amqp_release,
};
