/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remake: rewrites a file of the store under another name: copies it, changes it, compares it with
 * the original, syncs it. The new file is ignored until the caller gives it a name of the store
 * (seal.h), so a crash before that changes nothing. It is created by the folder's descriptor,
 * without links: what was at its name is removed, and -ESTALE says that it was replaced meanwhile.
 */
#ifndef SONDE_STORE_ARCHIVE_REMAKE_H
#define SONDE_STORE_ARCHIVE_REMAKE_H

#include <sqlite3.h>

#include "schema/base/err.h"

struct remake {
	const char *what;                             /* for messages: "the archive" */
	int (*change)(sqlite3 *db);                   /* within a transaction; an SQLite code */
	const char *shrink;                           /* SQL: ends it, and gives the room back */
	int (*compare)(sqlite3 *from, sqlite3 *made); /* SQLITE_MISMATCH: something is lost */
};

/* -EBADMSG: the file is damaged. */
int remake_file(const char *path, const char *to, const struct remake *how, struct err *e);
/* The same of a file that begins empty: fill(ctx, db) does all of `change`, and nothing is
 * compared. */
int remake_new(const char *to, int (*fill)(void *ctx, sqlite3 *db), void *ctx, struct err *e);

#endif
