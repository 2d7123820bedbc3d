/* SPDX-License-Identifier: Apache-2.0 */
/*
 * days: which files a question about days reads: in place of the archives of a day the one file that
 * has the sums of all of them (archive/day.h), where the range has all of these.
 *
 *   1. A day's file is taken only if each archive that it names is among those of the range, with no
 *      other between them, and is what it was (files/stamp.h). One that is missing, damaged, older
 *      than its archives, or of another schema is not taken, and nothing is said: the archives
 *      themselves answer.
 *   2. It tells the same as its archives one after the other, or refuses: a question that it cannot
 *      answer fails with -EXDEV. Then store_days_off, and the question is asked again of archives.
 */
#ifndef SONDE_STORE_READ_DAYS_H
#define SONDE_STORE_READ_DAYS_H

#include <stddef.h>
#include <stdint.h>

#include "schema/store/read/reader.h"

/* A file that is read. */
struct store_part {
	char path[512];
	bool day;
	size_t first, n; /* which segments it is read in place of; an archive: itself */
};
/* In order of the segments, which are those of a range [from, to); each is in one part. The array
 * is the caller's (free). */
void store_days(const struct store_segment_info *info, size_t n, int64_t from_ns, int64_t to_ns,
		struct store_part **out, size_t *n_out);
/* From now on there are none, in this process. Were there any? */
bool store_days_off(void);

#endif
