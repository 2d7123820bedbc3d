/* SPDX-License-Identifier: Apache-2.0 */
/* pack_table: one table into blocks of columns and a virtual table, and back to rows. For
 * packing.c. */
#ifndef SONDE_STORE_PACKED_PACK_TABLE_H
#define SONDE_STORE_PACKED_PACK_TABLE_H

#include <stddef.h>

struct sqlite3;

/* Its rows in the order of these columns ("1, 2": by place), the first of which is a number. It has
 * rows; block_rows of them to a block, the stack tree in one. SQLite's code, as all here. */
int pack_table_pack(struct sqlite3 *db, const char *table, const char *order, size_t block_rows);
/* `sql` makes the table, then its indexes. */
int pack_table_unpack(struct sqlite3 *db, const char *table, const char *sql);
/* Runs these words, which are freed; NULL: there was no memory for them. */
int pack_table_exec(struct sqlite3 *db, char *sql);

#endif
