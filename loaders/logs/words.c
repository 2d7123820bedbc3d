/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/words.h"

#include <ctype.h>
#include <string.h>

#include "loaders/logs/jsonpull.h"
#include "loaders/logs/level.h"
#include "schema/base/array.h"
#include "schema/base/hash.h"

#define WORD_LONGEST 64
#define PLAIN_MOST   1024 /* of a message in JSON */
#define LOOKED_AT    2048 /* of any other */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_quote(char c)
{
	return c == '"' || c == '\'' || c == '`';
}

/* "*" follows "*" nowhere. */
static void add(struct words *w, const char *s, size_t len)
{
	bool star = len == 1 && *s == '*';

	if (star && w->n && w->text[w->len - 1] == '*' && w->word[w->n - 1].len == 1)
		return;
	if (w->n >= WORDS_MOST || w->len + len + 1 > WORDS_BYTES)
		return;
	if (w->n)
		w->text[w->len++] = ' ';
	w->word[w->n].at = w->len;
	w->word[w->n++].len = (uint16_t)len;
	memcpy(w->text + w->len, s, len);
	w->len = (uint16_t)(w->len + len);
	w->text[w->len] = 0;
}

static bool is_hex_word(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isxdigit((unsigned char)s[i]))
			return false;
	return len >= 8;
}

/* Is this a word that stays? */
static bool stays(const char *s, size_t len)
{
	bool letter = false;

	if (!len || len > WORD_LONGEST || is_hex_word(s, len))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (isdigit(c) || c == '@' || c == '/' || c == '\\' || c == '%' || c == '*' ||
		    c < ' ' || c == 0x7f)
			return false;
		letter = letter || isalpha(c) || c >= 0x80;
	}
	return letter;
}

static bool is_edge(char c)
{
	return c && strchr("[](){}<>|,;:\"'`.!?", c);
}

/* name=value */
static bool pair_add(struct words *w, const char *s, size_t len)
{
	const char *eq = memchr(s, '=', len);
	size_t n = eq ? (size_t)(eq - s) : 0;
	char name[WORD_LONGEST + 4];

	if (!eq || !n || n > WORD_LONGEST || !stays(s, n))
		return false;
	memcpy(name, s, n);
	name[n] = '=';
	name[n + 1] = '*';
	add(w, name, n + 2);
	return true;
}

static void word_add(struct words *w, const char *s, size_t len)
{
	while (len && is_edge(*s))
		s++, len--;
	while (len && is_edge(s[len - 1]))
		len--;
	if (!len)
		return;
	if (pair_add(w, s, len))
		return;
	if (stays(s, len))
		add(w, s, len);
	else
		add(w, "*", 1);
}

/* Behind the quote that ends what begins at `at`; 0: it does not end. */
static size_t quoted_end(const char *s, size_t len, size_t at)
{
	const char *from = s + at + 1, *q;

	while ((q = memchr(from, s[at], (size_t)(s + len - from)))) {
		size_t end = (size_t)(q - s) + 1;

		if (end == len || !isalnum((unsigned char)s[end])) /* not the ' of "don't" */
			return end;
		from = q + 1;
	}
	return 0;
}

static bool begins_quote(const char *s, size_t at)
{
	return is_quote(s[at]) && (!at || is_blank(s[at - 1]) || strchr("=:([{,", s[at - 1]));
}

static void prose_add(struct words *w, const char *s, size_t len)
{
	size_t at = 0, from, end;
	int tries = 16; /* each quote is looked for to the end */

	while (at < len && w->n < WORDS_MOST) {
		while (at < len && is_blank(s[at]))
			at++;
		for (from = at; at < len && !is_blank(s[at]); at++) {
			if (!tries || !begins_quote(s, at))
				continue;
			end = quoted_end(s, len, at);
			tries -= !end;
			if (!end)
				continue;
			word_add(w, s + from, at - from);
			if (!(at > from && s[at - 1] == '='))
				add(w, "*", 1);
			at = from = end;
			if (at >= len || is_blank(s[at]))
				break;
			at--; /* the loop steps on */
		}
		if (at > from)
			word_add(w, s + from, at - from);
	}
}

/* ---- JSON ---- */

static bool is_one_of(struct jsonpull_text t, const char *const *keys)
{
	for (; *keys; keys++)
		if (jsonpull_is(t, *keys))
			return true;
	return false;
}

static bool json_add(struct words *w, const char *s, size_t len)
{
	static const char *const messages[] = {"msg", "message", "event", "@m",
					       "@mt", "MESSAGE", "log",   NULL};
	static const char *const errors[] = {"error", "err", "exception", "exc_info", NULL};
	char message[PLAIN_MOST], error[PLAIN_MOST];
	size_t n_message = 0, n_error = 0;
	struct jsonpull j;
	struct jsonpull_member m;
	struct words keys = {0};

	if (!jsonpull_begin(&j, s, len))
		return false;
	while (jsonpull_next(&j, &m)) {
		if (m.text && !n_message && is_one_of(m.key, messages))
			n_message = jsonpull_plain(m.value, message, sizeof(message));
		else if (m.text && !n_error && is_one_of(m.key, errors))
			n_error = jsonpull_plain(m.value, error, sizeof(error));
		else
			word_add(&keys, m.key.s, m.key.len);
	}
	if (!n_message && !n_error) {
		*w = keys;
		return keys.n > 0;
	}
	prose_add(w, message, n_message);
	prose_add(w, error, n_error);
	return true;
}

/* msg="text" of logfmt: where its text is. */
static bool logfmt_message(const char *s, size_t len, const char **text, size_t *n)
{
	static const char *const keys[] = {"msg=\"", "message=\"", "error=\"", "err=\""};
	const char *at = NULL;
	size_t i, end;

	for (i = 0; !at && i < ARRAY_SIZE(keys); i++) {
		at = memmem(s, len, keys[i], strlen(keys[i]));
		if (at && at > s && !is_blank(at[-1]))
			at = NULL;
		else if (at)
			at += strlen(keys[i]);
	}
	if (!at)
		return false;
	for (end = (size_t)(at - s); end < len && (s[end] != '"' || s[end - 1] == '\\'); end++)
		;
	*text = at;
	*n = (size_t)(s + end - at);
	return *n > 0;
}

/* ---- the pattern ---- */

/* The words from `first` on. */
static void cut_front(struct words *w, uint16_t first)
{
	uint16_t at = first < w->n ? w->word[first].at : w->len;

	memmove(w->text, w->text + at, (size_t)(w->len - at) + 1);
	w->len = (uint16_t)(w->len - at);
	for (uint16_t i = first; i < w->n; i++) {
		w->word[i - first] = w->word[i];
		w->word[i - first].at = (uint16_t)(w->word[i].at - at);
	}
	w->n = (uint16_t)(w->n - first);
}

static bool says_level(const struct words *w, uint16_t i)
{
	const char *s = w->text + w->word[i].at;
	size_t len = w->word[i].len;

	return (len >= 3 && level_word(s, len) != LEVEL_UNKNOWN) ||
	       (len == 7 && !memcmp(s, "level=*", 7)) || (len == 6 && !memcmp(s, "time=*", 6)) ||
	       (len == 4 && !memcmp(s, "ts=*", 4)) || (len == 5 && !memcmp(s, "lvl=*", 5));
}

/* A part of a time, as lines have it before a message: a month, a day of the week, a zone. */
static bool is_of_a_time(const struct words *w, uint16_t i)
{
	static const char names[] =
		"Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec Mon Tue Wed Thu Fri Sat Sun UTC GMT CET";
	char name[4];

	if (w->word[i].len != 3)
		return false;
	memcpy(name, w->text + w->word[i].at, 3);
	name[3] = 0;
	return strstr(names, name) && !strchr(name, ' ');
}

void words_of(const char *s, size_t len, struct words *out)
{
	const char *message = s;
	size_t n = len;
	uint16_t first = 0;

	*out = (struct words){0};
	if (len && *s == '{' && json_add(out, s, len)) {
		if (!out->n)
			add(out, "*", 1);
		return;
	}
	logfmt_message(s, len, &message, &n);
	n = n < LOOKED_AT ? n : LOOKED_AT;
	prose_add(out, message, n);
	while (first < out->n &&
	       ((out->word[first].len == 1 && out->text[out->word[first].at] == '*') ||
		is_of_a_time(out, first) || says_level(out, first)))
		first++;
	if (first < out->n)
		cut_front(out, first);
	if (!out->n)
		add(out, "*", 1);
}

uint64_t words_hash(const struct words *w)
{
	return hash_bytes(HASH_SEED, w->text, w->len);
}
