/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day_merge: the dictionary of several archives as one, in the file that is being made. Private to
 * day.c and day_*.c. What returns an int returns SQLite's code.
 */
#ifndef SONDE_STORE_ARCHIVE_DAY_MERGE_H
#define SONDE_STORE_ARCHIVE_DAY_MERGE_H

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"

#define DAY_FRAMES_MOST (48u << 20) /* of all stacks together: 192 MB */

/* Tables whose rows are joined. */
enum day_dict {
	DAY_TEXT,
	DAY_CONTAINER,
	DAY_IMAGE,
	DAY_SOURCE,
	DAY_FUNCTION,
	DAY_FRAME,
	DAY_PROCESS,
	DAY_TASK,
	DAY_STACK, /* by their number until they are in order: day_stacks_end */
	DAY_DICTS,
	DAY_RUN,        /* not joined: each is there */
	DAY_FIRST,      /* the first run that is like it */
	DAY_TS,         /* no reference: seconds since t0 */
	DAY_OTHER_TASK, /* a thread that a row names, though the row is of another one */
	DAY_PLAIN
};

/* A table's rows in the file that is made. */
struct day_joined {
	struct idmap id_of; /* hash of a row -> its id */
	uint64_t *check;    /* by id: another hash of the row */
	size_t n, cap;      /* ids are 1 to n */
	sqlite3_stmt *insert;
};

struct day_stack {
	uint32_t id, n; /* frames, root first */
	uint32_t *frames;
};

struct day_run {        /* of the day */
	uint64_t alike; /* hash of what must be equal */
	uint32_t first; /* the first that is like it */
	uint32_t hour;  /* of which archive */
};

struct day_task {          /* of the archive at hand */
	int64_t number[4]; /* run, process, tid, kind */
	char *thread;      /* NULL: no such row */
};

struct day_merge {
	sqlite3 *db; /* that is made */
	int64_t t0;
	struct day_joined joined[DAY_DICTS];
	struct day_stack *stacks; /* by number, from 1 */
	size_t cap_stacks, n_frames;
	uint32_t *stack_id;   /* by number, when they are in order */
	struct day_run *runs; /* by id, from 1 */
	size_t n_runs, cap_runs;
	uint64_t *task_hours; /* by task: in which archives it has something */
	size_t cap_hours;
	/* the archive at hand */
	sqlite3 *from;
	int64_t from_t0;
	uint32_t hour;            /* its number */
	uint32_t *map[DAY_DICTS]; /* by id there: the id here; 0: none yet */
	size_t n_map[DAY_DICTS];
	uint32_t *map_run;
	size_t n_map_run;
	char **texts; /* those of DAY_TEXT that are not joined yet */
	struct day_task *tasks;
	struct day_stack *own; /* its stacks, by id */
	bool collided, too_large;
};

/* The archive's dictionary; stacks and threads when they are met. */
int day_merge_begin(struct day_merge *m, sqlite3 *from, uint32_t hour);
void day_merge_end(struct day_merge *m);
/* The id here of a value that refers to `what`. 0: there is no such row. */
int64_t day_merge_ref(struct day_merge *m, enum day_dict what, int64_t id);
/* A thread that has something in this archive. */
uint32_t day_merge_task(struct day_merge *m, int64_t id);
/* All stacks into their table, in order of a tree; then m->stack_id says which is which. */
int day_stacks_end(struct day_merge *m);
void day_merge_release(struct day_merge *m);

/* day_stacks.c */
int day_stacks_read(struct day_merge *m);
uint32_t day_stacks_join(struct day_merge *m, int64_t id);
void day_stacks_forget(struct day_merge *m);

#endif
