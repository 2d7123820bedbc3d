/* SPDX-License-Identifier: Apache-2.0 */
/* one_view: of the views that an archive keeps as text, one, and those that it reads. */
#include <ctype.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/packed/module.h"
#include "schema/store/read/reading.h"

/* A view that is stored, and whether another one needs it. */
struct stored_view {
	char *name, *sql;
	bool needed;
};
struct stored_views {
	struct stored_view *rows;
	size_t n, cap;
};

static int stored_views_read(sqlite3 *db, struct stored_views *v)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"SELECT name, sql FROM main.packed_view WHERE sql LIKE 'CREATE VIEW%' ORDER BY id",
		-1, &st, NULL);

	if (rc != SQLITE_OK)
		return rc == SQLITE_ERROR ? SQLITE_OK : rc;
	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0),
			   *sql = (const char *)sqlite3_column_text(st, 1);

		if (!name || !*name || !sql)
			continue;
		mem_grow(v->rows, v->n, v->cap);
		v->rows[v->n++] =
			(struct stored_view){.name = mem_strdup(name), .sql = mem_strdup(sql)};
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static bool is_name_byte(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool names(const char *sql, const char *view)
{
	const size_t len = strlen(view);

	for (const char *at = strstr(sql, view); at; at = strstr(at + 1, view))
		if ((at == sql || !is_name_byte(at[-1])) && !is_name_byte(at[len]))
			return true;
	return false;
}

/* Marks what the marked ones name, until nothing is new. */
static void need_what_is_named(struct stored_views *v)
{
	bool more = true;

	while (more) {
		more = false;
		for (size_t i = 0; i < v->n; i++)
			for (size_t k = 0; v->rows[i].needed && k < v->n; k++)
				if (!v->rows[k].needed && names(v->rows[i].sql, v->rows[k].name))
					more = v->rows[k].needed = true;
	}
}

int reading_one_view(sqlite3 *db, const char *name)
{
	struct stored_views v = {0};
	int rc = stored_views_read(db, &v);

	for (size_t i = 0; i < v.n; i++)
		v.rows[i].needed = !strcmp(v.rows[i].name, name);
	need_what_is_named(&v);
	for (size_t i = 0; i < v.n; i++) {
		if (rc == SQLITE_OK && v.rows[i].needed)
			rc = packed_view(db, v.rows[i].sql);
		free(v.rows[i].name);
		free(v.rows[i].sql);
	}
	free(v.rows);
	return rc;
}
