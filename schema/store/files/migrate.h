/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: the numbered migrations of schema/sql, and which of them a file has. */
#ifndef SONDE_STORE_FILES_MIGRATE_H
#define SONDE_STORE_FILES_MIGRATE_H

#include "schema/sql/oldest.h"

struct err;
struct sqlite3;

/* The newest schema version this program knows. */
int migrate_known(void);
/* May this program use a file of schema `version`? 0 (nothing in it yet) is left to
 * the caller; else -EPROTO, e says why. */
int migrate_check(const char *path, int version, struct err *e);
/* The same of a file; one that cannot be read is left to its reader. */
int migrate_check_file(const char *path, struct err *e);
/* The file's schema version; 0: nothing in it yet; negative: -(SQLite result code). */
int migrate_version(struct sqlite3 *db);
/*
 * Is everything in the file's schema made by the migrations, at whatever version, or an ordinary
 * table? A stranger's file may have a view that never ends where a table is expected, or triggers.
 * To be asked before any other question: no table of the file is read but meta. SQLITE_AUTH: it is
 * refused, and e says why (-EBADMSG, or migrate_check's -EPROTO); else a SQLite result code.
 */
int migrate_open_check(struct sqlite3 *db, const char *path, struct err *e);
/* The same for the statements that an archive keeps as rows. To be asked before any is run. */
int migrate_packed_check(struct sqlite3 *db, const char *path, struct err *e);
/* Apply what is missing; from 0 all at once. Inside the caller's write transaction. A SQLite result
 * code. */
int migrate_apply(struct sqlite3 *db, int from_version);

#endif
