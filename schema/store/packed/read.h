/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read: the columns of a packed table (packed/columns.h) as they are, for readers of all its rows:
 * SQLite would ask for each value separately. In the order of a SELECT.
 */
#ifndef SONDE_STORE_PACKED_READ_H
#define SONDE_STORE_PACKED_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/packed/table.h"

struct sqlite3;

struct packedread {
	struct sqlite3 *db;
	struct packedtable t;
	int n, number[PACKEDCOLUMNS_MAX];          /* columns asked for: their places */
	const struct column *c[PACKEDCOLUMNS_MAX]; /* the same, of the block that was read last */
};

/* `columns` as in a SELECT: "id, base, keep". To be released if true, and not to be moved. false:
 * the table is not packed, has no such columns, or they cannot be read: SQLite then says why. */
bool packedread_open(struct packedread *r, struct sqlite3 *db, const char *table,
		     const char *columns);
/* Decodes those columns of a block into r->c. 0 or -errno, as packedtable_column. */
int packedread_block(struct packedread *r, size_t block);
/* Both, of a table in one block: of the dictionary. */
bool packedread_open_whole(struct packedread *r, struct sqlite3 *db, const char *table,
			   const char *columns);
/* packedtable_stacks, of the column that was asked for as number `col`. */
int packedread_stacks(struct packedread *r, int col, const struct stackcolumns_walk *w);
int packedread_lists(struct packedread *r, int col, struct column_cursor *out);
void packedread_release(struct packedread *r);
int64_t packedread_number(const struct packedread *r, int col,
			  size_t row); /* of the block's; 0 of texts */
const char *packedread_text(const struct packedread *r, int col,
			    size_t row); /* "" of numbers; good until it is released */

#endif
