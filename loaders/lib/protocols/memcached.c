/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memcached: the text protocol with its meta commands, and the binary one (memcached's
 * doc/protocol.txt; "Binary Protocol Revamped").
 *
 *   storage    set|add|replace|append|prepend|cas KEY FLAGS EXPIRES BYTES [CAS] [noreply] CRLF DATA
 *              CRLF -> one line
 *   retrieval  get|gets KEY*, gat|gats EXPIRES KEY* CRLF -> (VALUE KEY FLAGS BYTES [CAS] CRLF DATA
 *              CRLF)* END CRLF
 *   others     delete|incr|decr|touch KEY ... [noreply], flush_all, version, verbosity, stats (STAT
 *              lines, END), quit
 *   meta       mg|md|ma|me|mn KEY FLAGS*, ms KEY BYTES FLAGS* CRLF DATA CRLF -> VA BYTES ... CRLF
 *              DATA CRLF | HD | EN | NS | EX | NF | MN | ME
 *              with the flag q: no answer for the ordinary case; an answer with the flag O is that
 *              request's
 *   binary     80 request, 81 response | OPCODE:8 KEY:16 EXTRAS:8 TYPE:8 STATUS:16 BODY:32
 *              OPAQUE:32 CAS:64 BODY
 *              quiet opcodes are answered only by what is out of the ordinary
 *
 * Text answers come in order; if the next answer belongs to another request (mn, noop), a
 * quiet one has no answer: it is one way. Binary: matched by opaque.
 */
#include <strings.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"
#include "schema/base/array.h"

#define LINE_MAX  8192 /* a get of many keys; what is longer is cut */
#define KEY_MAX   250
#define HEADER    24
#define VALUE_MAX (1u << 30)

enum { TAG_LINE, TAG_VALUES, TAG_STATS };

struct memcached {
	bool binary;
	bool hit; /* of the get at hand */
	bool asked;
};

static bool is(const uint8_t *p, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(p, word, n);
}

static bool one_of(const uint8_t *p, size_t n, const char *words)
{
	for (const char *w = words; *w; w += strspn(w, " ")) {
		size_t m = strcspn(w, " ");

		if (m == n && !memcmp(w, p, n))
			return true;
		w += m;
	}
	return false;
}

static bool number(const uint8_t *p, size_t n, uint64_t *v)
{
	*v = 0;
	for (size_t i = 0; i < n; i++) {
		if (!byte_is_digit(p[i]) || i > 10)
			return false;
		*v = *v * 10 + (p[i] - '0');
	}
	return n > 0;
}

static const char STORAGE
	[] = "set add replace append prepend cas",
 RETRIEVAL[] = "get gets gat gats",
 OTHERS[] =
	 "delete incr decr touch flush_all version verbosity stats quit shutdown cache_memlimit watch lru slabs misbehave",
 META[] = "mg ms md ma me mn";

static uint32_t operation(struct proto_conn *c, const uint8_t *cmd, size_t n_cmd,
			  const uint8_t *key, size_t n_key)
{
	char out[64 + ROUTE_MAX];
	uint8_t clean[KEY_MAX];
	size_t n = n_cmd < 32 ? n_cmd : 32;

	memcpy(out, cmd, n);
	if (!n_key || proto_payload(c) == PROTO_NONE)
		return proto_name(c, out, n);
	n_key = n_key < KEY_MAX ? n_key : KEY_MAX;
	out[n++] = ' ';
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%.*s%.*s", (int)n, out, (int)n_key, (const char *)key);
	for (size_t i = 0; i < n_key; i++)
		clean[i] = key[i] <= ' ' || key[i] == 0x7f ? '_' : key[i];
	n += proto_route(c, NULL, 0, clean, n_key, ':', out + n);
	return proto_name(c, out, n);
}

/* ---- text ---- */

static bool meta_flag(const struct byte_words *w, char flag)
{
	for (size_t i = 2; i < w->count; i++)
		if (w->p[i][0] == (uint8_t)flag)
			return true;
	return false;
}

static int64_t request(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	size_t whole = 0, line = bytes_line(p, n, &whole), data = 0;
	bool storage, retrieval, meta, quiet;
	struct byte_words w;
	uint64_t bytes;
	size_t key;

	if (line == SIZE_MAX)
		return last || n > LINE_MAX ? PROTO_LOST : PROTO_MORE;
	bytes_words(p, line, &w);
	if (!w.count)
		return (int64_t)whole;
	storage = one_of(w.p[0], w.n[0], STORAGE);
	retrieval = one_of(w.p[0], w.n[0], RETRIEVAL);
	meta = one_of(w.p[0], w.n[0], META);
	if (!storage && !retrieval && !meta && !one_of(w.p[0], w.n[0], OTHERS))
		return PROTO_LOST;
	if (storage || is(w.p[0], w.n[0], "ms")) {
		size_t at = storage ? 4 : 2;

		if (w.count <= at || !number(w.p[at], w.n[at], &bytes) || bytes > VALUE_MAX)
			return w.count > at ? PROTO_LOST : (int64_t)whole;
		data = (size_t)bytes + 2;
	}
	if (is(w.p[0], w.n[0], "quit"))
		return (int64_t)whole;
	quiet = line >= 8 && !memcmp(p + line - 7, "noreply", 7);
	quiet |= meta && !is(w.p[0], w.n[0], "mn") && meta_flag(&w, 'q');
	key = w.n[0] >= 3 && !memcmp(w.p[0], "gat", 3) ? 2 :
	      one_of(w.p[0], w.n[0],
		     "stats flush_all verbosity version mn watch lru slabs cache_memlimit") ?
							 8 :
							 1;
	((struct memcached *)proto_state(c))->asked = true;
	if (quiet)
		proto_one_way(c, operation(c, w.p[0], w.n[0], key < w.count ? w.p[key] : NULL,
					   key < w.count ? w.n[key] : 0));
	else
		proto_ask(c,
			  operation(c, w.p[0], w.n[0], key < w.count ? w.p[key] : NULL,
				    key < w.count ? w.n[key] : 0),
			  0)
			->tag = retrieval                   ? TAG_VALUES :
				is(w.p[0], w.n[0], "stats") ? TAG_STATS :
							      TAG_LINE;
	return (int64_t)(whole + data);
}

static const char LINES[] =
	"STORED NOT_STORED EXISTS NOT_FOUND DELETED TOUCHED OK END VERSION HD EN NS EX NF MN ME RESET BUSY";

static bool is_error(const struct byte_words *w)
{
	return one_of(w->p[0], w->n[0], "ERROR CLIENT_ERROR SERVER_ERROR");
}

static int64_t value_size(const struct byte_words *w, size_t at, size_t whole)
{
	uint64_t bytes;

	if (w->count <= at || !number(w->p[at], w->n[at], &bytes) || bytes > VALUE_MAX)
		return PROTO_LOST;
	return (int64_t)(whole + bytes + 2);
}

static int64_t reply(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct memcached *s = proto_state(c);
	size_t whole = 0, line = bytes_line(p, n, &whole);
	struct proto_pending *q = proto_oldest(c);
	char status[PROTO_STATUS_MAX] = "";
	struct byte_words w;
	int64_t size;
	uint64_t v;

	if (line == SIZE_MAX)
		return last || n > LINE_MAX ? PROTO_LOST : PROTO_MORE;
	bytes_words(p, line, &w);
	if (!w.count)
		return PROTO_LOST;
	if (q)
		proto_first_byte(c, q);
	if (is(w.p[0], w.n[0], "VALUE")) {
		s->hit = true;
		return value_size(&w, 3, whole);
	}
	if (is(w.p[0], w.n[0], "STAT") || is(w.p[0], w.n[0], "ITEM"))
		return (int64_t)whole;
	size = is(w.p[0], w.n[0], "VA") ? value_size(&w, 1, whole) : (int64_t)whole;
	if (size < 0 || (size == (int64_t)whole && !is_error(&w) &&
			 !one_of(w.p[0], w.n[0], LINES) && !number(w.p[0], w.n[0], &v)))
		return PROTO_LOST;
	if (!q && is_error(&w) && c->begun && !s->asked) {
		proto_refused(c, proto_name(c, "CONNECT", 7), "ERROR");
		return size;
	}
	/* of a quiet one, out of the ordinary */
	if (!q ||
	    (meta_flag(&w, 'q') && w.n[0] == 2 && q->tag == TAG_LINE && !is(w.p[0], w.n[0], "MN")))
		return size;
	if (is_error(&w) || (q->tag == TAG_LINE && !number(w.p[0], w.n[0], &v))) {
		size_t m = w.n[0] < sizeof(status) - 1 ? w.n[0] : sizeof(status) - 1;

		memcpy(status, w.p[0], m);
		status[m] = '\0';
	} else if (q->tag == TAG_VALUES) {
		strcpy(status, s->hit ? "HIT" : "MISS");
	}
	s->hit = false;
	proto_answer(c, q, is_error(&w) ? PROTO_ERROR : PROTO_OK, status);
	return size;
}

/* ---- binary ---- */

static const char *const OPCODES[] = {
	"get",    "set",     "add",   "replace", "delete",    "incr",      "decr",
	"quit",   "flush",   "getq",  "noop",    "version",   "getk",      "getkq",
	"append", "prepend", "stat",  "setq",    "addq",      "replaceq",  "deleteq",
	"incrq",  "decrq",   "quitq", "flushq",  "appendq",   "prependq",  "verbosity",
	"touch",  "gat",     "gatq",  "hello",   "sasl-list", "sasl-auth", "sasl-step"};

static bool is_header(const uint8_t *p, size_t n, uint8_t magic)
{
	return n >= HEADER && p[0] == magic && p[1] < ARRAY_SIZE(OPCODES) && !p[5] &&
	       be32(p + 8) <= VALUE_MAX && be16(p + 2) + p[4] <= be32(p + 8) &&
	       be16(p + 2) <= KEY_MAX && p[4] <= 24 &&
	       (magic == 0x81 ? be16(p + 6) < 0x90 : !be16(p + 6));
}

static bool is_quiet(uint8_t op)
{
	return op == 9 || op == 13 || (op >= 17 && op <= 26) || op == 30;
}

static int64_t binary(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
		      bool last)
{
	struct proto_pending *q;
	char status[8];
	size_t key, see;

	if (n < HEADER)
		return p[0] == (from == PROTO_CLIENT ? 0x80 : 0x81) ? PROTO_MORE : PROTO_LOST;
	if (!is_header(p, n, from == PROTO_CLIENT ? 0x80 : 0x81))
		return PROTO_LOST;
	key = be16(p + 2);
	see = HEADER + p[4] + (from == PROTO_CLIENT ? key : 0);
	if (n < see && !last)
		return PROTO_MORE;
	if (from == PROTO_CLIENT) {
		uint32_t op = operation(c, (const uint8_t *)OPCODES[p[1]], strlen(OPCODES[p[1]]),
					n >= see ? p + HEADER + p[4] : NULL, n >= see ? key : 0);

		if (is_quiet(p[1]))
			proto_one_way(c, op);
		else if (p[1] != 7)
			proto_ask(c, op, be32(p + 12))->tag = p[1];
		return HEADER + (int64_t)be32(p + 8);
	}
	q = proto_find(c, be32(p + 12));
	if (q && q->tag == p[1] && !(p[1] == 16 && key)) { /* a stat without a key is the last */
		unsigned code = be16(p + 6);

		status[0] = '\0';
		if (code)
			strcpy(status, code == 1 ? "MISS" :
				       code == 2 ? "EXISTS" :
				       code == 5 ? "NOTSTO" :
						   "ERROR");
		proto_answer(c, q, code > 5 ? PROTO_ERROR : PROTO_OK, status);
	} else if (!q && is_quiet(p[1]) && be16(p + 6) > 5) { /* that went one way */
		proto_refused(c, proto_name(c, OPCODES[p[1]], strlen(OPCODES[p[1]])), "ERROR");
	}
	return HEADER + (int64_t)be32(p + 8);
}

static int64_t memcached_step(struct proto_conn *c, enum proto_side from, const uint8_t *p,
			      size_t n, bool last)
{
	struct memcached *s = proto_state(c);

	if (!s->binary && (p[0] == 0x80 || p[0] == 0x81))
		s->binary = true;
	if (s->binary)
		return binary(c, from, p, n, last);
	return from == PROTO_CLIENT ? request(c, p, n, last) : reply(c, p, n, last);
}

/* 1 yes, 0 no, -1 more is needed. */
static int request_is(const uint8_t *p, size_t n)
{
	size_t whole, line = bytes_line(p, n, &whole), word = 0;
	struct byte_words w;
	uint64_t v;

	if (n && p[0] == 0x80)
		return n < HEADER ? -1 : is_header(p, n, 0x80);
	while (word < n && word < 10 && ((p[word] >= 'a' && p[word] <= 'z') || p[word] == '_'))
		word++;
	if (word == n && n < 10)
		return -1;
	if (!one_of(p, word, STORAGE) && !one_of(p, word, RETRIEVAL) &&
	    !one_of(p, word, "delete incr decr touch version stats flush_all") &&
	    !one_of(p, word, META))
		return 0;
	if (line == SIZE_MAX)
		return n < LINE_MAX ? -1 : 0;
	if (p[line] != '\r')
		return 0;
	bytes_words(p, line, &w);
	if (one_of(p, word, STORAGE))
		return w.count >= 5 && number(w.p[2], w.n[2], &v) && number(w.p[4], w.n[4], &v);
	return w.count > 1 || one_of(p, word, "version stats flush_all mn");
}

static int reply_is(const uint8_t *p, size_t n)
{
	size_t whole, line = bytes_line(p, n, &whole);
	struct byte_words w;
	uint64_t v;

	if (n && p[0] == 0x81)
		return n < HEADER ? -1 : is_header(p, n, 0x81);
	if (line == SIZE_MAX)
		return n < 40 ? -1 : n >= 6 && !memcmp(p, "VALUE ", 6) ? -1 : 0;
	bytes_words(p, line, &w);
	return w.count && p[line] == '\r' &&
	       (is_error(&w) || one_of(w.p[0], w.n[0], LINES) ||
		one_of(w.p[0], w.n[0], "VALUE STAT VA") || number(w.p[0], w.n[0], &v));
}

#define REFUSAL "ERROR Too many open connections\r\n"

/* Is it all that a server sends that has too many connections? */
static enum proto_guess refusal(const struct proto_first *f)
{
	if (!f->begun || f->n_client || f->n_server > strlen(REFUSAL) ||
	    !bytes_agree(f->server, f->n_server, REFUSAL))
		return PROTO_NO;
	return f->n_server == strlen(REFUSAL) ? PROTO_YES : PROTO_MAYBE;
}

static enum proto_guess memcached_recognise(const struct proto_first *f)
{
	int q = f->n_client ? request_is(f->client, f->n_client) : -1,
	    r = f->n_server ? reply_is(f->server, f->n_server) : -1;

	if (!q || !r || (!f->n_client && f->n_server && f->begun))
		return refusal(f);
	return q > 0 && (r > 0 || (f->last && !f->n_server)) ? PROTO_YES : PROTO_MAYBE;
}

static bool memcached_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	if (p != c->piece)
		return false;
	return from == PROTO_CLIENT ? request_is(p, n) > 0 : c->turn && reply_is(p, n) > 0;
}

const struct protocol protocol_memcached = {
	.name = "memcached",
	.in_order = true,
	.asked_only = true,
	.state_size = sizeof(struct memcached),
	.recognise = memcached_recognise,
	.step = memcached_step,
	.starts = memcached_starts,
};
