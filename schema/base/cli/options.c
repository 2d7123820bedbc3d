/* SPDX-License-Identifier: Apache-2.0 */
/* options: parsing a command line by its tables. */
#include "schema/base/cli/options.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cli/quantity.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/mem.h"

#define HELP_COLUMN 27

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
	err_set(e, -EINVAL, EXIT_USAGE, "there is no option --%.100s here%s", typed,
		strbuf_str(&hint));
	free(typed);
	return -EINVAL;
}

/* --- values --- */

static int refuse(const struct option *o, const char *what, const char *text, struct err *e)
{
	return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes %s, not '%.100s'", o->name, what, text);
}

static uint64_t most(const struct option *o)
{
	return o->max                                ? o->max :
	       o->size && o->size < sizeof(uint64_t) ? UINT64_MAX >> (64 - 8 * o->size) :
						       UINT64_MAX;
}

static int read_uint(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	unsigned long long v;
	char *end, what[96] = "a number";

	errno = 0;
	v = strtoull(text, &end, 10);
	if (isdigit((unsigned char)text[0]) && !*end && !errno && v >= o->min && v <= most(o)) {
		*out = v;
		return 0;
	}
	if (o->min || o->max)
		snprintf(what, sizeof(what), "a number from %" PRIu64 " to %" PRIu64, o->min,
			 most(o));
	return refuse(o, what, text, e);
}

static int read_most(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	const struct option plain = {.name = o->name, .max = OPTION_ALL};
	uint64_t v = 0;
	int rc = read_uint(&plain, text, &v, e);

	if (!rc)
		*out = v ? v : OPTION_ALL;
	return rc;
}

/* "0", "0s", "0M": with whatever unit `quantity_ns` or `quantity_bytes` knows. */
static bool is_zero(const char *text, bool duration)
{
	size_t n = strspn(text, "0");
	uint64_t bytes;
	char one[16];
	int64_t ns;

	if (!n || strlen(text + n) > 3)
		return false;
	snprintf(one, sizeof(one), "1%s", text + n);
	return !text[n] || !(duration ? quantity_ns(one, &ns) : quantity_bytes(one, &bytes));
}

static int read_duration(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	char what[128] = "a duration like 10s, 15m or 1h30m", bound[32];
	int64_t ns = 0;

	if ((o->zero && is_zero(text, true)) ||
	    (!quantity_ns(text, &ns) && (uint64_t)ns >= o->min &&
	     (!o->max || (uint64_t)ns <= o->max))) {
		*out = (uint64_t)ns;
		return 0;
	}
	if (quantity_lacks_unit(text))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"--%s takes a duration with its unit, not '%.100s': --%s %.100ss or --%s %.100sm",
			o->name, text, o->name, text, o->name, text);
	if (ns)
		snprintf(what, sizeof(what), "a duration of at %s %s",
			 (uint64_t)ns < o->min ? "least" : "most",
			 quantity_say_ns((int64_t)((uint64_t)ns < o->min ? o->min : o->max), bound,
					 sizeof(bound)));
	return refuse(o, what, text, e);
}

static int read_bytes(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	uint64_t bytes = 0;

	if (!(o->zero && is_zero(text, false)) && quantity_bytes(text, &bytes))
		return refuse(o, o->zero ? "a size like 2G or 64M, or 0" : "a size like 2G or 64M",
			      text, e);
	*out = bytes;
	return 0;
}

/* Which of "full|masked|none". */
static int read_word(const struct option *o, const char *text, uint64_t *out, struct err *e)
{
	struct strbuf known cleanup_strbuf = STRBUF_INIT;
	uint64_t n = 0;

	for (const char *w = o->arg; w; w = strchr(w, '|') ? strchr(w, '|') + 1 : NULL, n++) {
		size_t len = strcspn(w, "|");

		if (len == strlen(text) && !memcmp(w, text, len)) {
			*out = n;
			return 0;
		}
		strbuf_addf(&known, "%s%.*s", !n ? "" : w[len] ? ", " : " or ", (int)len, w);
	}
	return refuse(o, strbuf_str(&known), text, e);
}

static void put(const struct option *o, size_t size, void *value, uint64_t v)
{
	memcpy(value, &v, o->size ? o->size : size); /* the low bytes come first */
}

static int set_number(const struct option *o, void *value, size_t size, const char *text,
		      struct err *e,
		      int (*read)(const struct option *o, const char *text, uint64_t *out,
				  struct err *e))
{
	uint64_t v = 0;
	int rc = read(o, text, &v, e);

	if (!rc)
		put(o, size, value, v);
	return rc;
}

static int check_times(const struct option *o, size_t n, const char *text, struct err *e)
{
	if (o->type == OPTION_LIST && o->min && !*text)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s needs a value: %s", o->name, o->arg);
	if (o->type == OPTION_LIST && o->max && n >= o->max)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s is given more than %" PRIu64 " times",
			       o->name, o->max);
	return 0;
}

static int add_value(const struct option *o, void *value, const char *text, struct err *e)
{
	struct option_numbers *numbers = value;
	struct option_list *list = value;
	uint64_t v = 0;
	int rc = o->type == OPTION_LIST ? check_times(o, list->n, text, e) :
					  read_uint(o, text, &v, e);

	if (rc)
		return rc;
	if (o->type == OPTION_LIST) {
		mem_grow(list->items, list->n, list->cap);
		list->items[list->n++] = text;
	} else {
		mem_grow(numbers->items, numbers->n, numbers->cap);
		numbers->items[numbers->n++] = v;
	}
	return 0;
}

static int set_value(const struct option *o, void *value, const char *text, struct err *e)
{
	uint64_t which;

	switch (o->type) {
	case OPTION_FLAG:
		*(bool *)value = true;
		return 0;
	case OPTION_SET:
		put(o, sizeof(int), value, o->min);
		return 0;
	case OPTION_WORD:
		if (read_word(o, text, &which, e))
			return -EINVAL;
		/* fall through */
	case OPTION_STRING:
		*(const char **)value = text;
		return 0;
	case OPTION_UINT:
		return set_number(o, value, sizeof(uint64_t), text, e, read_uint);
	case OPTION_MOST:
		return set_number(o, value, sizeof(uint64_t), text, e, read_most);
	case OPTION_DURATION:
		return set_number(o, value, sizeof(int64_t), text, e, read_duration);
	case OPTION_BYTES:
		return set_number(o, value, sizeof(uint64_t), text, e, read_bytes);
	case OPTION_ENUM:
		return set_number(o, value, sizeof(int), text, e, read_word);
	case OPTION_LIST:
	case OPTION_NUMBERS:
		return add_value(o, value, text, e);
	}
	return -EINVAL;
}

/* --- the command line --- */

struct parse {
	const struct option_set *sets;
	size_t n_sets;
	int argc;
	char **argv;
	int at; /* the argument being read */
};

static bool takes_value(const struct option *o)
{
	return o->type != OPTION_FLAG && o->type != OPTION_SET;
}

/* "--" or an option's whole name: typed where a value was forgotten, and a file of that name would
 * be made. */
static bool names_option(const struct parse *p, const char *arg)
{
	struct found f;
	size_t len;

	if (strncmp(arg, "--", 2))
		return false;
	len = strcspn(arg + 2, "=");
	f = find_name(p->sets, p->n_sets, arg + 2, len);
	return !len || (f.option && strlen(f.option->name) == len);
}

static int take_value(struct parse *p, const struct option *o, const char *attached,
		      const char **text, struct err *e)
{
	*text = attached;
	if (attached)
		return 0;
	if (p->at + 1 >= p->argc)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s needs a value: %s", o->name,
			       o->arg ? o->arg : "VALUE");
	if (names_option(p, p->argv[p->at + 1]))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"--%s needs a value before %.100s (a value that looks so: --%s=%.100s)",
			o->name, p->argv[p->at + 1], o->name, p->argv[p->at + 1]);
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
	if (!takes_value(f.option)) {
		if (eq)
			return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes no value",
				       f.option->name);
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
			return err_set(e, -EINVAL, EXIT_USAGE,
				       "there is no option -%c here ('%.100s')",
				       isprint((unsigned char)*c) ? *c : '?', arg);
		if (takes_value(f.option)) {
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

int options_parse(int argc, char **argv, const struct option_set *sets, size_t n_sets,
		  struct option_words *words, struct err *e)
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
	for (size_t i = 0; i < n_sets; i++) {
		for (const struct option *o = sets[i].table; o && o->name; o++) {
			if (o->type == OPTION_LIST)
				free(((struct option_list *)value_of(&sets[i], o))->items);
			if (o->type == OPTION_NUMBERS)
				free(((struct option_numbers *)value_of(&sets[i], o))->items);
		}
	}
	if (!words)
		return;
	free(words->items);
	*words = (struct option_words){0};
}

void options_print(const struct option *table, FILE *out)
{
	for (const struct option *o = table; o && o->name; o++) {
		struct strbuf s cleanup_strbuf = STRBUF_INIT;

		if (!o->help)
			continue;
		if (o->letter)
			strbuf_addf(&s, "  -%c, --%s", o->letter, o->name);
		else
			strbuf_addf(&s, "      --%s", o->name);
		if (o->arg)
			strbuf_addf(&s, " %s", o->arg);
		fprintf(out, "%-*s %s\n", HELP_COLUMN, strbuf_str(&s), o->help);
	}
}
