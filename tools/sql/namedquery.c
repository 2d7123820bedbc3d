/* SPDX-License-Identifier: Apache-2.0 */
/* namedquery: see the header, and tools/sql/queries/README.md for the form of a file. */
#include "tools/sql/namedquery.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/suggest.h"
#include "schema/base/clock.h"
#include "tools/print/when.h"
#include "tools/sql/queries.h" /* made: NAMEDQUERIES */

#define KEY_MAX   24
#define VALUE_MAX 200

/* The n-th line of comment after the licence: its text and length; NULL: there is no more. */
static const char *comment_line(const struct namedquery *q, size_t n, size_t *len)
{
	const char *s = q->text;

	for (size_t i = 0; s && !strncmp(s, "-- ", 3); i++) {
		*len = strcspn(s, "\n") - 3;
		if (i == n + 1)
			return s + 3;
		s = strchr(s, '\n');
		s = s ? s + 1 : NULL;
	}
	return NULL;
}

const char *namedquery_summary(const struct namedquery *q, char *buf, size_t size)
{
	size_t len = 0, skip = strlen(q->name) + 2;
	const char *line = comment_line(q, 0, &len);

	snprintf(buf, size, "%.*s", line && len > skip ? (int)(len - skip) : 0,
		 line ? line + skip : "");
	return buf;
}

int namedquery_find(const char *name, const struct namedquery **out, struct err *e)
{
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	struct suggest near;

	name += *name == '@';
	suggest_init(&near, name);
	for (const struct namedquery *q = NAMEDQUERIES; q->name; q++) {
		if (!strcmp(q->name, name)) {
			*out = q;
			return 0;
		}
		suggest_add(&near, q->name);
	}
	suggest_say(&near, &hint, "@");
	err_set(e, -ENOENT, EXIT_USAGE, "there is no query @%.40s%s", name, strbuf_str(&hint));
	err_fix(e, "sonde sql @   lists them");
	return -ENOENT;
}

struct parameter {
	char key[KEY_MAX], value[VALUE_MAX];
	bool text;
};

/* "n = 20: how many rows", "comm = '': only this command". The files are ours, and a test reads
 * them all. */
static bool parameter_get(const struct namedquery *q, size_t n, struct parameter *p)
{
	size_t len = 0;
	const char *line = comment_line(q, n + 1, &len);
	char value[VALUE_MAX];

	if (!line || sscanf(line, "%23[a-z] = %199[^:]", p->key, value) != 2)
		return false;
	p->text = value[0] == '\'';
	snprintf(p->value, sizeof(p->value), "%.*s",
		 p->text ? (int)strcspn(value + 1, "'") : (int)strlen(value), value + p->text);
	return true;
}

static int unknown_key(const struct namedquery *q, const char *word, struct err *e)
{
	struct strbuf keys cleanup_strbuf = STRBUF_INIT;
	struct parameter p;

	for (size_t i = 0; parameter_get(q, i, &p); i++)
		strbuf_addf(&keys, "%s%s", i ? ", " : "", p.key);
	return err_set(e, -EINVAL, EXIT_USAGE,
		       "@%s: '%.60s' is not KEY=VALUE with one of its keys: %s", q->name, word,
		       keys.len ? strbuf_str(&keys) : "it has none");
}

/* Does the word set this key? Its value. */
static const char *word_value(const char *word, const char *key)
{
	size_t len = strlen(key);

	return !strncmp(word, key, len) && word[len] == '=' ? word + len + 1 : NULL;
}

static int check_words(const struct namedquery *q, char *const *words, size_t n_words,
		       struct err *e)
{
	for (size_t k = 0; k < n_words; k++) {
		struct parameter p;
		bool known = false;

		for (size_t i = 0; !known && parameter_get(q, i, &p); i++)
			known = word_value(words[k], p.key) != NULL;
		if (!known)
			return unknown_key(q, words[k], e);
	}
	return 0;
}

static bool is_time(const struct parameter *p)
{
	return !strcmp(p->key, "from") || !strcmp(p->key, "to");
}

static bool is_set(const struct parameter *p, char *const *words, size_t n_words)
{
	bool set = false;

	for (size_t k = 0; k < n_words; k++)
		set |= word_value(words[k], p->key) != NULL;
	return set;
}

static int bind_number(const struct namedquery *q, struct sqlite3_stmt *st, int at,
		       const struct parameter *p, const char *value, int64_t now_ns, struct err *e)
{
	const bool time = is_time(p);
	char *end = NULL;
	int64_t ns;

	if (time && value != p->value) {
		if (when_parse(value, now_ns, &ns))
			return err_set(e, -EINVAL, EXIT_USAGE,
				       "@%s: %s=%.60s is not a time (sonde help range)", q->name,
				       p->key, value);
		sqlite3_bind_double(st, at, (double)ns / NSEC_PER_SEC);
		return 0;
	}
	sqlite3_bind_double(st, at, strtod(value, &end));
	if (end == value || *end)
		return err_set(e, -EINVAL, EXIT_USAGE, "@%s: %s=%.60s is not a number", q->name,
			       p->key, value);
	return 0;
}

static int bind_one(const struct namedquery *q, struct sqlite3_stmt *st, const struct parameter *p,
		    char *const *words, size_t n_words, int64_t now_ns, struct err *e)
{
	const char *value = p->value;
	char name[KEY_MAX + 2];
	int at;

	snprintf(name, sizeof(name), ":%s", p->key);
	at = sqlite3_bind_parameter_index(st, name);
	for (size_t k = 0; k < n_words; k++)
		if (word_value(words[k], p->key))
			value = word_value(words[k], p->key);
	if (!p->text)
		return bind_number(q, st, at, p, value, now_ns, e);
	sqlite3_bind_text(st, at, value, -1, SQLITE_TRANSIENT);
	return 0;
}

int namedquery_bind(const struct namedquery *q, struct sqlite3_stmt *st, char *const *words,
		    size_t n_words, int64_t now_ns, bool ranged, struct err *e)
{
	struct parameter p;
	int ret = check_words(q, words, n_words, e);

	for (size_t i = 0; !ret && parameter_get(q, i, &p); i++)
		if (!ranged || !is_time(&p) || is_set(&p, words, n_words))
			ret = bind_one(q, st, &p, words, n_words, now_ns, e);
	return ret;
}
