/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: module sonde_packed of SQLite: a table whose rows stand in columns of bytes
 * (packed_column, schema/store/packed/column.h) of the same file, under the name and with the
 * columns that it had as rows. Read-only; in the order of its first column, by which rows are
 * found, as they are by any other column of numbers. A column is read when it is first asked for.
 *
 * Built into the store and, from the same source, into the extension: so it speaks to SQLite
 * through sqlite3ext.h only.
 */
#ifndef SONDE_STORE_PACKED_MODULE_H
#define SONDE_STORE_PACKED_MODULE_H

struct sqlite3;

/* For each connection that may meet an archive. SQLite's code. */
int packed_register(struct sqlite3 *db);
/* A temporary view like the one that `sql` makes, which must be one statement CREATE VIEW: the text
 * is a file's. Any other makes nothing. */
int packed_view(struct sqlite3 *db, const char *sql);
/* The views that an archive keeps as text (packed_view), as temporary ones; all of them, or the one
 * of that name. Of a connection that may make such. What is no view is left out. SQLite's code. */
int packed_views(struct sqlite3 *db, const char *name);

#endif
