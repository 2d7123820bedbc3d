/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/select/called.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"

struct container {
	char *id, *name, *project, *service;
	bool renamed; /* a later row of it has another name */
};

struct containers {
	struct container *items;
	size_t n, cap;
};

static void containers_release(struct containers *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->items[i].id);
		free(l->items[i].name);
		free(l->items[i].project);
		free(l->items[i].service);
	}
	free(l->items);
}

static char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return mem_strdup(s ? s : "");
}

/* Rows come in the order in which they were written. */
static void add_row(struct containers *l, sqlite3_stmt *st)
{
	struct container x = {column(st, 0), column(st, 1), column(st, 2), column(st, 3), false};

	for (size_t i = 0; i < l->n; i++)
		if (*x.id && !strcmp(l->items[i].id, x.id))
			l->items[i].renamed = strcmp(l->items[i].name, x.name) != 0;
	mem_grow(l->items, l->n, l->cap);
	l->items[l->n++] = x;
}

static int read_segment(struct containers *l, const struct selection *sel, const char *path,
			struct err *e)
{
	static const char sql[] =
		"SELECT runtime_id, name, project, service FROM containers ORDER BY id";
	struct store_segment *s = NULL;
	sqlite3_stmt *st = NULL;
	int rc = select_segment(sel, path, &s, e);

	if (rc)
		return rc;
	rc = store_segment_prepare(s, sql, &st);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			add_row(l, st);
	if (rc != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read the containers in %s: %s", path,
			     sqlite3_errmsg(store_segment_tables(s)));
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

static bool is_service(const struct container *c, const char *value)
{
	size_t n = strlen(c->project);

	if (*c->service && !strcmp(c->service, value))
		return true;
	if (!n || strncmp(value, c->project, n))
		return false;
	return !value[n] || (value[n] == '/' && !strcmp(value + n + 1, c->service));
}

/* Has another container this name last? */
static bool is_taken(const struct containers *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->items[i].renamed && !strcmp(l->items[i].name, name))
			return true;
	return false;
}

static void find_value(const struct containers *l, struct filters *f, size_t i, const char *value)
{
	bool taken = is_taken(l, value);

	for (size_t k = 0; k < l->n; k++) {
		const struct container *c = &l->items[k];

		if (is_service(c, value) || (c->renamed && !taken && !strcmp(c->name, value)))
			filters_container_is(f, i, c->id, c->name);
	}
}

int called_find(const struct selection *s, struct filters *f, struct err *e)
{
	struct containers l = {0};
	const char *value;
	int rc = 0;

	if (!filters_container(f, 0))
		return 0;
	for (size_t i = 0; i < s->n_segments && !rc; i++)
		rc = read_segment(&l, s, s->segments[i].path, e);
	for (size_t i = 0; !rc && (value = filters_container(f, i)); i++)
		find_value(&l, f, i, value);
	containers_release(&l);
	return rc;
}
