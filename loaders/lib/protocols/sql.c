/* SPDX-License-Identifier: Apache-2.0 */
/* sql: see the header. One pass over the text; lists are folded at the end of what has come out so
 * far. */
#include "loaders/lib/protocols/sql.h"

#include <string.h>

#include "loaders/lib/protocols/bytes.h"

struct sql {
	const uint8_t *p;
	size_t n, i;
	char *out;
	size_t len;
	bool space, full; /* white space was there since the last token */
	enum sql_dialect dialect;
};

static bool is_word(uint8_t c)
{
	return byte_is_letter(c) || byte_is_digit(c) || c == '_' || c == '$' || c >= 0x80;
}

static void put(struct sql *s, const void *text, size_t n)
{
	if (s->len + n + 2 >= SQL_MAX) {
		s->full = true;
		return;
	}
	memcpy(s->out + s->len, text, n);
	s->len += n;
}

static bool ends(const struct sql *s, const char *text)
{
	size_t m = strlen(text);

	return s->len >= m && !memcmp(s->out + s->len - m, text, m);
}

/* Space before the token that comes: as in the source, but for commas and parentheses. */
static void gap(struct sql *s, uint8_t next)
{
	bool space =
		s->space && s->len && next != ',' && next != ')' && next != ';' && !ends(s, "(");

	s->space = false;
	if (space || ends(s, ","))
		put(s, " ", 1);
}

/* A sign that is not a subtraction belongs to the number. */
static void unsign(struct sql *s)
{
	size_t at = s->len;

	if (!at || s->space || (s->out[at - 1] != '-' && s->out[at - 1] != '+'))
		return;
	for (at--; at && s->out[at - 1] == ' '; at--)
		;
	if (at && !is_word((uint8_t)s->out[at - 1]) && !strchr(")?\"`]", s->out[at - 1]))
		s->len--;
}

static void literal(struct sql *s)
{
	unsign(s);
	gap(s, '?');
	if (ends(s, "(?, ")) { /* (?, ?, ?) */
		s->len -= 2;
		return;
	}
	put(s, "?", 1);
}

static void close_list(struct sql *s)
{
	gap(s, ')');
	put(s, ")", 1);
	if (ends(s, "(?), (?)")) /* rows of VALUES */
		s->len -= 5;
}

/* Past a text that ends with `q`; a doubled one is part of it. */
static void quoted(struct sql *s, uint8_t q, bool backslash)
{
	for (s->i++; s->i < s->n; s->i++) {
		if (backslash && s->p[s->i] == '\\')
			s->i++;
		else if (s->p[s->i] == q && s->i + 1 < s->n && s->p[s->i + 1] == q)
			s->i++;
		else if (s->p[s->i] == q)
			break;
	}
	s->i = s->i < s->n ? s->i + 1 : s->n;
}

/* Skips $tag$ ... $tag$. False: it is not such a string. */
static bool dollar_quoted(struct sql *s)
{
	size_t from = s->i, tag = from + 1, i;

	while (tag < s->n && (byte_is_letter(s->p[tag]) || s->p[tag] == '_' ||
			      (tag > from + 1 && byte_is_digit(s->p[tag]))))
		tag++;
	if (tag >= s->n || s->p[tag] != '$')
		return false;
	tag = tag + 1 - from;
	for (i = from + tag; i + tag <= s->n; i++)
		if (s->p[i] == '$' && !memcmp(s->p + i, s->p + from, tag))
			break;
	s->i = i + tag <= s->n ? i + tag : s->n;
	return true;
}

static bool comment(struct sql *s)
{
	const uint8_t *p = s->p + s->i, *end;
	size_t left = s->n - s->i;
	int depth = 0;

	if (bytes_begin(p, left, "--") || (s->dialect != SQL_STANDARD && *p == '#')) {
		end = memchr(p, '\n', left);
		s->i = end ? (size_t)(end - s->p) : s->n;
	} else if (bytes_begin(p, left, "/*")) {
		do {
			if (bytes_begin(s->p + s->i, s->n - s->i, "/*"))
				depth++, s->i++;
			else if (bytes_begin(s->p + s->i, s->n - s->i, "*/"))
				depth = s->dialect == SQL_MYSQL ? 0 : depth - 1, s->i++;
			s->i++;
		} while (depth && s->i < s->n);
		s->i = s->i < s->n ? s->i : s->n;
	} else {
		return false;
	}
	s->space = true;
	return true;
}

static void number(struct sql *s)
{
	while (s->i < s->n &&
	       (is_word(s->p[s->i]) || s->p[s->i] == '.' ||
		((s->p[s->i] == '-' || s->p[s->i] == '+') && (s->p[s->i - 1] | 0x20) == 'e')))
		s->i++;
	literal(s);
}

static void word(struct sql *s)
{
	size_t from = s->i, n;
	uint8_t c = s->p[from] | 0x20;

	while (s->i < s->n && is_word(s->p[s->i]))
		s->i++;
	n = s->i - from;
	if (n == 1 && s->i < s->n && s->p[s->i] == '\'' &&
	    (c == 'e' || c == 'b' || c == 'x' || c == 'n')) {
		quoted(s, '\'', c == 'e' || s->dialect != SQL_STANDARD);
		literal(s);
		return;
	}
	gap(s, c);
	put(s, s->p + from, n);
}

static void token(struct sql *s)
{
	uint8_t c = s->p[s->i];
	size_t from = s->i;

	if (c <= ' ' || c == 0x7f) {
		s->space = true;
		s->i++;
	} else if (comment(s)) {
		return;
	} else if (c == '\'' || (c == '"' && s->dialect == SQL_MYSQL)) {
		quoted(s, c, s->dialect != SQL_STANDARD);
		literal(s);
	} else if (c == '"' || c == '`') {
		quoted(s, c, s->dialect == SQL_CLICKHOUSE);
		gap(s, c);
		put(s, s->p + from, s->i - from);
	} else if (c == '$' && from + 1 < s->n && byte_is_digit(s->p[from + 1])) {
		s->i++;
		number(s);
	} else if (c == '$' && s->dialect != SQL_MYSQL && dollar_quoted(s)) {
		literal(s);
	} else if (byte_is_digit(c) ||
		   (c == '.' && from + 1 < s->n && byte_is_digit(s->p[from + 1]) &&
		    !(from && is_word(s->p[from - 1])))) {
		number(s);
	} else if (is_word(c)) {
		word(s);
	} else if (c == '?') {
		s->i++;
		literal(s);
	} else if (c == ')') {
		s->i++;
		close_list(s);
	} else {
		s->i++;
		gap(s, c);
		put(s, &c, 1);
	}
}

size_t sql_operation(const uint8_t *p, size_t n, bool cut, enum sql_dialect dialect,
		     enum proto_payload payload, char out[SQL_MAX])
{
	struct sql s = {.p = p, .n = n, .out = out, .dialect = dialect};

	if (payload == PROTO_FULL) {
		s.len = n < SQL_MAX - 1 ? n : SQL_MAX - 1;
		memcpy(out, p, s.len);
		s.full = s.len < n;
	}
	while (payload != PROTO_FULL && s.i < n && !s.full) {
		token(&s);
		if (payload == PROTO_NONE && s.len &&
		    (!byte_is_letter((uint8_t)out[s.len - 1]) || s.i >= n || !is_word(p[s.i])))
			break;
	}
	while (s.len && (out[s.len - 1] == ';' || out[s.len - 1] == ' '))
		s.len--;
	if ((cut || s.full) && s.len + 3 < SQL_MAX && payload != PROTO_NONE) {
		memcpy(out + s.len, "...", 3);
		s.len += 3;
	}
	out[s.len] = '\0';
	return s.len;
}

size_t sql_trace(const uint8_t *p, size_t n, const uint8_t **at)
{
	static const char key[] = "traceparent='00-";
	const uint8_t *c = memmem(p, n, "/*", 2),
		      *t = c ? memmem(c, (size_t)(p + n - c), key, sizeof(key) - 1) : NULL;

	if (!t || (size_t)(p + n - t) < sizeof(key) - 1 + 32)
		return 0;
	*at = t + sizeof(key) - 1;
	return 32;
}
