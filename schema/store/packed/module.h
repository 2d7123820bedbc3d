/* SPDX-License-Identifier: Apache-2.0 */
/*
 * module: module sonde_packed of SQLite: a table whose rows are stored as columns of bytes
 * (packed_column, schema/store/packed/column.h) of the same file, under the name and with the
 * columns that it had as rows. Read-only, in the order of its first column; conditions on any
 * column of numbers find rows without a full scan. A column is read when it is first asked for.
 *
 * Built into the store and, from the same source, into the extension: so it calls SQLite through
 * sqlite3ext.h only.
 */
#ifndef SONDE_STORE_PACKED_MODULE_H
#define SONDE_STORE_PACKED_MODULE_H

struct sqlite3;

/* Registers the module; for each connection that may open an archive. SQLite's code. */
int packed_register(struct sqlite3 *db);
/* A temporary view like the one that `sql` makes, which must be one statement CREATE VIEW: the text
 * comes from a file. Any other statement is ignored. SQLite's code. */
int packed_view(struct sqlite3 *db, const char *sql);
/* Makes temporary views of those that an archive keeps as text (packed_view): all, or the one of
 * that name. The connection must be allowed to create views. Texts that are no view are left out.
 * SQLite's code. */
int packed_views(struct sqlite3 *db, const char *name);

#endif
