/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minutes: an archive whose rows of some seconds become rows of a minute: the facts that may
 * (fact.minutes), and the waits, of captures by sonded; recordings stay as they are, and so do
 * samples, requests and events, and families of which a window was kept in that time (keep.h).
 *
 *   1. STORE/sealing.db becomes a copy of the archive. Of each such table the rows are made,
 *      summed and packed again: counters of a minute add up, of gauges the last one holds, as in a
 *      bucket that two batches filled. The run's buckets are of MINUTES_S then.
 *   2. A minute that the file has in part begins where its rows do, so that no time is counted
 *      both here and in the file before. The views say how wide each row is.
 *   3. Each counter's sum is compared with the archive's, and the file is synced. Its header says
 *      what it has (user_version).
 * Then it takes its name, as an archive does (seal.h). A crash before that changes nothing.
 */
#ifndef SONDE_STORE_ARCHIVE_MINUTES_H
#define SONDE_STORE_ARCHIVE_MINUTES_H

#include <stdbool.h>

#include "schema/base/err.h"

#define MINUTES_S 60

/* Does its header say that it has minutes already? Also true if it cannot be read: then there is
 * nothing to do. */
bool minutes_are(const char *path);
/* Steps 1 to 3. `to` is STORE/sealing.db. -EBADMSG: the archive is damaged. */
int minutes_make(const char *path, const char *to, struct err *e);

#endif
