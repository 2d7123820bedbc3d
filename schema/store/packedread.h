/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packedread: the columns of a packed table (packedcolumns.h) as they are, for whoever reads all of its rows: SQLite would ask for
 * each value by itself. In the order in which a SELECT gives them.
 */
#ifndef SONDE_STORE_PACKEDREAD_H
#define SONDE_STORE_PACKEDREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/packedcolumns.h"

struct sqlite3;

struct packedread {
	struct sqlite3 *db;
	const char *table;
	struct packedcolumns p;
	const struct column *c[PACKEDCOLUMNS_MAX]; /* those asked for, in that order */
};

/* `columns` as in a SELECT: "id, base, keep". To be released if true. false: the table is not packed, has no such columns, or they
 * cannot be read: SQLite then says why. */
bool packedread_open(struct packedread *r, struct sqlite3 *db, const char *table, const char *columns);
void packedread_release(struct packedread *r);
int64_t packedread_number(const struct packedread *r, int col, size_t row);   /* 0 of texts */
const char *packedread_text(const struct packedread *r, int col, size_t row); /* "" of numbers; good until it is released */

#endif
