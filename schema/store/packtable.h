/* SPDX-License-Identifier: Apache-2.0 */
/* packtable: one table of a sealed day into columns and a virtual table, and back to rows. For packing.c. */
#ifndef SONDE_STORE_PACKTABLE_H
#define SONDE_STORE_PACKTABLE_H

#include <stddef.h>

#include "schema/store/packorder.h"

struct sqlite3;
struct sqlite3_context;
struct sqlite3_value;

/* Its rows in the order of these columns ("1, 2": by place), the first of which is a number. With `o` they get new numbers, and
 * the connection has sonde_number. A table without rows stays as it is. SQLite's code, as all here. */
int packtable_pack(struct sqlite3 *db, const char *table, const char *order, const struct packorder *o);
/* `sql` makes the table, then its indexes. */
int packtable_unpack(struct sqlite3 *db, const char *table, size_t rows, const char *sql);
/* Function sonde_number(kind, number) of SQL, whose data is a struct packorder. */
void packtable_number(struct sqlite3_context *out, int argc, struct sqlite3_value **argv);
/* Runs these words, which are freed; NULL: there was no memory for them. */
int packtable_exec(struct sqlite3 *db, char *sql);

#endif
