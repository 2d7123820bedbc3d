/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dns: RFC 1035, EDNS (RFC 6891), over TCP (RFC 7766: LEN:16 before each message), multicast (RFC
 * 6762).
 *
 *   head       ID:16 | QR:1 OPCODE:4 AA TC RD | RA Z AD CD RCODE:4 | QD:16 AN:16 NS:16 AR:16
 *   question   NAME TYPE:16 CLASS:16
 *   NAME       LEN:8 LABEL ... 0, at most 255 bytes; a question's name is not compressed
 *   record     of an answer: NAME TYPE:16 CLASS:16 TTL:32 LEN:16 ...; a name there may end in a
 *              pointer, 11 and where in the message:14
 *
 * An answer has the question's ID, name and type. Only messages with one question (mDNS: one and
 * more) are taken. Multicast is one way: the answers come from other addresses.
 * Operation: TYPE DOMAIN, the registered one as far as it can be found without a list: two labels,
 * three under a country's co, com, net, org, gov, ac, edu, and of a service without a domain
 * (_http._tcp.local). Errors: all codes but NOERROR and NXDOMAIN.
 */
#include <stdio.h>
#include <strings.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define HEADER     12
#define NAME_MAX_  255
#define MDNS_PORT  5353
#define LLMNR_PORT 5355
#define CUT_NAME   80
#define TYPE_A     1
#define TYPE_AAAA  28
#define TYPE_OPT   41
#define NXDOMAIN   3
#define TYPE_IXFR  251
#define TYPE_AXFR  252

struct dns {
	uint64_t zone; /* the last transfer that was answered: it may have several messages */
};

struct question {
	char name[NAME_MAX_ + 1]; /* lower case, with dots */
	size_t n_name;
	uint16_t type;
};

static const char *type_name(uint16_t type, char buf[16])
{
	static const struct {
		uint16_t type;
		const char *name;
	} names[] = {{1, "A"},      {2, "NS"},    {5, "CNAME"},  {6, "SOA"},    {12, "PTR"},
		     {13, "HINFO"}, {15, "MX"},   {16, "TXT"},   {28, "AAAA"},  {33, "SRV"},
		     {35, "NAPTR"}, {43, "DS"},   {46, "RRSIG"}, {47, "NSEC"},  {48, "DNSKEY"},
		     {52, "TLSA"},  {64, "SVCB"}, {65, "HTTPS"}, {251, "IXFR"}, {252, "AXFR"},
		     {255, "ANY"},  {257, "CAA"}};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].type == type)
			return names[i].name;
	snprintf(buf, 16, "TYPE%u", type);
	return buf;
}

/* Reads the first question. False: it is not valid. */
static bool question_read(const uint8_t *p, size_t n, struct question *q)
{
	size_t at = HEADER, len = 0;

	while (at < n && p[at]) {
		size_t m = p[at];

		if (m > 63 || at + 1 + m >= n || len + m + 1 > NAME_MAX_)
			return false;
		for (size_t i = 0; i < m; i++) {
			uint8_t b = p[at + 1 + i];

			q->name[len++] = (char)(b >= 'A' && b <= 'Z' ? b + 32 :
						b > ' ' && b < 0x7f  ? b :
								       '?');
		}
		q->name[len++] = '.';
		at += 1 + m;
	}
	if (at + 5 > n)
		return false;
	q->n_name = len ? len - 1 : 0;
	q->name[q->n_name] = '\0';
	q->type = be16(p + at + 1);
	return q->type && ((be16(p + at + 3) & 0x7fff) <= 4 || be16(p + at + 3) == 255);
}

static bool is_message(const uint8_t *p, size_t n, bool answer, struct question *q)
{
	unsigned opcode;

	if (n < HEADER + 5)
		return false;
	opcode = p[2] >> 3 & 15;
	if ((p[2] >> 7) != answer || (opcode && opcode != 4 && opcode != 5) || p[3] & 0x40)
		return false;
	if (!answer &&
	    (p[3] & 15 || (!opcode && (be16(p + 6) > 64 || be16(p + 8) > 64)) || be16(p + 10) > 64))
		return false;
	if (!be16(p + 4) || be16(p + 4) > 32)
		return false;
	return question_read(p, n, q);
}

static bool country_has_second(const char *label, size_t n)
{
	static const char *const words[] = {"co",  "com", "net", "org", "gov", "ac",
					    "edu", "or",  "ne",  "go",  NULL};

	for (const char *const *w = words; *w; w++)
		if (strlen(*w) == n && !memcmp(*w, label, n))
			return true;
	return false;
}

/* The end of the name that is its registered domain. */
static const char *domain(const struct question *q)
{
	const char *dot[3] = {NULL}, *end = q->name + q->n_name;
	int n = 0;

	for (const char *s = end; s > q->name && n < 3; s--)
		if (s[-1] == '.')
			dot[n++] = s - 1;
	if (n < 2)
		return q->name;
	if (end - dot[0] == 3 && country_has_second(dot[1] + 1, (size_t)(dot[0] - dot[1] - 1)))
		return n > 2 ? dot[2] + 1 : q->name;
	/* _http._tcp.local is a service: all of them end alike (RFC 6763) */
	if (!strncmp(dot[1] + 1, "_tcp.", 5) || !strncmp(dot[1] + 1, "_udp.", 5))
		return n > 2 ? dot[2] + 1 : q->name;
	return dot[1] + 1;
}

static uint32_t operation(struct proto_conn *c, const uint8_t *p, const struct question *q)
{
	unsigned opcode = p[2] >> 3 & 15;
	const char *name = proto_payload(c) == PROTO_FULL ? q->name : domain(q);
	char buf[16];

	if (proto_payload(c) == PROTO_NONE)
		name = "";
	return proto_namef(c, "%s%s%s%.*s",
			   opcode == 4 ? "NOTIFY " :
			   opcode == 5 ? "UPDATE " :
					 "",
			   type_name(q->type, buf), *name ? " " : "", CUT_NAME,
			   q->n_name || !*name ? name : ".");
}

static const char *code_name(unsigned code)
{
	static const char *const names[] = {"NOERROR", "FORMERR", "SERVFAIL", "NXDOMAIN",
					    "NOTIMP",  "REFUSED", "YXDOMAIN", "YXRRSET",
					    "NXRRSET", "NOTAUTH", "NOTZONE"};

	return code < ARRAY_SIZE(names) ? names[code] :
	       code == 16               ? "BADVERS" :
	       code == 23               ? "BADCOOKIE" :
					  "OTHER";
}

static uint64_t match_id(const uint8_t *p, const struct question *q)
{
	return be16(p) | (idtable_text(q->name, q->n_name) ^ q->type) << 16;
}

/* Behind the name at `at`, which may end in a pointer to another; 0: it goes on beyond n, or is
 * none. */
static size_t name_skip(const uint8_t *p, size_t n, size_t at)
{
	for (size_t from = at; at < n && at - from <= NAME_MAX_; at += 1u + p[at]) {
		if (!p[at])
			return at + 1;
		if (p[at] >= 0xc0)
			return at + 2 <= n ? at + 2 : 0;
		if (p[at] > 63)
			return 0;
	}
	return 0;
}

/* The addresses of an answer, as far as they are here, are those of the name that was asked for:
 * others on the way are its aliases. */
static void addresses(struct proto_conn *c, const uint8_t *p, size_t n, const struct question *q)
{
	size_t at = be16(p + 4) == 1 ? name_skip(p, n, HEADER) : 0, len;

	if (!at || (q->type != TYPE_A && q->type != TYPE_AAAA))
		return;
	at += 4;
	for (unsigned i = be16(p + 6); i && at < n && (at = name_skip(p, n, at)) && at + 10 <= n;
	     i--, at += len) {
		len = be16(p + at + 8);
		if (at + 10 + len <= n && be16(p + at) == q->type && be16(p + at + 2) == 1 &&
		    len == (q->type == TYPE_A ? 4u : 16u))
			proto_named(c, q->name, p + at + 10, len);
		at += 10;
	}
}

/* The code of an answer: four bits of the head, and eight more in an OPT record (RFC 6891, 6.1.3)
 * if that is here. */
static unsigned code_of(const uint8_t *p, size_t n)
{
	unsigned records = be16(p + 6) + be16(p + 8) + be16(p + 10);
	size_t at = HEADER;

	for (unsigned i = be16(p + 4); i && at; i--) {
		at = name_skip(p, n, at);
		at = at && at + 4 <= n ? at + 4 : 0;
	}
	while (at && records-- && (at = name_skip(p, n, at)) && at + 10 <= n) {
		if (be16(p + at) == TYPE_OPT)
			return (unsigned)p[at + 4] << 4 | (p[3] & 15);
		at += 10u + be16(p + at + 8);
	}
	return p[3] & 15;
}

/* An error without the question: it answers the oldest one with its number. */
static void refused(struct proto_conn *c, const uint8_t *p)
{
	for (uint32_t i = 0; i < c->count; i++) {
		struct proto_pending *q = proto_slot(c, i);

		if (!q->live || (q->id & 0xffff) != be16(p))
			continue;
		proto_answer(c, q, PROTO_ERROR, code_name(p[3] & 15));
		return;
	}
}

static bool message(struct proto_conn *c, const uint8_t *p, size_t n)
{
	bool answer = n > 2 && p[2] & 0x80;
	struct dns *s = proto_state(c);
	struct proto_pending *pending;
	struct question q;
	unsigned code;

	if (!is_message(p, n, answer, &q)) {
		if (n < HEADER || !answer || be16(p + 4)) /* an announcement has no question */
			return false;
		if (p[3] & 15)
			refused(c, p);
		return true;
	}
	if (c->port == MDNS_PORT || c->port == LLMNR_PORT) {
		if (!answer)
			proto_one_way(c, operation(c, p, &q));
		return true;
	}
	pending = proto_find(c, match_id(p, &q));
	if (!answer) {
		if (!pending) /* else sent again: the first one counts */
			proto_ask(c, operation(c, p, &q), match_id(p, &q));
	} else if (pending) {
		addresses(c, p, n, &q);
		if (q.type == TYPE_IXFR || q.type == TYPE_AXFR)
			s->zone = match_id(p, &q);
		code = code_of(p, n);
		proto_answer(c, pending, code && code != NXDOMAIN ? PROTO_ERROR : PROTO_OK,
			     code_name(code));
	} else if (!c->datagram && s->zone != match_id(p, &q)) {
		proto_unowned(c);
	}
	return true;
}

static int64_t dns_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			bool last)
{
	size_t len;

	(void)from;
	if (c->datagram)
		return message(c, p, n) ? (int64_t)n : PROTO_LOST;
	if (n < 2)
		return PROTO_MORE;
	len = be16(p);
	if (n - 2 < (len < 512 ? len : 512) && !last)
		return PROTO_MORE;
	return len >= HEADER && message(c, p + 2, len < n - 2 ? len : n - 2) ? (int64_t)len + 2 :
									       PROTO_LOST;
}

static bool framed(const uint8_t *p, size_t n, bool answer)
{
	struct question q;

	return n >= HEADER + 7 && be16(p) >= HEADER + 5 && be16(p) <= 16384 && be16(p + 6) == 1 &&
	       (answer || (!be16(p + 8) && !be16(p + 10))) &&
	       is_message(p + 2, be16(p) < n - 2 ? be16(p) : n - 2, answer, &q);
}

static bool dns_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	return p == c->piece && framed(p, n, from == PROTO_SERVER);
}

/* The beginning of a query over TCP, as far as it is here. */
static bool may_become(const uint8_t *p, size_t n)
{
	return p[0] <= 4 && (n <= 4 || !(p[4] & 0xf8)) && (n <= 6 || !p[6]) &&
	       (n <= 7 || p[7] == 1) && (n <= 8 || !p[8]) && n < 1024;
}

static enum proto_guess dns_recognise(const struct proto_first *f)
{
	bool multicast = f->port == MDNS_PORT || f->port == LLMNR_PORT;
	struct question q;

	if (f->datagram) {
		if (f->n_client && !(is_message(f->client, f->n_client, false, &q) &&
				     (multicast || be16(f->client + 4) == 1)))
			return multicast && f->n_client >= HEADER && f->client[2] & 0x80 &&
					       !f->client[3] ?
				       PROTO_YES :
				       PROTO_NO;
		if (f->n_server && !is_message(f->server, f->n_server, true, &q))
			return PROTO_NO;
		return PROTO_YES;
	}
	if (f->n_client && !f->n_server && (f->n_client < 2 || f->n_client < be16(f->client) + 2u))
		return may_become(f->client, f->n_client) ? PROTO_MAYBE : PROTO_NO;
	if (!f->n_client || !framed(f->client, f->n_client, false))
		return PROTO_NO;
	if (!f->n_server)
		return f->last ? PROTO_YES : PROTO_MAYBE;
	if (f->n_server < 2 || f->n_server < (be16(f->server) < 512 ? be16(f->server) : 512) + 2u)
		return f->server[0] > 64 ? PROTO_NO : f->last ? PROTO_YES : PROTO_MAYBE;
	return framed(f->server, f->n_server, true) ? PROTO_YES : PROTO_NO;
}

const struct protocol protocol_dns = {
	.name = "dns",
	.datagram = true,
	.stream_too = true,
	.state_size = sizeof(struct dns),
	.recognise = dns_recognise,
	.step = dns_step,
	.starts = dns_starts,
};
