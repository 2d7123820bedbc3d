/* SPDX-License-Identifier: Apache-2.0 */
/* sql: the shortest questions to SQLite. */
#ifndef SONDE_STORE_MODEL_SQL_H
#define SONDE_STORE_MODEL_SQL_H

#include <stdint.h>

struct sqlite3;

/* One number of one row; `fallback` if there is no row, it is NULL, or cannot be read. */
int64_t sql_number(struct sqlite3 *db, const char *sql, int64_t fallback);
/* Statements without rows. SQLite's code. */
int sql_exec(struct sqlite3 *db, const char *sql);

#endif
