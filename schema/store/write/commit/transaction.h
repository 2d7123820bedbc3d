/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transaction: one transaction in one segment: its statements, which ids were given in it, and what
 * it adds to the counts of runs. A failure is kept in c->rc, and all later calls do nothing.
 * `index` is an entry of c->dict (0: none), and what comes back is its id in the segment: given at
 * first use, 0 for none or on failure.
 */
#ifndef SONDE_STORE_WRITE_TRANSACTION_H
#define SONDE_STORE_WRITE_TRANSACTION_H

#include <sqlite3.h>
#include <stdint.h>

#include "schema/store/files/segment.h"
#include "schema/store/write/batch.h"

/* Indexes of segment->stmt. */
enum commit_stmt {
	ST_BEGIN,
	ST_COMMIT,
	ST_ROLLBACK,
	ST_TEXT,
	ST_CONTAINER_FIND,
	ST_CONTAINER_SAME,
	ST_CONTAINER_NAME,
	ST_CONTAINER,
	ST_IMAGE_FIND,
	ST_IMAGE,
	ST_IMAGE_LEARN,
	ST_PROCESS_FIND,
	ST_PROCESS,
	ST_PROCESS_LEARN,
	ST_SOURCE_FIND,
	ST_SOURCE,
	ST_FUNCTION_FIND,
	ST_FUNCTION,
	ST_FRAME,
	ST_FRAME_NAME,
	ST_STACK,
	ST_TASK,
	ST_TASK_LABEL,
	ST_SERIES,
	ST_SAMPLE,
	ST_LOSS,
	ST_COST,
	ST_RUN_FIND,
	ST_RUN,
	ST_RUN_UPDATE,
	ST_RUN_PERIOD,
	ST_CLOCK,
	ST_UNWOUND,
	ST_END,
	ST_AMOUNT,
	ST_AMOUNT_ERROR,
	ST_GAUGE,
	ST_GAUGE_AGAIN,
	ST_RATE,
	ST_NOTE,
	ST_RUN_COUNT,
	ST_WAIT,
	ST_WAKE,
	ST_CULPRIT,
	ST_THROTTLE,
	ST_STEAL,
	ST_WAIT_ON,
	ST_SLOWED,
	ST_REQUEST,
	ST_REQUEST_PHASE,
	ST_N
};
_Static_assert(ST_N <= SEGMENT_STMTS, "room for the statements");

#define COMMIT_ARGS     96 /* command lines kept for sharing */
#define COMMIT_ARGS_EXE 6  /* of one program: it is called in a few ways */

struct commit_period {
	int64_t from_ns;
	uint64_t period_ns;
};

/* One run, as it will be written. */
struct commit_run {
	uint64_t token, recording;
	const char *family, *options;
	uint32_t scope, bucket_s, cpus;
	int64_t from_ns, to_ns;
	uint64_t accounted; /* including this batch */
	uint64_t dropped;   /* of batches that never got here: a loss, reason "store" */
	int64_t dropped_ts;
	const struct commit_period *periods; /* not written yet; a run's first is from 0 */
	uint32_t n_periods;
	int64_t row; /* its id in the segment, 0: not there yet; set by commit_batch on success */
	bool absent; /* nothing of it goes into this segment */
	int state;   /* 0 going on, 1 ended, 3 goes on in the next segment */
};

struct commit_clock {
	int64_t utc_ns, boot_offset_ns;
};

struct commit {
	struct segment *seg;
	struct dict *dict; /* of the batch being written */
	bool fine;         /* into the ring's segment: the dictionary has other ids for it */
	int rc;            /* SQLite code; sticky: once set, nothing more is written */
	char why[160];     /* then: what SQLite says of it */
	struct commit_undo {
		uint8_t kind;
		uint32_t index;
	} * undo; /* kind DICT_KINDS: a node's `own` */
	uint32_t n_undo, cap_undo;
	uint32_t *chain; /* scratch of commit_stack, and `tail` */
	uint32_t cap_chain;
	struct strbuf tail;
	struct commit_order {
		int64_t ts;
		uint32_t row;
		uint64_t n;
	} * order; /* scratch: rows in the file's order */
	uint32_t cap_order;
	struct commit_amount {
		int64_t ts;
		uint32_t row, index;
	} * amount; /* the same for amounts */
	uint32_t cap_amount;
	struct commit_sum {
		uint32_t run, kind;
		uint64_t n;
	} * sums; /* what this batch adds to the runs' counts */
	uint32_t n_sums, cap_sums;
	struct commit_args {
		uint32_t exe, row;
		char *args;
	} args[COMMIT_ARGS]; /* command lines to share, by exe */
	uint32_t next_args;
	struct strbuf form,
		own; /* scratch: a command line without its stem, and what it does not share */
	uint64_t args_segment;
	const struct commit_clock *clock; /* changes since the last batch, borrowed */
	uint32_t n_clock;
	int64_t boot_offset_ns; /* last on record in this segment, 0: none */
	uint64_t boot_offset_segment;
};

/* The current error of the segment's connection. */
void commit_fail(struct commit *c, int rc);
/* A statement ready for binding, or NULL (rc is set). */
sqlite3_stmt *commit_stmt(struct commit *c, enum commit_stmt which);
/* Run it; true if it gave a row, whose first column becomes *value (may be NULL). Its bindings
 * stay. */
bool commit_step(struct commit *c, sqlite3_stmt *st, uint32_t *value);
uint32_t commit_insert(struct commit *c, sqlite3_stmt *st); /* run it: the new row's id, or 0 */
void commit_exec(struct commit *c, enum commit_stmt which); /* one without parameters */

static inline void bind_str(sqlite3_stmt *st, int i, const char *s)
{
	sqlite3_bind_text(st, i, s, -1, SQLITE_STATIC);
}

static inline void bind_hash(sqlite3_stmt *st, uint64_t hash)
{
	sqlite3_bind_int64(st, 1, (sqlite3_int64)(hash & 0x7fffffff));
}

/* The id of the entry (0: none) in the segment, 0: it is not there yet. */
uint32_t commit_row(const struct commit *c, enum dict_kind kind, uint32_t index);
/* Of the stack that ends at the node. */
uint32_t commit_own(const struct commit *c, uint32_t node);
/* Its id is `row`, until the segment ends or the transaction fails. */
void commit_mark(struct commit *c, enum dict_kind kind, uint32_t index, uint32_t row);
void commit_mark_stack(struct commit *c, uint32_t node, uint32_t row);
/* Find the entry by content, or insert it; `bind` gives both statements the same parameters. */
uint32_t commit_shared(struct commit *c, enum dict_kind kind, uint32_t index, enum commit_stmt find,
		       enum commit_stmt insert,
		       void (*bind)(struct commit *, sqlite3_stmt *, const void *),
		       const void *entry, bool *found);
/* To be added to the count of the run of this series (DICT_SERIES), and all of them, written. */
void commit_sum(struct commit *c, uint32_t series, uint64_t n);
#define COMMIT_SUM_FACTS 0 /* in the place of a kind: rows of facts */
void commit_sum_of(struct commit *c, uint32_t run, uint32_t kind, uint64_t n);
void commit_sums(struct commit *c, const struct commit_run *runs);
/* After a failure: ids given in it are taken back, and what it wrote. */
void commit_undo_all(struct commit *c);
void commit_args_forget(
	struct commit *c); /* the command lines to share: of another segment, or undone */

#endif
