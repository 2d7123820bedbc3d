/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis: RESP2 and RESP3 (redis.io/docs/reference/protocol-spec).
 *
 *   request   *N CRLF ($LEN CRLF DATA CRLF)*N, or inline: WORDS CRLF
 *   reply     +text CRLF  -error CRLF  :int CRLF  _ CRLF  #t CRLF  ,double CRLF  (bignum CRLF
 *             $LEN CRLF DATA CRLF (LEN -1: null)   =LEN, !LEN: as $
 *             *N CRLF items  ~N: as *  >N: a push, no reply  %N: 2N items
 *             |N: 2N items of attributes before the reply
 *
 * A reply is over when as many items have passed as its heads announced: a counter, whatever the
 * nesting. Replies come in order. SUBSCRIBE has a reply for each channel; messages of channels are
 * no replies. A reply that contains an error (EXEC) is an error. PSYNC and SYNC turn the connection
 * into a stream.
 *
 * Operation: COMMAND KEY, the key by route.h with ':'. An error's status is its first word.
 */
#include <string.h>
#include <strings.h>

#include "loaders/lib/protocols/names.h"
#include "loaders/lib/protocols/protocol.h"
#include "loaders/lib/protocols/route.h"
#include "loaders/lib/protocols/table.h"

#define ITEMS_MAX   (1ll << 32)
#define INLINE_MAX  2048
#define COMMAND_MAX 24
#define HEAD_LINE   24
#define WORD        16

struct redis {
	int64_t args_left;                  /* of the request at hand */
	int64_t items_left;                 /* of the reply at hand; 0: none */
	bool push, message, confirm, error; /* what the reply at hand is */
	char status[16];
	bool stream, quiet, skip_one, subscribed, asked, monitors;
	bool joined;      /* in mid-stream: it may have subscribed before */
	const char *told; /* `message`: as what */
};

/* $N CRLF, *N CRLF, ...: the number after the sign. Returns the line's size, 0: not whole,
 * SIZE_MAX: wrong. */
static size_t number_line(const uint8_t *p, size_t n, int64_t *value)
{
	size_t i = 1;
	int64_t v = 0;
	bool minus = n > 1 && p[1] == '-';

	if (minus)
		i++;
	for (; i < n && byte_is_digit(p[i]) && i < 16; i++)
		v = v * 10 + (p[i] - '0');
	if (i >= n)
		return i < HEAD_LINE ? 0 : SIZE_MAX;
	if (p[i] != '\r' || i == 1u + minus)
		return SIZE_MAX;
	if (i + 1 >= n)
		return 0;
	*value = minus ? -v : v;
	return p[i + 1] == '\n' ? i + 2 : SIZE_MAX;
}

static bool word_in(const char *const *words, const char *word)
{
	for (; *words; words++)
		if (**words == *word && !strcmp(*words, word))
			return true;
	return false;
}

/* The command in capitals, its key's pattern or its subcommand. */
static uint32_t operation(struct proto_conn *c, const uint8_t *cmd, size_t n_cmd,
			  const uint8_t *key, size_t n_key)
{
	static const char *const two[] = {"ACL",    "CLIENT",   "CLUSTER", "COMMAND", "CONFIG",
					  "DEBUG",  "FUNCTION", "LATENCY", "MEMORY",  "MODULE",
					  "OBJECT", "PUBSUB",   "SCRIPT",  "SLOWLOG", "XGROUP",
					  "XINFO",  NULL};
	static const char *const alone[] = {
		"AUTH", "DBSIZE",  "ECHO",     "EVAL",     "EVALSHA", "EVALSHA_RO", "EVAL_RO",
		"EXEC", "FCALL",   "FCALL_RO", "FLUSHALL", "FLUSHDB", "HELLO",      "INFO",
		"KEYS", "MIGRATE", "MULTI",    "PING",     "PSYNC",   "REPLCONF",   "RESET",
		"SCAN", "SELECT",  "SHUTDOWN", "SWAPDB",   "WAIT",    NULL};
	char word[COMMAND_MAX + 1], name[COMMAND_MAX + 2 + ROUTE_MAX];
	uint8_t clean[128];
	size_t n = 0;

	for (; n < n_cmd && n < COMMAND_MAX &&
	       (byte_is_letter(cmd[n]) || byte_is_digit(cmd[n]) || cmd[n] == '.' || cmd[n] == '_' ||
		cmd[n] == '-');
	     n++)
		word[n] = (char)(cmd[n] >= 'a' && cmd[n] <= 'z' ? cmd[n] - 32 : cmd[n]);
	word[n] = '\0';
	if (n < n_cmd || !n)
		return 0;
	if (!key || proto_payload(c) == PROTO_NONE || word_in(alone, word))
		return proto_name(c, word, n);
	if (word_in(two, word)) {
		for (n = 0; n < n_key && n < COMMAND_MAX; n++)
			clean[n] = key[n] >= 'a' && key[n] <= 'z' ? (uint8_t)(key[n] - 32) : key[n];
		return proto_namef(c, "%s %.*s", word, (int)n, (const char *)clean);
	}
	n_key = n_key < sizeof(clean) ? n_key : sizeof(clean);
	if (proto_payload(c) == PROTO_FULL)
		return proto_namef(c, "%s %.*s", word, (int)n_key, (const char *)key);
	for (size_t i = 0; i < n_key; i++)
		clean[i] = key[i] <= ' ' || key[i] == 0x7f ? '_' : key[i];
	memcpy(name, word, n);
	name[n++] = ' ';
	n += proto_route(c, NULL, 0, clean, n_key, ':', name + n);
	return proto_name(c, name, n);
}

static bool is(const uint8_t *p, size_t n, const char *word)
{
	return n == strlen(word) && !strncasecmp((const char *)p, word, n);
}

static bool subscribes(const uint8_t *p, size_t n)
{
	if (n && strchr("pPsS", p[0]) && !is(p, n, "subscribe"))
		p++, n--;
	return is(p, n, "subscribe") || is(p, n, "unsubscribe");
}

static void ask(struct proto_conn *c, const uint8_t *cmd, size_t n_cmd, const uint8_t *key,
		size_t n_key, int64_t args, const uint8_t *third, size_t n_third)
{
	struct redis *s = proto_state(c);
	uint32_t op = operation(c, cmd, n_cmd, key, n_key);

	s->asked = true;
	if (is(cmd, n_cmd, "CLIENT") && key && is(key, n_key, "REPLY") && third) {
		s->quiet = is(third, n_third, "OFF");
		s->skip_one = is(third, n_third, "SKIP");
		if (s->quiet || s->skip_one) {
			proto_one_way(c, op);
			return;
		}
	}
	if (s->quiet || s->skip_one ||
	    (is(cmd, n_cmd, "REPLCONF") && key && is(key, n_key, "ACK"))) {
		s->skip_one = false;
		proto_one_way(c, op);
		return;
	}
	if (is(cmd, n_cmd, "PSYNC") || is(cmd, n_cmd, "SYNC"))
		s->stream = true;
	s->monitors = s->monitors || is(cmd, n_cmd, "MONITOR");
	proto_ask(c, op, 0)->tag =
		subscribes(cmd, n_cmd) ?
			(uint32_t)(args > 1 ? (args - 1 < 1 << 20 ? args - 1 : 1 << 20) : 1) :
			0;
}

/* ---- requests ---- */

static int64_t inline_command(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	size_t whole, line = bytes_line(p, n, &whole), cmd = 0, key, end;

	if (line == SIZE_MAX)
		return last || n > INLINE_MAX ? PROTO_LOST : PROTO_MORE;
	if (!line)
		return (int64_t)whole;
	while (cmd < line && p[cmd] > ' ')
		cmd++;
	if (!byte_is_letter(p[0]))
		return PROTO_LOST;
	for (key = cmd; key < line && p[key] == ' '; key++)
		;
	for (end = key; end < line && p[end] > ' '; end++)
		;
	ask(c, p, cmd, end > key ? p + key : NULL, end - key, end > key ? 2 : 1, NULL, 0);
	return (int64_t)whole;
}

/* The arguments from `at` on, as far as they are here. Bytes; may reach beyond n. */
static int64_t arguments(struct redis *s, const uint8_t *p, size_t n, size_t at)
{
	uint64_t end = at;

	while (s->args_left && end < n) {
		int64_t len = 0;
		size_t line = p[end] == '$' ? number_line(p + end, n - end, &len) : SIZE_MAX;

		if (!line)
			break;
		if (line == SIZE_MAX || len < 0)
			return PROTO_LOST;
		end += line + (uint64_t)len + 2;
		s->args_left--;
	}
	return (int64_t)end;
}

static int64_t request(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct redis *s = proto_state(c);
	const uint8_t *arg[3] = {NULL};
	size_t len[3] = {0}, at;
	int64_t args = 0, want, k;

	if (s->args_left) {
		k = arguments(s, p, n, 0);
		if (s->args_left)
			proto_goes_on(c);
		return k ? k : last ? PROTO_LOST : PROTO_MORE;
	}
	if (p[0] != '*')
		return inline_command(c, p, n, last);
	at = number_line(p, n, &args);
	if (at == SIZE_MAX || args > ITEMS_MAX)
		return PROTO_LOST;
	if (!at)
		return PROTO_MORE;
	if (args <= 0)
		return (int64_t)at;
	want = args < 3 ? args : 3;
	for (int64_t i = 0; i < want; i++) {
		int64_t l = 0;
		size_t line =
			at < n ? (p[at] == '$' ? number_line(p + at, n - at, &l) : SIZE_MAX) : 0;

		if (line == SIZE_MAX || l < 0 || (!i && l > 64))
			return PROTO_LOST;
		if (!line || (i == 0 && at + line + (size_t)l > n) ||
		    (i == 1 && at + line + (size_t)(l < 128 ? l : 128) > n)) {
			if (!last || !i)
				return PROTO_MORE;
			want = i; /* the rest is not to be had */
			break;
		}
		arg[i] = p + at + line;
		len[i] =
			at + line < n ? ((size_t)l < n - at - line ? (size_t)l : n - at - line) : 0;
		at += line + (size_t)l + 2;
		/* a long key: what follows is read after it has passed */
		if (at > n && i && i + 1 < want) {
			want = i + 1;
			break;
		}
	}
	ask(c, arg[0], len[0], arg[1], len[1], args, want > 2 ? arg[2] : NULL, len[2]);
	s->args_left = args - want;
	k = s->args_left && at < n ? arguments(s, p, n, at) : (int64_t)at;
	if (s->args_left)
		proto_goes_on(c);
	return k;
}

/* ---- replies ---- */

static void reply_begins(struct redis *s, const struct proto_pending *q, const uint8_t *p, size_t n)
{
	int64_t l = 0;
	size_t whole, line, at;

	s->error = false;
	s->push = p[0] == '>';
	s->confirm = false;
	/* a line of MONITOR begins with a time */
	s->message = s->monitors && n > 1 && p[0] == '+' && byte_is_digit(p[1]);
	s->told = s->message ? "monitor" : "message";
	s->status[0] = '\0';
	line = bytes_line(p, n, &whole);
	if (line == SIZE_MAX || (p[0] != '*' && p[0] != '>') || whole >= n)
		return;
	p += whole;
	n -= whole;
	if (*p == '+') {
		line = bytes_line(p++, n, &whole);
		l = line == SIZE_MAX ? 0 : (int64_t)line - 1;
	} else if (*p == '$') {
		at = number_line(p, n, &l);
		if (!at || at == SIZE_MAX || l < 0)
			return;
		l = (size_t)l < n - at ? l : (int64_t)(n - at);
		p += at;
	}
	s->confirm = (s->push || (q && q->tag)) && subscribes(p, (size_t)l);
	s->message = (s->push || s->subscribed || (s->joined && !q)) &&
		     (is(p, (size_t)l, "message") || is(p, (size_t)l, "pmessage") ||
		      is(p, (size_t)l, "smessage"));
	if (s->push && !s->message && !s->confirm) {
		s->message = true;
		s->told = is(p, (size_t)l, "invalidate") ? "invalidate" : "push";
	}
}

static void reply_over(struct proto_conn *c)
{
	struct redis *s = proto_state(c);
	struct proto_pending *q = proto_oldest(c);

	if (s->message) {
		s->subscribed |= !q && s->joined;
		proto_one_way(c, proto_name(c, s->told, strlen(s->told)));
	} else if (s->confirm) {
		s->subscribed = true;
		if (q && q->tag && !--q->tag)
			proto_answer(c, q, PROTO_OK, "");
	} else if (!s->push && q) {
		proto_answer(c, q, s->error ? PROTO_ERROR : PROTO_OK, s->status);
	} else if (s->error && c->begun && !s->asked) { /* too many clients, or protected mode */
		proto_refused(c, proto_name(c, "CONNECT", 7), s->status);
	}
}

/* The reply, or an item in it (EXEC runs the other commands all the same), is an error. The first
 * one is the status. */
static void fails(struct redis *s, const uint8_t *word, size_t n)
{
	size_t m = 0;

	if (s->error)
		return;
	s->error = true;
	while (m < n && m < sizeof(s->status) - 1 &&
	       ((word[m] >= 'A' && word[m] <= 'Z') || word[m] == '_')) {
		s->status[m] = (char)word[m];
		m++;
	}
	s->status[m] = '\0';
}

/* Are the bytes of this string here that the parser looks at? */
static bool string_is_here(const uint8_t *p, size_t n)
{
	int64_t len = 0;
	size_t line = number_line(p, n, &len);

	return line == SIZE_MAX ||
	       (line && (len < 0 || n - line >= (size_t)(len < WORD ? len : WORD)));
}

/* One item's head (with the data of a string). 0: not whole, SIZE_MAX: wrong. */
static uint64_t item(struct redis *s, const uint8_t *p, size_t n)
{
	size_t whole, line;
	int64_t v = 0;

	switch (p[0]) {
	case '+':
	case '-':
	case ':':
	case '_':
	case '#':
	case ',':
	case '(':
		line = bytes_line(p, n, &whole);
		if (line == SIZE_MAX)
			return n > PROTO_LOOK ? SIZE_MAX : 0;
		if (p[0] == '-')
			fails(s, p + 1, line - 1);
		s->items_left--;
		return whole;
	case '$':
	case '=':
	case '!':
		line = number_line(p, n, &v);
		if (!line || line == SIZE_MAX)
			return line;
		if (p[0] == '!' && !string_is_here(p, n))
			return 0;
		if (p[0] == '!')
			fails(s, p + line, n - line);
		s->items_left--;
		return v < 0 ? line : line + (uint64_t)v + 2;
	case '*':
	case '~':
	case '>':
	case '%':
	case '|':
		line = number_line(p, n, &v);
		if (!line || line == SIZE_MAX)
			return line;
		v = v < 0 ? 0 : p[0] == '%' || p[0] == '|' ? 2 * v : v;
		s->items_left += v - (p[0] == '|' ? 0 : 1);
		return s->items_left > ITEMS_MAX ? SIZE_MAX : line;
	}
	return SIZE_MAX;
}

/* The first string of a reply says what it is (an error's word, a push's or a subscription's kind).
 */
static bool first_word_is_here(const uint8_t *p, size_t n)
{
	int64_t items = 0;
	size_t line;

	if (p[0] == '-')
		return memchr(p, '\n', n) || n >= PROTO_LOOK;
	if (p[0] == '!')
		return string_is_here(p, n);
	if (p[0] != '*' && p[0] != '>')
		return true;
	line = number_line(p, n, &items);
	if (!line || line == SIZE_MAX || items <= 0)
		return line;
	if (n > line && p[line] == '+')
		return memchr(p + line, '\n', n - line) || n - line >= PROTO_LOOK;
	return n > line && (p[line] != '$' || string_is_here(p + line, n - line));
}

static int64_t reply(struct proto_conn *c, const uint8_t *p, size_t n, bool last)
{
	struct redis *s = proto_state(c);
	uint64_t end = 0, k;

	if (!s->items_left) {
		if (!last && !first_word_is_here(p, n))
			return PROTO_MORE;
		reply_begins(s, proto_oldest(c), p, n);
		s->items_left = 1;
		k = item(s, p, n);
		if (!k || k == SIZE_MAX) {
			s->items_left = 0;
			return !k && !last ? PROTO_MORE : PROTO_LOST;
		}
		end = k;
		if (proto_oldest(c) && !s->push && !s->message)
			proto_first_byte(c, proto_oldest(c));
	}
	while (s->items_left && end < n) {
		k = item(s, p + end, n - (size_t)end);
		if (k == SIZE_MAX)
			return PROTO_LOST;
		if (!k)
			break;
		end += k;
	}
	if (!end)
		return last ? PROTO_LOST : PROTO_MORE;
	if (s->push || s->message)
		proto_apart(c);
	if (s->asked && !proto_newest(c) && !s->push && !s->message && !s->confirm &&
	    !s->subscribed)
		proto_unowned(c);
	if (!s->items_left)
		reply_over(c);
	else
		proto_goes_on(c);
	return (int64_t)end;
}

static int64_t redis_step(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n,
			  bool last)
{
	struct redis *s = proto_state(c);
	struct proto_pending *q;

	if (s->stream && (from == PROTO_SERVER || !s->args_left)) {
		q = proto_oldest(c);
		if (from == PROTO_SERVER && q)
			proto_opened(c, q, "");
		if (from == PROTO_SERVER || !proto_newest(c))
			return PROTO_ALL;
	}
	return from == PROTO_CLIENT ? request(c, p, n, last) : reply(c, p, n, last);
}

static void redis_lost(struct proto_conn *c, enum proto_side from)
{
	struct redis *s = proto_state(c);

	if (from == PROTO_CLIENT)
		s->args_left = 0;
	else
		s->items_left = 0;
}

/* *N CRLF $M CRLF letter. 1 yes, 0 no, -1 it may become one. */
static int command_begins(const uint8_t *p, size_t n)
{
	int64_t args = 0, len = 0;
	size_t a, b;

	if (!n || p[0] != '*')
		return n ? 0 : -1;
	a = number_line(p, n, &args);
	if (a == SIZE_MAX || (a && (args < 1 || args > 1 << 20)))
		return 0;
	if (!a || a == n)
		return -1;
	b = p[a] == '$' ? number_line(p + a, n - a, &len) : SIZE_MAX;
	if (b == SIZE_MAX || (b && (len < 1 || len > 40)))
		return 0;
	if (!b || a + b == n)
		return -1;
	return byte_is_letter(p[a + b]);
}

static int reply_begins_here(const uint8_t *p, size_t n)
{
	int64_t v;
	size_t whole, line;

	if (!n)
		return -1;
	if (strchr("$*:%~>=!", p[0]) && p[0]) {
		line = number_line(p, n, &v);
		return line == SIZE_MAX ? 0 : line ? 1 : -1;
	}
	if (!p[0] || !strchr("+-_#,(", p[0]))
		return 0;
	line = bytes_line(p, n < 512 ? n : 512, &whole);
	return line == SIZE_MAX ? (n < 512 ? -1 : 0) : p[line] == '\r';
}

/* Does a message begin here that a server pushes to who has subscribed? 1 yes, 0 no, -1 it may
 * become one. */
static int push_begins(const uint8_t *p, size_t n)
{
	static const char *const begins[] = {"*3\r\n$7\r\nmessage\r\n", "*4\r\n$8\r\npmessage\r\n",
					     "*3\r\n$8\r\nsmessage\r\n", NULL};
	int64_t items = 0;
	size_t a;

	for (const char *const *x = begins; n && *x; x++)
		if (bytes_agree(p, n, *x))
			return n >= strlen(*x) ? 1 : -1;
	if (!n || p[0] != '>')
		return n ? 0 : -1;
	a = number_line(p, n, &items);
	if (a == SIZE_MAX || (a && (items < 1 || items > 1 << 20)))
		return 0;
	return !a || a == n ? -1 : p[a] == '$';
}

/* What a server sends before the first command: "-ERR max number of clients reached", "-DENIED
 * Redis is running in protected mode ...". */
static bool is_refusal(const struct proto_first *f)
{
	return f->begun && (bytes_begin(f->server, f->n_server, "-ERR max number of clients") ||
			    bytes_begin(f->server, f->n_server, "-DENIED "));
}

static enum proto_guess redis_recognise(const struct proto_first *first)
{
	struct proto_first lines = *first, *f = &lines;
	static const char *const plain[] = {"PING",   "INFO",    "GET",    "SET",  "INCR",
					    "DEL",    "AUTH",    "SELECT", "QUIT", "ECHO",
					    "EXISTS", "MONITOR", NULL};
	int q, push, r = reply_begins_here(f->server, f->n_server);
	size_t whole, line, i = 0;
	char word[12];

	while (f->n_client >= 2 && f->client[0] == '\r' && f->client[1] == '\n')
		f->client += 2, f->n_client -= 2;
	q = command_begins(f->client, f->n_client);
	push = f->begun ? 0 : push_begins(f->client, f->n_client);

	if ((f->n_server && !r) || (f->n_client && push > 0))
		return PROTO_NO;
	if (f->n_client && push < 0 && !f->last)
		return PROTO_MAYBE;
	if (!f->n_client && !f->begun && push_begins(f->server, f->n_server) > 0)
		return PROTO_YES;
	if (f->n_client && q)
		return q > 0 ? PROTO_YES : PROTO_MAYBE;
	if (!f->n_client)
		return is_refusal(f) ? PROTO_YES : PROTO_MAYBE;
	for (; i < f->n_client && i < sizeof(word) - 1 && byte_is_letter(f->client[i]); i++)
		word[i] = (char)(f->client[i] & ~0x20);
	word[i] = '\0';
	line = bytes_line(f->client, f->n_client, &whole);
	if (!word_in(plain, word) || (line != SIZE_MAX && line > i && f->client[i] != ' '))
		return PROTO_NO;
	if (line == SIZE_MAX || (r < 0 && !f->last))
		return PROTO_MAYBE;
	/* SMTP and NATS have such words, too, and NATS says +OK */
	return f->begun || (r > 0 &&
			    (strcmp(word, "PING") || !bytes_begin(f->server, f->n_server, "+OK"))) ?
		       PROTO_YES :
		       PROTO_NO;
}

static bool redis_starts(struct proto_conn *c, enum proto_side from, const uint8_t *p, size_t n)
{
	if (from == PROTO_CLIENT)
		return command_begins(p, n) > 0;
	return p == c->piece && c->turn && reply_begins_here(p, n) > 0;
}

static void redis_begin(struct proto_conn *c, bool begun)
{
	((struct redis *)proto_state(c))->joined = !begun;
}

const struct protocol protocol_redis = {
	.name = "redis",
	.in_order = true,
	.state_size = sizeof(struct redis),
	.recognise = redis_recognise,
	.begin = redis_begin,
	.step = redis_step,
	.starts = redis_starts,
	.lost = redis_lost,
};
