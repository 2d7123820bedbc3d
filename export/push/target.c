/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/target.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <stdlib.h>
#include <string.h>

#include "export/push/profilegroup.h"
#include "export/push/table.h"
#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/strbuf.h"

#define FILE_MOST 65536
#define SECTION   "export."

enum form {
	FORM_TEXT,
	FORM_NAME,
	FORM_WORD,
	FORM_URL,
	FORM_TIME,
	FORM_TABLES,
	FORM_PROFILES,
	FORM_SIGNALS,
	FORM_PATH,
	FORM_TYPE,
	FORM_COMPRESSION
};

static const char *const FORMS[] = {
	[FORM_TEXT] = "the name of a file",
	[FORM_NAME] = "letters, digits and _",
	[FORM_WORD] = "letters, digits and _.-@",
	[FORM_URL] = "http://HOST:PORT or https://HOST:PORT, without user, path or query",
	[FORM_TIME] = "a time, as 60s, 5m, 1h or 2d, of a month at most",
	[FORM_TABLES] = "tables of sonde-push --schema, with commas",
	[FORM_PROFILES] = "profiles, as cpu, offcpu, memory, with commas",
	[FORM_SIGNALS] = "of metrics, logs, traces, " TARGET_PROFILES ", with commas",
	[FORM_PATH] = "a path that begins with / and does not end with it",
	[FORM_TYPE] = "clickhouse, pyroscope or otlp",
	[FORM_COMPRESSION] = "gzip or none",
};

#define KEY(key, member, form)                                                                   \
	{                                                                                        \
		key, offsetof(struct target, member), sizeof(((struct target *)0)->member), form \
	}
static const struct key {
	const char *name;
	size_t offset, size;
	enum form form;
} KEYS[] = {
	{"type", 0, 0, FORM_TYPE},
	{"compression", offsetof(struct target, plain), 0, FORM_COMPRESSION},
	KEY("url", url, FORM_URL),
	KEY("database", database, FORM_NAME),
	KEY("user", user, FORM_WORD),
	KEY("password-file", password_file, FORM_TEXT),
	KEY("token-file", token_file, FORM_TEXT),
	KEY("ca-file", ca_file, FORM_TEXT),
	KEY("tables", tables, FORM_TABLES),
	KEY("profiles", profiles, FORM_PROFILES),
	KEY("tenant", tenant, FORM_WORD),
	KEY("signals", signals, FORM_SIGNALS),
	KEY("path", path, FORM_PATH),
	KEY("every", every_s, FORM_TIME),
	KEY("timeout", timeout_s, FORM_TIME),
	KEY("backfill", backfill_s, FORM_TIME),
};

#define N_KEYS ARRAY_SIZE(KEYS)

struct parsing {
	struct targets *out;
	const char *what, *at;               /* `at`: the next line */
	int line, set[TARGETS_MOST][N_KEYS]; /* the line that set it */
	struct err *e;
	int rc;
};

/* --- values --- */

static bool is_name(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return n && !s[n];
}

static bool is_word(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-@");

	return n && !s[n];
}

/* scheme, host, perhaps a port: nothing that could hold a secret, or that a path would have to be
 * joined to. */
static bool is_url(const char *s)
{
	const char *host = !strncmp(s, "http://", 7)  ? s + 7 :
			   !strncmp(s, "https://", 8) ? s + 8 :
							NULL;
	size_t n =
		host ? strspn(host,
			      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]") :
		       0;

	return n && (!host[n] || !strcmp(host + n, "/"));
}

/* "60s", "5m", "1h", "2d"; a day is the most that makes sense but for backfill, a month the
 * most of all. */
static bool take_time(const char *s, uint32_t *out)
{
	char *end;
	unsigned long n = strtoul(s, &end, 10);
	unsigned long unit = !strcmp(end, "s") ? 1 :
			     !strcmp(end, "m") ? 60 :
			     !strcmp(end, "h") ? 3600 :
			     !strcmp(end, "d") ? 86400 :
						 0;

	if (!isdigit((unsigned char)*s) || !unit || !n || n > 31 * 86400 / unit)
		return false;
	*out = (uint32_t)(n * unit);
	return true;
}

static bool are_all(const char *s, bool (*named)(const char *name, size_t len))
{
	while (*s) {
		size_t n = strcspn(s, ", ");

		if (n && !named(s, n))
			return false;
		s += n + strspn(s + n, ", ");
	}
	return true;
}

static bool signal_named(const char *name, size_t len)
{
	static const char *const names[] = {"metrics", "logs", "traces", TARGET_PROFILES};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strlen(names[i]) == len && !strncmp(name, names[i], len))
			return true;
	return false;
}

/* From / on, and not to its end. */
static bool is_path(const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_/");

	return *s == '/' && !s[n] && s[n - 1] != '/';
}

static bool is_type(const char *value, enum target_type *out)
{
	static const char *const types[] = {[TARGET_CLICKHOUSE] = "clickhouse",
					    [TARGET_PYROSCOPE] = "pyroscope",
					    [TARGET_OTLP] = "otlp"};

	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if (!strcmp(types[i], value)) {
			*out = (enum target_type)i;
			return true;
		}
	return false;
}

static bool value_take(struct target *t, const struct key *k, const char *value)
{
	char *to = (char *)t + k->offset;

	switch (k->form) {
	case FORM_TYPE:
		return is_type(value, &t->type);
	case FORM_COMPRESSION:
		t->plain = !strcmp(value, "none");
		return t->plain || !strcmp(value, "gzip");
	case FORM_TIME:
		return take_time(value, (uint32_t *)(void *)to);
	case FORM_TEXT:
		break;
	case FORM_NAME:
		if (!is_name(value))
			return false;
		break;
	case FORM_WORD:
		if (!is_word(value))
			return false;
		break;
	case FORM_URL:
		if (!is_url(value))
			return false;
		break;
	case FORM_TABLES:
		if (!are_all(value, table_named))
			return false;
		break;
	case FORM_SIGNALS:
		if (!are_all(value, signal_named))
			return false;
		break;
	case FORM_PATH:
		if (!is_path(value))
			return false;
		break;
	case FORM_PROFILES:
		if (!are_all(value, profile_named))
			return false;
		break;
	}
	if (!*value || strlen(value) >= k->size)
		return false;
	memcpy(to, value, strlen(value) + 1);
	return true;
}

/* --- sections --- */

static struct target *target_of(struct parsing *p, const char *section)
{
	const char *name = section + strlen(SECTION);
	struct target *t;

	if (strncmp(section, SECTION, strlen(SECTION)) || !is_name(name) ||
	    strlen(name) >= sizeof(t->name))
		return NULL;
	for (size_t i = 0; i < p->out->n; i++)
		if (!strcmp(p->out->items[i].name, name))
			return &p->out->items[i];
	if (p->out->n == TARGETS_MOST)
		return NULL;
	t = &p->out->items[p->out->n++];
	*t = (struct target){
		.database = "sonde", .every_s = 60, .timeout_s = 30, .backfill_s = 3600};
	memcpy(t->name, name, strlen(name) + 1);
	return t;
}

static bool is_list(const struct key *k)
{
	return k->form == FORM_TABLES || k->form == FORM_PROFILES || k->form == FORM_SIGNALS;
}

/* A list may go on in further lines. */
static bool list_add(struct target *t, const struct key *k, const char *value)
{
	char *to = (char *)t + k->offset, all[sizeof(t->tables) * 2];

	return snprintf(all, sizeof(all), "%s, %s", to, value) < (int)sizeof(all) &&
	       value_take(t, k, all);
}

static const struct key *key_of(const char *name)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (!strcmp(KEYS[i].name, name))
			return &KEYS[i];
	return NULL;
}

static int take_value(struct parsing *p, struct target *t, const struct key *k, const char *value)
{
	int *set = &p->set[t - p->out->items][k - KEYS], before = *set;

	*set = p->line;
	if (before && !is_list(k)) {
		err_set(p->e, -EINVAL, EXIT_USAGE,
			"%s:%d: [export.%s] %s is already set in line %d", p->what, p->line,
			t->name, k->name, before);
		err_fix(p->e, "leave one of the lines");
		return -EINVAL;
	}
	if (before ? list_add(t, k, value) : value_take(t, k, value))
		return 0;
	err_set(p->e, -EINVAL, EXIT_USAGE, "%s:%d: [export.%s] %s: not a valid value", p->what,
		p->line, t->name, k->name);
	err_fix(p->e, "%s = %s; man sonde-push", k->name, FORMS[k->form]);
	return -EINVAL;
}

static int unknown(struct parsing *p, const char *section, const char *name)
{
	struct strbuf near cleanup_strbuf = STRBUF_INIT;
	struct suggest s;

	suggest_init(&s, name);
	for (size_t i = 0; i < N_KEYS; i++)
		suggest_add(&s, KEYS[i].name);
	suggest_say(&s, &near, "");
	return err_set(p->e, -EINVAL, EXIT_USAGE, "%s:%d: [%.60s] has no key '%.60s'%s", p->what,
		       p->line, section, name, strbuf_str(&near));
}

/* A value is not shown: it may be a secret put into the wrong place. */
static int take(void *ctx, const char *section, const char *name, const char *value)
{
	struct parsing *p = ctx;
	struct target *t = p->rc ? NULL : target_of(p, section);
	const struct key *k = key_of(name);

	if (p->rc)
		return 1;
	if (t && k) {
		p->rc = take_value(p, t, k, value);
		return 1;
	}
	if (!t)
		p->rc = err_set(
			p->e, -EINVAL, EXIT_USAGE,
			"%s:%d: [%.60s] is not an [export.NAME] section, or there are too many",
			p->what, p->line, section);
	else
		p->rc = unknown(p, section, name);
	err_fix(p->e, "man sonde-push");
	return 1;
}

/* libinih takes a line that begins with a blank for more of the value before; here it is that only
 * where it sets nothing. Longer lines than libinih's it would cut. */
static char *next_line(char *out, int size, void *stream)
{
	struct parsing *p = stream;
	size_t n = strcspn(p->at, "\n"), blanks = strspn(p->at, " \t");

	if (!*p->at)
		return NULL;
	p->line++;
	if (blanks && blanks < n && (memchr(p->at, '=', n) || p->at[blanks] == '[')) {
		p->at += blanks;
		n -= blanks;
	}
	if (n >= (size_t)size && !p->rc) {
		p->rc = err_set(p->e, -EINVAL, EXIT_USAGE, "%s:%d: the line is too long", p->what,
				p->line);
		err_fix(p->e, "a list may be set in several lines, each a part: tables = ...");
	}
	snprintf(out, (size_t)size, "%.*s", n < (size_t)size ? (int)n : 0, p->at);
	p->at += n + (p->at[n] == '\n');
	return out;
}

bool target_wants_profiles(const struct target *t)
{
	return t->type == TARGET_OTLP && *t->signals && target_wants(t->signals, TARGET_PROFILES);
}

static int check(const struct target *t, const char *what, struct err *e)
{
	if (!*t->url)
		return err_set(e, -EINVAL, EXIT_USAGE, "%s: [export.%s] has no url", what, t->name);
	if (*t->token_file && (*t->password_file || *t->user))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"%s: [export.%s] sets both token-file and user or password-file; only one is allowed",
			what, t->name);
	if (*t->password_file && !*t->user)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "%s: [export.%s] sets password-file without user", what, t->name);
	if (*t->tables && t->type != TARGET_CLICKHOUSE)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "%s: [export.%s] sets tables, which only type clickhouse supports",
			       what, t->name);
	if (*t->tenant && t->type != TARGET_PYROSCOPE)
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "%s: [export.%s] sets tenant, which only type pyroscope supports",
			       what, t->name);
	if (*t->profiles && t->type != TARGET_PYROSCOPE && !target_wants_profiles(t))
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"%s: [export.%s] sets profiles, which need type pyroscope or signals = " TARGET_PROFILES,
			what, t->name);
	if ((*t->signals || *t->path) && t->type != TARGET_OTLP)
		return err_set(
			e, -EINVAL, EXIT_USAGE,
			"%s: [export.%s] sets signals or path, which only type otlp supports", what,
			t->name);
	return 0;
}

int targets_parse(const char *text, const char *what, struct targets *out, struct err *e)
{
	struct parsing p = {.out = out, .what = what, .at = text, .e = e};
	int line;

	out->n = 0;
	line = ini_parse_stream(next_line, &p, take, &p);
	if (!p.rc && line)
		p.rc = err_set(e, -EINVAL, EXIT_USAGE,
			       "%s: line %d is not a section, key or comment", what, line);
	for (size_t i = 0; !p.rc && i < out->n; i++)
		p.rc = check(&out->items[i], what, e);
	if (!p.rc && !out->n) {
		p.rc = err_set(e, -EINVAL, EXIT_USAGE, "%s has no section that says where to send",
			       what);
		err_fix(e, "a section [export.NAME]; man sonde-push");
	}
	return p.rc;
}

/* It may be a pipe. */
static int text_read(FILE *f, struct strbuf *text)
{
	char buf[4096];
	size_t n;

	while (text->len <= FILE_MOST && (n = fread(buf, 1, sizeof(buf), f)))
		strbuf_add(text, buf, n);
	return ferror(f)                                    ? -errno :
	       text->len > FILE_MOST                        ? -EFBIG :
	       text->len && memchr(text->buf, 0, text->len) ? -EILSEQ :
							      0;
}

int targets_read(const char *path, struct targets *out, struct err *e)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;
	cleanup_file FILE *f = fopen(path, "re");
	int rc = f ? text_read(f, &text) : -errno;

	if (!rc)
		return targets_parse(strbuf_str(&text), path, out, e);
	err_set(e, rc, rc == -EACCES ? EXIT_PERMISSION : EXIT_USAGE, "cannot read %s: %s", path,
		rc == -EFBIG  ? "it is larger than 64 KB" :
		rc == -EILSEQ ? "it contains a NUL byte" :
				strerror(-rc));
	err_fix(e, "name the configuration: --config FILE; man sonde-push");
	return rc;
}

bool target_wants(const char *list, const char *name)
{
	size_t len = strlen(name);
	const char *s = list;

	if (!*s)
		return true;
	while (*s) {
		size_t n = strcspn(s, ", ");

		if (n == len && !strncmp(s, name, n))
			return true;
		s += n + strspn(s + n, ", ");
	}
	return false;
}
