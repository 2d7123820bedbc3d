/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day: one file with the sums of all archives of a day. A question about several days reads it
 * instead of the archives (read/days.h).
 *
 *   1. The file is an archive, with one dictionary: rows that are equal in two archives are joined.
 *      Rows that differ in any column stay separate, and a process that ended is never joined with
 *      one of another archive. So what a reader gets by process adds up to what it gets from the
 *      archives, one after the other.
 *   2. It holds the archives' sums (packed/sums.h), added up by key, samples by thread and stack,
 *      amounts by thread, and waits by thread, stack and class (day_waits.h). A sum names the first
 *      run of its family with the same options. Table run has all runs, and day_run the first run
 *      of each.
 *   3. A table without sums is copied if it has few rows (CARRIED_MOST) and is a declared fact or
 *      holds ends of processes. A table with more rows is missing, so that a statement which names
 *      it cannot be prepared. A table that is empty in all archives is empty here.
 *   4. Table day_file names the archives, each with its stamp (files/stamp.h). If an archive has
 *      another stamp, no question reads the file, and the next sealing replaces it.
 *   5. An archive is left out if it has no sums, an imported profile, several sampling periods or
 *      another schema. A day takes the longest run of neighbours without such an archive, if these
 *      are at least DAY_LEAST.
 *
 *   STORE/days/YYYYMMDD.db   by the date in the names of its archives
 */
#ifndef SONDE_STORE_ARCHIVE_DAY_H
#define SONDE_STORE_ARCHIVE_DAY_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "schema/store/files/folder.h"

#define DAY_LEAST 3
#define DAY_MOST  63 /* a bit each */

/* Which of these segments of one day the file takes: the first, and how many. 0: too few. */
size_t day_members(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, size_t *first);
/* Writes the file `to`. 0 or -errno; -EAGAIN: an archive changed meanwhile; -E2BIG: the stacks
 * would take too much memory, or a sum overflows. */
int day_make(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, const char *to,
	     struct err *e);

#endif
