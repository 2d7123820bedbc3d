/* SPDX-License-Identifier: Apache-2.0 */
/* sealroom: what a make takes on the disk while it is made (seal.h). By itself, for sonded, which seals nothing. */
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/stat.h>

#include "schema/store/packing.h"
#include "schema/store/seal.h"

/* 0: it is not packed, or cannot be read. */
static int64_t packed_rows(const char *path)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int64_t rows = 0;

	if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT sum(rows) FROM packed_table", -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		rows = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	sqlite3_close(db);
	return rows > 0 && rows < INT64_MAX / PACKING_ROW_BYTES ? rows : 0;
}

uint64_t seal_make_bytes(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (stat(path, &st) < 0)
		return 0;
	return (uint64_t)st.st_size + (uint64_t)packed_rows(path) * PACKING_ROW_BYTES;
}
