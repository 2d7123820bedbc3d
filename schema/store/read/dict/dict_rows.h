/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dict_rows: rows of a dictionary's tables into arrays by id. The file may be a stranger's: ids are
 * checked against what a file of its size can hold, references against the arrays. Private to
 * dictionary.c and dict_*.c.
 */
#ifndef SONDE_STORE_READ_DICT_ROWS_H
#define SONDE_STORE_READ_DICT_ROWS_H

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/read/reading.h"

/* A copy that lives as long as the segment. */
const char *dict_rows_keep(struct strings **list, const char *s, size_t len);
/* Of a row: of a statement, or, where an archive has the table packed, of its columns. */
struct dict_row;
int64_t dict_rows_int(const struct dict_row *r, int col);
uint32_t dict_rows_u32(const struct dict_row *r, int col); /* 0: not one */
uint32_t dict_rows_id(const struct dict_row *r, int col,
		      size_t n); /* of a table with `n` slots; 0 if it is not */
const char *dict_rows_raw(const struct dict_row *r, int col); /* good for the call; never NULL */
const char *dict_rows_text(struct store_segment *s, const struct dict_row *r,
			   int col); /* kept; never NULL */
/* The list of `from` goes to `to`. */
void dict_rows_strings_move(struct strings **to, struct strings **from);
void dict_rows_strings_free(struct strings **list);
/* Room for all ids of a table, of which `sql` asks for the largest. */
int dict_rows_slots(struct store_segment *s, const char *sql, size_t *n, struct err *e);
/* SELECT columns FROM table, the id first; row(s, r, id, ctx) for each id in range. */
typedef void dict_rows_row(struct store_segment *s, const struct dict_row *r, uint32_t id,
			   void *ctx);
int dict_rows_each(struct store_segment *s, const char *columns, const char *table, size_t n,
		   dict_rows_row *row, void *ctx, struct err *e);

/* The same of a whole statement whose parameters are two numbers. */
int dict_rows_bound(struct store_segment *s, const char *sql, int64_t a, int64_t b, size_t n,
		    dict_rows_row *row, void *ctx, struct err *e);
/* One row by its id, the first column of the statement: row(s, r, id, ctx) if it is there. Open and
 * close in pairs; a zeroed one may be closed. */
struct dict_one {
	struct sqlite3_stmt *st;
};
int dict_one_open(struct store_segment *s, struct dict_one *o, const char *sql, struct err *e);
int dict_one_row(struct store_segment *s, struct dict_one *o, uint32_t id, dict_rows_row *row,
		 void *ctx, struct err *e);
void dict_one_close(struct dict_one *o);

int dict_names_load(struct store_segment *s, struct err *e); /* images, functions, frames */
int dict_processes_load(struct store_segment *s, struct err *e);
void dict_task_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx);
#define DICT_TASK_COLUMNS "id, run, process, tid, kind, thread"
/* The same of series, and the room for all of them. */
void dict_series_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx);
int dict_series_slots(struct store_segment *s, struct err *e);
int dict_series_load(struct store_segment *s, struct err *e);
#define DICT_SERIES_COLUMNS "id, task, stack, label"

/* What rows between narrow_from_ns and narrow_to_ns need (dict_some.c): series, tasks, processes,
 * stacks, frames. Runs are there. */
int dict_some_load(struct store_segment *s, struct err *e);
int dict_processes_some(struct store_segment *s, const uint8_t *wanted, struct err *e); /* by id */
int dict_images_load(struct store_segment *s, struct err *e);
/* Nodes of the tree, whose frames are ids of the table still. */
enum {
	DICT_NODE_OUT = 0,
	DICT_NODE_NAMED,
	DICT_NODE_BARE /* no more is known of its frame than its image, if that is of a script */
};
struct dict_nodes {
	uint8_t *kept;    /* by node */
	uint32_t *script; /* by frame's id: its image, if that is of a script, else 0 */
	size_t n_frames;  /* slots of the table */
};
/* Their frames, with what they were inlined into, and their functions. Frames get new numbers,
 * without gaps. */
int dict_frames_some(struct store_segment *s, const struct dict_nodes *nodes, struct err *e);

/*
 * What needs no stacks (dict_thread.c): images, functions, frames, and, if `series`, those with the
 * stacks' stored ids. If there are many, a thread with a separate connection reads them; its
 * snapshot is as old as the segment's, or newer. Each begin needs an end, which fills them in.
 */
struct dict_thread;
struct dict_thread *dict_thread_begin(struct store_segment *s, bool series);
int dict_thread_end(struct dict_thread *d, struct err *e);

#endif
