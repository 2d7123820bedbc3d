/* SPDX-License-Identifier: Apache-2.0 */
/* options: parsing a command line by its tables. */
#include "tools/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/print/suggest.h"
#include "tools/print/when.h"

struct found {
	const struct option *option;
	void *value;
};

static void *value_of(const struct option_set *set, const struct option *o)
{
	return (char *)set->values + o->offset;
}

static struct found find_letter(const struct option_set *sets, size_t n, char letter)
{
	size_t i;

	for (i = 0; i < n; i++)
		for (const struct option *o = sets[i].table; o && o->name; o++)
			if (o->letter == letter)
				return (struct found){o, value_of(&sets[i], o)};
	return (struct found){0};
}

/* The whole name, or the only one that begins so. */
static struct found find_name(const struct option_set *sets, size_t n, const char *name, size_t len)
{
	struct found prefix = {0};
	size_t i, hits = 0;

	for (i = 0; i < n; i++) {
		for (const struct option *o = sets[i].table; o && o->name; o++) {
			if (strncmp(o->name, name, len))
				continue;
			if (!o->name[len])
				return (struct found){o, value_of(&sets[i], o)};
			prefix = (struct found){o, value_of(&sets[i], o)};
			hits++;
		}
	}
	return hits == 1 && len >= 3 ? prefix : (struct found){0};
}

static int unknown(const struct option_set *sets, size_t n, const char *arg, struct err *e)
{
	size_t len = strcspn(arg + 2, "=");
	char *typed = mem_strndup(arg + 2, len);
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	struct suggest near;
	size_t i;

	suggest_init(&near, typed);
	for (i = 0; i < n; i++)
		for (const struct option *o = sets[i].table; o && o->name; o++)
			suggest_add(&near, o->name);
	suggest_say(&near, &hint, "--");
	err_set(e, -EINVAL, EXIT_USAGE, "there is no option --%.100s here%s", typed, strbuf_str(&hint));
	free(typed);
	return -EINVAL;
}

static int set_uint(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	unsigned long long v;
	char *end;

	errno = 0;
	v = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || *end || errno)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes a number, not '%.100s'", o->name, text);
	*out = v;
	return 0;
}

static int set_value(const struct option *o, void *value, const char *text, struct err *e)
{
	struct option_list *list = value;

	switch (o->type) {
	case OPTION_FLAG:
		*(bool *)value = true;
		return 0;
	case OPTION_STRING:
		*(const char **)value = text;
		return 0;
	case OPTION_UINT:
		return set_uint(o, text, value, e);
	case OPTION_DURATION:
		if (!when_parse_duration(text, value))
			return 0;
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes a duration like 10s, 15m or 1h30m, not '%.100s'",
			       o->name, text);
	case OPTION_LIST:
		mem_grow(list->items, list->n, list->cap);
		list->items[list->n++] = text;
		return 0;
	}
	return -EINVAL;
}

struct parse {
	const struct option_set *sets;
	size_t n_sets;
	int argc;
	char **argv;
	int at; /* the argument being read */
};

static int take_value(struct parse *p, const struct option *o, const char *attached, const char **text, struct err *e)
{
	*text = attached;
	if (attached)
		return 0;
	if (p->at + 1 >= p->argc)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s needs a value: %s", o->name, o->arg ? o->arg : "VALUE");
	*text = p->argv[++p->at];
	return 0;
}

static int parse_long(struct parse *p, struct err *e)
{
	const char *arg = p->argv[p->at], *eq = strchr(arg, '='), *text = "";
	size_t len = eq ? (size_t)(eq - arg - 2) : strlen(arg + 2);
	struct found f = find_name(p->sets, p->n_sets, arg + 2, len);
	int rc;

	if (!f.option)
		return unknown(p->sets, p->n_sets, arg, e);
	if (f.option->type == OPTION_FLAG) {
		if (eq)
			return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes no value", f.option->name);
	} else {
		rc = take_value(p, f.option, eq ? eq + 1 : NULL, &text, e);
		if (rc)
			return rc;
	}
	return set_value(f.option, f.value, text, e);
}

static int parse_letters(struct parse *p, struct err *e)
{
	const char *arg = p->argv[p->at], *c, *text = "";
	int rc;

	for (c = arg + 1; *c; c++) {
		struct found f = find_letter(p->sets, p->n_sets, *c);

		if (!f.option)
			return err_set(e, -EINVAL, EXIT_USAGE, "there is no option -%c here ('%.100s')",
				       isprint((unsigned char)*c) ? *c : '?', arg);
		if (f.option->type != OPTION_FLAG) {
			rc = take_value(p, f.option, c[1] ? c + 1 : NULL, &text, e);
			return rc ? rc : set_value(f.option, f.value, text, e);
		}
		set_value(f.option, f.value, text, e);
	}
	return 0;
}

static void keep_word(struct option_words *w, char *arg)
{
	w->items[w->n++] = arg;
	if (!w->dashes)
		w->n_before_dashes = w->n;
}

int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets, struct option_words *words,
		  struct err *e)
{
	struct parse p = {.sets = sets, .n_sets = n_sets, .argc = argc, .argv = argv};
	int rc = 0;

	*words = (struct option_words){.items = mem_array((size_t)argc + 1, sizeof(char *))};
	for (p.at = 1; p.at < argc && !rc; p.at++) {
		char *arg = argv[p.at];

		if (words->dashes || arg[0] != '-' || !arg[1])
			keep_word(words, arg);
		else if (!strcmp(arg, "--"))
			words->dashes = true;
		else
			rc = arg[1] == '-' ? parse_long(&p, e) : parse_letters(&p, e);
	}
	return rc;
}

void options_release(const struct option_set *sets, size_t n_sets, struct option_words *words)
{
	size_t i;

	for (i = 0; i < n_sets; i++)
		for (const struct option *o = sets[i].table; o && o->name; o++)
			if (o->type == OPTION_LIST)
				free(((struct option_list *)value_of(&sets[i], o))->items);
	free(words->items);
	*words = (struct option_words){0};
}
