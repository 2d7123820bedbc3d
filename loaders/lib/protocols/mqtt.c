/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mqtt: MQTT 3.1, 3.1.1 and 5 (OASIS standards).
 *
 *   packet     TYPE:4 FLAGS:4 LEN (7 bits a byte, the least first, at most 4) ...
 *   types      1 CONNECT 2 CONNACK 3 PUBLISH 4 PUBACK 5 PUBREC 6 PUBREL 7 PUBCOMP 8 SUBSCRIBE 9
 *              SUBACK 10 UNSUBSCRIBE 11 UNSUBACK 12 PINGREQ 13 PINGRESP 14 DISCONNECT 15 AUTH
 *   CONNECT    LEN:16 "MQTT" LEVEL:8 (4, 5; "MQIsdp" 3) ...
 *   PUBLISH    flags: DUP:1 QOS:2 RETAIN:1; LEN:16 TOPIC, ID:16 if QOS, [5: properties], data.
 *              Property 35: a number for the topic
 *
 * A PUBLISH of QOS 0 is one way, of 1 answered by PUBACK, of 2 by PUBCOMP; what the server
 * publishes is a one-way DELIVER. SUBSCRIBE, UNSUBSCRIBE, CONNECT and PINGREQ have their answers,
 * by packet id. A reason of 128 and more (3.1.1: any but 0 in CONNACK) is an error, also of either
 * side's DISCONNECT. AUTH is a part of CONNECT until the CONNACK; after it, a client's AUTH with
 * reason 25 (authenticate again) is answered by the server's with 0.
 */
#include <stdio.h>

#include "loaders/lib/protocols/idtable.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"

#define LOOK           1024
#define PROPERTY_ALIAS 35
#define AGAIN          25 /* AUTH's reason: authenticate again */

enum {
	CONNECT = 1,
	CONNACK,
	PUBLISH,
	PUBACK,
	PUBREC,
	PUBREL,
	PUBCOMP,
	SUBSCRIBE,
	SUBACK,
	UNSUBSCRIBE,
	UNSUBACK,
	PINGREQ,
	PINGRESP,
	DISCONNECT,
	AUTH
};

struct mqtt {
	uint8_t level;             /* 3, 4, 5; 0: not known */
	struct idtable aliases[2]; /* numbers of topics, by who publishes */
	uint32_t released;         /* PUBRELs for what was refused: a PUBCOMP for each will come */
};

/* The head's size and what follows it; 0: more is needed, SIZE_MAX: it is not a head. */
static size_t head_of(const uint8_t *p, size_t n, uint32_t *len)
{
	*len = 0;
	for (size_t i = 1; i < 5; i++) {
		if (i >= n)
			return 0;
		*len |= (uint32_t)(p[i] & 127) << (7 * (i - 1));
		if (!(p[i] & 128))
			return i + 1;
	}
	return SIZE_MAX;
}

static bool plausible(enum proto_side from, const uint8_t *p, uint32_t len)
{
	unsigned type = p[0] >> 4, flags = p[0] & 15;

	switch (type) {
	case CONNECT:
		return from == PROTO_CLIENT && !flags && len >= 10;
	case CONNACK:
		return from == PROTO_SERVER && !flags && len >= 2;
	case PUBLISH:
		return (flags & 6) != 6 && len >= 2;
	case PUBACK:
	case PUBREC:
	case PUBCOMP:
		return !flags && len >= 2;
	case PUBREL:
		return flags == 2 && len >= 2;
	case SUBSCRIBE:
	case UNSUBSCRIBE:
		return from == PROTO_CLIENT && flags == 2 && len >= 4;
	case SUBACK:
		return from == PROTO_SERVER && !flags && len >= 3;
	case UNSUBACK:
		return from == PROTO_SERVER && !flags && len >= 2;
	case PINGREQ:
		return from == PROTO_CLIENT && !flags && !len;
	case PINGRESP:
		return from == PROTO_SERVER && !flags && !len;
	case DISCONNECT:
		return !flags;
	case AUTH:
		return !flags;
	}
	return false;
}

static bool is_topic(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i] < 0x20 || p[i] == 0x7f)
			return false;
	return true;
}

static uint32_t operation(struct proto_conn *c, const char *what, const uint8_t *topic, size_t n)
{
	uint8_t clean[120];
	char route[ROUTE_MAX];

	if (!n || proto_payload(c) == PROTO_NONE)
		return proto_name(c, what, strlen(what));
	n = n < sizeof(clean) ? n : sizeof(clean);
	for (size_t i = 0; i < n; i++) /* a filter's wildcards mean something else in a path */
		clean[i] = topic[i] == '#' || topic[i] == '?' ? '*' :
			   topic[i] <= ' '                    ? '_' :
								topic[i];
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %.*s", what, (int)n, (const char *)clean);
	proto_route(c, NULL, 0, clean, n, '/', route);
	return proto_namef(c, "%s %s", what, route);
}

static uint64_t id_of(unsigned answer, uint16_t id)
{
	return (uint64_t)answer << 16 | id;
}

/* The number that a property of a PUBLISH (5) gives the topic; 0: none. */
static uint16_t alias_of(const uint8_t *p, size_t n)
{
	size_t at = 0;
	uint32_t len = 0;

	for (int i = 0; i < 4 && at < n; i++) {
		uint8_t b = p[at++];

		len |= (uint32_t)(b & 127) << (7 * i);
		if (!(b & 128))
			break;
	}
	len = len < n - at ? len : (uint32_t)(n - at);
	for (n = at + len; at + 2 < n;) {
		uint8_t property = p[at++];

		if (property == PROPERTY_ALIAS)
			return be16(p + at);
		if (property == 1)
			at += 1;
		else if (property == 2)
			at += 4;
		else if (property == 3 || property == 8 || property == 9)
			at += 2u + be16(p + at);
		else if (property == 38 && at + 4 < n)
			at += 2u + be16(p + at), at += at + 2 <= n ? 2u + be16(p + at) : n;
		else if (property == 11)
			while (at < n && p[at++] & 128)
				;
		else
			return 0;
	}
	return 0;
}

static void publish(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		    unsigned qos)
{
	struct mqtt *s = proto_state(c);
	const char *what = from == PROTO_CLIENT ? "PUBLISH" : "DELIVER";
	size_t topic = n >= 2 ? be16(p) : 0, at = 2 + topic + (qos ? 2 : 0);
	uint16_t alias;
	uint32_t op;

	if (n < at || n < 2) {
		proto_one_way(c, proto_name(c, what, 7));
		return;
	}
	op = operation(c, what, p + 2, topic);
	alias = s->level != 4 && s->level != 3 ? alias_of(p + at, n - at) : 0;
	if (alias && topic)
		idtable_put(&s->aliases[from], alias, op);
	else if (alias)
		op = idtable_get(&s->aliases[from], alias) ? idtable_get(&s->aliases[from], alias) :
							     op;
	if (from == PROTO_SERVER || !qos)
		proto_one_way(c, op);
	else if (!proto_find(c, id_of(qos == 1 ? PUBACK : PUBCOMP,
				      be16(p + 2 + topic)))) /* else sent again */
		proto_ask(c, op, id_of(qos == 1 ? PUBACK : PUBCOMP, be16(p + 2 + topic)));
}

/* Are these the filters of a SUBSCRIBE, each with its options, or of an UNSUBSCRIBE, to the end? */
static bool filters_are(const uint8_t *p, size_t n, size_t at, size_t options)
{
	if (at >= n)
		return false;
	while (at + 2 <= n)
		at += 2u + be16(p + at) + options;
	return at == n;
}

/* Of a connection whose CONNECT was not seen: what its first filters fit. */
static void learn_level(struct mqtt *s, unsigned type, const uint8_t *p, size_t n)
{
	const size_t options = type == SUBSCRIBE ? 1 : 0;
	const bool four = filters_are(p, n, 2, options),
		   five = n > 2 && p[2] < 128 && filters_are(p, n, 3u + p[2], options);

	if (!s->level && four != five)
		s->level = five ? 5 : 4;
}

static void filters(struct proto_conn *c, unsigned type, const uint8_t *p, size_t n)
{
	struct mqtt *s = proto_state(c);
	size_t at, len;

	if (n < 2)
		return;
	learn_level(s, type, p, n);
	at = 2 + (s->level == 5 && n > 2 && p[2] < 128 ? 1u + p[2] : 0);
	len = at + 2 <= n ? be16(p + at) : 0;
	len = at + 2 + len <= n ? len : 0;
	proto_ask(c, operation(c, type == SUBSCRIBE ? "SUBSCRIBE" : "UNSUBSCRIBE", p + at + 2, len),
		  id_of(type + 1, be16(p)));
}

/* A question of two steps (PUBLISH of QOS 2), of which this packet is a part. */
static struct proto_pending *two_steps(struct proto_conn *c, const uint8_t *p, size_t n)
{
	return n >= 2 ? proto_find(c, id_of(PUBCOMP, be16(p))) : NULL;
}

/* The login, or the new one, of which an AUTH is a part. */
static struct proto_pending *handshake(struct proto_conn *c)
{
	struct proto_pending *q = proto_find(c, id_of(CONNACK, 0));

	return q ? q : proto_find(c, id_of(AUTH, 0));
}

static void client_packet(struct proto_conn *c, const uint8_t *head, const uint8_t *p, size_t n,
			  uint32_t len)
{
	struct mqtt *s = proto_state(c);
	unsigned type = head[0] >> 4;
	struct proto_pending *q;

	if (type == CONNECT) {
		s->level = n >= 9 && be16(p) == 6 ? p[8] : n >= 7 ? p[6] : 0;
		proto_ask(c, proto_name(c, "CONNECT", 7), id_of(CONNACK, 0));
	} else if (type == PUBLISH) {
		publish(c, PROTO_CLIENT, p, n, head[0] >> 1 & 3);
	} else if (type == SUBSCRIBE || type == UNSUBSCRIBE) {
		filters(c, type, p, n);
	} else if (type == PINGREQ) {
		proto_ask(c, proto_name(c, "PING", 4), id_of(PINGRESP, 0));
	} else if (type == PUBREL) {
		q = two_steps(c, p, n);
		if (q)
			q->request_bytes += (uint64_t)(p - head) + len;
		else if (c->begun)
			s->released++; /* of one that was refused */
	} else if (type == AUTH) {
		q = handshake(c);
		if (q)
			q->request_bytes += (uint64_t)(p - head) + len;
		else if (n && p[0] == AGAIN)
			proto_ask(c, proto_name(c, "AUTH", 4), id_of(AUTH, 0));
	} else if (type == DISCONNECT && n && p[0] >= 128) {
		char status[8];

		snprintf(status, sizeof(status), "%u", p[0]);
		proto_refused(c, proto_name(c, "DISCONNECT", 10), status);
	}
}

/* The first error among the reason codes, one per filter, that follow the packet id (and, in MQTT
 * 5, the properties). */
static unsigned worst(const uint8_t *p, size_t n, bool properties)
{
	uint32_t len = 0;
	size_t at = 2;

	for (int shift = 0; properties && at < n && shift < 28; shift += 7) {
		len |= (uint32_t)(p[at] & 127) << shift;
		if (!(p[at++] & 128))
			break;
	}
	for (at = len < n ? at + len : n; at < n; at++)
		if (p[at] >= 128)
			return p[at];
	return 0;
}

/* The server ends the connection and says why. Open questions end with that reason. */
static void disconnected(struct proto_conn *c, unsigned reason)
{
	struct proto_pending *q = proto_between(c, 0, UINT64_MAX);
	char status[8];

	snprintf(status, sizeof(status), "%u", reason);
	if (!q)
		proto_refused(c, proto_name(c, "DISCONNECT", 10), status);
	for (; q; q = proto_between(c, 0, UINT64_MAX))
		proto_answer(c, q, PROTO_ERROR, status);
}

static void server_packet(struct proto_conn *c, const uint8_t *head, const uint8_t *p, size_t n,
			  uint32_t len)
{
	struct mqtt *s = proto_state(c);
	unsigned type = head[0] >> 4, reason = 0;
	bool by_id = type != CONNACK && type != PINGRESP;
	struct proto_pending *q;
	char status[8] = "";

	if (type == PUBLISH) {
		publish(c, PROTO_SERVER, p, n, head[0] >> 1 & 3);
		return;
	}
	if (type == DISCONNECT) {
		if (n && p[0] >= 128)
			disconnected(c, p[0]);
		return;
	}
	if (type == AUTH) {
		q = handshake(c);
		if (q && q->id == id_of(AUTH, 0) && (!n || !p[0]))
			proto_answer(c, q, PROTO_OK, "");
		else if (q)
			q->response_bytes += (uint64_t)(p - head) + len;
		else
			proto_unowned(c);
		return;
	}
	q = by_id && n < 2 ? NULL : proto_find(c, id_of(type, by_id ? be16(p) : 0));
	/* refused: there will be no PUBCOMP */
	if (type == PUBREC && n >= 3 && len >= 3 && p[2] >= 128) {
		q = two_steps(c, p, n);
		reason = p[2];
	} else if (type == PUBREC || !q) {
		q = type == PUBREC ? two_steps(c, p, n) : NULL;
		if (q)
			q->response_bytes += (uint64_t)(p - head) + len;
		if (!q && type == PUBCOMP && s->released)
			s->released--;
		else if (!q && type != PUBREC && type != PUBREL)
			proto_unowned(c);
		return;
	} else if (type == CONNACK) {
		reason = n >= 2 ? p[1] : 0;
		reason = reason && s->level != 5 ? reason + 128 : reason;
	} else if (type == SUBACK || type == UNSUBACK) {
		reason = worst(p, n < len ? n : len, s->level == 5);
	} else if (len >= 3 && n >= 3) {
		reason = p[2];
	}
	if (!q)
		return;
	if (reason >= 128)
		snprintf(status, sizeof(status), "%u",
			 type == CONNACK && s->level != 5 ? reason - 128 : reason);
	proto_answer(c, q, reason >= 128 ? PROTO_ERROR : PROTO_OK, status);
}

static int64_t mqtt_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			 bool last)
{
	uint32_t len;
	size_t head = head_of(p, n, &len), see;

	if (!head)
		return PROTO_MORE;
	if (head == SIZE_MAX || !plausible(from, p, len))
		return PROTO_LOST;
	see = len < LOOK ? len : LOOK;
	if (n - head < see && !last)
		return PROTO_MORE;
	see = see < n - head ? see : n - head;
	if (see < 2 && len >= 2) /* which one it answers, or asks, is missing */
		return PROTO_LOST;
	if (from == PROTO_CLIENT)
		client_packet(c, p, p + head, see, len);
	else
		server_packet(c, p, p + head, see, len);
	return (int64_t)(head + len);
}

static bool is_connect(const uint8_t *p, size_t n)
{
	uint32_t len;
	size_t head = head_of(p, n, &len);

	if (p[0] != 0x10 || !head || head == SIZE_MAX || n < head + 9)
		return false;
	return (!memcmp(p + head, "\0\4MQTT", 6) && p[head + 6] >= 4) ||
	       (!memcmp(p + head, "\0\6MQIsdp", 8) && p[head + 8] == 3);
}

/* A chain of whole packets to the end, with a topic that is one where something is published. */
static bool is_chain(enum proto_side from, const uint8_t *p, size_t n)
{
	size_t at = 0;

	while (at < n) {
		uint32_t len;
		size_t head = head_of(p + at, n - at, &len);

		if (!head || head == SIZE_MAX || !plausible(from, p + at, len))
			return false;
		if (p[at] >> 4 == PUBLISH &&
		    (n - at < head + 2 || be16(p + at + head) + 2u > len ||
		     !is_topic(p + at + head + 2, n - at - head - 2 < be16(p + at + head) ?
							  n - at - head - 2 :
							  be16(p + at + head))))
			return false;
		if (len + head > n - at)
			return false;
		at += head + len;
	}
	return n > 0;
}

static bool has_topic(unsigned type)
{
	return type == PUBLISH || type == SUBSCRIBE;
}

#define PUBLISHED_LEAST 3 /* of one side alone */

/* How many whole messages one side has published; SIZE_MAX: it says something else. */
static size_t published(enum proto_side from, const uint8_t *p, size_t n)
{
	size_t count = 0, at = 0, head;
	uint32_t len;

	for (; at < n; at += head + len) {
		head = head_of(p + at, n - at, &len);
		if (!head)
			break;
		if (head == SIZE_MAX || !plausible(from, p + at, len))
			return SIZE_MAX;
		if (len + head > n - at)
			break;
		if (p[at] >> 4 != PUBLISH)
			continue;
		if (!is_chain(from, p + at, head + len))
			return SIZE_MAX;
		count++;
	}
	return count;
}

/* Of one side alone, in mid-stream: who only publishes, or only listens. */
static enum proto_guess one_sided(const struct proto_first *f)
{
	const enum proto_side from = f->n_server < 2 ? PROTO_CLIENT : PROTO_SERVER;
	const size_t n = from == PROTO_CLIENT ? f->n_client : f->n_server;
	const uint8_t *p = from == PROTO_CLIENT ? f->client : f->server;
	const size_t count = n > 1 ? published(from, p, n) : 0;

	if (count == SIZE_MAX)
		return PROTO_NO;
	if (count >= PUBLISHED_LEAST)
		return PROTO_YES;
	if (f->last)
		return n > 8 && has_topic(p[0] >> 4) && is_chain(from, p, n) ? PROTO_YES : PROTO_NO;
	return count || n < 512 ? PROTO_MAYBE : PROTO_NO;
}

static enum proto_guess mqtt_recognise(const struct proto_first *f)
{
	if (f->begun || (f->n_client && f->client[0] == 0x10)) {
		if (f->n_server && !f->n_client)
			return PROTO_NO;
		if (!f->n_client || (f->n_client < 13 && f->client[0] == 0x10 && !f->n_server))
			return PROTO_MAYBE;
		return is_connect(f->client, f->n_client) ? PROTO_YES : PROTO_NO;
	}
	if (f->n_client < 2 || f->n_server < 2)
		return one_sided(f);
	if (f->n_client == 2 && f->n_server == 2)
		return f->client[0] == 0xc0 && !f->client[1] && f->server[0] == 0xd0 &&
				       !f->server[1] ?
			       PROTO_YES :
			       PROTO_NO;
	if (!is_chain(PROTO_CLIENT, f->client, f->n_client) ||
	    !is_chain(PROTO_SERVER, f->server, f->n_server))
		return PROTO_NO;
	return f->n_client + f->n_server > 24 || (f->last && has_topic(f->client[0] >> 4)) ?
		       PROTO_YES :
	       f->last ? PROTO_NO :
			 PROTO_MAYBE;
}

static bool mqtt_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	uint32_t len;
	size_t head = head_of(p, n, &len);

	if (p != c->piece || !head || head == SIZE_MAX || !plausible(from, p, len))
		return false;
	return is_chain(from, p, n) ||
	       (p[0] >> 4 == PUBLISH && n > head + 2 && be16(p + head) &&
		be16(p + head) + 2u <= n - head && is_topic(p + head + 2, be16(p + head)));
}

static void mqtt_lost(struct proto_conn *c, enum proto_side from)
{
	idtable_release(&((struct mqtt *)proto_state(c))->aliases[from]);
}

static void mqtt_release(struct proto_conn *c)
{
	mqtt_lost(c, PROTO_CLIENT);
	mqtt_lost(c, PROTO_SERVER);
}

const struct protocol protocol_mqtt = {
	.name = "mqtt",
	.ids_again = true,
	.state_size = sizeof(struct mqtt),
	.recognise = mqtt_recognise,
	.step = mqtt_step,
	.starts = mqtt_starts,
	.lost = mqtt_lost,
	.release = mqtt_release,
};
