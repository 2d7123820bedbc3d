/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series: what each series of the main database is: its stack, task, process and run; how long a
 * sample lasts at a time; and whether it counts then, or another capture covers it (view
 * run_hidden, schema/sql/0019-runs.sql).
 *
 * Read once, and again after the file has changed.
 */
#ifndef SONDE_EXTENSION_SERIES_H
#define SONDE_EXTENSION_SERIES_H

#include <stdbool.h>
#include <stdint.h>

struct sqlite3;

struct series_one {
	uint32_t stack, task; /* task 0: no such series */
};
struct series_task {
	uint32_t process, run;
	uint32_t hidden, n_hidden;  /* of `hidden` */
	uint32_t period, n_periods; /* of `periods` */
	bool cpu;                   /* counts CPU samples */
};
struct series_hidden {
	int64_t run, process, first, last; /* seconds since 1970, both included */
};
struct series_period {
	int64_t run, from_s, period_ns; /* of buckets that begin at from_s or later */
};
struct series_map {
	unsigned int users;
	int64_t version; /* of the file, as of the reading */
	int changes;     /* changes that this connection had made then */
	int64_t t0;
	uint32_t n, n_tasks, n_hidden, n_periods; /* n: ids are below it */
	struct series_one *series;
	struct series_task *tasks;
	struct series_hidden *hidden;  /* by run, process, first; no two overlap */
	struct series_period *periods; /* by run, time */
};

/* Brings *m up to date with the main database; replaces it if the file has changed. Hold an older
 * one with series_keep until series_drop. On failure *m is NULL; *why is a borrowed message if
 * there is more to say than SQLite's code. */
int series_read(struct series_map **m, struct sqlite3 *db, const char **why);
struct series_map *series_keep(struct series_map *m);
void series_drop(struct series_map *m); /* NULL is fine */
/* The task of a series; NULL: not in the dictionary. */
const struct series_task *series_task(const struct series_map *m, uint32_t series);
/* Does its sample in the bucket that begins at `ts` (seconds since 1970) count? */
bool series_counts(const struct series_map *m, const struct series_task *t, int64_t ts);
/* CPU time of one sample then; -1: not known. */
int64_t series_period_ns(const struct series_map *m, const struct series_task *t, int64_t ts);

#endif
