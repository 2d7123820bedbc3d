/* SPDX-License-Identifier: Apache-2.0 */
/* filter: values, and whether a process has them. */
#include "tools/select/filter.h"

#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define CONTAINER_ID_MIN 6 /* the least digits of an id that name a container */

/* What else a value of --container means; name only for what has no id. */
struct container_called {
	char *id, *name;
};

struct filter_value {
	char *given;      /* as typed */
	const char *text; /* into given, behind `!` and `~` */
	bool negative, regex;
	regex_t re;
	uint64_t number; /* of pid, tid; of user if is_number */
	bool is_number;
	struct container_called *called;
	size_t n_called, cap_called;
};

struct filter_values {
	struct filter_value *items;
	size_t n, cap;
	bool positive; /* there is one without `!` */
};

struct user {
	uint32_t uid;
	char *name; /* "" if it has none */
};

struct filters {
	struct filter_values kinds[FILTER_N];
	struct user *users; /* cache, by uid asked for */
	size_t n_users, cap_users;
};

static const char *const KIND_NAMES[FILTER_N] = {"container", "image", "pid",   "tid",
						 "comm",      "exe",   "user",  "unit",
						 "cgroup",    "lang",  "label", "host"};

const char *filter_kind_name(enum filter_kind kind)
{
	return KIND_NAMES[kind];
}

struct filters *filters_new(void)
{
	return mem_alloc(sizeof(struct filters));
}

static void value_release(struct filter_value *v)
{
	if (v->regex)
		regfree(&v->re);
	for (size_t i = 0; i < v->n_called; i++) {
		free(v->called[i].id);
		free(v->called[i].name);
	}
	free(v->called);
	free(v->given);
}

void filters_free(struct filters *f)
{
	size_t i;

	if (!f)
		return;
	for (int k = 0; k < FILTER_N; k++) {
		for (i = 0; i < f->kinds[k].n; i++) {
			value_release(&f->kinds[k].items[i]);
		}
		free(f->kinds[k].items);
	}
	for (i = 0; i < f->n_users; i++)
		free(f->users[i].name);
	free(f->users);
	free(f);
}

static void read_number(struct filter_value *v)
{
	char *end;

	errno = 0;
	v->number = strtoull(v->text, &end, 10);
	v->is_number = v->text[0] >= '0' && v->text[0] <= '9' && !*end && !errno;
}

static int read_value(struct filter_value *v, enum filter_kind kind, struct err *e)
{
	char why[128];
	int rc;

	v->negative = v->text[0] == '!';
	v->text += v->negative;
	v->regex = v->text[0] == '~';
	v->text += v->regex;
	if (!v->text[0]) {
		v->regex = false;
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s needs a value", KIND_NAMES[kind]);
	}
	if (v->regex) {
		rc = regcomp(&v->re, v->text, REG_EXTENDED | REG_NOSUB);
		if (!rc)
			return 0;
		regerror(rc, &v->re, why, sizeof(why));
		v->regex = false;
		return err_set(e, -EINVAL, EXIT_USAGE,
			       "--%s: '%.100s' is not a valid regular expression: %s",
			       KIND_NAMES[kind], v->text, why);
	}
	read_number(v);
	if ((kind == FILTER_PID || kind == FILTER_TID) && !v->is_number)
		return err_set(e, -EINVAL, EXIT_USAGE, "--%s takes a number, not '%.100s'",
			       KIND_NAMES[kind], v->text);
	return 0;
}

int filters_add(struct filters *f, enum filter_kind kind, const char *value, struct err *e)
{
	struct filter_values *k = &f->kinds[kind];
	struct filter_value v = {.given = mem_strdup(value)};
	int rc;

	v.text = v.given;
	rc = read_value(&v, kind, e);
	if (rc) {
		free(v.given);
		return rc;
	}
	mem_grow(k->items, k->n, k->cap);
	k->items[k->n++] = v;
	k->positive = k->positive || !v.negative;
	return 0;
}

static const char *user_name(const struct filters *f, uint32_t uid)
{
	struct filters *cache = (struct filters *)f;
	struct passwd pw, *found = NULL;
	char strings[4096];
	size_t i;

	for (i = 0; i < f->n_users; i++)
		if (f->users[i].uid == uid)
			return f->users[i].name;
	if (getpwuid_r(uid, &pw, strings, sizeof(strings), &found))
		found = NULL;
	mem_grow(cache->users, cache->n_users, cache->cap_users);
	cache->users[cache->n_users++] = (struct user){uid, mem_strdup(found ? pw.pw_name : "")};
	return cache->users[cache->n_users - 1].name;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *filters_container(const struct filters *f, size_t i)
{
	const struct filter_values *v = &f->kinds[FILTER_CONTAINER];

	for (size_t k = 0; k < v->n; k++)
		if (!v->items[k].regex && i-- == 0)
			return v->items[k].text;
	return NULL;
}

void filters_container_is(struct filters *f, size_t i, const char *id, const char *name)
{
	struct filter_values *values = &f->kinds[FILTER_CONTAINER];
	struct filter_value *v = values->items;

	while (v->regex || i--)
		v++;
	for (size_t k = 0; k < v->n_called; k++)
		if (!strcmp(v->called[k].id, id) && !strcmp(v->called[k].name, name))
			return;
	mem_grow(v->called, v->n_called, v->cap_called);
	v->called[v->n_called++] = (struct container_called){mem_strdup(id), mem_strdup(name)};
}

static bool is_called(const struct container_called *x, const struct store_process_row *p)
{
	return *p->container_id ? !strcmp(x->id, p->container_id) :
				  *x->name && !strcmp(x->name, p->container);
}

static bool equal_container(const struct filter_value *v, const struct store_process_row *p)
{
	size_t len = strlen(v->text);

	const char *slash =
		store_names_hosts() ? strchr(p->container, '/') : NULL; /* without its host */

	if (!strcmp(v->text, p->container) || (slash && !strcmp(v->text, slash + 1)) ||
	    (len >= CONTAINER_ID_MIN && !strncmp(v->text, p->container_id, len)))
		return true;
	for (size_t i = 0; i < v->n_called; i++)
		if (is_called(&v->called[i], p))
			return true;
	return false;
}

static bool equal_unit(const char *text, const char *unit)
{
	size_t len = strlen(text);

	return !strncmp(text, unit, len) && (!unit[len] || !strcmp(unit + len, ".service"));
}

static bool inside_cgroup(const char *text, const char *cgroup)
{
	size_t len = strlen(text);

	while (len > 1 && text[len - 1] == '/')
		len--;
	return cgroup[0] && !strncmp(text, cgroup, len) &&
	       (!cgroup[len] || cgroup[len] == '/' || len == 1);
}

/* What people call a language, and what the store does; in any case of letters. Its runtime's name,
 * with the version, is equal, too. */
static bool equal_lang(const char *text, const struct store_process_row *p)
{
	static const char *const also[][2] = {
		{"jvm", "java"},        {"golang", "go"},   {"nodejs", "node"}, {"js", "node"},
		{"javascript", "node"}, {".net", "dotnet"}, {"cpp", "c++"}};

	if (p->lang_runtime[0] && !strcasecmp(text, p->lang_runtime))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(also); i++)
		if (!strcasecmp(text, also[i][0]))
			text = also[i][1];
	return !strcasecmp(text, p->lang);
}

static bool matches(const struct filter_value *v, const char *text)
{
	return !regexec(&v->re, text, 0, NULL, 0);
}

static bool has_regex(const struct filters *f, enum filter_kind kind, const struct filter_value *v,
		      const struct store_process_row *p)
{
	char number[24];

	snprintf(number, sizeof(number), "%u", p->pid);
	switch (kind) {
	case FILTER_CONTAINER:
		return matches(v, p->container) ||
		       (!p->container[0] && p->container_id[0] && matches(v, p->container_id));
	case FILTER_IMAGE:
		return matches(v, p->container_image);
	case FILTER_PID:
		return matches(v, number);
	case FILTER_COMM:
		return matches(v, p->comm);
	case FILTER_EXE:
		return matches(v, p->exe);
	case FILTER_USER:
		return matches(v, user_name(f, p->uid));
	case FILTER_UNIT:
		return matches(v, p->unit);
	case FILTER_CGROUP:
		return matches(v, p->cgroup);
	case FILTER_LANG:
		return matches(v, p->lang) || matches(v, p->lang_runtime);
	default:
		return false;
	}
}

static bool has_equal(const struct filters *f, enum filter_kind kind, const struct filter_value *v,
		      const struct store_process_row *p)
{
	switch (kind) {
	case FILTER_CONTAINER:
		return equal_container(v, p);
	case FILTER_IMAGE:
		return !strcmp(v->text, p->container_image);
	case FILTER_PID:
		return v->number == p->pid;
	case FILTER_COMM:
		return !strcmp(v->text, p->comm);
	case FILTER_EXE:
		return p->exe[0] &&
		       (!strcmp(v->text, p->exe) || !strcmp(v->text, base_name(p->exe)));
	case FILTER_USER:
		return v->is_number ? v->number == p->uid : !strcmp(v->text, user_name(f, p->uid));
	case FILTER_UNIT:
		return equal_unit(v->text, p->unit);
	case FILTER_CGROUP:
		return inside_cgroup(v->text, p->cgroup);
	case FILTER_LANG:
		return equal_lang(v->text, p);
	default:
		return false;
	}
}

static bool has(const struct filters *f, enum filter_kind kind, const struct filter_value *v,
		const struct store_process_row *p)
{
	return v->regex ? has_regex(f, kind, v, p) : has_equal(f, kind, v, p);
}

static bool kind_wants(const struct filters *f, enum filter_kind kind,
		       const struct store_process_row *p)
{
	const struct filter_values *k = &f->kinds[kind];
	bool in = !k->positive;

	for (size_t i = 0; i < k->n; i++) {
		const struct filter_value *v = &k->items[i];

		if ((v->negative || !in) && has(f, kind, v, p)) {
			if (v->negative)
				return false;
			in = true;
		}
	}
	return in;
}

bool filters_want_process(const struct filters *f, const struct store_process_row *p)
{
	for (int k = 0; k < FILTER_N; k++)
		if (k != FILTER_TID && k != FILTER_LABEL && k != FILTER_HOST && f->kinds[k].n &&
		    !kind_wants(f, (enum filter_kind)k, p))
			return false;
	return true;
}

bool filters_want_host(const struct filters *f, const char *host)
{
	const struct filter_values *k = &f->kinds[FILTER_HOST];
	bool in = !k->positive;

	for (size_t i = 0; i < k->n; i++) {
		const struct filter_value *v = &k->items[i];
		bool hit = v->regex ? matches(v, host) : !strcmp(v->text, host);

		if (hit && v->negative)
			return false;
		in = in || hit;
	}
	return in;
}

bool filters_want_thread(const struct filters *f, uint32_t tid)
{
	const struct filter_values *k = &f->kinds[FILTER_TID];
	char number[24];
	bool in = !k->positive;

	snprintf(number, sizeof(number), "%u", tid);
	for (size_t i = 0; i < k->n; i++) {
		const struct filter_value *v = &k->items[i];
		bool hit = v->regex ? matches(v, number) : v->number == tid;

		if (hit && v->negative)
			return false;
		in = in || hit;
	}
	return in;
}

/* "key" or "key=value", of one of the labels. */
static bool has_label(const struct filter_value *v, const char *key, const char *pair)
{
	return v->regex ? matches(v, pair) : !strcmp(v->text, pair) || !strcmp(v->text, key);
}

static void add_pair(const char *key, const json_t *value, struct strbuf *pair)
{
	char *text = json_is_string(value) ? NULL : json_dumps(value, JSON_ENCODE_ANY);

	strbuf_addf(pair, "%s=%s", key,
		    json_is_string(value) ? json_string_value(value) :
		    text                  ? text :
					    "");
	free(text);
}

static bool any_label(const struct filter_value *v, json_t *labels)
{
	const char *key;
	json_t *value;

	json_object_foreach (labels, key, value) {
		struct strbuf pair cleanup_strbuf = STRBUF_INIT;

		add_pair(key, value, &pair);
		if (has_label(v, key, strbuf_str(&pair)))
			return true;
	}
	return false;
}

bool filters_want_labels(const struct filters *f, const char *labels)
{
	const struct filter_values *k = &f->kinds[FILTER_LABEL];
	json_t *all = k->n && *labels ? json_loads(labels, 0, NULL) : NULL;
	bool in = !k->positive, out = false;

	for (size_t i = 0; i < k->n; i++) {
		const bool hit = any_label(&k->items[i], all);

		out = out || (hit && k->items[i].negative);
		in = in || hit;
	}
	json_decref(all);
	return in && !out;
}

bool filters_name_process(const struct filters *f, const struct store_process_row *p)
{
	static const enum filter_kind naming[] = {FILTER_PID, FILTER_COMM};

	for (size_t n = 0; n < 2; n++) {
		const struct filter_values *k = &f->kinds[naming[n]];

		for (size_t i = 0; i < k->n; i++)
			if (!k->items[i].negative && has(f, naming[n], &k->items[i], p))
				return true;
	}
	return false;
}

bool filters_empty(const struct filters *f)
{
	for (int k = 0; k < FILTER_N; k++)
		if (f->kinds[k].n)
			return false;
	return true;
}

const char *filters_plain(const struct filters *f, enum filter_kind kind, size_t i)
{
	const struct filter_values *v = &f->kinds[kind];

	for (size_t k = 0; k < v->n; k++)
		if (!v->items[k].negative && !v->items[k].regex && i-- == 0)
			return v->items[k].text;
	return NULL;
}

bool filters_have(const struct filters *f, enum filter_kind kind)
{
	return f->kinds[kind].n;
}

static void add_quoted(struct strbuf *out, const char *s)
{
	strbuf_addch(out, '\'');
	for (; *s; s++) {
		if (*s == '\'')
			strbuf_addstr(out, "'\\''");
		else
			strbuf_addch(out, *s);
	}
	strbuf_addch(out, '\'');
}

/* As bash, zsh and POSIX's shells of 2024 read it. */
static void add_unseen(struct strbuf *out, const char *s)
{
	strbuf_addstr(out, "$'");
	for (; *s; s++) {
		if ((unsigned char)*s < 0x20 || (unsigned char)*s >= 0x7f || *s == '\'' ||
		    *s == '\\')
			strbuf_addf(out, "\\%03o", (unsigned char)*s);
		else
			strbuf_addch(out, *s);
	}
	strbuf_addch(out, '\'');
}

static bool is_plain(const char *s)
{
	return s[0] &&
	       !s[strspn(
		       s,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/:@%+,")];
}

static bool is_seen(const char *s)
{
	struct strbuf shown cleanup_strbuf = STRBUF_INIT;

	strbuf_addshown(&shown, s, strlen(s));
	return !strcmp(strbuf_str(&shown), s);
}

/* Values begin with these for other things; what is not seen is not what people paste. */
bool filter_can_say(const char *name)
{
	return *name && *name != '!' && *name != '~' && is_seen(name);
}

void filter_word(const char *text, struct strbuf *out)
{
	if (is_plain(text))
		strbuf_addstr(out, text);
	else if (is_seen(text))
		add_quoted(out, text);
	else
		add_unseen(out, text);
}

void stores_options(const char *store, struct strbuf *out)
{
	while (store) {
		cleanup_free char *one =
			mem_strndup(store, strcspn(store, (const char[]){STORE_LIST, '\0'}));

		strbuf_addstr(out, " --store ");
		filter_word(one, out);
		store = strchr(store, STORE_LIST);
		store += store != NULL;
	}
}

void filter_option(enum filter_kind kind, const char *value, struct strbuf *out)
{
	strbuf_addf(out, "%s--%s ", out->len ? " " : "", KIND_NAMES[kind]);
	filter_word(value, out);
}

void filters_text(const struct filters *f, struct strbuf *out)
{
	for (int k = 0; k < FILTER_N; k++)
		for (size_t i = 0; i < f->kinds[k].n; i++)
			filter_option((enum filter_kind)k, f->kinds[k].items[i].given, out);
}

void filters_what(const struct filters *f, struct strbuf *out)
{
	for (int k = 0; k < FILTER_N; k++) {
		for (size_t i = 0; i < f->kinds[k].n; i++) {
			const struct filter_value *v = &f->kinds[k].items[i];
			bool speaks = k == FILTER_CONTAINER || k == FILTER_COMM || k == FILTER_UNIT;

			strbuf_addf(out, "%s%s", out->len ? ", " : "", v->negative ? "not " : "");
			if (!speaks)
				strbuf_addf(out, "%s ", KIND_NAMES[k]);
			strbuf_addshown(out, v->text, strlen(v->text));
		}
	}
}
