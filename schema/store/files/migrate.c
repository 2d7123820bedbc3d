/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: applies schema/sql/NNNN-*.sql in order, to a new file what they come to
 * (schema/sql/flatten.c); the version is in meta, where people can read it. */
#include "schema/store/files/migrate.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/err.h"
#include "schema/base/mem.h"
#include "schema/sql/migrations.h"
#include "schema/sql/plain.h"
#include "schema/sql/whole.h"
#include "schema/store/files/readonly.h"
#include "schema/store/packed/packing.h"

#define N_MIGRATIONS ARRAY_SIZE(MIGRATIONS)

int migrate_known(void)
{
	return MIGRATIONS[N_MIGRATIONS - 1].version;
}

static int migrate_one_int(sqlite3 *db, const char *sql, int *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW) {
		*out = sqlite3_column_int(st, 0);
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_NOTFOUND : rc;
}

int migrate_check(const char *path, int version, struct err *e)
{
	if (version > migrate_known()) {
		err_set(e, -EPROTO, EXIT_STORE,
			"store was written by a newer sonde: %s has schema %d, this one knows schema %d",
			path, version, migrate_known());
		err_fix(e, "upgrade sonde, or use another folder: --store DIR");
		return -EPROTO;
	}
	if (version > 0 && version < MIGRATE_OLDEST) {
		err_set(e, -EPROTO, EXIT_STORE,
			"%s was written by a sonde from before the first release: it has schema %d, read are %d to %d",
			path, version, MIGRATE_OLDEST, migrate_known());
		err_fix(e, "move the file elsewhere, or use another folder: --store DIR");
		return -EPROTO;
	}
	return 0;
}

int migrate_version(sqlite3 *db)
{
	int v = 0;
	int rc = migrate_one_int(db, "SELECT count(*) FROM sqlite_master WHERE name = 'meta'", &v);

	if (rc != SQLITE_OK)
		return -rc;
	if (!v)
		return 0;
	rc = migrate_one_int(db, "SELECT value FROM meta WHERE key = 'schema_version'", &v);
	if (rc == SQLITE_NOTFOUND)
		return -SQLITE_CORRUPT; /* written in the same transaction as the table */
	return rc == SQLITE_OK ? v : -rc;
}

static int migrate_note(sqlite3 *db, int version)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db, "INSERT OR REPLACE INTO meta(key, value) VALUES('schema_version', ?1)", -1, &st,
		NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int(st, 1, version);
		rc = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int migrate_apply(sqlite3 *db, int from_version)
{
	int rc;

	if (!from_version)
		return sqlite3_exec(db, SCHEMA_WHOLE, NULL, NULL, NULL);
	rc = packing_unpack(db, NULL); /* a virtual table cannot be altered */
	for (size_t i = 0; rc == SQLITE_OK && i < N_MIGRATIONS; i++) {
		if (MIGRATIONS[i].version <= from_version)
			continue;
		rc = sqlite3_exec(db, MIGRATIONS[i].sql, NULL, NULL, NULL);
		if (rc == SQLITE_OK)
			rc = migrate_note(db, MIGRATIONS[i].version);
	}
	return rc;
}

/* --- is its schema ours? --- */

static int by_text(const void *key, const void *entry)
{
	return strcmp(key, *(const char *const *)entry);
}

/* Is the word in it, before a parenthesis if that is asked? */
static bool has_word(const char *plain, const char *word, bool before_parenthesis)
{
	size_t n = strlen(word);

	for (const char *p = plain; (p = strcasestr(p, word)); p += n) {
		const char *end = p + n + strspn(p + n, " \t\r\n");

		if ((p == plain || !(isalnum((unsigned char)p[-1]) || p[-1] == '_')) &&
		    (before_parenthesis ? *end == '(' :
					  !(isalnum((unsigned char)p[n]) || p[n] == '_')))
			return true;
	}
	return false;
}

/* A table of a version to come, or with a column of one. Its rows end; what would be computed when
 * they are read or written is refused, and an order of texts that may not be there. */
static bool is_ordinary_table(const char *plain)
{
	/* with these, plain text could be read in another way than SQLite reads it */
	return !strncmp(plain, "CREATE TABLE ", 13) && !strpbrk(plain, "[`\f\v") &&
	       !strstr(plain, "/*") && !strstr(plain, "--") && !has_word(plain, "AS", true) &&
	       !has_word(plain, "CHECK", true) && !has_word(plain, "DEFAULT", true) &&
	       !has_word(plain, "COLLATE", false) && !has_word(plain, "GENERATED", false);
}

/* `plain` is cut at its statements. */
static bool are_migrations(char *plain)
{
	/* a packed table is kept with its indexes and triggers */
	static const char next[] = ";CREATE ";

	for (char *p = plain, *end; p; p = end) {
		end = strstr(p, next);
		if (end)
			*end++ = '\0';
		if (!is_ordinary_table(p) && !bsearch(p, SCHEMA_KNOWN, ARRAY_SIZE(SCHEMA_KNOWN),
						      sizeof(*SCHEMA_KNOWN), by_text))
			return false;
	}
	return true;
}

/* Made by packing (packed/packing.h) or ANALYZE. */
static bool is_made_here(const char *name, const char *plain)
{
	char *packed = sqlite3_mprintf("CREATE VIRTUAL TABLE \"%w\" USING sonde_packed", name);
	bool made = packed && !strcmp(plain, packed);

	sqlite3_free(packed);
	return made || (!strncmp(name, "sqlite_stat", 11) && !strncmp(plain, "CREATE TABLE ", 13));
}

/* NULL: of an index that a key needs. */
static bool is_known(const char *name, const char *sql)
{
	cleanup_free char *plain = NULL;

	if (!sql)
		return true;
	plain = mem_alloc(strlen(sql) + 1);
	plain_sql(sql, plain);
	return is_made_here(name, plain) || are_migrations(plain);
}

/* The rows of a query for a kind, a name and the statement that makes it. */
static int all_known(sqlite3 *db, const char *query, const char *path, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, query, -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *kind = (const char *)sqlite3_column_text(st, 0) ?: "",
			   *name = (const char *)sqlite3_column_text(st, 1) ?: "";

		rc = SQLITE_OK;
		if (is_known(name, (const char *)sqlite3_column_text(st, 2)))
			continue;
		err_set(e, -EBADMSG, EXIT_STORE,
			"another program has changed %s: its %.20s %.60s is not one of sonde's",
			path, kind, name);
		err_fix(e, "move the file elsewhere");
		rc = SQLITE_AUTH;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Without running any SQL of the file's: its tables may be views that never end. */
int migrate_open_check(sqlite3 *db, const char *path, struct err *e)
{
	static const char meta[] =
		"SELECT type, name, sql FROM main.sqlite_schema WHERE name = 'meta' COLLATE NOCASE",
			  all[] = "SELECT type, name, sql FROM main.sqlite_schema";
	int n = 0, version, rc = migrate_one_int(db, "SELECT count(*) FROM main.sqlite_schema", &n);

	if (rc != SQLITE_OK || !n)
		return rc;
	rc = migrate_one_int(db, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'meta'", &n);
	if (rc == SQLITE_OK && !n) {
		err_set(e, -EBADMSG, EXIT_STORE,
			"%s is not a segment of a store: it has no tables of sonde's", path);
		err_fix(e, "move the file elsewhere");
		return SQLITE_AUTH;
	}
	if (rc == SQLITE_OK)
		rc = all_known(db, meta, path, e);
	if (rc != SQLITE_OK)
		return rc;
	version = migrate_version(db);
	if (version < 0)
		return -version;
	if (migrate_check(path, version, e))
		return SQLITE_AUTH;
	return all_known(db, all, path, e);
}

int migrate_packed_check(sqlite3 *db, const char *path, struct err *e)
{
	int n = 0,
	    rc = migrate_one_int(
		    db, "SELECT count(*) FROM main.sqlite_schema WHERE name = 'packed_view'", &n);

	if (rc != SQLITE_OK || !n)
		return rc;
	rc = all_known(db, "SELECT 'definition', name, sql FROM main.packed_view", path, e);
	return rc != SQLITE_OK ?
		       rc :
		       all_known(
			       db,
			       "SELECT 'definition', name, nullif(sql, '') FROM main.packed_table",
			       path, e);
}

int migrate_check_file(const char *path, struct err *e)
{
	sqlite3 *db = NULL;
	int version;

	if (readonly_open(path, &db, NULL))
		return 0;
	version = migrate_version(db);
	sqlite3_close(db);
	return version > 0 ? migrate_check(path, version, e) : 0;
}
