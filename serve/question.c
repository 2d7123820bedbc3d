/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/question.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

#define VERBS_MOST   64
#define OPTIONS_MOST 96

enum words { WORDS_NONE, WORDS_WHAT, WORDS_QUERY };

/* Not `lines`: it reads files that a profiled program names. Words of `diff` are files. `top` is
 * `ps`, repeated. */
static const struct {
	const char *name;
	enum words words;
	bool page;
} SERVED[] = {
	{"overview", WORDS_NONE, false},   {"timeline", WORDS_WHAT, false},
	{"explain", WORDS_WHAT, false},    {"events", WORDS_WHAT, false},
	{"oom", WORDS_WHAT, false},        {"ps", WORDS_WHAT, false},
	{"containers", WORDS_WHAT, false}, {"flame", WORDS_WHAT, false},
	{"stacks", WORDS_WHAT, false},     {"heap", WORDS_WHAT, false},
	{"waits", WORDS_WHAT, false},      {"neighbours", WORDS_WHAT, false},
	{"wakers", WORDS_WHAT, false},     {"net", WORDS_WHAT, false},
	{"disk", WORDS_WHAT, false},       {"map", WORDS_WHAT, false},
	{"requests", WORDS_WHAT, false},   {"trace", WORDS_NONE, false},
	{"check", WORDS_NONE, false},      {"diff", WORDS_NONE, false},
	{"sql", WORDS_QUERY, false},       {"status", WORDS_NONE, false},
	{"help", WORDS_NONE, false},       {"version", WORDS_NONE, false},
	{"logs", WORDS_WHAT, false},       {"report", WORDS_WHAT, true},
};

/* clang-format off */
static const char *const OPTIONS[] = {
	"last", "from", "to", "at", "rec", "container", "image", "pid", "tid", "comm", "exe", "user", "unit", "cgroup", "lang", "label", "host", "self",
	"vs-last", "vs-from", "vs-to", "vs-at", "vs-rec", "vs-container", "vs-image", "vs-pid", "vs-tid", "vs-comm", "vs-exe", "vs-user",
	"vs-unit", "vs-cgroup", "vs-lang", "vs-label", "vs-host", "baseline", "per", "type", "group", "number", "sort", "by", "lines", "no-inline", "interpreter", "callers",
	"callees", "events", "before", "sql", "growth", "alloc", "idle", "stacks", "nodes", "of", "kind", "all", "failed", "retrans", "listen", "slowest", "side", "drawing", "request", "slower-than", "id", "slow", "streams", "with", "running", "neighbours", "wakers", "fsync", "opens", "files", "calls", "locks", "full", "deleted",
	"pages", "new", "burst", "level", "source", "sample",
};
/* clang-format on */

struct served_option {
	char *name;
	bool flag, repeatable;
};

struct served_verb {
	const char *name;
	enum words words;
	bool page;
	struct served_option options[OPTIONS_MOST];
	size_t n_options;
};

struct questions {
	struct served_verb verbs[VERBS_MOST];
	size_t n;
};

static bool is_listed(const json_t *option)
{
	static const char *const paths[] = {"FILE", "DIR", "URL"};
	const char *name = json_string_value(json_object_get(option, "name")),
		   *arg = json_string_value(json_object_get(option, "arg"));

	for (size_t i = 0; arg && i < ARRAY_SIZE(paths); i++)
		if (!strcmp(arg, paths[i]))
			return false;
	for (size_t i = 0; name && i < ARRAY_SIZE(OPTIONS); i++)
		if (!strcmp(name, OPTIONS[i]))
			return true;
	return false;
}

static void options_take(struct served_verb *v, const json_t *table)
{
	const json_t *option;
	size_t i;

	json_array_foreach (table, i, option) {
		if (!is_listed(option) || v->n_options == OPTIONS_MOST)
			continue;
		v->options[v->n_options++] = (struct served_option){
			.name = mem_strdup(json_string_value(json_object_get(option, "name"))),
			.flag = !json_is_string(json_object_get(option, "arg")),
			.repeatable = json_is_true(json_object_get(option, "repeatable")),
		};
	}
}

static void verb_take(struct questions *q, const json_t *row)
{
	static const char *const tables[] = {"options", "json", "range", "filters"};
	const char *name = json_string_value(json_object_get(row, "verb"));

	for (size_t i = 0; name && i < ARRAY_SIZE(SERVED) && q->n < VERBS_MOST; i++) {
		struct served_verb *v = &q->verbs[q->n];

		if (strcmp(name, SERVED[i].name) || !json_array_size(json_object_get(row, "json")))
			continue;
		*v = (struct served_verb){
			.name = SERVED[i].name, .words = SERVED[i].words, .page = SERVED[i].page};
		for (size_t k = 0; k < ARRAY_SIZE(tables); k++)
			options_take(v, json_object_get(row, tables[k]));
		q->n++;
	}
}

int questions_read(const char *json, size_t len, struct questions **out, struct err *e)
{
	json_t *help = json_loadb(json, len, 0, NULL);
	struct questions *q = mem_alloc(sizeof(*q));
	const json_t *row;
	size_t i;

	json_array_foreach (json_object_get(help, "rows"), i, row)
		verb_take(q, row);
	json_decref(help);
	if (!q->n) {
		questions_free(q);
		err_set(e, -EBADMSG, EXIT_PREREQUISITE,
			"`sonde help --json` does not list the verbs");
		err_fix(e, "sonde and sonde-serve are of different versions: make install");
		return -EBADMSG;
	}
	*out = q;
	return 0;
}

void questions_free(struct questions *q)
{
	for (size_t i = 0; q && i < q->n; i++)
		for (size_t k = 0; k < q->verbs[i].n_options; k++)
			free(q->verbs[i].options[k].name);
	free(q);
}

char *questions_list(const struct questions *q)
{
	struct strbuf s = STRBUF_INIT;

	for (size_t i = 0; i < q->n; i++)
		if (!q->verbs[i].page)
			strbuf_addf(&s, "%s\"%s\"", s.len ? "," : "{\"verbs\":[", q->verbs[i].name);
	strbuf_addstr(&s, "]}\n");
	return strbuf_take(&s);
}

bool question_may_fail(const char *verb)
{
	return !strcmp(verb, "check");
}

static const struct served_verb *verb_find(const struct questions *q, const char *name, bool page)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->verbs[i].page == page && !strcmp(q->verbs[i].name, name))
			return &q->verbs[i];
	return NULL;
}

static int no_verb(const struct questions *q, const char *name, struct err *e)
{
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	for (size_t i = 0; i < q->n; i++)
		if (!q->verbs[i].page)
			strbuf_addf(&names, "%s%s", names.len ? ", " : "", q->verbs[i].name);
	err_set(e, -ENOENT, EXIT_USAGE, "'%.100s' is not available here", name);
	err_fix(e, "choose one of %.300s", strbuf_str(&names));
	return -ENOENT;
}

static int no_option(const struct served_verb *v, const char *name, struct err *e)
{
	struct strbuf names cleanup_strbuf = STRBUF_INIT;

	if (v->words != WORDS_NONE)
		strbuf_addstr(&names, v->words == WORDS_WHAT ? "what" : "query");
	for (size_t i = 0; i < v->n_options; i++)
		strbuf_addf(&names, "%s%s", names.len ? ", " : "", v->options[i].name);
	err_set(e, -EINVAL, EXIT_USAGE, "%s takes no '%.100s' here", v->name, name);
	if (names.len)
		err_fix(e, "it takes %.360s", strbuf_str(&names));
	return -EINVAL;
}

/* Values come with their lengths: a NUL inside would cut one short. */
static int value_check(const struct question_value *x, struct err *e)
{
	if (strlen(x->name) != x->name_len || (x->value && strlen(x->value) != x->value_len))
		return err_set(e, -EINVAL, EXIT_USAGE, "'%.100s' contains a zero byte", x->name);
	if (x->value && x->value_len > QUESTION_VALUE)
		return err_set(e, -EINVAL, EXIT_USAGE, "'%.100s' is longer than %d bytes", x->name,
			       QUESTION_VALUE);
	return 0;
}

/* Options and words are in one growing block: pointers are made at the end, when it no longer
 * moves. */
struct line {
	struct strbuf options, words; /* each ended by a NUL */
	size_t n_options, n_words;
};

static int option_add(const struct served_verb *v, const struct question_value *x, bool *given,
		      struct line *line, struct err *e)
{
	size_t i = 0;

	while (i < v->n_options && strcmp(v->options[i].name, x->name))
		i++;
	if (i == v->n_options)
		return no_option(v, x->name, e);
	if (given[i] && !v->options[i].repeatable)
		return err_set(e, -EINVAL, EXIT_USAGE, "'%s' is given twice", x->name);
	given[i] = true;
	if (v->options[i].flag && x->value && *x->value && strcmp(x->value, "1"))
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "'%s' is a flag: write %s=1, or leave it out", x->name, x->name);
	if (!v->options[i].flag && !x->value)
		return err_set(e, -EINVAL, EXIT_USAGE, "'%s' needs a value: %s=...", x->name,
			       x->name);
	strbuf_addf(&line->options, "--%s%s%s", x->name, v->options[i].flag ? "" : "=",
		    v->options[i].flag ? "" : x->value);
	strbuf_addch(&line->options, '\0');
	line->n_options++;
	return 0;
}

/* A word that begins with a dash would be an option, and words after `--` do not select
 * anything. */
static int word_add(const struct served_verb *v, const struct question_value *x, struct line *line,
		    struct err *e)
{
	if (!x->value || !*x->value)
		return err_set(e, -EINVAL, EXIT_USAGE, "'%s' needs a value: %s=...", x->name,
			       x->name);
	if (v->words == WORDS_WHAT && *x->value == '-')
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "what='%.60s' starts with a dash: use container= or comm= instead",
			       x->value);
	strbuf_add(&line->words, x->value, x->value_len + 1);
	line->n_words++;
	return 0;
}

static int values_add(const struct served_verb *v, const struct question_value *values, size_t n,
		      struct line *line, struct err *e)
{
	bool given[OPTIONS_MOST] = {false};
	int rc = n > QUESTION_VALUES ?
			 err_set(e, -EINVAL, EXIT_USAGE, "more than %d values", QUESTION_VALUES) :
			 0;

	for (size_t i = 0; !rc && i < n; i++) {
		const struct question_value *x = &values[i];
		bool word = (v->words == WORDS_WHAT && !strcmp(x->name, "what")) ||
			    (v->words == WORDS_QUERY && !strcmp(x->name, "query"));

		rc = value_check(x, e);
		if (!rc)
			rc = word ? word_add(v, x, line, e) : option_add(v, x, given, line, e);
	}
	if (!rc && v->words == WORDS_QUERY && !line->n_words) {
		err_set(e, -EINVAL, EXIT_USAGE, "%s needs a query", v->name);
		err_fix(e, "%s?query=select+1, or query=@ for the queries that ship with sonde",
			v->name);
		return -EINVAL;
	}
	return rc;
}

static const char **line_argv(const char *const *first, size_t n_first, const struct line *line,
			      bool dashes)
{
	size_t n = n_first + line->n_options + dashes + line->n_words, at = 0;
	const char **argv =
		mem_alloc((n + 1) * sizeof(*argv) + line->options.len + line->words.len);
	char *text = (char *)(argv + n + 1);

	for (size_t i = 0; i < n_first; i++)
		argv[at++] = first[i];
	if (line->options.len)
		memcpy(text, line->options.buf, line->options.len);
	for (size_t i = 0; i < line->n_options; i++, text += strlen(text) + 1)
		argv[at++] = text;
	if (dashes)
		argv[at++] = "--";
	if (line->words.len)
		memcpy(text, line->words.buf, line->words.len);
	for (size_t i = 0; i < line->n_words; i++, text += strlen(text) + 1)
		argv[at++] = text;
	return argv;
}

int question_argv(const struct questions *q, const char *sonde, const char *store, unsigned seconds,
		  const char *verb, bool page, const struct question_value *values, size_t n,
		  const char ***argv, struct err *e)
{
	const struct served_verb *v = verb_find(q, verb, page);
	const char *first[8] = {sonde, v ? v->name : NULL, page ? "--output=-" : "--json"};
	struct line line = {STRBUF_INIT, STRBUF_INIT, 0, 0};
	char timeout[32];
	size_t n_first = 3;
	int rc = v ? values_add(v, values, n, &line, e) : no_verb(q, verb, e);

	if (!rc && v->words == WORDS_QUERY) {
		snprintf(timeout, sizeof(timeout), "--timeout=%us",
			 seconds + 1); /* the overall limit comes first */
		strbuf_add(&line.options, timeout, strlen(timeout) + 1);
		line.n_options++;
	}
	if (!rc && store && strcmp(v->name, "help") && strcmp(v->name, "version")) {
		first[n_first++] = "--store";
		first[n_first++] = store;
	}
	if (!rc)
		*argv = line_argv(first, n_first, &line, v->words == WORDS_QUERY);
	strbuf_release(&line.options);
	strbuf_release(&line.words);
	return rc;
}
