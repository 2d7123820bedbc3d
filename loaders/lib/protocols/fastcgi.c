/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fastcgi: FastCGI 1.0 (the specification of Open Market, 1996).
 *
 *   record     VERSION:8 (1) TYPE:8 ID:16 LEN:16 PADDING:8 0:8 CONTENT PADDING, big endian
 *   types      1 BEGIN 2 ABORT 3 END 4 PARAMS 5 STDIN 6 STDOUT 7 STDERR 8 DATA 9 GET_VALUES 10
 *              GET_VALUES_RESULT
 *   BEGIN      ROLE:16 FLAGS:8 0:40 | END  APP_STATUS:32 PROTOCOL_STATUS:8 0:24
 *   PARAMS     a stream: (NAME_LEN VALUE_LEN NAME VALUE)*, lengths of 8 bits, or of 31 with the top
 *              bit set; ends with an empty record
 *   STDOUT     a CGI response: header lines, "Status: ddd" among them (else 200)
 *
 * Matched by id. Operation: METHOD HOST/ROUTE of REQUEST_METHOD, HTTP_HOST and REQUEST_URI (else
 * SCRIPT_NAME). An error is a status of 500 and more, a protocol status that is not 0 ("end 2"), or
 * an application status that is not 0 ("exit 1": the program's exit code).
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/mem.h"

#define HEAD       8
#define PARAMS_MAX 32768
#define HEADERS    1024

enum { BEGIN = 1, ABORT, END, PARAMS, STDIN, STDOUT, STDERR, DATA, GET_VALUES, GET_VALUES_RESULT };
/* A response's tag: its status, where in "Status: ddd" the line at hand is, whether it began, and
 * whether its headers are over. */
enum { TAG_CODE = 0xffff, TAG_PLACE = 16, TAG_BEGUN = 1 << 21, TAG_OVER = 1 << 22 };
enum { PLACE_CODE = 8, PLACE_END = 11, PLACE_ELSE = 31 };

struct fastcgi {
	uint8_t *params; /* of the request whose PARAMS come at the moment */
	size_t n_params;
	uint16_t id;
};

static bool is_record(const uint8_t *p, size_t n)
{
	return n >= HEAD && p[0] == 1 && p[1] >= BEGIN && p[1] <= GET_VALUES_RESULT && !p[7] &&
	       (p[1] >= GET_VALUES) == !be16(p + 2) &&
	       (p[1] > END || p[1] == ABORT || be16(p + 4) == 8);
}

static bool length(const uint8_t *p, size_t n, size_t *at, uint32_t *len)
{
	if (*at >= n)
		return false;
	*len = p[*at];
	if (*len & 0x80) {
		if (n - *at < 4)
			return false;
		*len = be32(p + *at) & 0x7fffffff;
		*at += 4;
	} else {
		*at += 1;
	}
	return true;
}

static void keep(char *to, size_t cap, const uint8_t *p, size_t n)
{
	n = n < cap - 1 ? n : cap - 1;
	for (size_t i = 0; i < n; i++)
		to[i] = p[i] > ' ' && p[i] < 0x7f ? (char)p[i] : '_';
	to[n] = '\0';
}

static uint32_t operation(struct proto_conn *c, const uint8_t *p, size_t n)
{
	char method[20] = "?", host[100] = "", uri[200] = "", script[200] = "", route[ROUTE_MAX];
	uint32_t name, value;
	size_t at = 0;

	while (length(p, n, &at, &name) && length(p, n, &at, &value) && name <= n - at &&
	       value <= n - at - name) {
		static const struct {
			const char *name;
			int which;
		} known[] = {{"REQUEST_METHOD", 0},
			     {"HTTP_HOST", 1},
			     {"REQUEST_URI", 2},
			     {"SCRIPT_NAME", 3}};
		char *const to[] = {method, host, uri, script};
		const size_t cap[] = {sizeof(method), sizeof(host), sizeof(uri), sizeof(script)};

		for (int i = 0; i < 4; i++) {
			const uint8_t *text = p + at + name;
			size_t len = value;

			if (strlen(known[i].name) != name || memcmp(known[i].name, p + at, name))
				continue;
			if (known[i].which == 1)
				route_host(&text, &len);
			if (known[i].which == 2)
				route_absolute(&text, &len, NULL, NULL);
			keep(to[i], cap[i], text, len);
		}
		at += name + value;
	}
	if (proto_payload(c) == PROTO_NONE)
		return proto_name(c, method, strlen(method));
	if (!*uri)
		memcpy(uri, script, sizeof(uri));
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %s%s", method, host, uri);
	proto_route(c, host, strlen(host), (const uint8_t *)uri, strlen(uri), '/', route);
	return proto_namef(c, "%s %s%s", method, host, route);
}

static void params_drop(struct fastcgi *s)
{
	free(s->params);
	s->params = NULL;
	s->n_params = 0;
}

static void params(struct proto_conn *c, uint16_t id, const uint8_t *p, size_t n)
{
	struct fastcgi *s = proto_state(c);
	struct proto_pending *q = proto_find(c, id);

	if (id != s->id)
		return;
	if (n && s->n_params + n <= PARAMS_MAX) {
		s->params = mem_realloc(s->params, s->n_params + n);
		memcpy(s->params + s->n_params, p, n);
		s->n_params += n;
	}
	if (n)
		return;
	if (q)
		q->operation = operation(c, s->params, s->n_params);
	params_drop(s);
}

/* Adds a record to the request that it continues. */
static void more(struct proto_conn *c, const uint8_t *p, uint64_t size)
{
	struct proto_pending *q = proto_find(c, be16(p + 2));

	if (!q)
		return;
	q->request_bytes += size;
	if (!q->first_ns)
		q->sent_ns = c->now_ns;
}

/* The status in the headers of a response, which may lie in several records: a line's place in
 * "Status: ddd" is kept between them. */
static void headers(struct proto_pending *q, const uint8_t *p, size_t n)
{
	static const char WORD[] = "status: ";
	uint32_t code = q->tag & TAG_CODE, place = q->tag >> TAG_PLACE & PLACE_ELSE;
	bool over = n >= HEADERS;

	for (size_t i = 0; i < n && i < HEADERS; i++) {
		if (place > PLACE_CODE && place < PLACE_END && !byte_is_digit(p[i]))
			code = 0;
		if (p[i] == '\n') {
			if (!place) {
				over = true;
				break;
			}
			place = 0;
		} else if (p[i] == '\r' && !place) {
			; /* of the empty line */
		} else if (place >= PLACE_CODE - 1 && place < PLACE_END && byte_is_digit(p[i])) {
			code = (place < PLACE_CODE + 1 ? 0 : code) * 10 + p[i] - '0';
			place = place < PLACE_CODE ? PLACE_CODE + 1 : place + 1;
		} else if (place < PLACE_CODE && (p[i] | 0x20) == WORD[place]) {
			place++;
		} else {
			place = PLACE_ELSE;
		}
	}
	q->tag = code | place << TAG_PLACE | TAG_BEGUN | (over ? TAG_OVER : 0);
}

static void server(struct proto_conn *c, const uint8_t *p, size_t n)
{
	struct proto_pending *q = proto_find(c, be16(p + 2));
	unsigned code, ended = n >= HEAD + 5 ? p[HEAD + 4] : 0,
		       left = n >= HEAD + 4 ? be32(p + HEAD) : 0;
	char status[16] = "";

	if (!q) {
		proto_unowned(c);
		return;
	}
	if (q->doubt)
		proto_unowned(c);
	proto_first_byte(c, q);
	if (p[1] != END) /* the answer has that one's bytes when it is over */
		q->response_bytes += (uint64_t)HEAD + be16(p + 4) + p[6];
	if (p[1] == STDOUT && !(q->tag & TAG_OVER) && be16(p + 4))
		headers(q, p + HEAD, n - HEAD);
	if (p[1] != END)
		return;
	code = q->tag & TAG_CODE;
	if (!code && q->tag & TAG_BEGUN)
		code = 200;
	if (ended)
		snprintf(status, sizeof(status), "end %u", ended);
	else if (left && code < 500)
		snprintf(status, sizeof(status), "exit %u", left);
	else if (code)
		snprintf(status, sizeof(status), "%u", code);
	proto_answer(c, q, code >= 500 || *status == 'e' ? PROTO_ERROR : PROTO_OK, status);
}

static int64_t fastcgi_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			    bool last)
{
	struct fastcgi *s = proto_state(c);
	size_t body, see;

	if (n < HEAD)
		return PROTO_MORE;
	if (!is_record(p, n))
		return PROTO_LOST;
	body = be16(p + 4);
	see = p[1] == PARAMS ? body :
	      p[1] == END    ? 8 :
	      p[1] == STDOUT ? (body < HEADERS ? body : HEADERS) :
			       0;
	if (n - HEAD < see && !last)
		return PROTO_MORE;
	see = see < n - HEAD ? see : n - HEAD;
	if (from == PROTO_SERVER) {
		server(c, p, HEAD + see);
	} else if (p[1] == BEGIN) {
		params_drop(s);
		s->id = be16(p + 2);
		proto_ask(c, 0, s->id);
	} else {
		more(c, p, (uint64_t)HEAD + body + p[6]);
		if (p[1] == PARAMS)
			params(c, be16(p + 2), p + HEAD, see);
	}
	return (int64_t)(HEAD + body + p[6]);
}

static enum proto_guess fastcgi_recognise(const struct proto_first *f)
{
	static const uint8_t begin[] = {1, 1};

	if (!f->n_client)
		return f->n_server && (!is_record(f->server, f->n_server) ||
				       f->server[1] < STDOUT) ?
			       PROTO_NO :
			       PROTO_MAYBE;
	if (memcmp(f->client, begin, f->n_client < 2 ? f->n_client : 2))
		return PROTO_NO;
	if (f->n_client < HEAD + 8)
		return PROTO_MAYBE;
	return is_record(f->client, f->n_client) && be16(f->client + 4) == 8 &&
			       be16(f->client + HEAD) >= 1 && be16(f->client + HEAD) <= 3 &&
			       f->client[HEAD + 2] <= 1 && !le32(f->client + HEAD + 3) &&
			       !f->client[HEAD + 7] ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool fastcgi_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	return p == c->piece && is_record(p, n) &&
	       (from == PROTO_CLIENT ? p[1] == BEGIN : p[1] >= STDOUT || p[1] == END);
}

static void fastcgi_lost(struct proto_conn *c, enum proto_side from)
{
	if (from == PROTO_CLIENT)
		params_drop(proto_state(c));
}

static void fastcgi_release(struct proto_conn *c)
{
	params_drop(proto_state(c));
}

const struct protocol protocol_fastcgi = {
	.name = "fastcgi",
	.ids_again = true,
	.state_size = sizeof(struct fastcgi),
	.recognise = fastcgi_recognise,
	.step = fastcgi_step,
	.starts = fastcgi_starts,
	.lost = fastcgi_lost,
	.release = fastcgi_release,
};
