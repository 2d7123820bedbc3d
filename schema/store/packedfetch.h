/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packedfetch: the bytes of a packed column, as `fetch` of packedcolumns.h tells them. A function in a header, since the extension
 * calls SQLite by other names than the store: there sqlite3ext.h is to be included before.
 */
#ifndef SONDE_STORE_PACKEDFETCH_H
#define SONDE_STORE_PACKEDFETCH_H

#include <errno.h>
#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* `st` selects data of ("table" = ?1, number = ?2); it is finalized. 0, -ENOENT or -ENOMEM. */
static inline int packed_fetch(sqlite3_stmt *st, const char *table, int number, uint8_t **data, size_t *len)
{
	int got = -ENOENT;

	sqlite3_bind_text(st, 1, table, -1, SQLITE_STATIC);
	sqlite3_bind_int(st, 2, number);
	if (sqlite3_step(st) == SQLITE_ROW) {
		*len = (size_t)sqlite3_column_bytes(st, 0);
		*data = malloc(*len + 1);
		got = *data ? 0 : -ENOMEM;
		if (!got && *len)
			memcpy(*data, sqlite3_column_blob(st, 0), *len);
	}
	sqlite3_finalize(st);
	return got;
}

#endif
