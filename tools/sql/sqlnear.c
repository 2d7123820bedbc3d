// SPDX-License-Identifier: Apache-2.0
/* sqlnear: the nearest name to one that SQLite does not know. */
#include "tools/sql/sqlnear.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/cli/suggest.h"

#define NAME_BYTES 64

/* What follows `before` in the message, without what qualifies it. false: it is another message. */
static bool missing_name(const char *message, const char *before, char name[NAME_BYTES])
{
	const char *at = strstr(message, before), *dot;
	size_t len;

	if (!at)
		return false;
	at += strlen(before);
	/* "no such column: "x" - should this be a string literal in single-quotes?" */
	len = *at == '"' ? strcspn(++at, "\"") : strcspn(at, " ");
	snprintf(name, NAME_BYTES, "%.*s", (int)len, at);
	dot = strrchr(name, '.');
	if (dot)
		memmove(name, dot + 1, strlen(dot));
	return *name;
}

static void near_say(sqlite3_stmt *st, const char *name, struct strbuf *out)
{
	struct suggest near;
	char kept[64][NAME_BYTES];
	size_t n = 0;

	/* `near` borrows the names, and SQLite takes them back: first which, then their copies */
	suggest_init(&near, name);
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *text = (const char *)sqlite3_column_text(st, 0);

		if (text && suggest_distance(name, text, near.limit) <= near.limit &&
		    n < sizeof(kept) / sizeof(*kept))
			snprintf(kept[n++], NAME_BYTES, "%s", text);
	}
	for (size_t i = 0; i < n; i++)
		suggest_add(&near, kept[i]);
	suggest_say(&near, out, "");
}

void sqlnear(sqlite3 *db, const char *message, const char *sql, struct strbuf *out)
{
	static const char views[] =
		"SELECT name FROM temp.sqlite_master WHERE type = 'view' UNION SELECT name FROM main.sqlite_master WHERE type = 'view'";
	static const char columns[] =
		"SELECT DISTINCT c.name FROM (SELECT name FROM temp.sqlite_master WHERE type = 'view' UNION "
		"SELECT name FROM main.sqlite_master WHERE type = 'view') v, pragma_table_info(v.name) c WHERE instr(lower(?1), v.name)";
	sqlite3_stmt *st = NULL;
	char name[NAME_BYTES];
	bool table;

	table = missing_name(message, "no such table: ", name);
	if (!table && !missing_name(message, "no such column: ", name))
		return;
	if (sqlite3_prepare_v2(db, table ? views : columns, -1, &st, NULL) == SQLITE_OK) {
		if (!table)
			sqlite3_bind_text(st, 1, sql, -1, SQLITE_STATIC);
		near_say(st, name, out);
	}
	sqlite3_finalize(st);
}
