/* SPDX-License-Identifier: Apache-2.0 */
/* tables: what the extension's modules share; one struct tables for each connection. Not for other
 * rooms. */
#ifndef SONDE_EXTENSION_TABLES_H
#define SONDE_EXTENSION_TABLES_H

#include <stddef.h>

#include "schema/extension/series.h"

struct sqlite3_module;
struct sqlite3_vtab;
struct sqlite3_vtab_cursor;
struct sqlite3_value;
struct sqlite3_context;
struct sqlite3_index_info;

#define TABLES_ARGS 3

struct tables {
	struct sqlite3 *db;
	struct series_map *map; /* NULL: not read yet */
};

struct tables_args { /* the arguments of a table function; zeroed at first */
	struct sqlite3_value *v[TABLES_ARGS]; /* NULL: not given */
};

extern const struct sqlite3_module SAMPLES_TABLE, TOTALS_TABLE, STEPS_TABLE, FRAMES_TABLE;

/* The module of a table: its file defines these functions, all static. Read-only. */
/* clang-format off */
#define TABLES_MODULE { \
	.iVersion = 1, \
	.xConnect = table_connect, \
	.xBestIndex = best_index, \
	.xDisconnect = tables_disconnect, \
	.xOpen = cursor_open, \
	.xClose = cursor_close, \
	.xFilter = cursor_filter, \
	.xNext = cursor_next, \
	.xEof = cursor_eof, \
	.xColumn = cursor_column, \
	.xRowid = cursor_rowid, \
}
/* clang-format on */

/* Defines table_connect of a table with these columns. */
#define TABLES_CONNECT(columns)                                                           \
	static int table_connect(sqlite3 *db, void *t, int argc, const char *const *argv, \
				 sqlite3_vtab **out, char **why)                          \
	{                                                                                 \
		(void)argc;                                                               \
		(void)argv;                                                               \
		(void)why;                                                                \
		return tables_connect(db, t, columns, out);                               \
	}

/* xConnect and xDisconnect of all: a table of these columns without any state. */
int tables_connect(struct sqlite3 *db, struct tables *t, const char *columns,
		   struct sqlite3_vtab **out);
int tables_disconnect(struct sqlite3_vtab *base);
/* Of xOpen: a zeroed cursor of that size, which begins with SQLite's. */
int tables_cursor(size_t size, struct sqlite3_vtab_cursor **out);
struct tables *tables_of(struct sqlite3_vtab *base);
/* Replaces *out by the current map (release it with series_drop). On failure sets the table's
 * error. SQLite's code, as for all functions here that return int. */
int tables_map(struct sqlite3_vtab *base, struct series_map **out);
/* Sets the table's error; returns `rc`. `why` NULL: SQLite's own words. */
int tables_error(struct sqlite3_vtab *base, int rc, const char *why);
/* A time in seconds from a comparison, rounded to whole seconds, up or down, and clamped to what a
 * sample can have. False: not a number. */
bool tables_time(struct sqlite3_value *v, bool up, int64_t *out);
/* Of xBestIndex: its `n` arguments are the hidden columns from `first` on. idxNum says which are
 * given, a bit each; SQLITE_CONSTRAINT: one is given, but not known yet in this join order, which
 * is not a valid plan. */
int tables_args_plan(struct sqlite3_index_info *info, int first, int n);
/* For xFilter: replaces the current arguments. */
int tables_args_take(struct tables_args *a, int given, struct sqlite3_value **argv);
void tables_args_release(struct tables_args *a);
void tables_args_result(const struct tables_args *a, int i, struct sqlite3_context *out);
/* Argument i is the start of the range, the next one its end: first <= ts < end. False: one is not
 * a number. */
bool tables_args_range(const struct tables_args *a, int i, int64_t *first, int64_t *end);

#endif
