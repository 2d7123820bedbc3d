/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/logs/level.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "loaders/logs/jsonpull.h"
#include "schema/base/array.h"

#define WORDS 9 /* of a line that are looked at */

const char *const LEVEL_NAMES[LEVELS] = {"unknown", "debug", "info", "warning", "error", "fatal"};

/* clang-format off */
static const struct word {
	const char *text;
	enum line_level level;
} LEVEL_WORDS[] = {
	{"error", LEVEL_ERROR}, {"warn", LEVEL_WARNING}, {"warning", LEVEL_WARNING}, {"info", LEVEL_INFO}, {"debug", LEVEL_DEBUG},
	{"fatal", LEVEL_FATAL}, {"critical", LEVEL_FATAL}, {"err", LEVEL_ERROR}, {"wrn", LEVEL_WARNING}, {"inf", LEVEL_INFO},
	{"dbg", LEVEL_DEBUG}, {"trace", LEVEL_DEBUG}, {"trc", LEVEL_DEBUG}, {"ftl", LEVEL_FATAL}, {"crit", LEVEL_FATAL},
	{"notice", LEVEL_INFO}, {"note", LEVEL_INFO}, {"log", LEVEL_INFO}, {"information", LEVEL_INFO}, {"severe", LEVEL_ERROR},
	{"panic", LEVEL_FATAL}, {"emerg", LEVEL_FATAL}, {"emergency", LEVEL_FATAL}, {"alert", LEVEL_FATAL}, {"verbose", LEVEL_DEBUG},
	{"fine", LEVEL_DEBUG}, {"finer", LEVEL_DEBUG}, {"finest", LEVEL_DEBUG}, {"eror", LEVEL_ERROR}, {"system", LEVEL_INFO},
};
/* clang-format on */

enum line_level level_priority(int priority)
{
	return priority < 0 || priority > 7 ? LEVEL_UNKNOWN :
	       priority <= 2                ? LEVEL_FATAL :
	       priority == 3                ? LEVEL_ERROR :
	       priority == 4                ? LEVEL_WARNING :
	       priority <= 6                ? LEVEL_INFO :
					      LEVEL_DEBUG;
}

/* pino and bunyan: 10 trace, 20 debug, 30 info, 40 warn, 50 error, 60 fatal. */
static enum line_level of_number(const char *s, size_t len)
{
	static const enum line_level tens[] = {LEVEL_UNKNOWN, LEVEL_DEBUG, LEVEL_DEBUG, LEVEL_INFO,
					       LEVEL_WARNING, LEVEL_ERROR, LEVEL_FATAL};

	if (len == 2 && s[0] >= '1' && s[0] <= '6' && isdigit((unsigned char)s[1]))
		return tens[s[0] - '0'];
	return len == 1 && *s >= '0' && *s <= '7' ? level_priority(*s - '0') : LEVEL_UNKNOWN;
}

enum line_level level_word(const char *s, size_t len)
{
	static const char letters[] = "DIWEFT";
	static const enum line_level of[] = {LEVEL_DEBUG, LEVEL_INFO,  LEVEL_WARNING,
					     LEVEL_ERROR, LEVEL_FATAL, LEVEL_DEBUG};
	const char *at;

	if (len == 1 && isalpha((unsigned char)*s)) {
		at = strchr(letters, toupper((unsigned char)*s));
		return at ? of[at - letters] : LEVEL_UNKNOWN;
	}
	if (len && isdigit((unsigned char)*s))
		return of_number(s, len);
	if (len < 3 || len > 11)
		return LEVEL_UNKNOWN;
	for (size_t i = 0; i < ARRAY_SIZE(LEVEL_WORDS); i++)
		if ((LEVEL_WORDS[i].text[0] | 0x20) == (*s | 0x20) &&
		    strlen(LEVEL_WORDS[i].text) == len && !strncasecmp(LEVEL_WORDS[i].text, s, len))
			return LEVEL_WORDS[i].level;
	return LEVEL_UNKNOWN;
}

/* ---- JSON ---- */

static bool is_level_key(const char *s, size_t len)
{
	static const char *const keys[] = {"level",     "lvl",      "severity", "levelname",
					   "log.level", "loglevel", "@l",       "s",
					   "log_level", "LEVEL",    "Level",    "severity_text"};

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strlen(keys[i]) == len && !memcmp(keys[i], s, len))
			return true;
	return false;
}

static enum line_level of_json(const char *s, size_t len, bool *is)
{
	struct jsonpull j;
	struct jsonpull_member m;
	enum line_level level;

	*is = jsonpull_begin(&j, s, len);
	while (*is && jsonpull_next(&j, &m)) {
		if (!is_level_key(m.key.s, m.key.len))
			continue;
		level = level_word(m.value.s, m.value.len);
		if (level != LEVEL_UNKNOWN)
			return level;
	}
	return LEVEL_UNKNOWN;
}

/* ---- words ---- */

struct token {
	const char *s;
	size_t len;          /* without what is around it */
	bool bracket, colon; /* [word]; word: */
	const char *before;  /* what is before it begins there */
};

static bool is_around(char c)
{
	return strchr("[](){}<>|,;\"'*!", c) && c;
}

static struct token trimmed(const char *s, size_t len)
{
	struct token t = {.s = s, .len = len, .before = s};

	while (t.len && is_around(*t.s)) {
		t.bracket = t.bracket || strchr("[(<|{", *t.s);
		t.s++;
		t.len--;
	}
	while (t.len && (is_around(t.s[t.len - 1]) || t.s[t.len - 1] == ':')) {
		t.colon = t.colon || t.s[t.len - 1] == ':';
		t.len--;
	}
	return t;
}

static bool is_upper(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isupper((unsigned char)s[i]))
			return false;
	return len > 0;
}

static bool is_clock(const char *s, size_t len)
{
	return len >= 8 && isdigit((unsigned char)s[0]) && s[2] == ':' && s[5] == ':';
}

/* TypeError:, java.lang.IllegalStateException: */
static bool is_exception(const struct token *t)
{
	return t->len > 5 && isalpha((unsigned char)*t->s) &&
	       ((t->len > 5 && !memcmp(t->s + t->len - 5, "Error", 5)) ||
		(t->len > 9 && !memcmp(t->s + t->len - 9, "Exception", 9)));
}

/* level=error, "severity":"error" in something that is no JSON. */
static enum line_level of_pair(const struct token *t)
{
	const char *eq = memchr(t->s, '=', t->len);
	struct token v;

	if (!eq || !is_level_key(t->s, (size_t)(eq - t->s)) || eq - t->s < 2)
		return LEVEL_UNKNOWN;
	v = trimmed(eq + 1, (size_t)(t->s + t->len - eq - 1));
	return level_word(v.s, v.len);
}

/* ERROR:root:text of Python's logging; ERROR/MainProcess of celery */
static size_t word_len(const struct token *t)
{
	size_t n = 0;

	while (n < t->len && isalpha((unsigned char)t->s[n]))
		n++;
	return n && n < t->len && (t->s[n] == ':' || t->s[n] == '/' || t->s[n] == ']') ? n : t->len;
}

static enum line_level of_token(const struct token *t, bool first)
{
	enum line_level level = of_pair(t);
	size_t n = word_len(t);
	bool colon = t->colon || (n < t->len && t->s[n] == ':');

	if (level != LEVEL_UNKNOWN)
		return level;
	if (n < 3)
		return LEVEL_UNKNOWN;
	level = level_word(t->s, n);
	if (level == LEVEL_UNKNOWN)
		return t->colon && is_exception(t) ? LEVEL_ERROR : LEVEL_UNKNOWN;
	return t->bracket || colon || is_upper(t->s, n) || (first && level >= LEVEL_WARNING) ?
		       level :
		       LEVEL_UNKNOWN;
}

/* E1129 18:00:00.123456; the sign of Redis behind its time */
static enum line_level of_sign(const struct token *t, const struct token *next, bool after_clock)
{
	static const char signs[] = ".-*#";
	const char *at;

	if (t->len == 5 && strchr("DIWEF", *t->s) && strspn(t->s + 1, "0123456789") >= 4 && next &&
	    is_clock(next->s, next->len))
		return level_word(t->s, 1);
	at = after_clock && next && t->before[1] == ' ' && t->before[0] ?
		     strchr(signs, t->before[0]) :
		     NULL;
	if (at && t->len <= 1)
		return *at == '#' ? LEVEL_WARNING : *at == '*' ? LEVEL_INFO : LEVEL_DEBUG;
	return LEVEL_UNKNOWN;
}

static bool begins(const char *s, size_t len, const char *with)
{
	return len >= strlen(with) && !memcmp(s, with, strlen(with));
}

static enum line_level of_begin(const char *s, size_t len)
{
	if (len > 3 && s[0] == '<' && s[2] == '>' && s[1] >= '0' && s[1] <= '7')
		return level_priority(s[1] - '0');
	if (begins(s, len, "Traceback (most recent call last)"))
		return LEVEL_ERROR;
	if (begins(s, len, "panic:") || begins(s, len, "fatal error:"))
		return LEVEL_FATAL;
	if (begins(s, len, "Exception in thread") || begins(s, len, "Unhandled ") ||
	    begins(s, len, "Uncaught ") ||
	    (begins(s, len, "thread '") && memmem(s, len, "panicked at", 11)))
		return LEVEL_ERROR;
	return LEVEL_UNKNOWN;
}

static size_t tokens(const char *s, size_t len, struct token out[WORDS])
{
	size_t n = 0, at = 0, from;

	while (n < WORDS && at < len) {
		while (at < len && (s[at] == ' ' || s[at] == '\t'))
			at++;
		for (from = at; at < len && s[at] != ' ' && s[at] != '\t' && s[at] != '\n';)
			at++;
		if (at > from)
			out[n++] = trimmed(s + from, at - from);
		if (at < len && s[at] == '\n')
			break;
	}
	return n;
}

/* 1:M: the process, and what it is */
static bool is_redis(const struct token *t)
{
	size_t n = 0;

	while (n < t->len && isdigit((unsigned char)t->s[n]))
		n++;
	return n && n + 2 == t->len && t->s[n] == ':' && isupper((unsigned char)t->s[n + 1]);
}

/* What comes before the message: numbers, times, names in brackets. */
static bool is_preamble(const struct token *t)
{
	return t->bracket || !t->len || memchr(t->s, ':', t->len) || isdigit((unsigned char)*t->s);
}

enum line_level level_of(const char *s, size_t len)
{
	struct token t[WORDS + 1] = {{0}};
	bool json = false, clock = false, first = true;
	enum line_level level = LEVEL_UNKNOWN;
	size_t n;

	if (len && *s == '{')
		level = of_json(s, len, &json);
	if (json)
		return level;
	len = len < LEVEL_LOOKED_AT ? len : LEVEL_LOOKED_AT;
	level = of_begin(s, len);
	n = level == LEVEL_UNKNOWN ? tokens(s, len, t) : 0;
	for (size_t i = 0; i < n && level == LEVEL_UNKNOWN; i++) {
		level = of_sign(&t[i], i + 1 < n ? &t[i + 1] : NULL, clock);
		if (level == LEVEL_UNKNOWN)
			level = of_token(&t[i], first);
		clock = is_clock(t[i].s, t[i].len) && is_redis(&t[0]);
		first = first && is_preamble(&t[i]);
	}
	return level;
}
