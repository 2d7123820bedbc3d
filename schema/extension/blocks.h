/* SPDX-License-Identifier: Apache-2.0 */
/* blocks: the samples of the main database of a connection, row by row, whether they are rows of
 * `sample` or an archive's columns. */
#ifndef SONDE_EXTENSION_BLOCKS_H
#define SONDE_EXTENSION_BLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/store/packed/sample_scan.h"

#define BLOCKS_CHUNK 512

struct sqlite3;
struct sqlite3_stmt;

struct blocks {
	struct sqlite3 *db;      /* NULL: nothing is being read */
	struct sqlite3_stmt *st; /* NULL: they are columns */
	struct packedtable packed;
	struct sample_scan scan;
	int ended; /* SQLite's code after the last row */
	size_t n, at;
	struct sample_row rows[BLOCKS_CHUNK];
};

/* Are the samples of the main database an archive's columns? */
bool blocks_packed(struct sqlite3 *db);
/* One number from the main database; `fallback` if there is no row. */
int64_t blocks_number(struct sqlite3 *db, const char *sql, int64_t fallback);
/* Begins with rows of first <= ts <= last, in order of (ts, series). Blocks that lie outside are
 * not decoded. SQLite's code. Ends a scan that is open. Zero `b` before the first call, and do not
 * move it. */
int blocks_open(struct blocks *b, struct sqlite3 *db, int64_t first, int64_t last);
/* The next row, valid until the next call; NULL at the end, with *rc SQLITE_OK, or on an error:
 * SQLITE_CORRUPT_VTAB for a damaged block. */
const struct sample_row *blocks_next(struct blocks *b, int *rc);
void blocks_close(struct blocks *b);

#endif
