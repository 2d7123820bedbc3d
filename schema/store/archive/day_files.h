/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day_files: which days of a store have a file of sums (day.h).
 *
 *   1. A day is due when it is over (a segment of a later day is there) and nothing of it is to be
 *      archived any more, and has a file already unless this was made of its archives as they are.
 *   2. The store's oldest day is due only if its first segment began in the day's first hour: else
 *      it is being pruned, and its file would be made again for each archive that goes.
 *   3. While some archives of a day have minutes (minutes.h) and others have not, it has no file.
 *   4. A day that cannot have one (day.h, rule 5) has an empty file, which is older than none of its
 *      archives: until one changes it is not tried again.
 *   5. A file whose day is not due and not valid is removed.
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

/* For who holds the sealer's lock: `at` is the open folder, `making` the name there that a file has
 * until it is whole. `unfinished` says which of the names are to be archived still. What cannot be
 * made is left out, and said. */
void day_files_keep(const char *dir, int at, const char *making, char (*names)[SEGMENT_NAME_MAX],
		    size_t n, const bool *unfinished, bool minutes, struct day_files_report *out);

#endif
