/* SPDX-License-Identifier: Apache-2.0 */
/* confparse: sonded's own keys, what a value may be, and one file's bytes. Pure. */
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/lib/host/names/rules.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/quantity.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/strbuf.h"
#include "schema/probespec/spec.h"
#include "supervisor/config/conf.h"

/* INI_MAX_LINE of libinih as Debian builds it, less a newline and the end */
#define LINE_MOST 198

struct key {
	const char *section;
	struct setting setting;
	size_t at; /* of its field in struct conf; 0: it has none but value[] */
};

#define AT(field) offsetof(struct conf, field)
#define RULES_LIKE \
	"a list of container:, image:, command:, user: (of this host) or unit: with a pattern each"

/* clang-format off */
static const struct key KEYS[CONF_FAMILY] = {
	[CONF_STORE] = {"store", {"store", SETTING_PATH, .empty = true, .fallback = "", .like = "a path that begins with /",
		.help = "the store's folder"}},
	[CONF_BUDGET] = {"store", {"budget", SETTING_BYTES, .empty = true, .fallback = "", .like = "2G or 500M",
		.help = "maximum size of the store (default: 2G, or 5 % of the disk if that is less)"}, AT(budget_bytes)},
	[CONF_RESERVE] = {"store", {"reserve", SETTING_BYTES, .empty = true, .fallback = "", .like = "512M",
		.help = "space to leave free on the store's disk (default: 512M, or 5 % of the disk if that is less)"}, AT(reserve_bytes)},
	[CONF_AGE] = {"store", {"age", SETTING_DURATION, .fallback = "14d", .like = "14d or 12h",
		.help = "remove what is older than this; always keep the newest two days"}, AT(age_ns)},
	[CONF_SEGMENT_AGE] = {"store", {"segment-age", SETTING_DURATION, .min = 1e9, .fallback = "1h", .like = "1h or 90s",
		.help = "start a new segment after this long"}, AT(segment_age_ns)},
	[CONF_SEAL] = {"store", {"seal", SETTING_WORD, .words = "yes|no", .fallback = "yes", .like = "yes or no",
		.help = "compress finished segments to about a fifth of their size"}, AT(seal)},
	[CONF_FINE_AGE] = {"store", {"fine-age", SETTING_DURATION, .zero = true, .fallback = "1d", .like = "1d or 12h, 0 for always",
		.help = "keep 10-second resource and wait data this long, then one-minute sums"}, AT(fine_age_ns)},
	[CONF_FAMILIES] = {"record", {"families", SETTING_FAMILIES, .like = "cpu,offcpu,host",
		.help = "families to record, with commas"}},
	[CONF_FREQ] = {"record", {"freq", SETTING_NUMBER, .min = 1, .max = 4999, .fallback = "19", .like = "a number from 1 to 4999",
		.help = "samples a second on each CPU"}, AT(freq)},
	[CONF_ARGS] = {"record", {"args", SETTING_WORD, .words = "full|masked|none", .fallback = "masked", .like = "full, masked or none",
		.help = "how to store command lines of processes"}},
	[CONF_INCLUDE] = {"targets", {"include", SETTING_RULES, .fallback = "", .like = RULES_LIKE,
		.help = "record only these processes (default: all): container:web-* user:postgres"}},
	[CONF_EXCLUDE] = {"targets", {"exclude", SETTING_RULES, .fallback = "", .like = RULES_LIKE,
		.help = "never record these; they appear together as [excluded]: command:vault unit:secret.service"}},
	[CONF_DOTNET] = {"runtimes", {"dotnet", SETTING_WORD, .words = "off|on", .fallback = "off", .like = "on or off",
		.help = "on: ask programs of .NET 8 and later to write the names of their functions while they are recorded"}, AT(no_dotnet)},
	[CONF_CPU] = {"limits", {"cpu", SETTING_FRACTION, .max = 100000, .fallback = "3", .like = "a number of percent, 0 for no limit",
		.help = "CPU limit for all sonde processes, in percent of one core; after a minute above it, sampling slows down"}, AT(cpu)},
	[CONF_MEMORY] = {"limits", {"memory", SETTING_BYTES, .zero = true, .fallback = "256M", .like = "256M, 0 for no limit",
		.help = "memory limit for all sonde processes; after a minute above it, families are stopped"}, AT(memory_bytes)},
	[CONF_FLIGHT] = {"flight", {"flight", SETTING_WORD, .words = "on|off", .fallback = "off", .like = "on or off",
		.help = "on: keep the last 10 minutes in seconds in a ring (samples of the CPUs, waits, each request, messages of logs), which moves into the store when something happens (sonde keep)"}, AT(flight)},
	[CONF_FLIGHT_SIZE] = {"flight", {"flight-size", SETTING_BYTES, .fallback = "128M", .like = "128M",
		.help = "maximum size of the ring, besides the store's budget"}, AT(flight_bytes)},
};
/* clang-format on */

static const struct family_setting *of_family(enum conf_key key)
{
	return key < CONF_FAMILY ? NULL : family_setting(key - CONF_FAMILY, NULL);
}

const struct setting *conf_setting(enum conf_key key)
{
	const struct family_setting *f = of_family(key);

	return key < CONF_FAMILY ? &KEYS[key].setting : f ? &f->setting : NULL;
}

const char *conf_section(enum conf_key key)
{
	return KEYS[key < CONF_FAMILY ? key : CONF_FAMILIES].section;
}

const char *conf_fallback(enum conf_key key)
{
	return key == CONF_FAMILIES ? families_always() : conf_setting(key)->fallback;
}

/* --- values --- */

/* Is `text` (of `len` bytes) one of "a|b|c"? Its place, -1: no. */
static int word_at(const char *words, const char *text, size_t len)
{
	int at = 0;

	for (size_t n; words; words = words[n] ? words + n + 1 : NULL, at++) {
		n = strcspn(words, "|");
		if (n == len && !memcmp(words, text, len))
			return at;
	}
	return -1;
}

static bool are_listed(const char *words, const char *text)
{
	bool all = true;

	for (size_t n; all && text; text = text[n] ? text + n + 1 : NULL) {
		n = strcspn(text, ",");
		all = word_at(words, text, n) >= 0;
	}
	return all;
}

/* With blanks between them. */
static bool are_paths(const char *text)
{
	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		if (*text != '/')
			return false;
		text += strcspn(text, " ");
	}
	return true;
}

static int number(const struct setting *s, const char *text, double *out)
{
	bool whole = s->type == SETTING_NUMBER;
	char *end;

	*out = strtod(text, &end);
	if (!*text || *end || (whole && text[strspn(text, "0123456789")]))
		return -EINVAL;
	return *out >= s->min && *out <= s->max ? 0 : -EINVAL;
}

/* A value as its type has it. */
union value {
	bool first; /* SETTING_WORD: it is the first of the words */
	uint32_t number;
	double fraction;
	int64_t ns;
	uint64_t bytes;
};

/* 0, and how many bytes of *v are set; -EINVAL. */
static int check(const struct setting *s, const char *text, union value *v, size_t *size)
{
	const struct probe_family *of[FAMILIES_MAX];
	bool none = (s->zero && !strcmp(text, "0")) || (s->empty && !*text);
	double n = 0;
	size_t count;
	int at, rc = 0;

	*v = (union value){0};
	*size = 0;
	switch (s->type) {
	case SETTING_WORD:
		at = word_at(s->words, text, strlen(text));
		v->first = !at;
		*size = sizeof(v->first);
		return at < 0 ? -EINVAL : 0;
	case SETTING_LIST:
		return word_at(s->words, text, strlen(text)) < 0 && !are_listed(s->list, text) ?
			       -EINVAL :
			       0;
	case SETTING_NUMBER:
		rc = number(s, text, &n);
		v->number = rc ? 0 : (uint32_t)n;
		*size = sizeof(v->number);
		return rc;
	case SETTING_FRACTION:
		rc = number(s, text, &n);
		v->fraction = n;
		*size = sizeof(v->fraction);
		return rc;
	case SETTING_DURATION:
		rc = none ? 0 : quantity_ns(text, &v->ns);
		*size = sizeof(v->ns);
		return rc || (double)v->ns < s->min ? -EINVAL : 0;
	case SETTING_BYTES:
		*size = sizeof(v->bytes);
		return none ? 0 : quantity_bytes(text, &v->bytes);
	case SETTING_PATH:
		return none || *text == '/' ? 0 : -EINVAL;
	case SETTING_PATHS:
		return none || are_paths(text) ? 0 : -EINVAL;
	case SETTING_RULES:
		return s->fallback && !strcmp(s->fallback, "off") && !strcmp(text, "off") ?
			       0 :
			       rules_check(text);
	case SETTING_PROBES:
		return strcmp(text, "off") ? probespec_check(text, NULL) : 0;
	case SETTING_FAMILIES:
		return families_of(text, of, &count, NULL);
	}
	return -EINVAL;
}

static int refuse_value(enum conf_key key, const char *text, const char *origin, struct err *e)
{
	const struct setting *s = conf_setting(key);
	const struct probe_family *out[FAMILIES_MAX];
	struct err why = {0};
	size_t n;

	if ((s->type == SETTING_FAMILIES && families_of(text, out, &n, &why)) ||
	    (s->type == SETTING_PROBES && probespec_check(text, &why)))
		err_set(e, -EINVAL, EXIT_USAGE, "%s: %s", origin, why.what);
	else
		err_set(e, -EINVAL, EXIT_USAGE, "%s: %s '%.80s' is not %s", origin, s->name, text,
			s->like);
	if (s->type == SETTING_DURATION && quantity_lacks_unit(text))
		err_fix(e, "%s = %.80ss or %s = %.80sm", s->name, text, s->name, text);
	else
		err_fix(e, "sonde config show    lists %s%s%s, and all others", s->name,
			*conf_fallback(key) ? ", by default " : "", conf_fallback(key));
	return -EINVAL;
}

int conf_set(struct conf *c, enum conf_key key, const char *text, const char *origin, struct err *e)
{
	union value v;
	size_t size;

	if (strlen(text) >= CONF_TEXT_MAX || check(conf_setting(key), text, &v, &size))
		return refuse_value(key, text, origin, e);
	if (key < CONF_FAMILY && KEYS[key].at)
		memcpy((char *)c + KEYS[key].at, &v, size);
	snprintf(c->value[key].text, CONF_TEXT_MAX, "%s", text);
	snprintf(c->value[key].origin, CONF_ORIGIN_MAX, "%s", origin);
	return 0;
}

/* --- one file --- */

struct file {
	struct conf *c;
	const char *name, *text;
	size_t len, at;
	int set[CONF_KEYS]; /* the line that set a key; 0: none has */
	bool goes_on; /* the line begins with a blank: libinih hands it out as one more value of
			 the key before */
	int line;     /* counted here: libinih does not pass it to its callback */
	struct err *e;
	int rc;
};

static void suggest(const char *section, const char *name, struct err *e)
{
	size_t best = SIZE_MAX, d, limit;
	int found = -1;

	for (int i = 0; conf_setting((enum conf_key)i); i++) {
		const char *key = conf_setting((enum conf_key)i)->name;

		limit = strlen(key) / 3; /* with more, any short word would be close to any other */
		d = suggest_distance(name, key, limit);
		if (d > limit)
			continue;
		if (d < best || (d == 0 && strcmp(section, conf_section((enum conf_key)i)))) {
			best = d;
			found = i;
		}
	}
	if (found >= 0)
		err_fix(e, "did you mean:  [%s]  %s = ...", conf_section((enum conf_key)found),
			conf_setting((enum conf_key)found)->name);
	else
		err_fix(e, "sonde config show    lists all keys");
}

static void say_form(struct err *e)
{
	err_fix(e,
		"lines are [section], key = value of at most %d bytes, and # comments; a list of rules or probes continues in the next line, "
		"after a blank",
		LINE_MOST);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The length of a value without its comment, which libinih leaves in continued lines. */
static size_t until_comment(const char *value)
{
	size_t n = 0;

	while (value[n] && !(value[n] == ';' && (!n || is_blank(value[n - 1]))))
		n++;
	while (n && is_blank(value[n - 1]))
		n--;
	return n;
}

/* A list of rules or probes may continue in further lines. Any other key that is set twice in a
 * file is an error: its first value would be lost silently. */
static int take_value(struct file *f, enum conf_key key, const char *value, const char *origin)
{
	struct strbuf all cleanup_strbuf = STRBUF_INIT;
	bool list = conf_setting(key)->type == SETTING_RULES ||
		    conf_setting(key)->type == SETTING_PROBES ||
		    conf_setting(key)->type == SETTING_PATHS;

	if (!f->set[key]) {
		f->set[key] = f->line;
		return conf_set(f->c, key, value, origin, f->e);
	}
	if (list && f->goes_on) {
		strbuf_addf(&all, "%s %.*s", f->c->value[key].text, (int)until_comment(value),
			    value);
		return conf_set(f->c, key, strbuf_str(&all), origin, f->e);
	}
	err_set(f->e, -EINVAL, EXIT_USAGE, "%s: %s is already set in line %d%s", origin,
		conf_setting(key)->name, f->set[key],
		f->goes_on ? ": a line that begins with a blank continues the one before" : "");
	if (list)
		say_form(f->e);
	else
		err_fix(f->e, "leave one of the lines");
	return -EINVAL;
}

static int on_value(void *user, const char *section, const char *name, const char *value)
{
	struct file *f = user;
	char origin[CONF_ORIGIN_MAX];

	if (f->rc)
		return 1;
	snprintf(origin, sizeof(origin), "%.140s:%d", f->name, f->line);
	for (int i = 0; conf_setting((enum conf_key)i); i++)
		if (!strcmp(section, conf_section((enum conf_key)i)) &&
		    !strcmp(name, conf_setting((enum conf_key)i)->name)) {
			f->rc = take_value(f, (enum conf_key)i, value, origin);
			return 1;
		}
	f->rc = err_set(f->e, -EINVAL, EXIT_USAGE, "%s: unknown key '%.60s' in section [%.40s]",
			origin, name, section);
	suggest(section, name, f->e);
	return 1;
}

static char *next_line(char *out, int size, void *stream)
{
	struct file *f = stream;
	const char *nl = f->at < f->len ? memchr(f->text + f->at, '\n', f->len - f->at) : NULL;
	size_t n = nl ? (size_t)(nl - f->text) + 1 - f->at : f->len - f->at;

	if (f->at >= f->len)
		return NULL;
	f->line++;
	f->goes_on = is_blank(f->text[f->at]);
	if (n >= (size_t)size || memchr(f->text + f->at, 0, n)) {
		if (!f->rc) {
			f->rc = err_set(f->e, -EINVAL, EXIT_USAGE,
					"%s:%d: the line is too long or contains a NUL byte",
					f->name, f->line);
			say_form(f->e);
		}
		n = 0;
	}
	memcpy(out, f->text + f->at, n);
	out[n] = '\0';
	f->at += nl ? (size_t)(nl - f->text) + 1 - f->at : f->len - f->at;
	return out;
}

int conf_parse(struct conf *c, const char *name, const char *text, size_t len, struct err *e)
{
	struct file f = {.c = c, .name = name, .text = text, .len = len, .e = e};
	int line = ini_parse_stream(next_line, &f, on_value, &f);

	if (f.rc)
		return f.rc;
	if (line > 0) {
		err_set(e, -EINVAL, EXIT_USAGE, "%s:%d: neither [section] nor key = value", name,
			line);
		say_form(e);
		return -EINVAL;
	}
	return line < 0 ? -ENOMEM : 0;
}
