/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: the views of docs/SCHEMA.md that have times, as ClickHouse tables for many hosts. Columns
 * are named as the view's; after `host` and `ts` (DateTime) they are Int64, Nullable, or
 * LowCardinality(String). `time` and row numbers that only hold within a file (process_id ...) are
 * left out. Command lines are never sent.
 *
 * A row has an id: a hash of its content and of how many equal rows came before it. A row that is
 * sent again has the same id, so that ReplacingMergeTree drops it (with SELECT ... FINAL at once).
 */
#ifndef SONDE_PUSH_TABLE_H
#define SONDE_PUSH_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

struct sqlite3;
struct sqlite3_stmt;

struct table {
	const char *name;
	/* :from and :to are seconds since 1970, :t0 the file's. NULL: all columns of the view of
	 * that name. %s: the subquery for the view's rows in the range. */
	const char *sql;
};
extern const struct table TABLES[];
extern const size_t N_TABLES;

/* Once for each connection. false: it cannot be queried. */
bool table_ready(struct sqlite3 *db);
bool table_named(const char *name, size_t len);
/* Its query in one file. NULL: the file is older than the view, or is damaged (then `e` says so).
 */
struct sqlite3_stmt *table_query(struct sqlite3 *db, const struct table *t, struct err *e);
/* The columns of a statement as ClickHouse has them: CREATE TABLE. */
void table_schema(struct sqlite3_stmt *st, const struct table *t, const char *database,
		  struct strbuf *out);
/* The current row as one JSON object, without its end: {"host":"a","ts":1,... */
void table_row(struct sqlite3_stmt *st, const char *host, struct strbuf *out);

#endif
