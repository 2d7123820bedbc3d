/* SPDX-License-Identifier: Apache-2.0 */
#include "export/push/table.h"

#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/extension/extension.h"

/* clang-format off */
const struct table TABLES[] = {
	{"cgroup_stats", NULL}, {"connections", NULL}, {"cost", NULL},
	/* as the view, but names of functions are looked up for what is sent alone: the view makes a table of all of them first */
	{"cpu_samples", "SELECT q.ts, q.container, q.comm, q.pid, q.thread,"
			" iif(r.id IS NULL, '[no stack]', coalesce(f.name, coalesce(i.name, '[unknown]') || printf('+0x%x', r.offset))) AS function,"
			" coalesce(i.name, '') AS module, q.samples, q.cpu_ns, q.self FROM"
			" (SELECT x.ts + :t0 AS ts, coalesce(c.name, '') AS container, p.comm, p.pid, t.thread, k.leaf, sum(x.n) AS samples, sum(x.n * (SELECT period_ns"
			"   FROM run_period d WHERE d.run = t.run AND d.from_ns <= (x.ts + :t0) * 1000000000 ORDER BY d.from_ns DESC LIMIT 1)) AS cpu_ns, p.self"
			"  FROM sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task JOIN process p ON p.id = t.process"
			"  LEFT JOIN containers c ON c.id = p.container LEFT JOIN stack k ON k.id = e.stack"
			"  LEFT JOIN run_hidden h ON h.run = t.run AND h.process = t.process AND x.ts + :t0 BETWEEN h.first_ts AND h.last_ts"
			"  WHERE t.kind = 1 AND h.run IS NULL AND x.ts >= :from - :t0 AND x.ts < :to - :t0 GROUP BY x.ts, t.process, 5, 6, 9) q"
			" LEFT JOIN frame r ON r.id = q.leaf LEFT JOIN function f ON f.id = r.function LEFT JOIN image i ON i.id = r.image"},
	{"disk_stats", NULL}, {"ended_stats", NULL}, {"events", NULL}, {"filesystem_stats", NULL}, {"flows", NULL}, {"host_stats", NULL}, {"listeners", NULL},
	{"loss", NULL}, {"net_stats", NULL}, {"process_ends", NULL}, {"process_stats", NULL}, {"requests", NULL},
	{"wait_totals", "SELECT ts, container, comm, pid, state, reason, sum(count) AS count, sum(total_ns) AS total_ns, max(max_ns) AS max_ns, self"
			" FROM %s GROUP BY 1, 2, 3, 4, 5, 6, 10"},
};
/* clang-format on */
const size_t N_TABLES = ARRAY_SIZE(TABLES);

/* Columns that are text; all others are whole numbers. */
/* clang-format off */
static const char *const TEXTS[] = {
	"address", "caused_by", "cgroup", "comm", "container", "container_id", "detail", "disk", "family", "fstype", "function", "how", "interface", "kind", "module", "mount",
	"name", "open_to", "operation", "owner", "peer", "peer_comm", "peer_container", "program", "protocol", "reason", "result", "service", "side",
	"source", "state", "subject", "thread", "unit", "which",
};
/* clang-format on */

/* The views use SQLite's own JSON functions, which it refuses in a schema that it does not trust;
 * nothing else is there to be called. */
bool table_ready(sqlite3 *db)
{
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
	sqlite3_exec(db, "PRAGMA cache_size=-512", NULL, NULL, NULL);
	return extension_tables(db) == SQLITE_OK;
}

bool table_named(const char *name, size_t len)
{
	for (size_t i = 0; i < N_TABLES; i++)
		if (strlen(TABLES[i].name) == len && !strncmp(TABLES[i].name, name, len))
			return true;
	return false;
}

/* `status` is text of requests, and a number of process_ends. */
static bool is_text(const char *column, const char *table)
{
	if (!strcmp(column, "status"))
		return !strcmp(table, "requests");
	for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++)
		if (!strcmp(TEXTS[i], column))
			return true;
	return false;
}

static bool is_left_out(const char *column)
{
	size_t len = strlen(column);

	return !strcmp(column, "time") || !strcmp(column, "host") ||
	       (len > 3 && !strcmp(column + len - 3, "_id") && strcmp(column, "container_id"));
}

/* The text of a view after its AS. NULL: no such view. */
static char *view_text(sqlite3 *db, const char *name)
{
	static const char *const places[] = {
		"SELECT sql FROM main.sqlite_master WHERE type = 'view' AND name = ?1",
		"SELECT sql FROM main.packed_view WHERE name = ?1"};
	char *text = NULL;

	for (size_t i = 0; !text && i < 2; i++) {
		sqlite3_stmt *st = NULL;
		const char *sql = NULL, *as = NULL;

		if (sqlite3_prepare_v2(db, places[i], -1, &st, NULL) == SQLITE_OK) {
			sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
			if (sqlite3_step(st) == SQLITE_ROW)
				sql = (const char *)sqlite3_column_text(st, 0);
		}
		as = sql ? strstr(sql, " AS") : NULL;
		text = as ? sqlite3_mprintf("%s", as + 3) : NULL;
		sqlite3_finalize(st);
	}
	return text;
}

/* A subquery for the rows of a view in the range, to follow FROM. Comparing the view's `ts`, which
 * is a sum, would read all rows of the file. Most views end with one condition after which a
 * comparison of their table's x.ts can be inserted. */
static char *view_range(sqlite3 *db, const char *name)
{
	static const char end[] = ".run IS NULL";
	char *text = view_text(db, name), *made;
	const char *at = text ? strstr(text, end) : NULL;

	if (at && !at[sizeof(end) - 1 + strspn(at + sizeof(end) - 1, "; \t\n")])
		made = sqlite3_mprintf("(%.*s AND x.ts >= :from - :t0 AND x.ts < :to - :t0)",
				       (int)(at - text + (long)sizeof(end) - 1), text);
	else
		made = sqlite3_mprintf("(SELECT * FROM \"%w\" WHERE ts >= :from AND ts < :to)",
				       name);
	sqlite3_free(text);
	return made;
}

static char *query_text(sqlite3 *db, const struct table *t)
{
	const char *hole = t->sql ? strstr(t->sql, "%s") : NULL;
	char *range, *sql;

	if (t->sql && !hole)
		return sqlite3_mprintf("%s", t->sql);
	range = view_range(db, t->name);
	sql = !range ? NULL :
	      hole   ? sqlite3_mprintf("%.*s%s%s", (int)(hole - t->sql), t->sql, range, hole + 2) :
		       sqlite3_mprintf("SELECT * FROM %s", range);
	sqlite3_free(range);
	return sql;
}

sqlite3_stmt *table_query(sqlite3 *db, const struct table *t, struct err *e)
{
	sqlite3_stmt *st = NULL;
	char *sql = query_text(db, t);
	int rc = sql ? sqlite3_prepare_v2(db, sql, -1, &st, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	if (rc == SQLITE_OK)
		return st;
	if (!strstr(sqlite3_errmsg(db), "no such"))
		err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(db));
	return NULL;
}

void table_schema(sqlite3_stmt *st, const struct table *t, const char *database, struct strbuf *out)
{
	strbuf_addf(
		out,
		"CREATE TABLE IF NOT EXISTS %s.%s (\n    host LowCardinality(String),\n    ts DateTime",
		database, t->name);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		const char *name = sqlite3_column_name(st, i);

		if (is_left_out(name) || !strcmp(name, "ts"))
			continue;
		strbuf_addf(out, ",\n    `%s` %s", name,
			    is_text(name, t->name) ? "LowCardinality(String)" : "Nullable(Int64)");
	}
	strbuf_addstr(
		out,
		",\n    id UInt64\n) ENGINE = ReplacingMergeTree PARTITION BY toYYYYMMDD(ts) ORDER BY (host, ts, id);\n");
}

/* Names in the store are valid UTF-8. */
static void text_add(struct strbuf *out, const char *s)
{
	strbuf_addch(out, '"');
	while (*s) {
		size_t plain = 0;

		while ((unsigned char)s[plain] >= 0x20 && s[plain] != '"' && s[plain] != '\\')
			plain++;
		strbuf_add(out, s, plain);
		s += plain;
		if (*s && (unsigned char)*s < 0x20)
			strbuf_addf(out, "\\u%04x", (unsigned)(unsigned char)*s++);
		else if (*s)
			strbuf_addf(out, "\\%c", *s++);
	}
	strbuf_addch(out, '"');
}

static void number_add(struct strbuf *out, int64_t value)
{
	if (value < 0)
		strbuf_addch(out, '-');
	strbuf_addu(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static void value_add(sqlite3_stmt *st, int i, struct strbuf *out)
{
	switch (sqlite3_column_type(st, i)) {
	case SQLITE_NULL:
		strbuf_addstr(out, "null");
		break;
	case SQLITE_INTEGER:
		number_add(out, sqlite3_column_int64(st, i));
		break;
	case SQLITE_FLOAT:
		number_add(out, (int64_t)sqlite3_column_double(st, i));
		break;
	default:
		text_add(out, (const char *)sqlite3_column_text(st, i));
		break;
	}
}

void table_row(sqlite3_stmt *st, const char *host, struct strbuf *out)
{
	strbuf_addstr(out, "{\"host\":");
	text_add(out, host);
	for (int i = 0; i < sqlite3_column_count(st); i++) {
		const char *name = sqlite3_column_name(st, i);

		if (is_left_out(name))
			continue;
		strbuf_add(out, ",\"", 2);
		strbuf_addstr(out, name);
		strbuf_add(out, "\":", 2);
		value_add(st, i, out);
	}
}
