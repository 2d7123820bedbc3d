/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal: packs finished segments into one file a day.
 *
 * A day file (folder.h) is a segment like any other, with a dictionary, rows and views of its own; only samples stand in
 * blocks (migration 12, pack.h), and nothing joins it. A segment belongs to the UTC day that its name begins with.
 *
 *   1. Who seals holds the lock of STORE/sealing; a second one does nothing.
 *   2. Finished is what is not the newest segment and what no writer, living or killed, needs for its account (needed.h).
 *      With the folder's lock held, its log is folded in, an older schema is migrated, and its size and time are noted.
 *   3. STORE/sealing.db becomes a copy of the day's latest make, or an empty one, and takes the segments in, without any
 *      lock that a writer waits for. `sealed` in it lists them, and the makes before. It is synced.
 *   4. With the folder's lock held: where a file that went into it has changed (names came late), all is put off. Else
 *      sealing.db gets the day's name, with the next number. That instant its rows count and those of the files it lists
 *      do not (sealed.h). Whoever dies before it leaves all as it was, but for sealing.db, which the next one empties.
 *   5. The files that a day lists are removed once it is older than `grace_s`, so that whoever has just found them still
 *      reads them. `sealed` in the day is the record of it. Whoever dies between two of them leaves the rest to the next.
 *   6. A day that is mostly dictionary is packed at the end of step 3 (packing.h), and rows again at the beginning of the next one.
 *   7. A segment that turns out to be damaged is set aside (NAME.bad), and the day is made without it. A latest make that is damaged stays
 *      as it is, for who can read it, and the day goes on in another file beside it.
 *   8. A segment of a megabyte or more that holds more than samples is archived by itself instead (archive.h), under its own name: of these the newest stay rows
 *      up to `plain` bytes.
 * A segment with a table or column that is not known here is left as it is, and said.
 */
#ifndef SONDE_STORE_SEAL_H
#define SONDE_STORE_SEAL_H

#include <stdbool.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/folder.h"

#define SEAL_GRACE_S 60

enum seal_step { SEAL_STEP_COPIED, SEAL_STEP_TAKEN, SEAL_STEP_WRITTEN, SEAL_STEP_NAMED, SEAL_STEP_REMOVED };

struct seal_opts {
	const char *dir;
	uint32_t grace_s;
	bool today;         /* days that are not over as well */
	bool idle;          /* packs at the lowest priority (quiet.h) */
	uint64_t room;      /* what a make of a day may take (seal_make_bytes, seal_guess); the rest is put off. 0: any */
	uint64_t plain;     /* rule 8 */
	uint32_t min;       /* a day that is not over: so many finished segments at least; 0: 1 */
	/* Hears of each step; `name` is the file it is about. May be NULL. */
	void (*each)(void *ctx, enum seal_step step, const char *name);
	void *ctx;
};

struct seal_report {
	uint32_t days, segments, removed; /* makes of days; what went into them; files removed */
	uint32_t put_off;                 /* segments that cannot be sealed, or changed meanwhile */
	uint32_t set_aside;               /* damaged ones */
	uint64_t rows, samples;           /* taken in */
	uint64_t bytes_before, bytes_after; /* of what went in, the makes before too; of the days made of it */
	uint32_t archived;                /* by themselves; their bytes are in the two above */
	bool busy;                        /* somebody else is sealing: nothing was done */
};

/* What this make of a day takes while another one is made of it: of a packed one also the rows that it is unpacked to (packing.h). Where
 * that and a segment find no room, a make of its own is begun, which does not hold that one. */
uint64_t seal_make_bytes(const char *dir, const char *name);
/* And what a segment of so many bytes brings, about. A build brings most: two thirds. */
static inline uint64_t seal_guess(uint64_t bytes)
{
	return bytes / 4 * 3;
}

int seal_run(const struct seal_opts *o, struct seal_report *out, struct err *e);

#endif
