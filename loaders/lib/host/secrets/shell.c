/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/secrets/shell.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

struct lexer {
	struct shell *s;
	struct view v;
	size_t i, begin; /* here in the text; where the word began in s->text */
	bool in_word;
	enum shell_place place; /* of the next word */
};

/* One byte of plain text, for the bytes of the input up to `end`. */
static void put(struct lexer *l, char c, size_t end)
{
	struct source a = view_source(l->v, l->i), b = view_source(l->v, end - 1);

	l->s->text[l->s->len] = c;
	l->s->src[l->s->len++] = (struct source){a.at, b.at + b.n - a.at};
	l->i = end;
}

static void word_begin(struct lexer *l)
{
	if (!l->in_word)
		l->begin = l->s->len;
	l->in_word = true;
}

static void word_end(struct lexer *l)
{
	struct shell *s = l->s;

	if (!l->in_word)
		return;
	mem_grow(s->words, s->n, s->cap);
	s->words[s->n++] = (struct shell_word){
		{s->text + l->begin, s->len - l->begin, 0, s->src + l->begin}, l->place};
	l->place = SHELL_WORD;
	l->in_word = false;
}

/* $'...': after the backslash at l->i */
static void put_escape(struct lexer *l)
{
	static const char from[] = "abefnrtvE", to[] = "\a\b\033\f\n\r\t\v\033";
	const char *p = l->v.p, *f;
	size_t end = l->i + 2, most;
	unsigned value = 0;
	char c = p[l->i + 1];

	if (c == 'x' || c == 'u' || c == 'U') {
		most = end + (c == 'x' ? 2 : c == 'u' ? 4 : 8);
		for (; end < l->v.n && end < most && isxdigit((unsigned char)p[end]); end++)
			value = value << 4 | (unsigned)(isdigit((unsigned char)p[end]) ?
								p[end] - '0' :
								(p[end] | 32) - 'a' + 10);
		c = (char)(value && value < 256 ? value : '?');
	} else if (c >= '0' && c <= '7') {
		most = --end + 3;
		for (; end < l->v.n && end < most && p[end] >= '0' && p[end] <= '7'; end++)
			value = value << 3 | (unsigned)(p[end] - '0');
		c = (char)((value & 255) ? (value & 255) : '?');
	} else if ((f = memchr(from, c, sizeof(from) - 1))) {
		c = to[f - from];
	}
	put(l, c, end);
}

/* From the quote on; `dollar`: the escapes of C. */
static void quoted(struct lexer *l, char quote, bool dollar)
{
	word_begin(l);
	for (l->i++; l->i < l->v.n && l->v.p[l->i] != quote;) {
		char c = l->v.p[l->i], next = l->i + 1 < l->v.n ? l->v.p[l->i + 1] : 0;

		if (c == '\\' && next && dollar)
			put_escape(l);
		else if (c == '\\' && quote == '"' && next == '\n')
			l->i += 2;
		else if (c == '\\' && quote == '"' && next && strchr("$`\"\\", next))
			put(l, next, l->i + 2);
		else
			put(l, c, l->i + 1);
	}
	l->i++;
}

static void redirection(struct lexer *l)
{
	const char *p = l->v.p;
	size_t n = l->v.n, k = 0;

	while (l->i + k < n && k < 3 && p[l->i + k] == p[l->i])
		k++;
	word_end(l);
	if (l->place == SHELL_WORD)
		l->place = p[l->i] != '<' || k == 1 ? SHELL_FILE :
			   k == 2                   ? SHELL_HERE :
						      SHELL_INPUT;
	l->i += k;
	if (l->place == SHELL_HERE && l->i < n && p[l->i] == '-')
		l->i++;
	while (l->i < n && (p[l->i] == '&' || p[l->i] == '|'))
		l->i++;
}

static void operator(struct lexer *l)
{
	bool twice = l->i + 1 < l->v.n && l->v.p[l->i + 1] == l->v.p[l->i];

	word_end(l);
	l->place = l->v.p[l->i] == '|' && !twice ? SHELL_PIPED : SHELL_FIRST;
	l->i += twice ? 2 : 1;
}

void shell_lex(struct shell *s, struct view v)
{
	struct lexer l = {.s = s, .v = v, .place = SHELL_FIRST};

	*s = (struct shell){.text = mem_alloc(v.n + 1), .src = mem_array(v.n + 1, sizeof(*s->src))};
	while (l.i < v.n) {
		char c = v.p[l.i], next = l.i + 1 < v.n ? v.p[l.i + 1] : 0;

		if (c == ' ' || c == '\t' || c == '\r') {
			word_end(&l);
			l.i++;
		} else if (c && strchr(";&|\n()`", c)) {
			operator(&l);
		} else if (c == '<' || c == '>') {
			redirection(&l);
		} else if (c == '\'' || c == '"') {
			quoted(&l, c, false);
		} else if (c == '$' && (next == '\'' || next == '"')) {
			l.i++;
			quoted(&l, next, next == '\'');
		} else if (c == '\\' && next == '\n') {
			l.i += 2;
		} else if (c == '\\' && next) {
			word_begin(&l);
			put(&l, next, l.i + 2);
		} else {
			word_begin(&l);
			put(&l, c, l.i + 1);
		}
	}
	word_end(&l);
}

void shell_release(struct shell *s)
{
	free(s->words);
	free(s->text);
	free(s->src);
	*s = (struct shell){0};
}
