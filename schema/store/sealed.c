/* SPDX-License-Identifier: Apache-2.0 */
/* sealed: see the header. */
#include "schema/store/sealed.h"

#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "schema/base/mem.h"
#include "schema/store/reading.h"

void sealed_add(struct sealed_list *out, sqlite3 *db, const char *day)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(db, "SELECT name, created_ns FROM sealed", -1, &st, NULL) == SQLITE_OK) {
		while (sqlite3_step(st) == SQLITE_ROW) {
			const char *name = (const char *)sqlite3_column_text(st, 0);

			if (!name || !folder_is_segment_name(name) || !strcmp(name, day))
				continue;
			mem_grow(out->items, out->n, out->cap);
			out->items[out->n] = (struct sealed_one){.created_ns = sqlite3_column_int64(st, 1)};
			memcpy(out->items[out->n].name, name, strlen(name) + 1);
			memcpy(out->items[out->n++].day, day, strlen(day) + 1);
		}
	}
	sqlite3_finalize(st);
}

void sealed_read(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, struct sealed_list *out)
{
	struct err e = {0};
	char path[PATH_MAX];
	sqlite3 *db;

	*out = (struct sealed_list){0};
	for (size_t i = 0; i < n; i++) {
		if (!folder_is_day_name(names[i]))
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (reading_open(path, &db, &e))
			continue;
		sealed_add(out, db, names[i]);
		sqlite3_close(db);
	}
}

void sealed_release(struct sealed_list *l)
{
	free(l->items);
	*l = (struct sealed_list){0};
}

/* The same file, or one that went meanwhile? */
static bool is_same(const char *dir, const struct sealed_one *o)
{
	struct err e = {0};
	char path[PATH_MAX];
	int64_t created;
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/%s", dir, o->name);
	if (reading_open(path, &db, &e))
		return access(path, F_OK) < 0;
	created = reading_number(db, "SELECT value FROM meta WHERE key = 'created_ns'", 0);
	sqlite3_close(db);
	return created == o->created_ns;
}

const struct sealed_one *sealed_by(const struct sealed_list *l, const char *dir, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->items[i].name, name) && is_same(dir, &l->items[i]))
			return &l->items[i];
	return NULL;
}
