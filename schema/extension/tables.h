/* SPDX-License-Identifier: Apache-2.0 */
/* tables: what the modules of the extension share; one of these for each connection. Not for other
 * rooms. */
#ifndef SONDE_EXTENSION_TABLES_H
#define SONDE_EXTENSION_TABLES_H

#include "schema/extension/series.h"

struct sqlite3_module;
struct sqlite3_vtab;
struct sqlite3_value;
struct sqlite3_context;
struct sqlite3_index_info;

#define TABLES_ARGS 3

struct tables {
	struct sqlite3 *db;
	struct series_map *map; /* NULL: not read yet */
};

struct tables_args { /* what a function of a table was asked with; zeroed at first */
	struct sqlite3_value *v[TABLES_ARGS]; /* NULL: not given */
};

extern const struct sqlite3_module SAMPLES_TABLE, TOTALS_TABLE, STEPS_TABLE, FRAMES_TABLE;

/* xConnect and xDisconnect of all: a table of these columns that has nothing of its own. */
int tables_connect(struct sqlite3 *db, struct tables *t, const char *columns,
		   struct sqlite3_vtab **out);
int tables_disconnect(struct sqlite3_vtab *base);
struct tables *tables_of(struct sqlite3_vtab *base);
/* Puts the map into *out, to be dropped, instead of the one that is there; else a code, with the
 * table's error set. */
int tables_map(struct sqlite3_vtab *base, struct series_map **out);
/* Sets the table's error; returns `rc`. `why` NULL: SQLite's own words. */
int tables_error(struct sqlite3_vtab *base, int rc, const char *why);
/* A time in seconds that somebody compares with: the smallest whole one that is not below it (up),
 * or the largest not above. Clamped to what a sample can have. False: it is no number. */
bool tables_time(struct sqlite3_value *v, bool up, int64_t *out);
/* Of xBestIndex: its `n` arguments are the hidden columns from `first` on. idxNum says which are
 * given, a bit each; SQLITE_CONSTRAINT: one is given, but not known yet in this order of the join,
 * which is no plan. */
int tables_args_plan(struct sqlite3_index_info *info, int first, int n);
/* Of xFilter, instead of what is there. */
int tables_args_take(struct tables_args *a, int given, struct sqlite3_value **argv);
void tables_args_release(struct tables_args *a);
void tables_args_result(const struct tables_args *a, int i, struct sqlite3_context *out);
/* Argument i is where time begins, and the one behind it where it ends: first <= ts < end. False:
 * one is no number. */
bool tables_args_range(const struct tables_args *a, int i, int64_t *first, int64_t *end);

#endif
