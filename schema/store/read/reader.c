/* SPDX-License-Identifier: Apache-2.0 */
/* reader: one segment open for reading. */
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/span.h"
#include "schema/store/files/tally.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/module.h"
#include "schema/store/packed/packing.h"
#include "schema/store/read/hosts.h"
#include "schema/store/read/reading.h"

sqlite3_stmt *reading_prepare(struct store_segment *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	if (rc == SQLITE_ERROR && s->day)
		reading_refuse_day(s, e);
	else if (rc != SQLITE_OK)
		readonly_refused(s->path, s->db, rc, e);
	return st;
}

int reading_finish(struct store_segment *s, sqlite3_stmt *st, int rc, struct err *e)
{
	int code = rc == SQLITE_DONE ? 0 : readonly_refused(s->path, s->db, rc, e);

	sqlite3_finalize(st);
	return code ? code : 0;
}

int store_missing(const char *dir, int pid, uint64_t *seen, uint64_t *accounted)
{
	return tally_missing(dir, pid, seen, accounted);
}

/* --- one segment --- */

/* Its version; -EPROTO: of a schema that is not read; -ENODATA: nothing in it (its writer was
 * killed before it began). */
static int check_version(const char *path, sqlite3 *db, struct err *e)
{
	int v = migrate_version(db), rc;

	if (v < 0)
		return readonly_refused(path, db, -v, e);
	if (!v) {
		err_set(e, -ENODATA, EXIT_STORE, "%s is not a segment of a store: it has no tables",
			path);
		return -ENODATA;
	}
	rc = migrate_check(path, v, e);
	return rc ? rc : v;
}

int store_segment_open(const char *path, struct store_segment **out, struct err *e)
{
	struct store_segment *s;
	sqlite3 *db;
	int rc = readonly_open(path, &db, e), schema;

	if (rc)
		return rc;
	schema = check_version(path, db, e);
	if (schema < 0) {
		sqlite3_close(db);
		return schema;
	}
	s = mem_alloc(sizeof(*s));
	s->db = db;
	s->path = mem_strdup(path);
	s->t0 = sql_number(db, "SELECT value FROM meta WHERE key = 't0'", 0);
	s->schema = schema;
	s->archived = readonly_archived_ns(db) != 0;
	s->day = s->archived && sql_number(db, "SELECT value FROM meta WHERE key = 'day'", 0) > 0;
	s->host = hosts_of(db);
	rc = s->host ? hosts_name(db, s->host) : SQLITE_OK;
	if (rc != SQLITE_OK) {
		rc = readonly_refused(path, db, rc, e);
		store_segment_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void store_segment_close(struct store_segment *s)
{
	if (!s)
		return;
	reading_unload(s);
	sqlite3_close(s->db);
	free(s->path);
	free(s->host);
	free(s);
}

void store_segment_rest(struct store_segment *s)
{
	reading_unload(s);
	sqlite3_db_release_memory(s->db);
}

/* Once: a stranger's archive may keep any statement. */
static int reading_check_packed(struct store_segment *s, struct err *e)
{
	struct err why = {0};
	int rc;

	if (s->checked)
		return 0;
	rc = migrate_packed_check(s->db, s->path, &why);
	if (rc == SQLITE_AUTH && why.code) {
		if (e)
			*e = why;
		return why.code;
	}
	if (rc != SQLITE_OK)
		return readonly_refused(s->path, s->db, rc, e);
	s->checked = true;
	return 0;
}

static int make_views(struct store_segment *s, const char *name,
		      int (*make)(sqlite3 *db, const char *name), struct err *e)
{
	int rc;

	if (!s->archived || s->has_views)
		return 0;
	rc = reading_check_packed(s, e);
	if (rc)
		return rc;
	sqlite3_exec(s->db, "PRAGMA query_only=0", NULL, NULL, NULL);
	rc = make(s->db, name);
	if (rc != SQLITE_OK)
		rc = readonly_refused(s->path, s->db, rc, e);
	else
		s->has_views = !name;
	sqlite3_exec(s->db, "PRAGMA query_only=1", NULL, NULL, NULL);
	return rc;
}

int reading_views(struct store_segment *s, const char *name, struct err *e)
{
	return make_views(s, name, packed_views, e);
}

struct sqlite3 *store_segment_view(struct store_segment *s, const char *name)
{
	make_views(s, name, reading_one_view, NULL); /* as in store_segment_db */
	return s->db;
}

/* "no such table: NAME" is what SQLite says of a view that is not made. */
static bool missing_name(sqlite3 *db, char out[PACKING_NAME_MAX])
{
	static const char words[] = "no such table: ";
	const char *said = sqlite3_errmsg(db);

	if (strncmp(said, words, sizeof(words) - 1))
		return false;
	snprintf(out, PACKING_NAME_MAX, "%s", said + sizeof(words) - 1);
	return true;
}

int store_segment_prepare(struct store_segment *s, const char *sql, struct sqlite3_stmt **out)
{
	char name[PACKING_NAME_MAX] = "", before[PACKING_NAME_MAX] = "";
	int rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);

	while (rc == SQLITE_ERROR && s->archived && !s->has_views && missing_name(s->db, name) &&
	       strcmp(name, before) != 0) {
		memcpy(before, name, sizeof(before));
		if (make_views(s, name, reading_one_view, NULL))
			break; /* the statement itself fails and says it */
		rc = sqlite3_prepare_v2(s->db, sql, -1, out, NULL);
	}
	return rc;
}

struct sqlite3 *store_segment_tables(struct store_segment *s)
{
	return s->db;
}

struct sqlite3 *store_segment_db(struct store_segment *s)
{
	reading_views(s, NULL, NULL); /* the query itself will fail and report it */
	return s->db;
}

/* 1 or 0; -1: it says nothing. */
static int any_row(sqlite3 *db, const char *sql, const char *table)
{
	char *text = sqlite3_mprintf(sql, table);
	sqlite3_stmt *st = NULL;
	int any = -1;

	if (text && sqlite3_prepare_v2(db, text, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		any = sqlite3_column_int64(st, 0) > 0;
	sqlite3_finalize(st);
	sqlite3_free(text);
	return any;
}

bool store_segment_has(struct store_segment *s, const char *table)
{
	int any = s->archived ? any_row(s->db, "SELECT rows FROM main.packed_table WHERE name = %Q",
					table) :
				-1;

	if (any < 0)
		any = any_row(s->db, "SELECT EXISTS (SELECT 1 FROM main.\"%w\")", table);
	return any != 0;
}

bool store_segment_buckets(struct store_segment *s, int64_t *first_ns, int64_t *last_ns)
{
	int64_t first, last;

	if (!s->archived || !span_noted(s->db, &first, &last))
		return false;
	return !__builtin_add_overflow(s->t0, first, &first) &&
	       !__builtin_add_overflow(s->t0, last, &last) &&
	       !__builtin_mul_overflow(first, (int64_t)NSEC_PER_SEC, first_ns) &&
	       !__builtin_mul_overflow(last, (int64_t)NSEC_PER_SEC, last_ns);
}

int store_segment_schema(const struct store_segment *s)
{
	return s->schema;
}

bool store_segment_archived(const struct store_segment *s)
{
	return s->archived;
}

int store_segment_dict(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->has_stacks && s->has_series ? 0 : reading_load_stacks(s, true, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}

int store_segment_stacks(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->has_stacks ? 0 : reading_load_stacks(s, !s->archived, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}

int store_segment_processes(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->has_processes ? 0 : reading_load_processes(s, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}

int store_segment_tasks(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->has_tasks ? 0 : reading_load_tasks(s, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}

int store_segment_series(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->has_series ? 0 : reading_load_series(s, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}

int store_copy_plain(sqlite3 *copy)
{
	bool any = false;
	int rc = packed_register(copy);

	if (rc == SQLITE_OK)
		rc = migrate_packed_check(copy, "", NULL);
	if (rc == SQLITE_OK)
		rc = sql_exec(copy, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = packing_unpack(copy, &any);
	if (rc == SQLITE_OK)
		rc = sql_exec(copy, "COMMIT");
	return rc == SQLITE_OK && any ? sql_exec(copy, "PRAGMA page_size = 4096; VACUUM") : rc;
}
