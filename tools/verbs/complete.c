/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/verbs/complete.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/array.h"
#include "schema/families/families.h"
#include "schema/store/model/kinds.h"
#include "schema/store/read/reader.h"
#include "tools/cli/verb.h"
#include "tools/processes/procs_more.h"
#include "tools/select/word.h"
#include "tools/sql/namedquery.h"

#define A_FILE        "<file>"
#define FUNCTIONS_MAX "500" /* a longer list does not help */

struct completing {
	const struct verb *verb;
	const struct option *tables[VERB_TABLES];
	const char *typed; /* the word typed so far */
	const char *store; /* the value of --store */
	FILE *out;
};

/* Prints a word if it fits. Names with a control byte would break the protocol, and cannot be typed
 * anyway. */
static void offer(const struct completing *c, const char *word, const char *help)
{
	if (strncasecmp(word, c->typed, strlen(c->typed)))
		return;
	for (const char *s = word; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return;
	fputs(word, c->out);
	if (help && *help)
		fprintf(c->out, "\t%s", help);
	fputc('\n', c->out);
}

static void offer_verbs(const struct completing *c)
{
	for (const struct verb *const *v = VERBS; *v; v++)
		if (!(*v)->now)
			offer(c, (*v)->name, (*v)->summary);
}

static void offer_options(const struct completing *c)
{
	char word[64];

	for (size_t t = 0; t < VERB_TABLES; t++)
		for (const struct option *o = c->tables[t]; o && o->name; o++) {
			snprintf(word, sizeof(word), "--%s", o->name);
			offer(c, word, o->help);
		}
}

static const struct option *option_named(const struct completing *c, const char *word)
{
	for (size_t t = 0; t < VERB_TABLES; t++)
		for (const struct option *o = c->tables[t]; o && o->name; o++)
			if ((word[0] == '-' && word[1] == '-' && !strcmp(word + 2, o->name)) ||
			    (word[0] == '-' && o->letter && word[1] == o->letter && !word[2]))
				return o;
	return NULL;
}

/* --- names that the store knows --- */

static void names_of_store(const struct completing *c, struct names *l)
{
	struct store_segment_info *segments = NULL;
	struct err e = {0};
	size_t n = 0;

	if (!store_segments(c->store ? c->store : store_read_dir(), 0, INT64_MAX, &segments, &n,
			    &e) &&
	    n)
		names_read(l, segments[n - 1].path, &e);
	free(segments);
}

static void offer_names(const struct completing *c, unsigned kinds)
{
	struct names l = {0};

	names_of_store(c, &l);
	for (size_t i = 0; i < l.n; i++)
		if (kinds & 1u << l.items[i].kind)
			offer(c, l.items[i].text, NULL);
	names_release(&l);
}

/* Functions of the newest segment whose names begin with the typed word. */
static void offer_functions(const struct completing *c)
{
	static const char *const query =
		"SELECT DISTINCT function FROM functions WHERE lower(substr(function, 1, length(?1))) = lower(?1) "
		"ORDER BY 1 LIMIT " FUNCTIONS_MAX;
	struct store_segment_info *segments = NULL;
	struct store_segment *s = NULL;
	sqlite3_stmt *st = NULL;
	struct err e = {0};
	size_t n = 0;

	if (!store_segments(c->store ? c->store : store_read_dir(), 0, INT64_MAX, &segments, &n,
			    &e) &&
	    n && !store_segment_open(segments[n - 1].path, &s, &e) &&
	    store_segment_prepare(s, query, &st) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, c->typed, -1, SQLITE_STATIC);
		while (sqlite3_step(st) == SQLITE_ROW)
			offer(c, (const char *)sqlite3_column_text(st, 0), NULL);
	}
	sqlite3_finalize(st);
	store_segment_close(s);
	free(segments);
}

/* --- values of options --- */

static void offer_types(const struct completing *c)
{
	for (int k = 1; k < STORE_KINDS; k++)
		offer(c, store_kind_info((enum store_kind)k)->name,
		      store_kind_info((enum store_kind)k)->what);
}

static void offer_sortable(const struct completing *c)
{
	for (int k = 1; k < STORE_KINDS; k++)
		if (procs_more_takes(store_kind_info((enum store_kind)k)))
			offer(c, store_kind_info((enum store_kind)k)->name,
			      store_kind_info((enum store_kind)k)->what);
}

static bool list_has(const char *list, size_t len, const char *word)
{
	for (size_t at = 0, n; at < len; at += n + 1) {
		n = strcspn(list + at, ",");
		if (n == strlen(word) && !strncmp(list + at, word, n))
			return true;
	}
	return false;
}

/* A comma-separated list: offers one more family after those already typed. */
static void offer_families(const struct completing *c)
{
	const char *comma = strrchr(c->typed, ',');
	const size_t len = comma ? (size_t)(comma + 1 - c->typed) : 0;
	char word[128];

	for (const struct probe_family *f = FAMILIES; f->name; f++) {
		snprintf(word, sizeof(word), "%.*s%s", (int)len, c->typed, f->name);
		if (!list_has(c->typed, len, f->name))
			offer(c, word, NULL);
	}
}

static const struct value_set {
	const char *option;
	const char *words[12];                     /* fixed words */
	unsigned kinds;                            /* or names of these kinds */
	bool file;                                 /* or a path */
	void (*offer)(const struct completing *c); /* or words from this function */
} VALUES[] = {
	{.option = "type", .offer = offer_types},
	{.option = "sort", .words = {"cpu", "pid", "name", "start"}, .offer = offer_sortable},
	{.option = "families", .offer = offer_families},
	{.option = "callers", .offer = offer_functions},
	{.option = "callees", .offer = offer_functions},
	{.option = "container", .kinds = 1u << FILTER_CONTAINER},
	{.option = "unit", .kinds = 1u << FILTER_UNIT},
	{.option = "comm", .kinds = 1u << FILTER_COMM},
	{.option = "pid", .kinds = 1u << FILTER_PID},
	{.option = "lang",
	 .words = {"python", "go", "java", "node", "ruby", "php", "perl", "dotnet", "erlang", "lua",
		   "c++"}},
	{.option = "color", .words = {"auto", "always", "never"}},
	{.option = "group", .words = {"none", "container", "process", "thread"}},
	{.option = "args", .words = {"masked", "full", "none"}},
	{.option = "rec", .words = {"last", "last~1"}},
	{.option = "last", .words = {"1m", "15m", "1h", "24h"}},
	{.option = "from", .words = {"-15m", "-1h", "today", "yesterday"}},
	{.option = "to", .words = {"now", "-15m", "-1h"}},
	{.option = "at", .words = {"-5m", "-1h"}},
	{.option = "store", .file = true},
	{.option = "output", .file = true},
	{.option = "source-dir", .file = true},
};

static void offer_values(const struct completing *c, const struct option *o)
{
	for (size_t i = 0; i < ARRAY_SIZE(VALUES); i++) {
		const struct value_set *v = &VALUES[i];

		if (strcmp(v->option, o->name))
			continue;
		for (size_t k = 0; k < ARRAY_SIZE(v->words) && v->words[k]; k++)
			offer(c, v->words[k], NULL);
		if (v->offer)
			v->offer(c);
		if (v->kinds)
			offer_names(c, v->kinds);
		if (v->file)
			fputs(A_FILE "\n", c->out);
	}
}

/* --- bare words --- */

static void offer_queries(const struct completing *c)
{
	char name[64], summary[160];

	for (const struct namedquery *q = NAMEDQUERIES; q->name; q++) {
		snprintf(name, sizeof(name), "@%s", q->name);
		offer(c, name, namedquery_summary(q, summary, sizeof(summary)));
	}
}

static void offer_words(const struct completing *c, size_t before)
{
	static const char *const forms[] = {"pprof",       "folded", "speedscope",
					    "perf-script", "json",   "db"};
	static const char *const shells[] = {"bash", "zsh", "fish"};
	const char *verb = c->verb->name;

	if (!strcmp(verb, "help"))
		offer_verbs(c);
	else if (!strcmp(verb, "sql") && !before)
		offer_queries(c);
	else if (!strcmp(verb, "lines") && !before)
		offer_functions(c);
	for (const struct probe_family *f = FAMILIES;
	     (!strcmp(verb, "up") || !strcmp(verb, "down")) && f->name; f++)
		offer(c, f->name, NULL);
	for (size_t i = 0; !strcmp(verb, "export") && !before && i < ARRAY_SIZE(forms); i++)
		offer(c, forms[i], NULL);
	for (size_t i = 0; !strcmp(verb, "completion") && !before && i < ARRAY_SIZE(shells); i++)
		offer(c, shells[i], NULL);
	if (c->verb->uses & VERB_SELECT_WORD && (before || !(c->verb->uses & VERB_OWN_WORD)))
		offer_names(c, 1u << FILTER_CONTAINER | 1u << FILTER_UNIT | 1u << FILTER_COMM);
}

/* Evaluates the words before the last one: the verb's own words so far, and the option whose value
 * is being typed. */
static const struct option *read_words(struct completing *c, char *const *words, size_t n,
				       size_t *before)
{
	const struct option *open = NULL;

	for (size_t i = 1; i + 1 < n; i++) {
		if (open) {
			if (!strcmp(open->name, "store"))
				c->store = words[i];
			open = NULL;
		} else if (words[i][0] == '-') {
			open = option_named(c, words[i]);
			open = open && open->type != OPTION_FLAG ? open : NULL;
		} else {
			++*before;
		}
	}
	return open;
}

void complete_print(char *const *words, size_t n, FILE *out)
{
	struct completing c = {.typed = n ? words[n - 1] : "", .out = out};
	const struct option *open;
	size_t before = 0;

	if (n < 2) {
		offer_verbs(&c);
		return;
	}
	c.verb = verb_find(words[0]);
	if (!c.verb)
		return;
	verb_tables(c.verb, c.tables);
	open = read_words(&c, words, n, &before);
	if (open)
		offer_values(&c, open);
	else if (c.typed[0] == '-')
		offer_options(&c);
	else
		offer_words(&c, before);
}
