/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer_state: the state of a writer, for its files. Not for other rooms.
 *
 *   writer.c     the producer's side: opening and closing, interning, runs
 *   stretch.c    the producer's side: runs during which the clock is set back
 *   events.c     the producer's side: what is counted, and handing it over
 *   committer.c  the writer thread: segments, commits, trying again, leaving
 *   fine.c       the writer thread: the ring, its second output
 *
 * They share a queue under `lock`; the producer never waits for the disk.
 *
 * Counting. Of each event taken in, tally.seen is raised first. It is then in the batch being
 * filled, in the queue, in the one being written, committed (run.accounted), or dropped
 * (run.dropped, which the next commit books as loss, reason "store"). After a writer was killed,
 * the next one books what it had taken in beyond `accounted` (tally.h).
 */
#ifndef SONDE_STORE_WRITE_WRITER_STATE_H
#define SONDE_STORE_WRITE_WRITER_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "schema/base/err.h"
#include "schema/base/file/place.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/tally.h"
#include "schema/store/retention/budget.h"
#include "schema/store/write/batch.h"
#include "schema/store/write/commit/commit.h"
#include "schema/store/write/commit/fine.h"
#include "schema/store/write/dict.h"
#include "schema/store/write/writer.h"

struct writer_run {
	/* set once */
	uint64_t token, recording;
	char *family, *options;
	uint32_t scope, bucket_s, cpus;
	uint32_t fine_s, share; /* as in store_run; share: at least 1 */
	int64_t from_ns;
	/* the producer's */
	int64_t until_ns;
	uint64_t sampled; /* how many the ring has got */
	struct tally_run *tally;
	/* under lock */
	int64_t to_ns;
	struct commit_period *periods;
	uint32_t n_periods, cap_periods;
	uint64_t dropped;
	int64_t dropped_ts;
	/* the writer thread's; row is changed under lock */
	int64_t row;
	uint64_t segment;
	uint32_t stored_periods;
	uint64_t accounted;
	/* the producer's; see stretch.c */
	uint32_t of;             /* id of the caller's run that it is a stretch of */
	uint32_t now;            /* of a caller's run: id of the stretch that is written to */
	uint64_t offered_before; /* what other stretches have taken of the events that were offered
				  */
};

#define WRITER_CLOCKS 32

/* The stack that was interned last of those with the same outermost frames, and its nodes: the next
 * one differs in its innermost frames alone, mostly. */
#define WRITER_STACKS      16
#define WRITER_STACK_DEPTH 192
struct writer_stack {
	uint32_t epoch, n;
	uint32_t frame[WRITER_STACK_DEPTH], node[WRITER_STACK_DEPTH]; /* root first */
};

struct store_writer {
	char *dir; /* under lock: the thread changes it if the folder is renamed */
	size_t max_bytes;
	struct segment_limits limits;
	struct tally tally;

	/* the producer's */
	struct dict *dict;
	struct writer_stack stacks[WRITER_STACKS];
	struct batch *cur; /* NULL: nothing yet */
	uint32_t epoch;
	bool until_moved;

	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	struct writer_run run[TALLY_RUNS]; /* id - 1 */
	uint32_t n_runs;
	struct commit_clock clock[WRITER_CLOCKS]; /* that no batch has written yet */
	uint32_t n_clock;
	struct batch *head, **tail;
	size_t inflight_bytes;
	bool closing, finished,
		abandoned; /* abandoned: no caller waits any more, the thread frees everything */
	int64_t deadline_ns;
	struct store_writer_stat stat;
	uint64_t gauge_epoch;

	/* the writer thread's */
	pthread_t thread;
	struct place place; /* the folder */
	struct segment *seg;
	struct commit commit;
	struct fine *fine; /* set once; NULL: there is no ring */
	struct budget budget;
	int result;
	struct err error;
};

/* The stretch of a caller's run that is written to; 0 and NULL: there is no such run. */
uint32_t writer_stretch(const struct store_writer *w, uint32_t run);
struct writer_run *writer_run(struct store_writer *w, uint32_t run);
int64_t stretch_end(const struct store_writer *w, const struct writer_run *r); /* at the latest */
/* `of`: the run that it is a stretch of, 0: it is the first. 0: there is no room for more. */
uint32_t writer_run_add(struct store_writer *w, const struct store_run *o, uint32_t of);
void writer_until(struct store_writer *w, struct writer_run *r, int64_t to_ns);
/* `id` if it is of this epoch, else 0. */
uint32_t writer_known(const struct store_writer *w, enum dict_kind kind, uint32_t id);
uint32_t writer_text(struct store_writer *w, const char *s); /* DICT_TEXT, 0: "" */
/* For waits.c. -ESTALE: the dictionary is full, and a new epoch has begun. */
int events_room(struct store_writer *w);
/* All interned ids become stale. */
void events_new_epoch(struct store_writer *w);
/* Adds the row to its run's bucket that holds utc_ns, and counts its events as taken in. A row with
 * an impossible number counts as one lost, reason "range". */
void events_take(struct store_writer *w, struct wait_row *row, int64_t utc_ns);
/* The same for a request. */
void events_request(struct store_writer *w, struct request_row *row, int64_t utc_ns);
/* For facts.c: where the row's values go, then the row itself. `fine`: into the ring. */
struct factrows *events_facts(struct store_writer *w, bool fine);
void events_take_fact(struct store_writer *w, struct factrow *row, int64_t utc_ns, bool fine);
/* Moves what was taken in to the queue; unless `whole`, without the stack endings of the minute
 * that is not over. */
void events_hand_over(struct store_writer *w, bool whole);
/* Lock held: releases a reference. */
void writer_dict_put(struct dict *d);
/* Bytes of everything in the queue: batches, and dictionaries that only they still need. Lock held.
 */
size_t writer_waiting(const struct store_writer *w);
void writer_free(struct store_writer *w);

/* Store lock held: the segment that the next batch goes to; NULL: w->error says why. */
int committer_segment(struct store_writer *w, bool may_rotate);
/* The thread. It ends when w->closing is set and everything is written or w->deadline_ns has
 * passed; then w->finished is set. */
void *committer_main(void *writer);
int64_t committer_now_ns(void);                           /* the clock of deadline_ns */
void committer_deadline(struct timespec *ts, int64_t ns); /* that many from now, on that clock */

#endif
