/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: the tables of a segment into columns (packed/module.h) and back to rows. Both forms have
 * the same names and the same rows. The change is one transaction, or happens in a file without a
 * name, so a crash leaves one of the two forms. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKED_PACKING_H
#define SONDE_STORE_PACKED_PACKING_H

#include <stdbool.h>
#include <stddef.h>

struct sqlite3;

bool packing_is_packed(struct sqlite3 *db);
/* In a transaction, of a connection that packed_register knows: packs all tables that are sorted by
 * a numeric first column, have only numbers and texts, and at least `least` rows; in blocks of
 * block_rows rows. SQLite's code, as for all functions here. */
/* fewer take a page, which columns would take too; none at all, and a page is too much */
#define PACKING_LEAST 100
/* a range of time decodes one block too many on either side; its columns are a hundred kilobytes
 * each */
#define PACKING_BLOCK_ROWS 16384
int packing_pack(struct sqlite3 *db, size_t least, size_t block_rows);
/* The same of tables that are complete as they are: no sums of theirs are made. */
int packing_pack_made(struct sqlite3 *db, size_t least, size_t block_rows);
/* Writes the order that its rows will have, by the places of its columns ("1, 2"); "": none. */
#define PACKING_NAME_MAX 200
int packing_order(struct sqlite3 *db, const char *table, char out[PACKING_NAME_MAX]);
/* Turns one table of an archive into rows, and back; does nothing if it is not packed, or has too
 * few rows. In a transaction, as above. */
int packing_unpack_one(struct sqlite3 *db, const char *table);
int packing_pack_one(struct sqlite3 *db, const char *table);
/* Turns all tables back into rows, so that they can be written. Sets *any (unless NULL) if one was
 * packed. */
int packing_unpack(struct sqlite3 *db, bool *any);

#endif
