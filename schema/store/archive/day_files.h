/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day_files: which days of a store have a file of sums (day.h).
 *
 *   1. A day is due when it is over (the store has a segment of a later day) and its segments are
 *      archived. A file that was made from the archives as they are now stays.
 *   2. The oldest day of the store is due only if its first segment began in the first hour of the
 *      day. Otherwise retention is removing it archive by archive, and each removal would cost a
 * new file.
 *   3. A day has no file while some of its archives have minutes (minutes.h) and others do not.
 *   4. If a day cannot have a file (day.h, rule 5), an empty one marks that. The sealer tries again
 *      after an archive of the day has changed.
 *   5. The sealer removes the file of a day that is neither due nor unchanged.
 */
#ifndef SONDE_STORE_ARCHIVE_DAY_FILES_H
#define SONDE_STORE_ARCHIVE_DAY_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/store/files/folder.h"

struct day_files_report {
	uint32_t made;
	uint64_t bytes; /* of those */
};

/* The caller holds the sealer's lock. `at` is the open folder, `making` the name of a file there
 * until it is complete, and unfinished[i] tells whether segment i is not archived yet. A day that
 * fails is logged and left out. */
void day_files_keep(const char *dir, int at, const char *making, char (*names)[SEGMENT_NAME_MAX],
		    size_t n, const bool *unfinished, bool minutes, struct day_files_report *out);

#endif
