/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: HTTP/1.0 and 1.1 (RFC 9110, RFC 9112), server-sent events, and the way over to WebSocket,
 * HTTP/2 and tunnels.
 *
 *   request   METHOD SP TARGET SP HTTP/1.x CRLF (NAME: VALUE CRLF)* CRLF BODY
 *   response  HTTP/1.x SP ddd SP REASON CRLF (NAME: VALUE CRLF)* CRLF BODY
 *
 * Body (RFC 9112, 6.3), by the first that holds: none after HEAD, 1xx, 204, 304, or 2xx to CONNECT;
 * chunked, where Transfer-Encoding names it; Content-Length; of a request none, of a response until
 * the end. 1xx but 101 are no answers. Lines may end with LF alone, and be empty before a request.
 * A chunk is HEX[;EXT] CRLF DATA CRLF; after the one of length 0 come trailers up to an empty line.
 *
 * A request that waits for 100 (Expect) may be answered without that: then its body comes, or the
 * next request.
 *
 * ClickHouse's HTTP interface is known by its headers, X-ClickHouse-...; what has a statement is
 * told as ClickHouse's, with the statement as its operation, and fails with
 * X-ClickHouse-Exception-Code, or where that is missing with a status of 400 and more. An exception
 * behind the head of an answer, whose status is 200, is not seen.
 *
 * Operation: METHOD HOST/ROUTE. An error is a status of 500 and more. A response of
 * text/event-stream is an opened stream. The status of a gRPC-Web call is gRPC's own, from the end
 * of its body or from the head (grpcweb.h); if that part of the body was not seen, it is blind.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "loaders/lib/protocols/clickhouse_text.h"
#include "loaders/lib/protocols/grpcweb.h"
#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "loaders/lib/protocols/traceid.h"
#include "schema/base/mem.h"

#define HEAD_MAX   32768
#define METHOD_MAX 20
#define HOST_MAX   100
#define CHUNK_LINE 1024
#define BLANK_MAX  16 /* bytes of empty lines, with nothing behind them */

enum phase { AT_HEAD, AT_CHUNK, AT_TRAILERS, AT_DATA /* of gRPC-Web */ };
enum {
	TAG_HEAD = 1,
	TAG_CONNECT = 2,
	TAG_STATEMENT = 8 /* bits from here on: its operation if it is ClickHouse's */
};

#define CLICKHOUSE_PORT 8123

struct http {
	enum phase phase[2];
	bool stream;              /* the response at hand is one of events: reported already */
	bool unowned;             /* its request was not seen */
	enum proto_result result; /* of the response at hand, while its chunks pass */
	char status[PROTO_STATUS_MAX];
	/* gRPC-Web: the body's end so far, and how many bytes come, of the chunk or of the body */
	struct grpcweb_tail *tail;
	uint64_t left;
	enum grpcweb_form form;
	bool chunked;
	bool clickhouse;  /* the server is */
	uint64_t waits;   /* the body of the last request, before which the client waits for 100 */
	bool waits_chunk; /* likewise: for the first chunk of its body */
};

struct head {
	size_t size; /* with the empty line; 0: its end is not here */
	const uint8_t *host, *upgrade;
	size_t n_host, n_upgrade;
	struct traceid trace;
	uint64_t caller; /* of x-b3-spanid */
	uint8_t trace_rank;
	uint64_t length;
	bool has_length, chunked, events;
	bool clickhouse, expects; /* a header X-ClickHouse-..., Expect */
	uint32_t exception;       /* X-ClickHouse-Exception-Code */
	enum grpcweb_form form;
	int grpc; /* gRPC's status, or GRPCWEB_NONE */
};

static const char *const METHODS[] = {"GET ",     "POST ",  "HEAD ",    "PUT ",   "DELETE ",
				      "OPTIONS ", "PATCH ", "CONNECT ", "TRACE ", NULL};

static size_t method_known(const uint8_t *p, size_t n)
{
	for (const char *const *m = METHODS; *m; m++)
		if (bytes_begin(p, n, *m))
			return strlen(*m);
	return 0;
}

/* METHOD SP, any token of capitals: its length with the space; 0: none; SIZE_MAX: may become one.
 */
static size_t method(const uint8_t *p, size_t n)
{
	size_t i = 0;

	while (i < n && i < METHOD_MAX &&
	       ((p[i] >= 'A' && p[i] <= 'Z') || (i && (p[i] == '-' || p[i] == '_'))))
		i++;
	if (i == n && i < METHOD_MAX)
		return SIZE_MAX;
	return i >= 3 && i < n && p[i] == ' ' ? i + 1 : 0;
}

static bool ends_with_version(const uint8_t *line, size_t n)
{
	return n > 9 && !memcmp(line + n - 9, " HTTP/1.", 8) && byte_is_digit(line[n - 1]);
}

static bool is_status_line(const uint8_t *p, size_t n)
{
	return n >= 12 && !memcmp(p, "HTTP/1.", 7) && byte_is_digit(p[7]) && p[8] == ' ' &&
	       p[9] >= '1' && p[9] <= '9' && byte_is_digit(p[10]) && byte_is_digit(p[11]);
}

static bool is_request_line(const uint8_t *p, size_t n)
{
	size_t whole, line = bytes_line(p, n, &whole), m = method(p, n);

	if (!m || m == SIZE_MAX || m >= n)
		return false;
	if (line != SIZE_MAX)
		return ends_with_version(p, line) && line > m + 9;
	if (!method_known(p, n) || !(p[m] == '/' || p[m] == 'h' || p[m] == '*'))
		return false;
	for (size_t i = m; i < n; i++) /* its end is not here */
		if (p[i] < 0x20 || p[i] >= 0x7f)
			return false;
	return n - m >= 8;
}

static enum proto_guess http_recognise(const struct proto_first *first)
{
	struct proto_first lines = *first, *f = &lines;
	size_t whole, m;

	while (f->n_client && (f->client[0] == '\r' || f->client[0] == '\n')) /* empty lines */
		f->client++, f->n_client--;
	if (first->n_client && !f->n_client)
		return first->n_client <= BLANK_MAX ? PROTO_MAYBE : PROTO_NO;
	if (!f->begun && is_request_line(f->client, f->n_client) &&
	    !method_known(f->client, f->n_client))
		return PROTO_NO; /* the end of a word is one, too */
	if (is_status_line(f->server, f->n_server))
		return f->n_client && !is_request_line(f->client, f->n_client) && f->begun &&
				       f->n_client < HEAD_MAX / 4 &&
				       method(f->client, f->n_client) != SIZE_MAX &&
				       !method(f->client, f->n_client) ?
			       PROTO_NO :
			       PROTO_YES;
	if (f->n_server && !bytes_agree(f->server, f->n_server, "HTTP/1."))
		return PROTO_NO;
	if (!f->n_client)
		return f->n_server ? PROTO_MAYBE : PROTO_NO;
	m = method(f->client, f->n_client);
	if (!m)
		return PROTO_NO;
	if (m == SIZE_MAX)
		return PROTO_MAYBE;
	if (!f->last && bytes_line(f->client, f->n_client, &whole) == SIZE_MAX &&
	    method_known(f->client, f->n_client))
		return PROTO_MAYBE;
	return is_request_line(f->client, f->n_client) ? PROTO_YES : PROTO_NO;
}

static bool http_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	(void)c;
	return from == PROTO_SERVER ? is_status_line(p, n) :
				      method_known(p, n) && is_request_line(p, n);
}

/* ---- a head's fields ---- */

static bool name_is(const uint8_t *line, size_t n, const char *name)
{
	size_t m = strlen(name);

	return n > m && line[m] == ':' && !strncasecmp((const char *)line, name, m);
}

static size_t value_of(const uint8_t *line, size_t n, const uint8_t **value)
{
	const uint8_t *colon = memchr(line, ':', n), *end = line + n;

	for (colon++; colon < end && (*colon == ' ' || *colon == '\t'); colon++)
		;
	while (end > colon && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*value = colon;
	return (size_t)(end - colon);
}

static bool has_word(const uint8_t *p, size_t n, const char *word)
{
	size_t m = strlen(word);

	for (size_t i = 0; i + m <= n; i++)
		if (!strncasecmp((const char *)p + i, word, m))
			return true;
	return false;
}

/* W3C's header before all others, a request's id behind them. */
static void trace_field(struct head *h, enum traceid_form form, const uint8_t *v, size_t n)
{
	static const uint8_t rank[] = {
		[TRACEID_W3C] = 3,   [TRACEID_B3] = 2,  [TRACEID_UBER] = 2,
		[TRACEID_PLAIN] = 2, [TRACEID_SW8] = 2, [TRACEID_REQUEST] = 1};

	if (rank[form] > h->trace_rank && traceid_read(form, v, n, &h->trace))
		h->trace_rank = rank[form];
}

static void length_field(struct head *h, const uint8_t *v, size_t n)
{
	uint64_t length = 0;

	for (size_t i = 0; i < n && byte_is_digit(v[i]); i++)
		length = length > UINT64_MAX / 16 ? length : length * 10 + (v[i] - '0');
	h->has_length = n && byte_is_digit(v[0]);
	h->length = length < PROTO_STEP_MAX / 2 ? length : PROTO_STEP_MAX / 2;
}

static void clickhouse_field(struct head *h, const uint8_t *line, size_t n, const uint8_t *v,
			     size_t m)
{
	h->clickhouse = true;
	if (!name_is(line, n, "x-clickhouse-exception-code"))
		return;
	for (size_t i = 0; i < m && byte_is_digit(v[i]) && h->exception < 1000000; i++)
		h->exception = h->exception * 10 + (v[i] - '0');
}

static void field(struct head *h, const uint8_t *line, size_t n)
{
	const uint8_t *v;
	size_t m;

	if (!memchr(line, ':', n))
		return;
	m = value_of(line, n, &v);
	switch (line[0] | 0x20) {
	case 'h':
		if (name_is(line, n, "host"))
			h->host = v, h->n_host = m;
		break;
	case 'c':
		if (name_is(line, n, "content-length"))
			length_field(h, v, m);
		else if (name_is(line, n, "content-type")) {
			h->events = has_word(v, m, "text/event-stream");
			h->form = grpcweb_form(v, m);
		}
		break;
	case 'e':
		h->expects |= name_is(line, n, "expect");
		break;
	case 'g':
		if (name_is(line, n, "grpc-status") && m && byte_is_digit(v[0]))
			h->grpc = m > 1 && byte_is_digit(v[1]) ? (v[0] - '0') * 10 + v[1] - '0' :
								 v[0] - '0';
		break;
	case 't':
		if (name_is(line, n, "transfer-encoding"))
			h->chunked |= has_word(v, m, "chunked");
		else if (name_is(line, n, "traceparent"))
			trace_field(h, TRACEID_W3C, v, m);
		break;
	case 'u':
		if (name_is(line, n, "uber-trace-id"))
			trace_field(h, TRACEID_UBER, v, m);
		if (name_is(line, n, "upgrade"))
			h->upgrade = v, h->n_upgrade = m;
		break;
	case 'b':
		if (name_is(line, n, "b3"))
			trace_field(h, TRACEID_B3, v, m);
		break;
	case 'x':
		if (name_is(line, n, "x-b3-traceid"))
			trace_field(h, TRACEID_PLAIN, v, m);
		else if (name_is(line, n, "x-b3-spanid"))
			h->caller = traceid_span(v, m);
		else if (name_is(line, n, "x-request-id"))
			trace_field(h, TRACEID_REQUEST, v, m);
		else if (n > 13 && !strncasecmp((const char *)line, "x-clickhouse-", 13))
			clickhouse_field(h, line, n, v, m);
		break;
	case 's':
		if (name_is(line, n, "sw8"))
			trace_field(h, TRACEID_SW8, v, m);
		break;
	}
}

static void head_read(struct head *h, const uint8_t *p, size_t n)
{
	size_t whole, line, at = 0;
	bool first = true;

	memset(h, 0, sizeof(*h));
	h->grpc = GRPCWEB_NONE;
	while (at < n) {
		line = bytes_line(p + at, n - at, &whole);
		if (line == SIZE_MAX)
			return;
		if (!line && !first) {
			h->size = at + whole;
			return;
		}
		if (!first)
			field(h, p + at, line);
		first = false;
		at += whole;
	}
}

/* ---- requests ---- */

static uint32_t operation(struct proto_conn *c, const uint8_t *p, size_t m, size_t line,
			  const struct head *h)
{
	const uint8_t *target = p + m, *host = h->host;
	size_t n = line, n_host = h->n_host;
	bool of_head, cut; /* the host is; the line's end is missing */
	char route[ROUTE_MAX];

	while (n > m && target[n - m - 1] != ' ') /* cut the version off, if it is here */
		n--;
	n = ends_with_version(p, line) ? n - m - 1 : line - m;
	if (proto_payload(c) == PROTO_NONE)
		return proto_name(c, (const char *)p, m - 1);
	cut = !ends_with_version(p, line);
	of_head = !route_absolute(&target, &n, &host, &n_host);
	if (of_head && (!n || target[0] != '/')) {
		route_host(&target, &n); /* CONNECT's, OPTIONS * */
		n = cut ? 0 : n;
		return proto_namef(c, "%.*s%.*s", (int)m, (const char *)p,
				   (int)(n < HOST_MAX ? n : HOST_MAX), (const char *)target);
	}
	if (host)
		route_host(&host, &n_host);
	if (!of_head && cut && !n) /* a truncated authority may be a user name */
		n_host = 0;
	n_host = n_host < HOST_MAX ? n_host : HOST_MAX;
	if (of_head && proto_payload(c) != PROTO_FULL && route_is_address(host, n_host))
		n_host = 0;
	for (size_t i = 0; i < n_host; i++)
		if (host[i] <= ' ' || host[i] == '/' || host[i] >= 0x7f)
			n_host = i;
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%.*s%.*s%.*s", (int)m, (const char *)p, (int)n_host,
				   (const char *)host, (int)(n < 200 ? n : 200),
				   (const char *)target);
	/* its end is missing: what is here of the last part is no name */
	if (cut) {
		while (n && target[n - 1] != '/')
			n--;
		proto_route(c, host, n_host, target, n, '/', route);
		return proto_namef(c, "%.*s%s...", (int)m, (const char *)p, route);
	}
	proto_route(c, host, n_host, target, n, '/', route);
	return proto_namef(c, "%.*s%.*s%s", (int)m, (const char *)p, (int)n_host,
			   (const char *)host, route);
}

/* A request that may be ClickHouse's: the statement in it. */
struct statement {
	const uint8_t *text;
	size_t n, looked; /* looked: bytes of the request up to where it was looked for */
	bool cut, more;   /* more: bytes of it that are still to come are needed */
	uint8_t parameter[PROTO_LOOK];
};

/* In the body, or its first chunk. */
static void body_statement(struct statement *x, const struct head *h, const uint8_t *p, size_t n)
{
	const size_t have = n - h->size;
	size_t at = 0, want, whole;
	uint64_t size = h->length;

	if (h->chunked)
		size = clickhouse_chunk(p + h->size, have, &at);
	want = size < PROTO_LOOK ? (size_t)size : PROTO_LOOK;
	whole = at + want;
	x->n = have < whole ? have - (at < have ? at : have) : want;
	x->more = have < whole || (h->chunked && !at && have < CHUNK_LINE);
	x->cut = x->n < size;
	x->text = p + h->size + at;
	x->looked = h->size + (have < whole ? have : whole);
}

/* Its statement, if it has one; else n is 0. m, line: where the target begins, where the line ends.
 */
static void statement_read(struct statement *x, const uint8_t *p, size_t n, size_t m, size_t line,
			   const struct head *h)
{
	size_t end = line;

	x->n = 0;
	x->more = x->cut = false;
	x->looked = h->size;
	while (end > m && p[end - 1] != ' ')
		end--;
	if (!h->size || end <= m + 1 || !clickhouse_is_target(p + m, end - 1 - m) ||
	    !(bytes_begin(p, n, "GET ") || bytes_begin(p, n, "POST ")))
		return;
	x->n = clickhouse_parameter(p + m, end - 1 - m, x->parameter, &x->cut);
	x->text = x->parameter;
	if (!x->n && p[0] == 'P' && !h->expects)
		body_statement(x, h, p, n);
	if (!clickhouse_is_statement(x->text, x->n) && !x->more)
		x->n = 0;
}

static void statement_tell(struct proto_pending *q, uint32_t operation)
{
	q->operation = operation;
	q->as = protocol_clickhouse.name;
}

static int64_t request(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct http *s = proto_state(c);
	size_t whole = 0, m, line, blank = 0;
	struct statement x = {.n = 0};
	struct proto_pending *q;
	struct head h;

	while (blank < n && (p[blank] == '\r' || p[blank] == '\n'))
		blank++;
	if (blank == n)
		return (int64_t)n;
	if (blank)
		return (int64_t)blank;
	m = method(p, n);
	line = bytes_line(p, n, &whole);
	if (!m || (line != SIZE_MAX && !ends_with_version(p, line)))
		return PROTO_LOST;
	head_read(&h, p, n);
	if (!h.size && !last && n < HEAD_MAX)
		return PROTO_MORE;
	if (m == SIZE_MAX || (line == SIZE_MAX && !is_request_line(p, n)))
		return PROTO_LOST;
	if (line != SIZE_MAX && proto_payload(c) != PROTO_NONE)
		statement_read(&x, p, n, m, line, &h);
	if (x.more && !last && (s->clickhouse || h.clickhouse || c->port == CLICKHOUSE_PORT))
		return PROTO_MORE;
	if (x.n && !clickhouse_is_statement(x.text, x.n))
		x.n = 0;
	q = proto_ask(c, operation(c, p, m, line == SIZE_MAX ? n : line, &h), 0);
	q->tag = bytes_begin(p, n, "HEAD ")    ? TAG_HEAD :
		 bytes_begin(p, n, "CONNECT ") ? TAG_CONNECT :
						 0;
	if (x.n && (s->clickhouse || h.clickhouse))
		statement_tell(q, clickhouse_operation(c, x.text, x.n, x.cut));
	else if (x.n)
		q->tag |= clickhouse_operation(c, x.text, x.n, x.cut) << TAG_STATEMENT;
	if (h.trace.n)
		proto_trace(q, h.trace.text, h.trace.n);
	q->caller = h.trace.caller ? h.trace.caller : h.trace.n ? h.caller : 0;
	if (!h.size)
		return PROTO_LOST; /* where it ends cannot be known */
	if (h.chunked) {
		s->phase[PROTO_CLIENT] = AT_CHUNK;
		proto_goes_on(c);
	}
	s->waits = h.expects && !h.chunked ? h.length : 0;
	s->waits_chunk = h.expects && h.chunked;
	c->looked = x.n ? x.looked : h.size;
	return (int64_t)(h.size + (h.chunked ? 0 : h.length));
}

/* ---- responses ---- */

/* The status of a gRPC-Web call whose body is over. */
static void grpc_result(struct http *s, int code)
{
	code = code == GRPCWEB_NONE ? GRPC_CODE_UNKNOWN : code; /* gRPC's clients say so, too */
	s->result = code ? PROTO_ERROR : PROTO_OK;
	snprintf(s->status, sizeof(s->status), "%s", grpc_code_name(code));
}

/* A response of gRPC-Web with status 200: the bytes of its body are looked at. false: that need
 * not be. */
static bool grpc_begins(struct proto_conn *c, struct http *s, const struct head *h)
{
	s->form = GRPCWEB_NOT;
	if (h->grpc != GRPCWEB_NONE) {
		grpc_result(s, h->grpc);
		return false;
	}
	if (!h->chunked && h->has_length && !h->length) {
		grpc_result(s, GRPCWEB_NONE);
		return false;
	}
	s->form = h->form;
	s->chunked = h->chunked;
	s->left = h->chunked ? 0 : h->has_length ? h->length : UINT64_MAX;
	s->phase[PROTO_SERVER] = h->chunked ? AT_CHUNK : AT_DATA;
	free(s->tail);
	s->tail = mem_alloc(sizeof(*s->tail));
	c->ends_matter = true;
	proto_goes_on(c);
	return true;
}

static void grpc_ends(struct http *s)
{
	free(s->tail);
	s->tail = NULL;
	s->form = GRPCWEB_NOT;
}

/* `q`: NULL if its request was not seen. */
static void upgraded(struct proto_conn *c, struct proto_pending *q, const struct head *h)
{
	const uint32_t operation = q ? q->operation : 0;

	if (q)
		proto_opened(c, q, "101");
	if (h->n_upgrade >= 9 && !strncasecmp((const char *)h->upgrade, "websocket", 9))
		proto_switch(c, &protocol_websocket);
	else if (h->n_upgrade >= 3 && !strncasecmp((const char *)h->upgrade, "h2c", 3))
		http2_upgraded(c, operation);
	else
		proto_switch(c, NULL);
}

static int64_t response(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct http *s = proto_state(c);
	struct proto_pending *q;
	struct head h;
	int code;

	if (n < 12 && !last)
		return bytes_agree(p, n, "HTTP/1.") ? PROTO_MORE : PROTO_LOST;
	if (!is_status_line(p, n))
		return PROTO_LOST;
	head_read(&h, p, n);
	if (!h.size && !last && n < HEAD_MAX)
		return PROTO_MORE;
	code = (p[9] - '0') * 100 + (p[10] - '0') * 10 + (p[11] - '0');
	q = proto_oldest(c);
	if (code < 200 && code != 101)
		return h.size ? (int64_t)h.size : PROTO_LOST;
	if (q)
		proto_first_byte(c, q);
	s->clickhouse |= h.clickhouse;
	if (q && h.clickhouse && q->tag >> TAG_STATEMENT)
		statement_tell(q, q->tag >> TAG_STATEMENT);
	s->result = code >= (q && q->as ? 400 : 500) || h.exception ? PROTO_ERROR : PROTO_OK;
	if (h.exception)
		snprintf(s->status, sizeof(s->status), "%u", h.exception);
	else
		snprintf(s->status, sizeof(s->status), "%.3s", (const char *)p + 9);
	if (q && s->waits && q == proto_newest(c) && c->dir[PROTO_CLIENT].skip == s->waits)
		c->dir[PROTO_CLIENT].optional = true;
	s->stream = false;
	s->unowned = !q && !proto_newest(c);
	if (s->unowned)
		proto_unowned(c);
	if (code == 101) {
		upgraded(c, q, &h);
		return h.size ? (int64_t)h.size : (int64_t)n;
	}
	if (q && q->tag & TAG_CONNECT && code < 300) {
		proto_opened(c, q, s->status);
		proto_switch(c, NULL);
		return h.size ? (int64_t)h.size : (int64_t)n;
	}
	if (q && h.events) {
		proto_opened(c, q, s->status);
		s->stream = true;
		q = NULL;
	}
	if (q && h.size && h.form && code == 200 && !(q->tag & TAG_HEAD) && grpc_begins(c, s, &h))
		return (int64_t)h.size;
	if (h.size && h.chunked && code != 204 && code != 304 && !(q && q->tag & TAG_HEAD)) {
		s->phase[PROTO_SERVER] = AT_CHUNK;
		proto_goes_on(c);
		return (int64_t)h.size;
	}
	if (!h.size) {
		if (q)
			proto_answer(c, q, s->result, s->status);
		return PROTO_LOST;
	}
	if (code == 204 || code == 304 || (q && q->tag & TAG_HEAD))
		h.length = 0, h.has_length = true;
	if (q)
		proto_answer(c, q, s->result, s->status);
	c->looked = h.size;
	return h.has_length ? (int64_t)(h.size + h.length) : PROTO_ALL;
}

/* ---- chunks ---- */

static int64_t chunk(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		     bool last)
{
	struct http *s = proto_state(c);
	size_t whole, line = bytes_line(p, n, &whole), i = 0;
	uint64_t size = 0;

	if (line == SIZE_MAX)
		return last || n > CHUNK_LINE ? PROTO_LOST : PROTO_MORE;
	for (; i < line; i++) {
		uint8_t l = p[i] | 0x20;
		int v = byte_is_digit(p[i]) ? p[i] - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : 16;

		if (v == 16)
			break;
		if (size > PROTO_STEP_MAX / 32)
			return PROTO_LOST;
		size = size * 16 + (uint64_t)v;
	}
	if (!i || (i < line && p[i] != ';' && p[i] != ' ' && p[i] != '\t'))
		return PROTO_LOST;
	if (!size)
		s->phase[from] = AT_TRAILERS;
	proto_goes_on(c);
	if (size && from == PROTO_SERVER && s->form) {
		s->phase[from] = AT_DATA;
		s->left = size;
		return (int64_t)whole;
	}
	return (int64_t)(whole + (size ? size + 2 : 0));
}

static void body_over(struct proto_conn *c, enum proto_side from)
{
	struct http *s = proto_state(c);
	struct proto_pending *q = from == PROTO_SERVER && !s->stream ? proto_oldest(c) : NULL;

	if (from == PROTO_SERVER && s->form) {
		const int code = grpcweb_status(s->form, s->tail->bytes, s->tail->n);

		grpc_result(s, code);
		if (code == GRPCWEB_NONE && s->tail->cut) { /* it may begin before what was kept */
			s->result = PROTO_BLIND;
			s->status[0] = '\0';
		}
		grpc_ends(s);
	}
	s->phase[from] = AT_HEAD;
	if (from == PROTO_SERVER)
		s->stream = false;
	if (q)
		proto_answer(c, q, s->result, s->status);
}

/* Bytes of the body of a gRPC-Web response. */
static int64_t data(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct http *s = proto_state(c);
	const size_t k = n < s->left ? n : (size_t)s->left;
	const uint64_t rest = s->left;

	if (rest != UINT64_MAX && rest > GRPCWEB_TAIL) { /* its end will do */
		s->left = GRPCWEB_TAIL;
		s->tail->n = 0;
		s->tail->cut = true;
		c->looked = 1;
		proto_goes_on(c);
		return (int64_t)(rest - GRPCWEB_TAIL);
	}
	grpcweb_keep(s->tail, p, k);
	s->left -= s->left == UINT64_MAX ? 0 : k;
	if (s->left || s->chunked)
		proto_goes_on(c);
	else
		body_over(c, PROTO_SERVER);
	if (s->left || !s->chunked)
		return (int64_t)k;
	s->phase[PROTO_SERVER] = AT_CHUNK;
	return (int64_t)k + 2;
}

/* After an answer that came without 100 the body comes, or the next request instead. */
static int64_t first_chunk(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct http *s = proto_state(c);
	size_t m = method(p, n);

	if (proto_newest(c)) /* not answered yet */
		m = 0;
	else if (m && !last && (m == SIZE_MAX || memchr(p, '\n', n) == NULL) && n < HEAD_MAX)
		return PROTO_MORE;
	s->waits_chunk = false;
	if ((!m || m == SIZE_MAX || !is_request_line(p, n)) && p[0] != '\r' && p[0] != '\n')
		return chunk(c, PROTO_CLIENT, p, n, last);
	s->phase[PROTO_CLIENT] = AT_HEAD;
	proto_begins_anew(c);
	return request(c, p, n, last);
}

static int64_t trailers(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			bool last)
{
	size_t whole, line = bytes_line(p, n, &whole);

	if (line == SIZE_MAX)
		return last || n > HEAD_MAX ? PROTO_LOST : PROTO_MORE;
	if (!line)
		body_over(c, from);
	else
		proto_goes_on(c);
	return (int64_t)whole;
}

static int64_t http_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			 bool last)
{
	const struct http *s = proto_state(c);

	if (s->phase[from] != AT_HEAD && from == PROTO_SERVER && s->unowned)
		proto_unowned(c);
	if (s->phase[from] == AT_CHUNK && from == PROTO_CLIENT && s->waits_chunk)
		return first_chunk(c, p, n, last);
	if (s->phase[from] == AT_CHUNK)
		return chunk(c, from, p, n, last);
	if (s->phase[from] == AT_TRAILERS)
		return trailers(c, from, p, n, last);
	if (s->phase[from] == AT_DATA)
		return data(c, p, n);
	return from == PROTO_CLIENT ? request(c, p, n, last) : response(c, p, n, last);
}

/* The status of a response is known even if its chunks are lost. The connection itself turns an
 * answer that its end cuts off into a no-answer. */
static void http_lost(struct proto_conn *c, enum proto_side from)
{
	struct http *s = proto_state(c);
	struct proto_pending *q = from == PROTO_SERVER ? proto_oldest(c) : NULL;

	if (from == PROTO_SERVER && s->form) { /* what came of its body does not say its status */
		grpc_ends(s);
		s->phase[from] = AT_HEAD;
		if (q)
			proto_answer(c, q, PROTO_BLIND, "");
		return;
	}
	if (s->phase[from] != AT_HEAD)
		body_over(c, from);
}

/* The response at hand may end with the connection: a gRPC-Web one is whole if its status came. */
static void http_ended(struct proto_conn *c, enum proto_side from)
{
	struct http *s = proto_state(c);

	if (from == PROTO_SERVER && s->form) {
		if (s->left == UINT64_MAX &&
		    grpcweb_status(s->form, s->tail->bytes, s->tail->n) != GRPCWEB_NONE)
			c->cutting = false;
		body_over(c, from);
		if (c->done.set && c->cutting)
			c->done.result = PROTO_OK; /* it becomes what was cut */
		return;
	}
	http_lost(c, from);
}

static void http_release(struct proto_conn *c)
{
	free(((struct http *)proto_state(c))->tail);
}

const struct protocol protocol_http = {
	.name = "http",
	.in_order = true,
	.state_size = sizeof(struct http),
	.recognise = http_recognise,
	.step = http_step,
	.starts = http_starts,
	.lost = http_lost,
	.ended = http_ended,
	.release = http_release,
};
