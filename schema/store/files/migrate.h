/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: the numbered migrations of schema/sql, and which of them a file has. */
#ifndef SONDE_STORE_FILES_MIGRATE_H
#define SONDE_STORE_FILES_MIGRATE_H

struct err;
struct sqlite3;

#define MIGRATE_OLDEST 28 /* files of an older schema are refused: there was no release yet */

/* The newest schema version this program knows. */
int migrate_known(void);
/* May this program use a file of schema `version`? 0 (nothing in it yet) is left to
 * the caller; else -EPROTO, e says why. */
int migrate_check(const char *path, int version, struct err *e);
/* The same of a file; one that cannot be read is left to whoever reads it. */
int migrate_check_file(const char *path, struct err *e);
/* The file's schema version; 0: nothing in it yet; negative: -(SQLite result code). */
int migrate_version(struct sqlite3 *db);
/* Apply what is missing; from 0 all at once. Inside the caller's write transaction. A SQLite result
 * code. */
int migrate_apply(struct sqlite3 *db, int from_version);

#endif
