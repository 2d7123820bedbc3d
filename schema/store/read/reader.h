/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: queries the store. Read-only, from any number of programs, while it is written, after a
 * clean end and after a kill -9, by a member of the store's group without root.
 *
 * A store is a folder of segments; each is opened on its own and has its own ids. Queries over
 * several segments merge by content (names), not by id.
 */
#ifndef SONDE_STORE_READ_READER_H
#define SONDE_STORE_READ_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/files/location.h"
#include "schema/store/files/shedlog.h"
#include "schema/store/model/kinds.h"
#include "schema/store/model/stored.h"
#include "schema/store/read/hosts.h"

struct hist;
struct sqlite3;
struct sqlite3_stmt;

struct store_segment;
struct store_segment_info {
	char path[512];
	int64_t from_ns, to_ns;     /* UTC: what its samples span; both 0 if it holds none */
	uint64_t bytes;             /* db + wal */
	int schema;                 /* the version of its tables and views */
	char host[65];              /* its host, if names carry hosts; else "" */
	struct store_segment *open; /* of store_segments_open, else NULL */
	int64_t identity[2]; /* of several stores: of a copy the same, archived or not; both 0: not
				known */
};
/* All segments whose samples touch [from_ns, to_ns), oldest first; (0, INT64_MAX) for all. `dir`
 * may be a folder or one .db file, or several (STORE_LIST): of these a file that is a copy of
 * another one is left out, which is said once. The array is the caller's (free). -ENOENT with
 * EXIT_STORE and a fix if there is no store. */
int store_segments(const char *dir, int64_t from_ns, int64_t to_ns, struct store_segment_info **out,
		   size_t *n, struct err *e);

/* The same, the first `keep` of them open: opening a file takes longer than a query for a few rows.
 */
int store_segments_open(const char *dir, int64_t from_ns, int64_t to_ns, size_t keep,
			struct store_segment_info **out, size_t *n, struct err *e);
void store_segments_close(struct store_segment_info *info,
			  size_t n); /* closes those that are open, and frees */

/* Of a writer that has died: what it had seen, and what of it is in the store or on record as lost.
 * -ENOENT: nothing is known of it, or the next writer has booked it. */
int store_missing(const char *dir, int pid, uint64_t *seen, uint64_t *accounted);

/* Opens read-only, checks the schema version (newer: EXIT_STORE). */
int store_segment_open(const char *path, struct store_segment **out, struct err *e);
void store_segment_close(struct store_segment *s);
/* Forgets what was read of it, its dictionary too, and stays open: to open a file again takes
 * longer than a question for a few rows. */
void store_segment_rest(struct store_segment *s);
struct sqlite3 *store_segment_db(struct store_segment *s); /* borrowed */
/* The same for queries of tables only: it does not make an archive's views, which takes longer than
 * to open it. */
struct sqlite3 *store_segment_tables(struct store_segment *s);
/* The same for queries of one view: of an archive that one is made, and those that it reads. For
 * one or two of them. */
struct sqlite3 *store_segment_view(struct store_segment *s, const char *name);
/* A statement that asks views or tables; of an archive the views that it names are made, and those
 * that they read. SQLite's code; the statement is the caller's (sqlite3_finalize). */
int store_segment_prepare(struct store_segment *s, const char *sql, struct sqlite3_stmt **out);
/* The version of its tables and views. */
int store_segment_schema(const struct store_segment *s);
/* Are its tables columns (archive.h)? */
bool store_segment_archived(const struct store_segment *s);

/*
 * Table NAME_row summed over these seconds, both included: as table NAME_sum of the segment's
 * connection (packed/sums.h), one that an archive keeps where the range has all of it, else a
 * temporary one that is made here. false: no such table could be made, because two captures of one
 * family ran at once, or because the file is older than the table: query the rows instead. If
 * NAME_row is empty, NAME_sum may be missing (a query of it is SQLITE_ERROR). `table`: process_row,
 * process_mem_row, ended_row, cgroup_row, flow_row, request_bytes_row, host_row; wait_row,
 * request_row, request_phase_row: an archive's only.
 */
bool store_segment_sums(struct store_segment *s, const char *table, int64_t first_s,
			int64_t last_s);

/*
 * The rows of a table of an archive from `first_s` to `last_s`, both included, in order of time:
 * what SQLite would hand over value by value. `columns` as in a SELECT, ts first, which the calls
 * get as seconds since 1970. Each row is counted: false, and none is reported, where two captures
 * of one family ran at once, and of other files: query them. *rc: 0, or what `row` returned, or an
 * error.
 */
struct store_columns;
bool store_columns_each(struct store_segment *s, const char *table, const char *columns,
			int64_t first_s, int64_t last_s,
			int (*row)(void *ctx, int64_t ts, const struct store_columns *c), void *ctx,
			int *rc, struct err *e);
int64_t store_columns_number(const struct store_columns *c, int column);   /* 0 of texts and NULL */
const char *store_columns_text(const struct store_columns *c, int column); /* for the call */

/* Is it the file of a day (days.h)? A statement that it cannot answer is an error there, not one
 * without rows: store_segment_prepare says SQLITE_ERROR, others -EXDEV. */
bool store_segment_is_day(const struct store_segment *s);
/* The runs in which a task, or a total of one, was counted: in a day all whose sums `run` has;
 * else that one. After store_segment_tasks. Calls each at least once. */
void store_task_runs(const struct store_segment *s, uint32_t task, uint32_t run,
		     void (*each)(void *ctx, uint32_t run), void *ctx);

/* When the first and the last bucket begin that an archive has something in, UTC. false: not known.
 */
bool store_segment_buckets(struct store_segment *s, int64_t *first_ns, int64_t *last_ns);

/* Has this table of the file any rows? What asks one that has none need not be asked: to make an
 * archive's views takes longer. */
bool store_segment_has(struct store_segment *s, const char *table);

/* For a copy that no one else has open, opened for writing: turns an archive's tables into rows; a
 * plain file stays as it is. SQLite's code. */
int store_copy_plain(struct sqlite3 *copy);

/* The dictionary, whole, as dense arrays indexed by id (index 0 unused). Loaded at the first call,
 * owned by the segment, strings borrowed. */
struct store_process_row {
	uint32_t pid, ppid, uid, exec_id;
	int64_t start_ns;
	const char *comm, *exe, *args, *cgroup, *unit;                    /* never NULL */
	const char *container, *container_id, *container_image, *runtime; /* "" if none */
	const char *project, *service; /* of compose, "" if none */
	int64_t end_ns;                /* 0: not known to have ended */
	enum store_end_how how;
	uint32_t status;
	const char *lang, *lang_runtime; /* "go", "go1.22.1"; "" if not known */
	bool self, present;
};
struct store_frame_row {
	uint32_t function; /* 0: none */
	uint32_t image;
	uint64_t offset;
	uint32_t line;
	uint32_t outer;         /* the frame that it was inlined into, 0: none */
	uint32_t function_line; /* first line of the function, 0: not known */
	bool inlined;
	bool folded;      /* a leaf: offset is that of its function's first byte */
	const char *name; /* function name, or "module+0x1a2b": never NULL, never "" */
	const char *file; /* "" if not known */
};
struct store_image_row {
	const char *name, *path, *build_id;
	const char *interpreter; /* of a script (kind from STORE_IMAGE_SCRIPT on): path of the file
				    that runs it; else "" */
	enum store_image_kind kind;
};
struct store_run_row {
	const char *family, *options;
	enum store_scope scope;
	uint32_t bucket_s, cpus;
	uint64_t period_ns; /* the latest */
	int64_t from_ns, to_ns;
	bool elsewhere; /* its rows are in another file */
	bool present;
};
struct store_dict {
	const struct store_process_row *processes;
	size_t n_processes;
	const struct store_image_row *images;
	size_t n_images;
	const struct store_frame_row *frames;
	size_t n_frames;
	const struct store_run_row *runs;
	size_t n_runs;
	size_t n_series, n_tasks;
	/* Stack i = its parent's frames, then frame[i] (root first), inlined functions as frames
	 * behind the one they were inlined into. Parents have smaller ids than children. */
	const uint32_t *stack_parent, *stack_frame;
	size_t n_stacks;
};
/* A process by its id as a row has it, which any file may have made up; NULL: no such process.
 * Borrowed. */
const struct store_process_row *store_dict_process(const struct store_dict *d, int64_t id);
int store_segment_dict(struct store_segment *s, const struct store_dict **out, struct err *e);
/* Its processes alone, which take a part of the time; all else of *out may be missing. Until the
 * whole dictionary is asked for, and then too. */
int store_segment_processes(struct store_segment *s, const struct store_dict **out, struct err *e);
/* The same with runs and threads: enough for store_totals by thread, and for store_timeline. */
int store_segment_tasks(struct store_segment *s, const struct store_dict **out, struct err *e);
/* The same with series: enough for store_totals, whose stacks mean nothing then. */
int store_segment_series(struct store_segment *s, const struct store_dict **out, struct err *e);
/* All but the series, which take the most time and memory: enough for store_totals by thread and
 * stack. dict.n_series may be 0. */
int store_segment_stacks(struct store_segment *s, const struct store_dict **out, struct err *e);
/* Before its dictionary is there: it is to have only what rows of kinds of value between the two
 * refer to, so that it takes as much time and memory as these are, not as the segment is. All else
 * is missing in it, as rows of a damaged file are: for queries of that range only, by
 * store_totals and store_kinds_in. Archives are read whole. */
void store_segment_narrow(struct store_segment *s, int64_t from_ns, int64_t to_ns);
/* The dictionary of `of`, which is loaded and outlives `s`, is that of `s` too: another connection
 * to the same archive, so that two threads can read its rows. -EAGAIN: the file was rewritten
 * between the two, or is not an archive. */
int store_segment_share(struct store_segment *s, const struct store_segment *of);

/* The level of detail of store_totals: by thread and stack, or by thread alone, there may be
 * several calls for one of them, and the series is not known. Then it need not read all rows of an
 * archive that has the sums (packed/sample_sums.h). By thread, stack and label: of waits, the
 * series is not known either; a day has sums of these. */
enum store_by { STORE_BY_SERIES = 0, STORE_BY_STACK, STORE_BY_THREAD, STORE_BY_LABEL };

struct idmap;
struct store_query {
	int64_t from_ns, to_ns; /* half-open; buckets are taken whole if they begin inside */
	enum store_kind kind;
	int64_t whole_from_ns, whole_to_ns; /* the range that this one is a part of, as the choice
					       sees it; both 0: this one */
	int64_t run;  /* only this run, 0: choose per process and bucket as below */
	bool count;   /* store_timeline: tell n, not value */
	bool no_hist; /* store_totals: without histograms, which take time and memory */
	enum store_by
		by; /* store_totals: in an archive; by stack and by thread with no_hist only */
	/* NULL: all. Called once a thread and run. */
	bool (*want)(void *ctx, const struct store_process_row *p, const char *thread,
		     uint32_t tid);
	/* NULL: all. Called with the labels of an imported thread's samples: a JSON object, or "".
	 */
	bool (*want_labels)(void *ctx, const char *labels);
	void *ctx;
	/* store_totals reports the range in n_parts parts, in order of time: part i ends before
	 * part_to_ns[i]. What begins after the last part belongs to the last one. 0: a single part.
	 */
	const int64_t *part_to_ns;
	size_t n_parts;
	/* store_totals tells only what was counted of threads while they served these requests:
	 * store_tag_key is a key of it. NULL: all. Waits whose stack was taken count for themselves
	 * alone. */
	const struct idmap *tags;
};
/* Of a request that a process served. */
uint64_t store_tag_key(uint64_t tag, uint32_t pid);
struct store_total { /* one series, summed over the range, or the part */
	uint32_t part;
	uint32_t series, task; /* < store_dict.n_series, n_tasks; a task is whose it is (run,
				  process, kind, thread) */
	uint32_t run, process, stack, tid;
	uint32_t label;     /* store_series_labelled */
	const char *thread; /* borrowed for the call */
	const char
		*labels; /* of what was imported: a JSON object, else ""; as long as the segment */
	uint64_t n;      /* samples, events, objects */
	uint64_t value;  /* ns, bytes; cpu: n x the period in force then */
	/* The same as they are without the sampling by size (store_rate): n / (1 - exp(-size /
	 * rate)), size being the label, or value / n if there is no label. Equal to n and value if
	 * nothing was sampled by size. */
	uint64_t whole_n, whole_value;
	uint64_t max; /* 0: not known */
	/* Where events represent others (waits that were drawn), of n and of value (ns squared):
	 * its root is the standard error. Both 0: exact. */
	double n_variance, value_variance;
	const struct hist *hist; /* store/model/hist.h, NULL: not known; borrowed for the call */
};
/* Where several runs covered the same process at the same time, each (process, bucket) comes from
 * one run: the finest (smallest bucket, then smallest period, then oldest id) that covered that
 * process for the whole of the coarser run's bucket; a coarse bucket that a finer run covers only
 * in part comes from the coarse one; a range that lies wholly inside one finer run takes that run.
 * Nothing is counted twice. Runs of other families change nothing.
 *
 * Counters and durations are summed over the range; max is the largest, hist the sum. Of a gauge it
 * is the value at the end of the range: the latest amount of each series before `to`, of those
 * processes that have an amount within the range; of a process that ended, its last value. All
 * come from the run of the process's latest amount. A query over several segments takes each
 * process from the latest segment that has it. */
int store_totals(struct store_segment *s, const struct store_query *q,
		 int (*each)(void *ctx, const struct store_total *t), void *ctx, struct err *e);

/* value by step after the same choice, for strips and sparklines: called in order of time. Of a
 * gauge: the process's value at the end of each step in which a value was stored. Values whole, as
 * in store_total. */
int store_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		   int (*each)(void *ctx, int64_t from_ns, uint32_t process, uint64_t value),
		   void *ctx, struct err *e);

/* Which kinds have something in [from, to): bit 1 << kind. `run` 0: any. */
int store_kinds_in(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		   uint32_t *kinds, struct err *e);
/* Which kinds a run (0: any) has in this segment, at any time: bit 1 << kind. After
 * store_segment_dict. */
uint32_t store_run_kinds(const struct store_segment *s, int64_t run);
/* The rate (store_rate) that a process was last read with up to `to_ns`; 0: none, or not known.
 * After store_segment_dict. */
uint64_t store_rate_at(struct store_segment *s, uint32_t run, uint32_t process, int64_t to_ns);

/* How the user stacks of a range end, by whole minutes that touch it. `run` 0: all. */
struct store_ending_row {
	int64_t run;
	const char *executable; /* path, "" if not known */
	const char *module;     /* where it was cut short, "" */
	const char *reason;     /* in words */
	bool complete;
	bool gone; /* there was no stack any more */
	uint64_t n;
};
int store_endings(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		  int (*each)(void *ctx, const struct store_ending_row *r), void *ctx,
		  struct err *e);

/* What sonde itself took, added to *sum: all runs of the segment, in the buckets of a time range
 * (0, INT64_MAX: all); store_cost (writer.h) defines it. Of one recording, by the token of its
 * runs: over all its time, from the sums that the file keeps. */
struct store_own_cost {
	uint64_t cpu_ns;   /* while it recorded */
	uint64_t edges_ns; /* to start and to end */
};
int store_own_cost(struct store_segment *s, int64_t from_ns, int64_t to_ns,
		   struct store_own_cost *sum, struct err *e);
int store_own_cost_of(struct store_segment *s, int64_t token, struct store_own_cost *sum,
		      struct err *e);

struct store_loss_row {
	int64_t run;
	const char *reason;
	uint64_t n;
	int64_t from_ns, to_ns; /* UTC: of the first and the last bucket with such a loss */
};
int store_losses(struct store_segment *s, int64_t from_ns, int64_t to_ns,
		 int (*each)(void *ctx, const struct store_loss_row *l), void *ctx, struct err *e);

#endif
