/* SPDX-License-Identifier: Apache-2.0 */
/* word: what a bare word means. */
#include "tools/select/word.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "schema/base/array.h"
#include "schema/base/cli/suggest.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

#define LISTED 6

static void add(struct names *l, enum filter_kind kind, const char *text, const char *id,
		bool whole)
{
	bool fresh = false;

	if (!text[0])
		return;
	*idmap_ref(&l->known, hash_bytes(hash_u64(HASH_SEED, (uint64_t)kind), text, strlen(text)),
		   &fresh) = 1;
	if (!fresh)
		return;
	mem_grow(l->items, l->n, l->cap);
	l->items[l->n++] = (struct name){kind, mem_strdup(text), mem_strdup(id), whole};
}

void names_add(struct names *l, enum filter_kind kind, const char *text, const char *id)
{
	add(l, kind, text, id, false);
}

void names_release(struct names *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].text);
		free(l->items[i].id);
	}
	free(l->items);
	idmap_release(&l->known);
	*l = (struct names){0};
}

/* Units come without ".service", as people call them. */
static void add_row(struct names *l, sqlite3_stmt *st)
{
	const char *text = (const char *)sqlite3_column_text(st, 1),
		   *id = (const char *)sqlite3_column_text(st, 2);
	enum filter_kind kind = (enum filter_kind)sqlite3_column_int(st, 0);
	char *copy = mem_strdup(text ? text : "");
	size_t len = strlen(copy);

	if (kind == FILTER_UNIT && len > 8 && !strcmp(copy + len - 8, ".service"))
		copy[len - 8] = '\0';
	add(l, kind, copy, id ? id : "", sqlite3_column_int(st, 3));
	free(copy);
}

int names_read(struct names *l, const char *segment_path, struct err *e)
{
	static const char sql[] =
		"SELECT DISTINCT ?1, container, container_id, 0 FROM processes WHERE container <> '' UNION ALL "
		"SELECT DISTINCT ?2, unit, '', 0 FROM processes WHERE unit <> '' UNION ALL "
		"SELECT DISTINCT ?3, comm, '', 0 FROM processes UNION ALL "
		"SELECT DISTINCT ?4, pid, '', 0 FROM processes UNION ALL "
		"SELECT DISTINCT ?1, name, runtime_id, 1 FROM containers UNION ALL "
		"SELECT DISTINCT ?1, service, '', 1 FROM containers UNION ALL "
		"SELECT DISTINCT ?1, project, '', 1 FROM containers";
	static const enum filter_kind kinds[] = {FILTER_CONTAINER, FILTER_UNIT, FILTER_COMM,
						 FILTER_PID};
	struct store_segment *s = NULL;
	sqlite3_stmt *st = NULL;
	int rc = store_segment_open(segment_path, &s, e);

	if (rc)
		return rc;
	rc = store_segment_prepare(s, sql, &st);
	for (int i = 0; i < 4 && rc == SQLITE_OK; i++)
		rc = sqlite3_bind_int(st, i + 1, (int)kinds[i]);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			add_row(l, st);
	if (rc != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read the names in %s: %s", segment_path,
			     sqlite3_errmsg(store_segment_tables(s)));
	else
		rc = 0;
	sqlite3_finalize(st);
	store_segment_close(s);
	return rc;
}

static bool is_whole(const struct name *n, const char *word)
{
	size_t len = strlen(word);

	if (!strcmp(n->text, word))
		return true;
	if (n->kind == FILTER_UNIT && len > 8 && !strcmp(word + len - 8, ".service"))
		return strlen(n->text) == len - 8 && !strncmp(n->text, word, len - 8);
	return n->kind == FILTER_CONTAINER && len >= 6 && n->id[0] && !strncmp(n->id, word, len);
}

static bool is_part(const struct name *n, const char *word)
{
	return n->kind != FILTER_PID && !n->whole && strcasestr(n->text, word);
}

/* The order in which one and the same name is taken: container, unit, command, pid. */
static int rank(enum filter_kind kind)
{
	return kind == FILTER_CONTAINER ? 0 : kind == FILTER_UNIT ? 1 : kind == FILTER_COMM ? 2 : 3;
}

static const char *kind_word(enum filter_kind kind)
{
	return kind == FILTER_COMM ? "command" : filter_kind_name(kind);
}

static int several(const struct names *l, const char *word,
		   bool (*fits)(const struct name *, const char *), const struct name *first,
		   struct err *e)
{
	struct strbuf list cleanup_strbuf = STRBUF_INIT;
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		if (!fits(&l->items[i], word) || ++n > LISTED)
			continue;
		strbuf_addf(&list, "%s%s ", n > 1 ? ", " : "", kind_word(l->items[i].kind));
		strbuf_addshown(&list, l->items[i].text, strnlen(l->items[i].text, 60));
	}
	if (n > LISTED)
		strbuf_addf(&list, ", and %zu more", n - LISTED);
	err_set(e, -EEXIST, EXIT_USAGE, "'%.60s' fits several: %s", word, strbuf_str(&list));
	err_fix(e, "say which: --%s '%.60s'    or all of them: --%s '~%.60s'",
		filter_kind_name(first->kind), first->text, filter_kind_name(first->kind), word);
	return -EEXIST;
}

static int resolve(const struct names *l, const char *word,
		   bool (*fits)(const struct name *, const char *), size_t *index, struct err *e)
{
	const struct name *best = NULL;
	bool differ = false;

	for (size_t i = 0; i < l->n; i++) {
		const struct name *n = &l->items[i];

		if (!fits(n, word))
			continue;
		differ = differ || (best && strcmp(best->text, n->text));
		if (!best || rank(n->kind) < rank(best->kind))
			best = n;
	}
	if (!best)
		return -ENOENT;
	if (differ)
		return several(l, word, fits, best, e);
	*index = (size_t)(best - l->items);
	return 0;
}

int word_resolve(const struct names *l, const char *word, size_t *index, struct err *e)
{
	int rc = resolve(l, word, is_whole, index, e);

	return rc == -ENOENT ? resolve(l, word, is_part, index, e) : rc;
}

int word_unknown(const struct names *l, const char *word, struct err *e)
{
	struct strbuf hint cleanup_strbuf = STRBUF_INIT;
	struct suggest near;

	suggest_init(&near, word);
	for (size_t i = 0; i < l->n; i++)
		if (l->items[i].kind != FILTER_PID)
			suggest_add(&near, l->items[i].text);
	suggest_say(&near, &hint, "");
	err_set(e, -ENOENT, EXIT_USAGE,
		"no container, unit, command or pid called '%.60s' in this store%s", word,
		strbuf_str(&hint));
	err_fix(e, "sonde sql 'select container, comm, pid from processes'");
	return -ENOENT;
}

/* Was something said? Not where a name is that very value. */
static bool near_value(const struct names *l, enum filter_kind kind, const char *value,
		       struct strbuf *out)
{
	char prefix[32];
	struct suggest near;

	suggest_init(&near, value);
	for (size_t i = 0; i < l->n; i++) {
		if (l->items[i].kind != kind)
			continue;
		if (is_whole(&l->items[i], value))
			return false;
		suggest_add(&near, l->items[i].text);
	}
	snprintf(prefix, sizeof(prefix), "--%s ", filter_kind_name(kind));
	suggest_say(&near, out, prefix);
	return near.n > 0;
}

void word_near_filters(const struct names *l, const struct filters *f, struct strbuf *out)
{
	static const enum filter_kind kinds[] = {FILTER_CONTAINER, FILTER_COMM, FILTER_UNIT};
	const char *value;

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++)
		for (size_t i = 0; (value = filters_plain(f, kinds[k], i)); i++)
			if (near_value(l, kinds[k], value, out))
				return;
}
