/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readonly: opens a file of the store for reading, without leaving other files in the folder.
 *
 * A segment in use is in WAL mode: SQLite reads it while it is written, also for a member of the
 * group who may write neither -wal nor -shm. After a clean end it is in journal_mode=DELETE and
 * needs nothing but the file. What is left is a WAL file without its -wal: a copy of the .db alone,
 * or a segment in the instant of its beginning. SQLite would create -wal and -shm; we
 * wait for a moment if this is a live folder, and then read the file as it is (immutable=1).
 */
#ifndef SONDE_STORE_FILES_READONLY_H
#define SONDE_STORE_FILES_READONLY_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

struct sqlite3;

/* Checks that the file, its WAL, its shared memory and its journal are regular files or missing. 0
 * or -EBADMSG. */
int readonly_check_file(const char *path, struct err *e);
/* Archives have their tables (packed/module.h), but no views. Only a file whose schema is ours
 * (migrate_open_check); a question ends with SQLITE_INTERRUPT after 30 s without a row. */
int readonly_open(const char *path, struct sqlite3 **out, struct err *e);
/* Fills `e`: the file cannot be read, with SQLite's message; db may be NULL. Returns -errno. */
int readonly_refused(const char *path, struct sqlite3 *db, int sqlite_rc, struct err *e);
/* Does its header say that it has a write-ahead log? */
bool readonly_is_wal(const char *path);
/* When it became an archive (archive.h), or was rewritten; 0: not an archive. */
int64_t readonly_archived_ns(struct sqlite3 *db);

#endif
