/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fine: the second output of a writer, a ring of short segments in another folder (STORE/flight),
 * so that what happened a while ago can be kept in more detail than the store has
 * (schema/store/archive/keep.h).
 *
 *   1. Runs with a finer step (store_run.fine_s) put what they count of tasks (samples, amounts,
 *      waits) into both outputs, at the store's step and at the finer one; some facts go into the
 *      ring alone (store_fact_fine). Of samples the store gets one in store_run.share: its
 *      run's period is as many times as long. Names and stacks are interned once for both.
 *   2. Its runs have another token, and begin in each segment where the segment before it
 *      ended: a segment says of itself what it holds, and no more.
 *   3. When a segment is begun, those that ended more than `keep_s` ago are removed, and the oldest
 *      while all of them take more than `bytes`; never the two newest.
 *   4. It never stops the store's recording, nor waits: what cannot be written is not in the ring,
 *      and the ring goes on with the next batch, in
 *      another segment. A writer that is killed loses what it had not
 *      handed over, ten seconds.
 *
 * Writers share the segments, as those of a store.
 */
#ifndef SONDE_STORE_WRITE_FINE_H
#define SONDE_STORE_WRITE_FINE_H

#include <limits.h>
#include <stdint.h>

#include "schema/store/files/segment.h"
#include "schema/store/files/tally.h"
#include "schema/store/write/commit/commit.h"

struct store_writer;

struct fine_run {
	int64_t row, from_ns, to_ns;
	uint64_t segment, accounted;
	uint32_t stored_periods;
};

struct fine {
	char *dir;
	struct segment_limits limits;
	uint32_t keep_s;
	uint64_t bytes;
	struct segment *seg;
	struct commit commit;
	struct fine_run run[TALLY_RUNS]; /* id - 1 */
	char left[PATH_MAX];             /* the segment that is not joined again */
	int failing;                     /* -errno of the last batch, 0: it was written */
};

/* The writer thread, after the batch went into the store. */
void fine_commit(struct store_writer *w, const struct batch *b);
/* The writer ends: its runs do, and it leaves its segment. */
void fine_leave(struct store_writer *w);

#endif
