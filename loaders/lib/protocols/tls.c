/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tls: RFC 8446, RFC 5246. What can be said of it without keys: whom the client wants, what both
 * agreed on, whether it failed.
 *
 *   record     TYPE:8 (20 change cipher, 21 alert, 22 handshake, 23 data) 3 MINOR:8 LEN:16
 *   handshake  TYPE:8 (1 client hello, 2 server hello) LEN:24 ...
 *   hello      VERSION:16 RANDOM:32 SESSION:8+ | client: CIPHERS:16+ COMPRESSION:8+ | server:
 *              CIPHER:16 COMPRESSION:8 | EXTENSIONS:16+
 *   extension  0 server name, 16 ALPN, 43 versions (server hello: the one chosen)
 *
 * Operation: TLS SNI (ALPN); the status is the version, or the alert that ended it. One handshake
 * is one request, answered when the server begins to encrypt, also where it first asks for another
 * hello; the rest of the connection is passed
 * over. What is said inside is blind: records of data, but for those that in 1.3 end the handshake
 * (the server's before the client's first one, and that one). The server's after it count from the
 * client's next one on: until then they may be tickets.
 */
#include <stdio.h>
#include <string.h>

#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"

#define RECORD_MAX (16384 + 2048)
#define HELLO_LOOK 4096

struct tls {
	bool asked, answered, settled;
	uint8_t client_records; /* of data, up to 2 */
	uint64_t early;  /* bytes of the server's between these: tickets, unless it speaks first */
	char version[8]; /* that the server chose: "1.3" */
};

struct cursor {
	const uint8_t *p;
	size_t n;
};

static bool skip(struct cursor *c, size_t n)
{
	if (c->n < n)
		return false;
	c->p += n;
	c->n -= n;
	return true;
}

static struct cursor vec(struct cursor *c, int size_bytes)
{
	struct cursor in = {0};
	size_t len = 0;

	if (c->n < (size_t)size_bytes)
		return in;
	for (int i = 0; i < size_bytes; i++)
		len = len << 8 | c->p[i];
	skip(c, (size_t)size_bytes);
	in = (struct cursor){c->p, len < c->n ? len : c->n};
	skip(c, in.n);
	return in;
}

static bool is_record(const uint8_t *p, size_t n)
{
	return n >= 5 && p[0] >= 20 && p[0] <= 24 && p[1] == 3 && p[2] <= 4 && be16(p + 3) &&
	       be16(p + 3) <= RECORD_MAX;
}

static bool is_hello(const uint8_t *p, size_t n, uint8_t type)
{
	return n >= 11 && is_record(p, n) && p[0] == 22 && p[5] == type && !p[6] && p[9] == 3 &&
	       p[10] <= 4 && be24(p + 6) + 4 <= RECORD_MAX;
}

/* The extensions of a hello whose body begins at p. */
static struct cursor extensions(const uint8_t *p, size_t n, bool client)
{
	struct cursor c = {p, n};

	if (!skip(&c, 2 + 32))
		return (struct cursor){0};
	vec(&c, 1);
	if (client) {
		vec(&c, 2);
		vec(&c, 1);
	} else if (!skip(&c, 3)) {
		return (struct cursor){0};
	}
	return vec(&c, 2);
}

static size_t clean(const struct cursor *v, char *out, size_t cap)
{
	size_t n = 0;

	for (; n < v->n && n < cap - 1; n++)
		out[n] = (char)(v->p[n] > ' ' && v->p[n] < 0x7f ? v->p[n] : '?');
	out[n] = '\0';
	return n;
}

static void client_hello(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct cursor ext = extensions(p, n, true), name, list;
	char sni[100] = "", alpn[24] = "";

	while (ext.n >= 4) {
		unsigned type = be16(ext.p);
		struct cursor e;

		skip(&ext, 2);
		e = vec(&ext, 2);
		list = e;
		if (type == 0) {
			list = vec(&list, 2);
			if (skip(&list, 1)) {
				name = vec(&list, 2);
				clean(&name, sni, sizeof(sni));
			}
		} else if (type == 16) {
			list = vec(&list, 2);
			name = vec(&list, 1);
			clean(&name, alpn, sizeof(alpn));
		}
	}
	proto_ask(c,
		  proto_namef(c, "TLS %s%s%s%s", *sni ? sni : "(no name)", *alpn ? " (" : "", alpn,
			      *alpn ? ")" : ""),
		  0);
}

static void settle(struct proto_conn *c, enum proto_result result, const char *status)
{
	struct tls *s = proto_state(c);
	struct proto_pending *q = proto_oldest(c);

	s->settled = true;
	if (q)
		proto_answer(c, q, result, status);
}

/* The server asks for another hello (RFC 8446, 4.1.3: a random that says so): no answer yet. */
static bool is_retry(const uint8_t *p, size_t n)
{
	static const uint8_t RETRY[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
					0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
					0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
					0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

	return n >= 2 + sizeof(RETRY) && !memcmp(p + 2, RETRY, sizeof(RETRY));
}

static void server_hello(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct cursor ext = extensions(p, n, false);
	struct tls *s = proto_state(c);
	uint8_t minor = p[1];

	while (ext.n >= 4) {
		unsigned type = be16(ext.p);
		struct cursor e;

		skip(&ext, 2);
		e = vec(&ext, 2);
		if (type == 43 && e.n == 2)
			minor = e.p[1];
	}
	s->answered = true;
	snprintf(s->version, sizeof(s->version), "1.%u", minor ? minor - 1u : 0u);
	if (proto_oldest(c))
		proto_first_byte(c, proto_oldest(c));
}

static void data_passed(struct proto_conn *c, enum proto_side from, size_t n)
{
	struct tls *s = proto_state(c);
	bool hides = s->asked && !strcmp(s->version, "1.3"); /* its own messages, too */

	if (hides && from == PROTO_SERVER && s->client_records <= 1) {
		s->early += s->client_records ? n : 0;
		return;
	}
	if (from == PROTO_CLIENT && s->client_records < 2 && ++s->client_records == 1 && hides)
		return;
	c->dir[PROTO_SERVER].blind_bytes += s->early;
	c->dir[from].blind_bytes += n;
	s->early = 0;
}

static int64_t tls_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			bool last)
{
	struct tls *s = proto_state(c);
	char status[PROTO_STATUS_MAX];
	size_t see;

	if (n < 5)
		return PROTO_MORE;
	if (!is_record(p, n))
		return PROTO_LOST;
	see = be16(p + 3) < HELLO_LOOK ? be16(p + 3) : HELLO_LOOK;
	if (s->answered && !s->settled && (p[0] == 23 || (p[0] == 20 && from == PROTO_SERVER)))
		settle(c, PROTO_OK, s->version);
	if (p[0] == 23)
		data_passed(c, from, 5u + be16(p + 3));
	if (p[0] == 23 || s->settled)
		return 5 + be16(p + 3);
	if (n - 5 < see && !last)
		return PROTO_MORE;
	see = see < n - 5 ? see : n - 5;
	if (p[0] == 21 && see == 2 && p[5] == 2) {
		snprintf(status, sizeof(status), "alert %u", p[6]);
		settle(c, PROTO_ERROR, status);
	} else if (p[0] == 22 && see > 8 && p[5] == 1 && from == PROTO_CLIENT && !s->asked) {
		s->asked = true;
		client_hello(c, p + 9, see - 4);
	} else if (p[0] == 22 && see > 8 && p[5] == 2 && from == PROTO_SERVER &&
		   !is_retry(p + 9, see - 4)) {
		server_hello(c, p + 9, see - 4);
	}
	return 5 + be16(p + 3);
}

static enum proto_guess tls_recognise(const struct proto_first *f)
{
	if (f->n_client < 11 && f->n_client && f->client[0] == 22)
		return f->n_client < 3 || (f->client[1] == 3 && f->client[2] <= 4) ? PROTO_MAYBE :
										     PROTO_NO;
	if (is_hello(f->client, f->n_client, 1))
		return PROTO_YES;
	if (f->begun || !f->n_client || !f->n_server)
		return !f->begun && is_hello(f->server, f->n_server, 2) ? PROTO_YES : PROTO_NO;
	/* in the middle: a record of data on either side, and what follows it, too */
	return is_record(f->client, f->n_client) && f->client[0] == 23 && f->client[2] == 3 &&
			       is_record(f->server, f->n_server) && f->server[0] == 23 &&
			       f->server[2] == 3 ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool tls_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	(void)from;
	return p == c->piece && is_record(p, n) && p[0] == 23 && p[2] == 3;
}

const struct protocol protocol_tls = {
	.name = "tls",
	.in_order = true,
	.state_size = sizeof(struct tls),
	.recognise = tls_recognise,
	.step = tls_step,
	.starts = tls_starts,
};
