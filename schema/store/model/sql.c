/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/model/sql.h"

#include <sqlite3.h>
#include <stddef.h>

int64_t sql_number(sqlite3 *db, const char *sql, int64_t fallback)
{
	sqlite3_stmt *st = NULL;
	int64_t v = fallback;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

int sql_exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}
