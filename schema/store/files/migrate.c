/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: applies schema/sql/NNNN-*.sql in order, to a new file what they come to
 * (schema/sql/flatten.c); the version is in meta, where people can read it. */
#include "schema/store/files/migrate.h"

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>

#include "schema/base/array.h"
#include "schema/base/err.h"
#include "schema/sql/migrations.h"
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
