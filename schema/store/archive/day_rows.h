/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day_rows: all rows of a table of an archive: from its columns, or, where it is not packed, as
 * SQLite gives them, which takes several times as long. Private to day.c and day_*.c.
 */
#ifndef SONDE_STORE_ARCHIVE_DAY_ROWS_H
#define SONDE_STORE_ARCHIVE_DAY_ROWS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/packed/read.h"

struct day_rows {
	struct packedread columns;
	sqlite3_stmt *st; /* NULL: they are columns */
	size_t block, at, n;
};

/* `columns` as in a SELECT: "task, stack, n". Rows come in the table's order. SQLite's code:
 * SQLITE_ERROR: the archive has no such table or column. To be closed if it is SQLITE_OK, and not
 * to be moved. */
int day_rows_open(struct day_rows *r, sqlite3 *db, const char *table, const char *columns);
/* SQLITE_ROW, SQLITE_DONE, or an error of SQLite's. */
int day_rows_next(struct day_rows *r);
/* Column i of the row: 0 where it is NULL. */
int64_t day_rows_number(const struct day_rows *r, int i);
/* "" where it is NULL. Good until the next row. */
const char *day_rows_text(const struct day_rows *r, int i);
/* SQLITE_OK where `rc` is SQLITE_DONE, else `rc`. */
int day_rows_close(struct day_rows *r, int rc);

#endif
