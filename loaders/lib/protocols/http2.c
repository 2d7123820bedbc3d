/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http2: HTTP/2 (RFC 9113) and gRPC over it.
 *
 *   client     begins with "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
 *   frame      LEN:24 TYPE:8 FLAGS:8 R:1 STREAM:31 PAYLOAD
 *   types      0 DATA, 1 HEADERS, 2 PRIORITY, 3 RST_STREAM, 4 SETTINGS, 5 PUSH_PROMISE, 6 PING, 7
 *              GOAWAY, 8 WINDOW_UPDATE, 9 CONTINUATION
 *   flags      1 END_STREAM (DATA, HEADERS), 4 END_HEADERS, 8 PADDED (PAD:8 first, then PAD bytes
 *              at the end), 0x20 PRIORITY (5 bytes)
 *   block      HEADERS' or PUSH_PROMISE's fragment and those of the CONTINUATIONs that follow at
 *              once; HPACK, in order of the stream of bytes
 *
 * A question is a stream: it begins with the client's HEADERS and is answered by the server's
 * END_STREAM or RST_STREAM, or refused by a GOAWAY. Matched by stream number. gRPC's own status
 * comes in the last HEADERS, gRPC-Web's also at the end of a DATA frame (grpcweb.h), of which the
 * last DATA_TAIL bytes are enough (probes/l7/frames.bpf.h copies as many). Where the end of a DATA
 * frame was not seen and no status came, the stream is blind. A stream of events, or a tunnel
 * (CONNECT, also with WebSocket in it), is opened. A GOAWAY whose code is not 0 and that ends no
 * stream is an error, once for each side. HEADERS with a status below 200
 * are no answer. After an upgrade from HTTP/1 stream 1 answers the request that asked for it, which
 * was reported. Of a connection that was begun before, headers that refer to what was
 * not seen have no name: the operation says `?` there. After a loss, the HPACK table of that
 * direction is reset.
 */
#include <stdio.h>
#include <stdlib.h>

#include "loaders/lib/protocols/grpcweb.h"
#include "loaders/lib/protocols/hpack.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "loaders/lib/protocols/traceid.h"
#include "schema/base/mem.h"

#define PREFACE    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
#define FRAME_HEAD 9
#define FRAME_MAX  (1u << 20)
#define BLOCK_MAX  49152
#define DATA_TAIL  256

enum {
	DATA,
	HEADERS,
	PRIORITY,
	RST_STREAM,
	SETTINGS,
	PUSH_PROMISE,
	PING,
	GOAWAY,
	WINDOW_UPDATE,
	CONTINUATION
};
enum { END_STREAM = 1, END_HEADERS = 4, PADDED = 8, HAS_PRIORITY = 0x20 };
enum {
	TAG_STATUS = 0xfff,
	TAG_GRPC = 0x1000,
	TAG_OPENED = 0x2000,
	TAG_WEB = 14,          /* bits from here on: enum grpcweb_form */
	TAG_UNSEEN = 1 << 16,  /* a part of its body is */
	TAG_CODE = 17,         /* bits from here on: gRPC-Web's status and 1 */
	TAG_CONNECT = 1 << 25, /* asks for a tunnel */
	TAG_BODY = 1 << 26     /* a part of gRPC-Web's body came */
};
enum { WEB_MASK = 3, CODE_MASK = 0xff };

struct http2 {
	bool preface;             /* still to come, from the client */
	bool going_away, told[2]; /* told: a GOAWAY of this side */
	uint32_t why;             /* GOAWAY's code */
	struct http2_side {
		struct hpack hpack;
		uint8_t *block; /* fragments so far */
		size_t n_block;
		uint64_t size;   /* of the frames that they came in */
		uint32_t stream; /* that they are of */
		uint8_t type, flags;
	} side[2];
	uint32_t tail_len; /* of the server's DATA frame whose last DATA_TAIL bytes are next; 0:
			      none */
	uint32_t tail_of;  /* its stream */
	uint8_t tail_flags, tail_pad;
	uint8_t web[2 * DATA_TAIL]; /* the last bytes of gRPC-Web's body: its status may lie in two
				       frames */
	uint32_t web_of;            /* their stream */
	size_t n_web;
};

struct fields {
	char method[24], path[HPACK_VALUE_MAX], authority[128], status[4], grpc[4];
	bool has_path, is_grpc, events, unknown;
	enum grpcweb_form web;
	char trace[64];
	uint64_t caller, b3_caller;
	uint8_t trace_rank;
};

/* ---- fields ---- */

static void keep(char *to, size_t cap, const char *value, size_t n)
{
	n = n < cap - 1 ? n : cap - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = value[i] > ' ' && (uint8_t)value[i] < 0x7f ? value[i] : '_';
	to[n] = '\0';
}

static void trace_field(struct fields *f, enum traceid_form form, const char *value, size_t n)
{
	const uint8_t rank = form == TRACEID_W3C ? 3 : form == TRACEID_REQUEST ? 1 : 2;
	struct traceid id;

	if (rank <= f->trace_rank || !traceid_read(form, (const uint8_t *)value, n, &id))
		return;
	keep(f->trace, sizeof(f->trace), (const char *)id.text, id.n);
	f->caller = id.caller;
	f->trace_rank = rank;
}

static void take_field(void *ctx, enum hpack_name name, const char *value, size_t n)
{
	const uint8_t *host = (const uint8_t *)value;
	struct fields *f = ctx;

	if (name == HPACK_UNKNOWN)
		f->unknown = true;
	if (!value)
		return;
	switch (name) {
	case HPACK_METHOD:
		keep(f->method, sizeof(f->method), value, n);
		break;
	case HPACK_PATH:
		route_absolute(&host, &n, NULL, NULL);
		value = (const char *)host;
		keep(f->path, sizeof(f->path), value, n);
		f->has_path = true;
		break;
	case HPACK_HOST:
		if (*f->authority)
			break;
		/* fall through */
	case HPACK_AUTHORITY:
		route_host(&host, &n);
		value = (const char *)host;
		keep(f->authority, sizeof(f->authority), value, n);
		break;
	case HPACK_STATUS:
		keep(f->status, sizeof(f->status), value, n);
		break;
	case HPACK_GRPC_STATUS:
		keep(f->grpc, sizeof(f->grpc), value, n);
		break;
	case HPACK_CONTENT_TYPE:
		f->is_grpc = n >= 16 && !memcmp(value, "application/grpc", 16) &&
			     (n == 16 || value[16] == '+' || value[16] == ';');
		f->web = grpcweb_form((const uint8_t *)value, n);
		f->events = n >= 17 && !memcmp(value, "text/event-stream", 17);
		break;
	case HPACK_TRACEPARENT:
		trace_field(f, TRACEID_W3C, value, n);
		break;
	case HPACK_SW8:
		trace_field(f, TRACEID_SW8, value, n);
		break;
	case HPACK_B3:
		trace_field(f, TRACEID_B3, value, n);
		break;
	case HPACK_B3_TRACE:
		trace_field(f, TRACEID_PLAIN, value, n);
		break;
	case HPACK_UBER:
		trace_field(f, TRACEID_UBER, value, n);
		break;
	case HPACK_REQUEST_ID:
		trace_field(f, TRACEID_REQUEST, value, n);
		break;
	case HPACK_B3_SPAN:
		f->b3_caller = traceid_span((const uint8_t *)value, n);
		break;
	default:
		break;
	}
}

static uint32_t operation(struct proto_conn *c, const struct fields *f)
{
	const char *method = *f->method ? f->method : "?", *host = *f->authority ? f->authority :
								   f->unknown    ? "?" :
										   "";
	char route[ROUTE_MAX];

	if (proto_payload(c) != PROTO_FULL && route_is_address((const uint8_t *)host, strlen(host)))
		host = "";
	if (proto_payload(c) == PROTO_NONE)
		return proto_name(c, f->is_grpc ? "GRPC" : method, f->is_grpc ? 4 : strlen(method));
	if (!f->has_path)
		return proto_namef(c, "%s %s%s", f->is_grpc ? "GRPC" : method, host,
				   strcmp(method, "CONNECT") ? "?" : "");
	if (f->is_grpc || proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %s%.200s", f->is_grpc ? "GRPC" : method, host, f->path);
	proto_route(c, host, strlen(host), (const uint8_t *)f->path, strlen(f->path), '/', route);
	return proto_namef(c, "%s %s%s", method, host, route);
}

/* ---- streams ---- */

/* `grpc`: the status in the last headers, or "". */
static void finish_web(struct proto_conn *c, struct proto_pending *q, const char *grpc)
{
	int code = *grpc ? atoi(grpc) : (int)(q->tag >> TAG_CODE & CODE_MASK) - 1;

	if (code < 0 && q->tag & TAG_UNSEEN) {
		proto_answer(c, q, PROTO_BLIND, "");
		return;
	}
	code = code < 0 ? GRPC_CODE_UNKNOWN : code;
	proto_answer(c, q, code ? PROTO_ERROR : PROTO_OK, grpc_code_name(code));
}

/* `last`: the headers that end the stream; NULL: its data do. If the connection is older than the
 * capture, they may refer to table entries that were not seen: then only HTTP's status is known. */
static void finish(struct proto_conn *c, struct proto_pending *q, const struct fields *last)
{
	const char *grpc = last ? last->grpc : "";
	bool untold = last && last->unknown;
	unsigned status = q->tag & TAG_STATUS;
	char text[8] = "";

	if (q->tag & TAG_OPENED) { /* reported already */
		proto_forget(c, q);
		return;
	}
	if (q->tag >> TAG_WEB & WEB_MASK && !untold && status == 200) {
		finish_web(c, q, grpc);
		return;
	}
	if (q->tag & TAG_GRPC && *grpc) {
		proto_answer(c, q, atoi(grpc) ? PROTO_ERROR : PROTO_OK, grpc_code_name(atoi(grpc)));
		return;
	}
	if (q->tag & TAG_GRPC && !untold && status == 200) { /* gRPC's clients say so, too */
		proto_answer(c, q, PROTO_ERROR, grpc_code_name(GRPC_CODE_UNKNOWN));
		return;
	}
	if (status)
		snprintf(text, sizeof(text), "%u", status);
	proto_answer(c, q, status >= 500 || (q->tag & TAG_GRPC && !untold) ? PROTO_ERROR : PROTO_OK,
		     text);
}

static void client_headers(struct proto_conn *c, const struct http2_side *s, const struct fields *f)
{
	struct proto_pending *q = proto_find(c, s->stream);

	if (q) /* those that ask are counted with the message */
		q->request_bytes += s->size;
	if (!q && (s->stream & 1)) {
		q = proto_ask(c, operation(c, f), s->stream);
		q->tag = (f->is_grpc ? TAG_GRPC : 0) |
			 (strcmp(f->method, "CONNECT") ? 0 : TAG_CONNECT);
		if (*f->trace)
			proto_trace(q, (const uint8_t *)f->trace, strlen(f->trace));
		q->caller = f->caller ? f->caller : *f->trace ? f->b3_caller : 0;
	}
	if (q)
		q->sent_ns = c->now_ns;
}

/* Of a stream whose question was not seen; pushed ones have even numbers. */
static void not_ours(struct proto_conn *c, uint32_t stream)
{
	if (stream & 1)
		proto_unowned(c);
}

static void web_code(struct proto_pending *q, int code)
{
	if (code < 0 || code >= CODE_MASK)
		return;
	q->tag &= ~((uint32_t)CODE_MASK << TAG_CODE);
	q->tag |= (uint32_t)(code + 1) << TAG_CODE;
}

static void server_headers(struct proto_conn *c, const struct http2_side *s, const struct fields *f)
{
	struct proto_pending *q = proto_find(c, s->stream);
	unsigned status = (unsigned)atoi(f->status);

	if (!q) {
		not_ours(c, s->stream);
		return;
	}
	if (status < 100 || status >= 200)
		proto_first_byte(c, q);
	if (!(s->flags & END_STREAM)) /* else the answer has them when it is over */
		q->response_bytes += s->size;
	if (status >= 200)
		q->tag = (q->tag & ~TAG_STATUS) | (status & TAG_STATUS);
	if (f->is_grpc)
		q->tag |= TAG_GRPC;
	q->tag |= (uint32_t)f->web << TAG_WEB;
	if (f->web && *f->grpc && !(s->flags & END_STREAM))
		web_code(q, atoi(f->grpc));
	if ((f->events || (q->tag & TAG_CONNECT && status / 100 == 2)) && !(q->tag & TAG_OPENED)) {
		struct proto_pending stream = *q;

		proto_opened(c, q, f->status);
		q = proto_ask(c, stream.operation,
			      stream.id); /* its frames are still to be known */
		q->tag = TAG_OPENED;
		q->told = true;
	}
	if (s->flags & END_STREAM)
		finish(c, q, f);
}

static void block_over(struct proto_conn *c, enum proto_side from)
{
	struct http2 *h = proto_state(c);
	struct http2_side *s = &h->side[from];
	struct fields f = {0};

	if (!hpack_decode(&s->hpack, s->block, s->n_block, take_field, &f)) {
		hpack_forget(&s->hpack);
		f.unknown = true;
	}
	free(s->block);
	s->block = NULL;
	s->n_block = 0;
	if (s->type == PUSH_PROMISE)
		proto_one_way(c, proto_namef(c, "PUSH %s", proto_name_text(c, operation(c, &f))));
	else if (from == PROTO_CLIENT)
		client_headers(c, s, &f);
	else
		server_headers(c, s, &f);
	s->stream = 0;
}

static bool fragment(struct http2_side *s, const uint8_t *p, size_t n)
{
	if (s->n_block + n > BLOCK_MAX)
		return false;
	s->block = mem_realloc(s->block, s->n_block + n + 1);
	memcpy(s->block + s->n_block, p, n);
	s->n_block += n;
	return true;
}

static bool headers(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct http2 *h = proto_state(c);
	struct http2_side *s = &h->side[from];
	uint8_t type = p[3], flags = p[4];
	size_t pad = 0, skip = 0;

	if (type == CONTINUATION) {
		if (!s->block || s->stream != (be32(p + 5) & 0x7fffffff))
			return false;
	} else {
		pad = flags & PADDED && n > FRAME_HEAD ? p[FRAME_HEAD] : 0;
		skip = (flags & PADDED ? 1 : 0) +
		       (type == HEADERS && flags & HAS_PRIORITY ? 5 : 0) +
		       (type == PUSH_PROMISE ? 4 : 0);
		free(s->block);
		s->block = NULL;
		s->n_block = 0;
		s->size = 0;
		s->stream = be32(p + 5) & 0x7fffffff;
		s->type = type;
		s->flags = flags;
	}
	s->size += FRAME_HEAD + be24(p);
	if (n < FRAME_HEAD + skip + pad ||
	    !fragment(s, p + FRAME_HEAD + skip, n - FRAME_HEAD - skip - pad))
		return false;
	if (flags & END_HEADERS)
		block_over(c, from);
	else
		proto_goes_on(c);
	return true;
}

/* The end of a DATA frame's payload, or all of it, without padding, as part of gRPC-Web's body. */
static void web_data(struct http2 *h, struct proto_pending *q, const uint8_t *p, size_t n)
{
	const enum grpcweb_form form = (enum grpcweb_form)(q->tag >> TAG_WEB & WEB_MASK);
	const size_t kept = n < DATA_TAIL ? n : DATA_TAIL;
	int code;

	if (h->web_of != q->id && q->tag & TAG_BODY)
		q->tag |= TAG_UNSEEN; /* what was before is not here any more */
	if (h->web_of != q->id || n >= DATA_TAIL)
		h->n_web = 0;
	if (h->n_web + kept > sizeof(h->web)) {
		memmove(h->web, h->web + h->n_web - DATA_TAIL, DATA_TAIL);
		h->n_web = DATA_TAIL;
	}
	memcpy(h->web + h->n_web, p + n - kept, kept);
	h->n_web += kept;
	h->web_of = (uint32_t)q->id;
	q->tag |= TAG_BODY;
	code = n >= DATA_TAIL ? grpcweb_status(form, p, n) : grpcweb_status(form, h->web, h->n_web);
	if (code != GRPCWEB_NONE)
		web_code(q, code);
}

/* The stream's body has gRPC-Web's status in it: the end of its frames must be here. */
static bool is_web(struct proto_conn *c, enum proto_side from, uint32_t stream)
{
	const struct proto_pending *q =
		from == PROTO_SERVER ? proto_find(c, stream & 0x7fffffff) : NULL;

	return q && q->tag >> TAG_WEB & WEB_MASK;
}

/* Of a DATA frame's payload, without padding: all of it, its end, or (NULL) nothing. */
struct payload {
	const uint8_t *p;
	size_t n;
	bool whole;
};

static void data(struct proto_conn *c, enum proto_side from, uint32_t stream, uint8_t flags,
		 uint32_t len, const struct payload *x)
{
	struct proto_pending *q = proto_find(c, stream & 0x7fffffff);

	if (!q) {
		not_ours(c, stream);
		return;
	}
	if (from == PROTO_CLIENT) {
		q->request_bytes += FRAME_HEAD + len;
		q->sent_ns = c->now_ns;
		return;
	}
	proto_first_byte(c, q);
	if (q->tag >> TAG_WEB & WEB_MASK) {
		if (x->p)
			web_data(proto_state(c), q, x->p, x->n);
		if (!x->whole)
			q->tag |= TAG_UNSEEN;
	}
	if (flags & END_STREAM) /* the answer has its bytes when it is over */
		finish(c, q, NULL);
	else
		q->response_bytes += FRAME_HEAD + len;
}

/* One of a stream whose body is gRPC-Web's. */
static int64_t data_web(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct http2 *h = proto_state(c);
	const uint32_t len = be24(p), stream = be32(p + 5);
	const uint32_t pad = p[4] & PADDED && n > FRAME_HEAD ? p[FRAME_HEAD] + 1u : 0;

	if (n >= FRAME_HEAD + len && pad <= len) {
		data(c, PROTO_SERVER, stream, p[4], len,
		     &(struct payload){p + FRAME_HEAD + !!pad, len - pad, true});
		return FRAME_HEAD + len;
	}
	if (!last && n < FRAME_HEAD + len)
		return PROTO_MORE;
	if (n + DATA_TAIL > FRAME_HEAD + len || pad > DATA_TAIL) {
		data(c, PROTO_SERVER, stream, p[4], len, &(struct payload){0});
		return FRAME_HEAD + len;
	}
	h->tail_len = len;
	h->tail_of = stream;
	h->tail_flags = p[4];
	h->tail_pad = (uint8_t)(pad ? pad - 1 : 0);
	proto_first_byte(c, proto_find(c, stream & 0x7fffffff));
	proto_goes_on(c);
	return FRAME_HEAD + len - DATA_TAIL;
}

static int64_t data_tail(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct http2 *h = proto_state(c);
	const uint32_t len = h->tail_len;
	const bool all = n >= DATA_TAIL;

	if (!all && !last)
		return PROTO_MORE;
	h->tail_len = 0;
	data(c, PROTO_SERVER, h->tail_of, h->tail_flags, len,
	     &(struct payload){all ? p : NULL, DATA_TAIL - h->tail_pad, false});
	return DATA_TAIL;
}

static void reset(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_find(c, be32(p + 5) & 0x7fffffff);
	char status[16];

	if (!q)
		return;
	if (q->tag & TAG_OPENED) {
		proto_forget(c, q);
		return;
	}
	snprintf(status, sizeof(status), "reset %u",
		 n >= FRAME_HEAD + 4 ? be32(p + FRAME_HEAD) & 0xff : 0);
	proto_answer(c, q, PROTO_ERROR, status);
}

/* The server will not answer the streams from `low` on. */
static void refuse(struct proto_conn *c, uint32_t low, uint32_t why)
{
	struct proto_pending *q;
	char status[24];

	snprintf(status, sizeof(status), "goaway %u", why);
	while ((q = proto_between(c, low, 0x7fffffff)))
		if (q->tag & TAG_OPENED)
			proto_forget(c, q);
		else
			proto_answer(c, q, PROTO_ERROR, status);
}

/* LAST:32 (the last stream that the server still answers) CODE:32 */
static void goaway(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	struct http2 *h = proto_state(c);
	char status[24];

	if (n < FRAME_HEAD + 8)
		return;
	if (be32(p + FRAME_HEAD + 4) && !c->count && !h->told[from]) {
		snprintf(status, sizeof(status), "goaway %u", be32(p + FRAME_HEAD + 4));
		proto_refused(c, proto_name(c, "GOAWAY", 6), status);
	}
	h->told[from] = true;
	if (from == PROTO_CLIENT)
		return;
	h->going_away = true;
	h->why = be32(p + FRAME_HEAD + 4);
	refuse(c, (be32(p + FRAME_HEAD) & 0x7fffffff) + 1, h->why);
}

/* ---- frames ---- */

static bool frame_is(const uint8_t *p, size_t n, enum proto_side from)
{
	uint32_t len, stream;

	if (n < FRAME_HEAD)
		return false;
	len = be24(p);
	stream = be32(p + 5);
	if (len > FRAME_MAX || stream & 0x80000000u)
		return false;
	switch (p[3]) {
	case DATA:
		return stream && !(p[4] & ~(END_STREAM | PADDED));
	case HEADERS:
		return stream && len &&
		       !(p[4] & ~(END_STREAM | END_HEADERS | PADDED | HAS_PRIORITY));
	case PRIORITY:
		return stream && len == 5;
	case RST_STREAM:
		return stream && len == 4;
	case SETTINGS:
		return !stream && len % 6 == 0 && len < 600 && !(p[4] & 0xfe) &&
		       (!(p[4] & 1) || !len);
	case PUSH_PROMISE:
		return stream && len > 4 && from == PROTO_SERVER;
	case PING:
		return !stream && len == 8 && !(p[4] & 0xfe);
	case GOAWAY:
		return !stream && len >= 8;
	case WINDOW_UPDATE:
		return len == 4;
	case CONTINUATION:
		return stream && !(p[4] & ~END_HEADERS);
	case 0x10:
		return !stream && len >= 4; /* PRIORITY_UPDATE (RFC 9218) */
	case 0x0a:
	case 0x0c:
		return true; /* ALTSVC, ORIGIN */
	}
	return false;
}

/* Whole frames one behind the other, at least `least` of them or one that ends where n does. */
static bool frames_are(const uint8_t *p, size_t n, enum proto_side from, int least)
{
	size_t at = 0;
	int count = 0;

	while (at < n && count < least) {
		if (!frame_is(p + at, n - at, from))
			return n - at < FRAME_HEAD && count;
		at += FRAME_HEAD + be24(p + at);
		count++;
	}
	return at == n || count >= least;
}

static int64_t http2_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct http2 *h = proto_state(c);
	uint32_t len;

	if (from == PROTO_CLIENT && h->preface) {
		if (!bytes_agree(p, n, PREFACE))
			return PROTO_LOST;
		if (n < strlen(PREFACE))
			return PROTO_MORE;
		h->preface = false;
		return (int64_t)strlen(PREFACE);
	}
	if (from == PROTO_SERVER && h->tail_len)
		return data_tail(c, p, n, last);
	if (n < FRAME_HEAD)
		return PROTO_MORE;
	len = be24(p);
	if (!frame_is(p, n, from))
		return PROTO_LOST;
	switch (p[3]) {
	case HEADERS:
	case CONTINUATION:
	case PUSH_PROMISE:
		if (n < FRAME_HEAD + len)
			return last ? PROTO_LOST : PROTO_MORE;
		if (!headers(c, from, p, FRAME_HEAD + len))
			return PROTO_LOST;
		break;
	case DATA:
		if (is_web(c, from, be32(p + 5)))
			return data_web(c, p, n, last);
		data(c, from, be32(p + 5), p[4], len, &(struct payload){0});
		break;
	case RST_STREAM:
		if (n < FRAME_HEAD + 4 && !last)
			return PROTO_MORE;
		reset(c, p, n);
		break;
	case GOAWAY:
		if (n < FRAME_HEAD + 8 && !last)
			return PROTO_MORE;
		goaway(c, from, p, n);
		break;
	}
	return FRAME_HEAD + len;
}

/* Stream 1 is the request that asked for HTTP/2, which was reported with its 101. */
void http2_upgraded(struct proto_conn *c, uint32_t operation)
{
	struct proto_pending *q;

	proto_switch(c, &protocol_http2);
	if (!operation)
		return;
	q = proto_ask(c, operation, 1);
	q->tag = TAG_OPENED;
	q->told = true;
}

static enum proto_guess http2_recognise(const struct proto_first *f)
{
	if (f->n_client && bytes_agree(f->client, f->n_client, PREFACE))
		return f->n_client >= strlen(PREFACE) ? PROTO_YES : PROTO_MAYBE;
	if (f->begun)
		return f->n_client ? PROTO_NO :
		       f->n_server >= 9 && frame_is(f->server, f->n_server, PROTO_SERVER) &&
				       f->server[3] == SETTINGS ?
				     PROTO_MAYBE :
				     PROTO_NO;
	if (f->n_client && !frames_are(f->client, f->n_client, PROTO_CLIENT, 2))
		return PROTO_NO;
	if (f->n_server && !frames_are(f->server, f->n_server, PROTO_SERVER, 2))
		return PROTO_NO;
	/* who asks opens odd streams with HEADERS that carry more than a status */
	if (f->last && !f->n_server && f->n_client)
		return f->client[3] == HEADERS && f->client[8] & 1 ? PROTO_YES : PROTO_NO;
	if (!f->n_client || !f->n_server)
		return f->n_client + f->n_server < 4096 ? PROTO_MAYBE : PROTO_NO;
	return f->client[3] == HEADERS && !(f->client[8] & 1) ? PROTO_NO : PROTO_YES;
}

static bool http2_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	return frames_are(p, n, from, p == c->piece ? 2 : 3) && n >= FRAME_HEAD &&
	       p[3] != CONTINUATION;
}

static void http2_lost(struct proto_conn *c, enum proto_side from)
{
	struct http2 *h = proto_state(c);
	struct http2_side *s = &h->side[from];

	h->preface = false;
	hpack_forget(&s->hpack);
	free(s->block);
	s->block = NULL;
	s->n_block = 0;
	if (from == PROTO_SERVER)
		h->tail_len = 0;
}

static void http2_ended(struct proto_conn *c, enum proto_side from)
{
	const struct http2 *h = proto_state(c);

	if (from == PROTO_SERVER && h->going_away && h->why)
		refuse(c, 1, h->why);
}

static void http2_begin(struct proto_conn *c, bool begun)
{
	struct http2 *h = proto_state(c);

	h->preface = begun;
	hpack_init(&h->side[0].hpack);
	hpack_init(&h->side[1].hpack);
}

static void http2_release(struct proto_conn *c)
{
	struct http2 *h = proto_state(c);

	for (int i = 0; i < 2; i++) {
		hpack_release(&h->side[i].hpack);
		free(h->side[i].block);
	}
}

const struct protocol protocol_http2 = {
	.name = "http2",
	.state_size = sizeof(struct http2),
	.recognise = http2_recognise,
	.begin = http2_begin,
	.step = http2_step,
	.starts = http2_starts,
	.lost = http2_lost,
	.ended = http2_ended,
	.release = http2_release,
};
