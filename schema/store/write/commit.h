/* SPDX-License-Identifier: Apache-2.0 */
/*
 * commit: putting one batch into one segment, in one transaction that begins IMMEDIATE (no write transaction starts
 * as a read). Only what rows refer to is written: a dictionary entry gets its id here at first use, as
 * max(id) + 1 within the transaction. Containers, images, processes and functions are looked up by hash and content
 * first, so that writers share them. If the transaction fails, ids given in it are taken back.
 */
#ifndef SONDE_STORE_WRITE_COMMIT_H
#define SONDE_STORE_WRITE_COMMIT_H

#include <stdint.h>

#include "schema/store/write/batch.h"
#include "schema/store/files/segment.h"

enum commit_stmt { /* indexes of segment->stmt */
	ST_BEGIN, ST_COMMIT, ST_ROLLBACK, ST_TEXT, ST_CONTAINER_FIND, ST_CONTAINER_SAME, ST_CONTAINER_NAME, ST_CONTAINER,
	ST_IMAGE_FIND, ST_IMAGE, ST_IMAGE_LEARN,
	ST_PROCESS_FIND, ST_PROCESS, ST_PROCESS_LEARN, ST_SOURCE_FIND, ST_SOURCE, ST_FUNCTION_FIND, ST_FUNCTION, ST_FRAME, ST_FRAME_NAME, ST_STACK,
	ST_TASK, ST_SERIES, ST_SAMPLE, ST_LOSS, ST_COST, ST_RUN_FIND, ST_RUN, ST_RUN_UPDATE, ST_RUN_PERIOD, ST_CLOCK,
	ST_UNWOUND, ST_END, ST_AMOUNT, ST_GAUGE, ST_GAUGE_AGAIN, ST_RATE, ST_NOTE, ST_RUN_COUNT,
	ST_WAIT, ST_WAKE, ST_CULPRIT, ST_THROTTLE, ST_STEAL, ST_WAIT_ON, ST_SLOWED, ST_REQUEST, ST_N
};
_Static_assert(ST_N <= SEGMENT_STMTS, "room for the statements");

#define COMMIT_ARGS     96 /* command lines kept for sharing */
#define COMMIT_ARGS_EXE 6  /* of one program: it is called in a few ways */

struct commit_period {
	int64_t from_ns;
	uint64_t period_ns;
};

/* One run, as it is to be written now. */
struct commit_run {
	uint64_t token, recording;
	const char *family, *options;
	uint32_t scope, bucket_s, cpus;
	int64_t from_ns, to_ns;
	uint64_t accounted;     /* including this batch */
	uint64_t dropped;       /* of batches that never got here: a loss, reason "store" */
	int64_t dropped_ts;
	const struct commit_period *periods; /* those not written yet; the first of a run is from 0 */
	uint32_t n_periods;
	int64_t row;            /* its id in the segment, 0: not there yet; set by commit_batch on success */
	int state;              /* 0 going on, 1 ended, 3 goes on in the next segment */
};

struct commit_clock {
	int64_t utc_ns, boot_offset_ns;
};

struct commit {
	struct segment *seg;
	struct dict *dict;      /* of the batch being written */
	int rc;                 /* SQLite code; sticky: once set, nothing more is written */
	struct commit_undo { uint8_t kind; uint32_t index; } *undo; /* kind DICT_KINDS: a node's `own` */
	uint32_t n_undo, cap_undo;
	uint32_t *chain;        /* scratch of stacktree_put, and `tail` */
	uint32_t cap_chain;
	struct strbuf tail;
	struct commit_order { int64_t ts; uint32_t row; uint64_t n; } *order; /* scratch: rows in the file's order */
	uint32_t cap_order;
	struct commit_amount { int64_t ts; uint32_t row, index; } *amount; /* the same for amounts */
	uint32_t cap_amount;
	struct commit_sum { uint32_t run, kind; uint64_t n; } *sums; /* what this batch adds to the runs' counts */
	uint32_t n_sums, cap_sums;
	struct commit_args { uint32_t exe, row; char *args; } args[COMMIT_ARGS]; /* command lines to share, by exe */
	uint32_t next_args;
	struct strbuf form, own; /* scratch: a command line without its stem, and what it does not share */
	uint64_t args_segment;
	const struct commit_clock *clock; /* changes since the last batch, borrowed */
	uint32_t n_clock;
	int64_t boot_offset_ns; /* last on record in this segment, 0: none */
	uint64_t boot_offset_segment;
};

void commit_release(struct commit *c);
/* Write `b` (NULL: only the runs) and the `n_runs` runs, run i being runs[i - 1]. 0 or -errno; nothing is written, and
 * runs[] is untouched, on failure. */
int commit_batch(struct commit *c, struct segment *seg, const struct batch *b, struct commit_run *runs, uint32_t n_runs);

#endif
