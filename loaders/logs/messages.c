/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/messages.h"

#include <ctype.h>
#include <string.h>

#include "loaders/logs/level.h"
#include "schema/base/array.h"

#define ESC '\033'

void messages_release(struct messages *m)
{
	strbuf_release(&m->text);
	strbuf_release(&m->piece);
	strbuf_release(&m->plain);
}

/* ---- does a line continue? ---- */

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

static bool begins_any(const char *s, size_t len, const char *const *with)
{
	for (; *with; with++)
		if (begins(s, len, *with))
			return true;
	return false;
}

static enum line_level level_so_far(const struct messages *m)
{
	return m->level >= 0 ? (enum line_level)m->level : level_of(strbuf_str(&m->text), m->head);
}

static bool is_error_head(const struct messages *m)
{
	return m->lines == 1 && level_so_far(m) >= LEVEL_WARNING;
}

static bool only_closes(const char *s, size_t len)
{
	return len <= 3 && strspn(s, "})];") >= len;
}

/* "2026-11-29 18:00:00 UTC [12] DETAIL:  Key exists." */
static bool is_postgres_detail(const char *s, size_t len)
{
	static const char *const words[] = {
		"DETAIL:  ", "HINT:  ", "STATEMENT:  ", "CONTEXT:  ", "QUERY:  "};
	size_t look = len < 160 ? len : 160;
	const char *colon = memmem(s, look, ":  ", 3);

	for (size_t i = 0; colon && i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i]) - 3;

		if ((size_t)(colon - s) >= n && !memcmp(colon - n, words[i], n) &&
		    ((size_t)(colon - s) == n || !isalpha((unsigned char)colon[-(long)n - 1])))
			return true;
	}
	return false;
}

/* java.lang.IllegalStateException: text */
static bool is_java_exception(const char *s, size_t len)
{
	size_t n = 0, dots = 0;

	while (n < len && n < 200 && (isalnum((unsigned char)s[n]) || strchr("._$", s[n])))
		dots += s[n++] == '.';
	return dots >= 2 && n >= 9 && (n == len || s[n] == ':') &&
	       (!memcmp(s + n - 5, "Error", 5) || !memcmp(s + n - 9, "Exception", 9));
}

static bool python_goes_on(struct messages *m, const char *s, size_t len)
{
	static const char *const more[] = {"During handling of the above exception",
					   "The above exception was the direct cause",
					   "Traceback (most recent call last)", NULL};

	if (begins_any(s, len, more)) {
		m->raised = false;
		return true;
	}
	if (m->raised)
		return false;
	m->raised = true;
	return true;
}

static bool go_goes_on(const char *s, size_t len)
{
	static const char *const more[] = {"goroutine ", "[signal ", "created by ", "exit status ",
					   "panic(",     "panic:",   "runtime.",    NULL};

	return begins_any(s, len, more) || (s[len - 1] == ')' && memchr(s, '(', len) &&
					    memchr(s, '.', len) && !memchr(s, ' ', len));
}

static bool rust_goes_on(const struct messages *m, const char *s, size_t len)
{
	static const char *const more[] = {"note:", "stack backtrace:", NULL};

	return m->lines == 1 || begins_any(s, len, more);
}

static bool goes_on(struct messages *m, const char *s, size_t len)
{
	static const char *const more[] = {"Caused by:", "Suppressed:", "... ", NULL};

	if (!m->has || m->lines >= MESSAGES_LINES)
		return false;
	if (!len || *s == ' ' || *s == '\t' || only_closes(s, len) || begins_any(s, len, more) ||
	    is_postgres_detail(s, len))
		return true;
	if (*s == '{')
		return false;
	if (begins(s, len, "Traceback (most recent call last)")) {
		if (m->in != TRACE_PYTHON && !is_error_head(m))
			return false;
		m->in = TRACE_PYTHON;
		m->raised = false;
		return true;
	}
	switch (m->in) {
	case TRACE_PYTHON:
		return python_goes_on(m, s, len);
	case TRACE_GO:
		return go_goes_on(s, len);
	case TRACE_RUST:
		return rust_goes_on(m, s, len);
	case TRACE_NONE:
	default:
		return is_java_exception(s, len) && is_error_head(m);
	}
}

/* Is this a line of the private key that has begun? */
static bool key_goes_on(struct messages *m, const char *s, size_t len)
{
	size_t n = 0;

	if (!m->in_key)
		return false;
	m->in_key = !begins(s, len, "-----END ");
	while (n < len && (isalnum((unsigned char)s[n]) || strchr("+/=", s[n])))
		n++;
	if (n < len && m->in_key && !begins(s, len, "Proc-Type: ") && !begins(s, len, "DEK-Info: "))
		return m->in_key = false;
	return true;
}

static bool key_begins(const char *s, size_t len)
{
	const char *at = memmem(s, len, "-----BEGIN ", 11);
	size_t left = at ? len - (size_t)(at - s) : 0;

	return at && memmem(at, left, "PRIVATE KEY", 11) && !memmem(at, left, "-----END ", 9);
}

static enum messages_trace trace_of(const char *s, size_t len)
{
	size_t look = len < 400 ? len : 400;

	if (begins(s, len, "Traceback (most recent call last)"))
		return TRACE_PYTHON;
	if (begins(s, len, "panic:") || begins(s, len, "fatal error:"))
		return TRACE_GO;
	return begins(s, len, "thread '") && memmem(s, look, "panicked at", 11) ? TRACE_RUST :
										  TRACE_NONE;
}

/* ---- lines ---- */

static void flush(struct messages *m, messages_take take, void *ctx)
{
	const struct message out = {.text = strbuf_str(&m->text),
				    .len = m->text.len,
				    .head = m->head,
				    .last = m->last,
				    .trace = m->in == TRACE_PYTHON && m->raised,
				    .lines = m->lines,
				    .bytes = m->bytes,
				    .utc_ns = m->utc_ns,
				    .pid = m->pid,
				    .level = m->level};

	if (!m->has)
		return;
	take(ctx, &out);
	strbuf_reset(&m->text);
	m->has = m->raised = false;
	m->in = TRACE_NONE;
}

struct line {
	const char *s;
	size_t len;
	uint64_t bytes;
	int64_t utc_ns;
	uint32_t pid;
	int level;
};

static size_t kept(const struct messages *m, size_t len)
{
	size_t room = MESSAGES_BYTES - m->text.len;

	return len < room ? len : room;
}

static void line_add(struct messages *m, const struct line *l)
{
	m->last = 0;
	if (m->text.len + l->len + 1 <= MESSAGES_BYTES) {
		m->last = m->text.len + 1;
		strbuf_addch(&m->text, '\n');
	}
	strbuf_add(&m->text, l->s, m->last ? l->len : 0);
	m->lines++;
	m->bytes += l->bytes;
}

/* Behind the control sequence at `i`, whose first byte is ESC: ESC [ ... letter, ESC ] ... BEL or
 * ESC \, or ESC and one
 * byte, with marks such as ( between. One that does not end goes to the end of the line. */
static size_t sequence_end(const char *s, size_t len, size_t i)
{
	char kind = ++i < len ? s[i] : 0;

	if (kind == ']') {
		while (i < len && s[i] != '\a' && !(s[i] == '\\' && s[i - 1] == ESC))
			i++;
	} else if (kind == '[') {
		for (i++; i < len && s[i] >= ' ' && s[i] < '@';)
			i++;
	} else {
		while (i < len && s[i] >= ' ' && s[i] < '0') /* ESC ( B */
			i++;
	}
	return i < len ? i + 1 : len;
}

/* Rule 2. Into `out`, without its control sequences. */
static void plain_make(const char *s, size_t len, struct strbuf *out)
{
	strbuf_reset(out);
	for (size_t i = 0; i < len;) {
		const char *at = memchr(s + i, ESC, len - i);
		size_t n = at ? (size_t)(at - s) - i : len - i;

		strbuf_add(out, s + i, n);
		i = at ? sequence_end(s, len, i + n) : len;
	}
}

static void plain_take(struct messages *m, const struct line *l, messages_take take, void *ctx)
{
	size_t len = l->len;
	bool key;

	while (len && l->s[len - 1] == '\r')
		len--;
	key = key_goes_on(m, l->s, len);
	m->in_key = m->in_key || key_begins(l->s, len);
	if (m->pid == l->pid &&
	    ((key && m->has && m->lines < MESSAGES_LINES) || goes_on(m, l->s, len))) {
		line_add(m, &(struct line){l->s, len, l->bytes, l->utc_ns, l->pid, l->level});
		return;
	}
	flush(m, take, ctx);
	m->has = true;
	m->lines = 1;
	m->bytes = l->bytes;
	m->utc_ns = l->utc_ns;
	m->pid = l->pid;
	m->level = l->level;
	m->last = 0;
	m->head = key ? 0 : kept(m, len);
	strbuf_add(&m->text, l->s, m->head);
	m->in = trace_of(strbuf_str(&m->text), m->head);
}

static void line_take(struct messages *m, const struct line *l, messages_take take, void *ctx)
{
	struct line plain = *l;

	if (l->len && memchr(l->s, ESC, l->len)) {
		plain_make(l->s, l->len, &m->plain);
		plain.s = strbuf_str(&m->plain);
		plain.len = m->plain.len;
	}
	plain_take(m, &plain, take, ctx);
}

static void piece_add(struct messages *m, const struct log_record *r)
{
	size_t room = MESSAGES_BYTES - m->piece.len;

	if (!m->has_piece)
		m->piece_ns = r->utc_ns;
	m->has_piece = true;
	m->piece_bytes += r->len;
	strbuf_add(&m->piece, r->text, r->len < room ? r->len : room);
}

static void piece_end(struct messages *m, uint32_t pid, int level, messages_take take, void *ctx)
{
	const struct line l = {strbuf_str(&m->piece), m->piece.len, m->piece_bytes,
			       m->piece_ns,           pid,          level};

	m->has_piece = false;
	m->piece_bytes = 0;
	line_take(m, &l, take, ctx);
	strbuf_reset(&m->piece);
}

void messages_record(struct messages *m, const struct log_record *r, uint32_t pid, int level,
		     messages_take take, void *ctx)
{
	const struct line l = {r->text, r->len, r->len, r->utc_ns, pid, level};

	if (!r->piece && !m->has_piece) {
		line_take(m, &l, take, ctx);
		return;
	}
	piece_add(m, r);
	if (!r->piece)
		piece_end(m, pid, level, take, ctx);
}

void messages_end(struct messages *m, bool all, messages_take take, void *ctx)
{
	if (all && m->has_piece)
		piece_end(m, m->pid, m->level, take, ctx);
	flush(m, take, ctx);
}
