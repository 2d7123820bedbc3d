/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nats: the client protocol of NATS (docs.nats.io, "Client Protocol"). Lines that end with CRLF,
 * verbs in any case:
 *
 *   server     INFO {json} | MSG SUBJECT SID [REPLY] BYTES CRLF DATA CRLF | HMSG SUBJECT SID
 *              [REPLY] HEADER TOTAL CRLF ... | +OK | -ERR text
 *   client     CONNECT {json} | PUB SUBJECT [REPLY] BYTES CRLF DATA CRLF | HPUB SUBJECT [REPLY]
 *              HEADER TOTAL CRLF ... | SUB | UNSUB
 *   either     PING | PONG
 *
 * After INFO the client may begin TLS; inside, it goes on with CONNECT.
 *
 * A PUB is one way. With a reply subject it is a question: its answer is the first MSG to that
 * subject on the same connection; the answers of a JetStream publish and of request-reply look the
 * same. JetStream's answers say in JSON what failed: a code of 500 or more is an error. So is a
 * status of 500 or more in the headers ("NATS/1.0 503"), and what a service says of an error there
 * (Nats-Service-Error-Code). Status 100 is no answer: a heartbeat. An -ERR
 * ends the login, a PUB, a SUB or the open questions as an error. Any other MSG is a one-way
 * delivery. Subjects have ids in them: each part as a part of a key (route.h, '.').
 */
#include <stdio.h>
#include <strings.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"

#define LINE_MAX      4096
#define DATA_MAX      (1u << 27)
#define VERSION       "NATS/1.0 "
#define SERVICE       "Nats-Service-Error-Code:"
#define ANSWER_LOOK   512
#define TLS_HANDSHAKE 22 /* a record of TLS begins */

struct nats {
	bool in_use; /* the server has accepted the login */
};

static bool verb(const struct byte_words *w, const char *name)
{
	return w->n[0] == strlen(name) && !strncasecmp((const char *)w->p[0], name, w->n[0]);
}

static bool number(const uint8_t *p, size_t n, uint64_t *v)
{
	*v = 0;
	for (size_t i = 0; i < n; i++) {
		if (!byte_is_digit(p[i]) || i > 9)
			return false;
		*v = *v * 10 + (p[i] - '0');
	}
	return n > 0;
}

static uint32_t operation(struct proto_conn *c, const char *what, const uint8_t *subject, size_t n)
{
	char out[ROUTE_MAX];

	if (proto_payload(c) == PROTO_NONE)
		return proto_name(c, what, strlen(what));
	if (n > 7 && !memcmp(subject, "_INBOX.", 7))
		return proto_namef(c, "%s _INBOX.{id}", what);
	n = n < ROUTE_MAX / 2 ? n : ROUTE_MAX / 2;
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %.*s", what, (int)n, (const char *)subject);
	proto_route(c, NULL, 0, subject, n, '.', out);
	return proto_namef(c, "%s %s", what, out);
}

static int64_t publish(struct proto_conn *c, const struct byte_words *w, size_t whole, bool headers)
{
	size_t sizes = headers ? 2 : 1;
	uint64_t bytes;

	if (w->count < 2 + sizes || w->count > 3 + sizes ||
	    !number(w->p[w->count - 1], w->n[w->count - 1], &bytes) || bytes > DATA_MAX)
		return PROTO_LOST;
	if (w->count == 3 + sizes) {
		proto_ask(c, operation(c, "REQUEST", w->p[1], w->n[1]),
			  idtable_text(w->p[2], w->n[2]));
	} else {
		proto_one_way(c, operation(c, "PUB", w->p[1], w->n[1]));
	}
	return (int64_t)(whole + bytes + 2);
}

/* -ERR 'TEXT': during the login it refuses the login. The text behind " for " names a subject and
 * is not stored. All errors but a missing permission and an invalid subject end the connection, so
 * open questions get no other answer. */
static void refuse(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct nats *s = proto_state(c);
	const uint8_t *end;
	struct proto_pending *q;
	char status[PROTO_STATUS_MAX];
	const char *op;

	while (n && (*p == ' ' || *p == '\''))
		p++, n--;
	end = memmem(p, n, " for ", 5);
	op = end && memmem(end, (size_t)(p + n - end), "Publish", 7)       ? "PUB" :
	     end && memmem(end, (size_t)(p + n - end), "Subscription", 12) ? "SUB" :
	     s->in_use                                                     ? "CONNECTION" :
									     "CONNECT";
	n = end ? (size_t)(end - p) : n;
	while (n && (p[n - 1] == ' ' || p[n - 1] == '\''))
		n--;
	n = n < sizeof(status) - 1 ? n : sizeof(status) - 1;
	for (size_t i = 0; i < n; i++)
		status[i] = (char)(p[i] >= ' ' && p[i] < 0x7f ? p[i] : '?');
	status[n] = '\0';
	q = end || bytes_begin(p, n, "Invalid Subject") ? NULL : proto_between(c, 0, UINT64_MAX);
	if (!q)
		proto_refused(c, proto_name(c, op, strlen(op)), status);
	for (; q; q = proto_between(c, 0, UINT64_MAX))
		proto_answer(c, q, PROTO_ERROR, status);
}

/* JetStream's answer says in JSON what failed, with a code as HTTP has them. 0: nothing did, or it
 * is another program's JSON. */
static unsigned jetstream_code(const uint8_t *p, size_t n)
{
	static const char OWN[] = "{\"type\":\"io.nats.jetstream.api.",
			  ERROR[] = "\"error\":{\"code\":";
	const uint8_t *at = NULL;
	unsigned code = 0;

	if (bytes_begin(p, n, OWN))
		at = memmem(p, n, ERROR, sizeof(ERROR) - 1);
	else if (n > 1 && p[0] == '{' && bytes_begin(p + 1, n - 1, ERROR))
		at = p + 1;
	if (!at)
		return 0;
	for (at += sizeof(ERROR) - 1; at < p + n && byte_is_digit(*at) && code < 1000; at++)
		code = code * 10 + (unsigned)(*at - '0');
	return code < 1000 ? code : 0;
}

/* The answer without headers lies at `p`, n bytes of it are here. */
static void answer(struct proto_conn *c, struct proto_pending *q, const uint8_t *p, size_t n)
{
	unsigned code = jetstream_code(p, n);
	char text[8] = "";

	if (code)
		snprintf(text, sizeof(text), "%u", code);
	proto_answer(c, q, code >= 500 ? PROTO_ERROR : PROTO_OK, text);
}

static unsigned digits(const uint8_t *p, size_t n)
{
	unsigned v = 0;

	for (size_t i = 0; i < n && i < 4 && byte_is_digit(p[i]); i++)
		v = v * 10 + (p[i] - '0');
	return v;
}

/* An answer with headers, of which n bytes are here. */
static void answer_headers(struct proto_conn *c, struct proto_pending *q, const uint8_t *p,
			   size_t n)
{
	const size_t m = sizeof(SERVICE) - 1, v = sizeof(VERSION) - 1;
	const uint8_t *at = memmem(p, n, SERVICE, m);
	unsigned code = bytes_begin(p, n, VERSION) ? digits(p + v, n - v) : 0;
	bool failed = code >= 500;
	char text[16] = "";

	if (at) {
		at += m;
		while (at < p + n && *at == ' ')
			at++;
		code = digits(at, (size_t)(p + n - at));
		failed = true;
	}
	if (code == 100)
		return;
	if (code)
		snprintf(text, sizeof(text), "%u", code);
	proto_answer(c, q, failed ? PROTO_ERROR : PROTO_OK, text);
}

/* `p`: the line. */
static int64_t deliver(struct proto_conn *c, const struct byte_words *w, const uint8_t *p, size_t n,
		       size_t whole, bool headers, bool last)
{
	size_t see;
	size_t sizes = headers ? 2 : 1;
	struct proto_pending *q;
	uint64_t bytes, head;

	if (w->count < 3 + sizes || !number(w->p[w->count - 1], w->n[w->count - 1], &bytes) ||
	    bytes > DATA_MAX)
		return PROTO_LOST;
	q = proto_find(c, idtable_text(w->p[1], w->n[1]));
	see = bytes < ANSWER_LOOK ? (size_t)bytes : ANSWER_LOOK;
	if (q && !headers && see && !last && n - whole < see && (n == whole || p[whole] == '{'))
		return PROTO_MORE;
	if (headers) {
		if (!number(w->p[w->count - 2], w->n[w->count - 2], &head) || head > bytes)
			return PROTO_LOST;
		see = head < ANSWER_LOOK ? (size_t)head : ANSWER_LOOK;
		if (q && !last && n - whole < see)
			return PROTO_MORE;
	}
	see = n - whole < see ? n - whole : see;
	if (q && !headers)
		answer(c, q, p + whole, see);
	else if (q)
		answer_headers(c, q, p + whole, see);
	else
		proto_one_way(c, operation(c, "MSG", w->p[1], w->n[1]));
	return (int64_t)(whole + bytes + 2);
}

static int64_t nats_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			 bool last)
{
	size_t whole = 0, line = bytes_line(p, n, &whole);
	struct byte_words w;

	if (from == PROTO_CLIENT && p[0] == TLS_HANDSHAKE) {
		proto_upgrade(c);
		return 0; /* the same byte is TLS's first */
	}
	if (line == SIZE_MAX)
		return last || n > 2 * LINE_MAX ? PROTO_LOST : PROTO_MORE;
	bytes_words(p, line, &w);
	if (!w.count)
		return (int64_t)whole;
	if (from == PROTO_SERVER && !verb(&w, "INFO") && !verb(&w, "-ERR"))
		((struct nats *)proto_state(c))->in_use = true;
	if (verb(&w, "PING") || verb(&w, "PONG"))
		return (int64_t)whole;
	if (from == PROTO_CLIENT) {
		if (verb(&w, "PUB") || verb(&w, "HPUB"))
			return publish(c, &w, whole, w.n[0] == 4);
		return verb(&w, "CONNECT") || verb(&w, "SUB") || verb(&w, "UNSUB") ?
			       (int64_t)whole :
			       PROTO_LOST;
	}
	if (verb(&w, "MSG"))
		return deliver(c, &w, p, n, whole, false, last);
	if (verb(&w, "HMSG"))
		return deliver(c, &w, p, n, whole, true, last);
	if (verb(&w, "-ERR"))
		refuse(c, p + w.n[0], line - w.n[0]);
	return verb(&w, "INFO") || verb(&w, "+OK") || verb(&w, "-ERR") ? (int64_t)whole :
									 PROTO_LOST;
}

static enum proto_guess nats_recognise(const struct proto_first *f)
{
	bool small = false; /* a line that other protocols have, too: wait for more */
	size_t whole;

	if (f->n_server && bytes_agree(f->server, f->n_server, "INFO {"))
		return f->n_server < 6                                     ? PROTO_MAYBE :
		       memmem(f->server, f->n_server, "\"server_id\"", 11) ? PROTO_YES :
		       f->n_server < 512                                   ? PROTO_MAYBE :
									     PROTO_NO;
	if (f->begun && !f->n_server && bytes_begin(f->client, f->n_client, "CONNECT {"))
		return f->last ? PROTO_YES : PROTO_MAYBE;
	if (f->begun)
		return f->n_server || f->n_client ? PROTO_NO : PROTO_MAYBE;
	for (int i = 0; i < 2; i++) {
		const uint8_t *p = i ? f->server : f->client;
		size_t n = i ? f->n_server : f->n_client, line = bytes_line(p, n, &whole);
		struct byte_words w;
		uint64_t v;

		if (line == SIZE_MAX || p[line] != '\r')
			continue;
		bytes_words(p, line, &w);
		if ((i ? verb(&w, "MSG") || verb(&w, "HMSG") :
			 verb(&w, "PUB") || verb(&w, "HPUB")) &&
		    w.count >= 3 && number(w.p[w.count - 1], w.n[w.count - 1], &v))
			return PROTO_YES;
		small |= verb(&w, "PING") || verb(&w, "PONG") || verb(&w, "SUB") ||
			 verb(&w, "UNSUB");
	}
	return small && !f->last ? PROTO_MAYBE : PROTO_NO;
}

static bool nats_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	static const char *const client[] = {"PUB ", "HPUB ", "SUB ", "PING\r\n", "PONG\r\n"},
				 *const server[] = {"MSG ", "HMSG ", "PING\r\n", "PONG\r\n"};
	size_t whole;

	(void)c;
	for (size_t i = 0; i < (from == PROTO_CLIENT ? 5 : 4); i++)
		if (bytes_begin(p, n, from == PROTO_CLIENT ? client[i] : server[i]))
			return bytes_line(p, n, &whole) != SIZE_MAX;
	return false;
}

static void nats_begin(struct proto_conn *c, bool begun)
{
	((struct nats *)proto_state(c))->in_use = !begun;
}

const struct protocol protocol_nats = {
	.name = "nats",
	.state_size = sizeof(struct nats),
	.upgrades = true,
	.begin = nats_begin,
	.recognise = nats_recognise,
	.step = nats_step,
	.starts = nats_starts,
};
