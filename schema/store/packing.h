/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packing: the tables of a sealed day into columns (packed.h) and back to rows. Both forms have the same names and the same
 * rows, and either is whole: so it is one transaction, or a file without a name, and whoever is killed in it leaves one of
 * them. Not for other rooms.
 */
#ifndef SONDE_STORE_PACKING_H
#define SONDE_STORE_PACKING_H

#include <stdbool.h>

#define PACKING_ROW_BYTES 25 /* that a row of these tables takes, about */

struct packorder;
struct sqlite3;

bool packing_is_packed(struct sqlite3 *db);
/* Is what can be packed most of the file, and not needed by views that plain sqlite3 answers (of waits and amounts)? */
bool packing_pays(struct sqlite3 *db);
/* In a transaction, of a connection that packed_register knows: rows into columns, with the sums by the hour beside them. With `o` by new
 * numbers, which only a file may get that nobody reads yet; its samples' blocks have them already. SQLite's code. */
int packing_pack(struct sqlite3 *db, const struct packorder *o);
/* The same back: after it each table can be written. Nothing where none is packed; *any, where not NULL: one was. */
int packing_unpack(struct sqlite3 *db, bool *any);

#endif
