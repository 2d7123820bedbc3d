/* SPDX-License-Identifier: Apache-2.0 */
/*
 * day: the archives of one day once more, as one file with the sums of all of them: a question about
 * days reads it in place of them (read/days.h).
 *
 *   1. It is an archive whose dictionary is that of all its archives: what is equal in two of them is
 *      there once. Rows of a dictionary that differ in anything stay apart, as the archives' do, and
 *      a process that ended is never joined with another archive's, so that what is told by process
 *      is what the archives tell, one after the other.
 *   2. It has their sums (packed/sums.h), summed by key once more, samples by thread and stack, and
 *      amounts by thread. The run of a sum is the first one of that family and of the same options;
 *      runs themselves are all there, and day_run says which of them the first one stands for.
 *   3. What is not summed is there where it is a few rows (CARRIED_MOST of a table) of a declared fact,
 *      or ends of processes. A table that is not there has other rows: a statement that names it
 *      cannot be prepared. One without rows is there, so whoever asks it hears of none.
 *   4. Table day_file names the archives, with what tells a file from what it was (files/stamp.h).
 *      A day whose archives are not exactly these is not read, and the next sealing replaces it.
 *   5. Archives are left out of it that two captures of one family, an imported profile, a change of
 *      the sampling period or another schema keep from being summed: a day is made of the longest
 *      list of neighbours without such a one, of at least DAY_LEAST.
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

/* Which of these archives, neighbours of one day: first and how many. 0: there are too few. */
size_t day_members(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, size_t *first);
/* Makes the file `to` of them. -EBADMSG, -ENOSPC and the like; -EAGAIN: one of them changed
 * meanwhile; -E2BIG: their stacks would take too much memory, or a sum is past its range. */
int day_make(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, const char *to,
	     struct err *e);

#endif
