/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: the tables of a segment into columns (packed/module.h) and back to rows. Both forms have
 * the same names and the same rows, and either is whole: so it is one transaction, or a file
 * without a name, and whoever is killed in it leaves one of them. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_PACKING_H
#define SONDE_STORE_PACKED_PACKING_H

#include <stdbool.h>
#include <stddef.h>

struct sqlite3;

bool packing_is_packed(struct sqlite3 *db);
/* In a transaction, of a connection that packed_register knows: all tables whose first column is a
 * number by which their rows are in order, and whose columns are numbers and texts, and which have
 * `least` rows; in blocks of so many rows. SQLite's code, as all here. */
/* fewer take a page, which columns would take too; none at all, and a page is too much */
#define PACKING_LEAST 100
/* a range of time decodes one block too many on either side; its columns are a hundred kilobytes
 * each */
#define PACKING_BLOCK_ROWS 16384
int packing_pack(struct sqlite3 *db, size_t least, size_t block_rows);
/* "1, 2": the order of its rows then, by the places of its columns; "": it has none. */
#define PACKING_NAME_MAX 200
int packing_order(struct sqlite3 *db, const char *table, char out[PACKING_NAME_MAX]);
/* One table of an archive into rows, and back: nothing where it is not packed, or has too few rows
 * to be. In a transaction, as above. */
int packing_unpack_one(struct sqlite3 *db, const char *table);
int packing_pack_one(struct sqlite3 *db, const char *table);
/* All of them back: after it each table can be written. Nothing where none is packed; *any, where
 * not NULL: one was. */
int packing_unpack(struct sqlite3 *db, bool *any);

#endif
