/* SPDX-License-Identifier: Apache-2.0 */
/* reading: what the files behind store/read/reader.h share: one segment open for reading. Not for
 * other rooms. */
#ifndef SONDE_STORE_READ_READING_H
#define SONDE_STORE_READ_READING_H

#include "schema/store/files/folder.h"
#include "schema/store/model/choice.h"
#include "schema/store/read/reader.h"
#include "schema/store/read/stacktree.h"

struct sqlite3_stmt;
struct strings; /* chunks of copied strings */

struct reading_task {
	uint32_t run, process, tid, kind;
	const char *thread;
	const char *labels; /* NULL: none */
};

struct reading_rate {
	uint32_t run, process;
	int64_t ts; /* seconds since 1970 */
	uint64_t bytes;
};

struct store_segment {
	struct sqlite3 *db;
	char *path;
	char *host; /* in a question over several hosts (hosts.h); else NULL */
	int64_t t0;
	int schema;                            /* the version of its tables and views */
	bool archived;                         /* its tables are columns; see samples.h */
	bool day;                              /* it is that of a day (days.h) */
	bool checked;                          /* its views' statements are ours */
	bool has_views;                        /* an archive's have been made: reading_views */
	struct reading_sums {                  /* range_sums.c; asked once */
		bool asked, alone;             /* alone: no two of its captures ran at once */
		bool kept;                     /* it has them (packed/sums.h), */
		int64_t first, last;           /* of these seconds since 1970, both included */
		int64_t made_first, made_last; /* those that are temporary tables: their range */
		char made[256]; /* " process_row cgroup_row ": of which tables they are */
	} sums;
	bool snapshot; /* a read transaction is open: what is read belongs together */
	/* Of its dictionary these are there: processes; with runs and tasks; with series, whose
	 * stacks are as the file has them until has_stacks: stacks and names are there too. */
	bool has_processes, has_tasks, has_series, has_stacks;
	int64_t narrow_from_ns, narrow_to_ns; /* store_segment_narrow; 0: all of it */
	bool borrows; /* its dictionary is another one's: store_segment_share */
	struct store_dict dict;
	struct strings *strings;
	/* arrays by id; those in `dict` point to these */
	struct store_process_row *processes;
	struct store_image_row *images;
	struct store_frame_row *frames;
	struct store_run_row *runs;
	struct choice_run *choice_runs;
	struct choice_period *periods; /* of all runs, by run and time */
	struct stacktree tree;         /* inlined frames among the others */
	struct reading_task *tasks;
	size_t n_tasks;
	uint32_t *series_task, *series_stack, *series_label;
	struct reading_rate *rates; /* by run, process and time */
	size_t n_rates;
	size_t n_series;
	/* of a day: runs of its files; by task, in which files it has something */
	struct reading_day_run {
		uint32_t first, number; /* the run that tasks name, of which file */
		uint32_t kinds;
	} * day_runs; /* by run */
	uint64_t *day_files;
};

/* Prepare; NULL with `e` filled. */
struct sqlite3_stmt *reading_prepare(struct store_segment *s, const char *sql, struct err *e);
/* Finalizes; fills `e` if `rc` is not SQLITE_DONE. 0 or -errno. */
int reading_finish(struct store_segment *s, struct sqlite3_stmt *st, int rc, struct err *e);
/* Makes an archive's views, all or that one; until then no query can use them. */
int reading_views(struct store_segment *s, const char *name, struct err *e);
/* Makes one of them, and those that it reads; SQLite's code. one_view.c */
int reading_one_view(struct sqlite3 *db, const char *name);
/* Did no two of its captures run at once? Then each row counts. range_sums.c */
bool reading_alone(struct store_segment *s);
/* Has it sums of all of its rows, and has the query's range all of them? Then `table`, which is one
 * of those of sample_sums.h, may be there. range_sums.c */
bool reading_sums_whole(struct store_segment *s, const struct store_query *q);
/* Has it some, of whatever range? */
bool reading_sums_any(struct store_segment *s);
/* Parts of the dictionary that are not there yet, each with those before it: processes; runs and
 * tasks; series. dictionary.c */
int reading_load_processes(struct store_segment *s, struct err *e);
int reading_load_tasks(struct store_segment *s, struct err *e);
int reading_load_series(struct store_segment *s, struct err *e);
/* Tasks, stacks and names; `series`: and those. */
int reading_load_stacks(struct store_segment *s, bool series, struct err *e);
void reading_unload(struct store_segment *s);
/* What days say of a folder's archives (names in order), which need not be opened for it. days.c */
struct reading_span {
	int64_t from_ns, to_ns; /* as store_segment_info has them; both 0: no day says it */
	int schema;
};
void reading_day_spans(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n,
		       struct reading_span *out);
/* What a day has besides. days.c */
int reading_load_day(struct store_segment *s, struct err *e);
/* Refuses what a day cannot tell: -EXDEV. */
int reading_refuse_day(const struct store_segment *s, struct err *e);

#endif
