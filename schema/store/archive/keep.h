/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep: puts a window of the ring (write/commit/fine.h) into the store.
 *
 *   1. What is kept is cut to whole steps of the store (KEEP_STEP_S), to what the ring has without
 *      a hole, and to the segments of the store that are rows still. What an earlier window kept is
 *      left out, and so is a recording of the same family.
 *   2. Each segment of the ring becomes an archive of the store (archive.h), with a name that sorts
 *      before the segment in use. Its runs have the window's number as their recording, and
 *      `options` says why they were kept (STORE_KEPT). Rows outside of the window are left out.
 *      One of them has an event "kept", with the reason.
 *   3. A segment of the store that has the same time gets a row of each run too, without rows of
 *      its own (state STORE_RUN_ELSEWHERE): where a finer run covered the host, its own rows are
 *      hidden (model/choice.h). So no figure counts twice, and nothing of the store is deleted.
 *      Seconds of logs and single requests are separate rows, which no sum has: they hide nothing.
 *      Then the archives get their names, all of it with the store's lock held. A crash before this
 *      step changes nothing. What one within it leaves is finished, or taken back, by the next
 *      keep or sealing (keep_mend.h).
 *
 * The ring is only read, also while it is written.
 */
#ifndef SONDE_STORE_ARCHIVE_KEEP_H
#define SONDE_STORE_ARCHIVE_KEEP_H

#include <stdint.h>

#include "schema/base/err.h"

#define KEEP_STEP_S 10 /* of what sonded records */

enum keep_step { KEEP_STEP_LOOKED, KEEP_STEP_MADE, KEEP_STEP_COVERED, KEEP_STEP_NAMED };

struct keep_opts {
	const char *dir, *ring; /* folders */
	int64_t from_ns, to_ns; /* UTC */
	int64_t at_ns;          /* when it happened: of the event */
	const char *why;
	int patience_s; /* how long to wait until the ring has all of it */
	/* Hears of each step: the ring was looked at, all files are made, a segment was covered, a
	 * file has its name. May be NULL. */
	void (*each)(void *ctx, enum keep_step step);
	void *ctx;
};

struct keep_report {
	uint32_t segments;      /* made; 0: the ring has nothing of it that is not kept yet */
	int64_t from_ns, to_ns; /* what is kept */
	uint64_t bytes;
};

/* -EAGAIN: another process is archiving. */
int keep_run(const struct keep_opts *o, struct keep_report *out, struct err *e);

#endif
