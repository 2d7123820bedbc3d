/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table: what is sent: the views of docs/SCHEMA.md that have times, as tables of ClickHouse for
 * many hosts. Columns are named as the view's; behind `host` and `ts` (DateTime) they are Int64,
 * Nullable, or LowCardinality(String). Left out are `time`, and the numbers of rows in one file
 * (process_id and the like). Of a command line nothing is sent.
 *
 * A row has an id: a hash of its content, and of how many equal ones came before it. A row that is
 * sent again has the same, so that ReplacingMergeTree drops it (SELECT ... FINAL does at once).
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
	 * that name; with "%s", of what stands for the view's rows in the range. */
	const char *sql;
};
extern const struct table TABLES[];
extern const size_t N_TABLES;

/* Once for each connection that is asked. false: it cannot be. */
bool table_ready(struct sqlite3 *db);
bool table_named(const char *name, size_t len);
/* Its query in one file. NULL: the file is older than the view, or is damaged (then `e` says so).
 */
struct sqlite3_stmt *table_query(struct sqlite3 *db, const struct table *t, struct err *e);
/* The columns of a statement as ClickHouse has them: CREATE TABLE. */
void table_schema(struct sqlite3_stmt *st, const struct table *t, const char *database,
		  struct strbuf *out);
/* The row that it stands at as one JSON object, without its end: {"host":"a","ts":1,... */
void table_row(struct sqlite3_stmt *st, const char *host, struct strbuf *out);

#endif
