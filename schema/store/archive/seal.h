/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal: archives the finished segments of a store, one by one (archive.h), the newest of them
 * later than the others.
 *
 *   1. The sealer holds the lock of STORE/sealing; a second sealer does nothing. It begins with
 *      what a killed keep left (keep_mend.h).
 *   2. Finished is what is not the newest segment and what no writer, living or killed, needs for
 *      its account (tally_segments.h).
 *   3. Of these the newest stay rows, which are quicker to ask and to write: as many as take
 *      `plain` bytes, and those that were finished less than `keep_s` ago, up to twice as many
 *      bytes. All others that are no archives yet, and have SEAL_LEAST bytes, are due, oldest
 *      first.
 *   4. With the folder's lock held, a segment's log is checkpointed and an older schema is
 *      migrated. STORE/sealing.db becomes its archive, without any lock that a writer waits for.
 *      With the lock held again, if the segment is as it was (names may have come late), the
 *      archive takes its name. Readers that have the segment open go on reading it; a crash before
 *      that instant changes nothing.
 *   5. A segment that turns out to be damaged is set aside (NAME.bad).
 *   6. An archive that was begun more than `fine_s` ago gets minutes (minutes.h), in the same way,
 *      oldest first, until `gain` bytes were gained.
 *   7. Then days get their files of sums (day_files.h).
 */
#ifndef SONDE_STORE_ARCHIVE_SEAL_H
#define SONDE_STORE_ARCHIVE_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"

/* a smaller file is mostly its schema, which no archive has less of */
#define SEAL_LEAST (1u << 16)

enum seal_step { SEAL_STEP_BEGUN, SEAL_STEP_WRITTEN, SEAL_STEP_NAMED };

struct seal_opts {
	const char *dir;
	bool idle;      /* at the lowest priority (quiet.h) */
	uint64_t room;  /* what the file being made may take; a segment that needs more is put off.
			   0: any */
	uint64_t plain; /* rule 3 */
	uint32_t keep_s;
	uint32_t fine_s;    /* rule 6; 0: none does */
	uint64_t gain;      /* 0: all that are due */
	bool minutes_alone; /* nothing is archived */
	/* Hears of each step; `name` is the segment it is about. May be NULL. */
	void (*each)(void *ctx, enum seal_step step, const char *name);
	void *ctx;
};

struct seal_report {
	uint32_t segments;                  /* archived */
	uint32_t put_off;                   /* in use, without room, or changed meanwhile */
	uint32_t set_aside;                 /* damaged ones */
	uint64_t bytes_before, bytes_after; /* of those that were archived */
	uint32_t thinned;                   /* archives that got minutes */
	uint64_t fine_before, fine_after;   /* bytes of those */
	uint32_t days;                      /* that got a file of their sums */
	uint64_t days_bytes;                /* of these */
	bool busy;                          /* another process is sealing: nothing was done */
};

int seal_run(const struct seal_opts *o, struct seal_report *out, struct err *e);

/* By names, sizes and headers alone: how many segments are due, and what the largest file to be
 * made may take. Of a folder that cannot be read: none. */
struct seal_due {
	uint32_t segments;
	uint64_t room;
};
void seal_look(const struct seal_opts *o, struct seal_due *out);

#endif
