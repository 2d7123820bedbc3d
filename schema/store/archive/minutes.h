/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minutes: an archive whose rows of some seconds become rows of a minute: the facts that may
 * (fact.minutes), and what was waited for, of captures that went on by themselves; recordings stay
 * as they are, and so do samples, requests and events.
 *
 *   1. STORE/sealing.db becomes a copy of the archive. Of each such table the rows are made, summed
 * and packed again: counters of a minute add up, of gauges the last one holds, as in a bucket that
 * two batches filled. The run's buckets are of MINUTES_S then.
 *   2. A minute that the file has in part begins where its rows do: so that beside the file before
 * it no time is told twice. The views say how wide each row is.
 *   3. Each counter's sum is compared with the archive's, and the file is synced. Its header says
 * what it has (user_version). Then it takes its name, as an archive does (seal.h): whoever dies
 * before that leaves all as it was.
 */
#ifndef SONDE_STORE_ARCHIVE_MINUTES_H
#define SONDE_STORE_ARCHIVE_MINUTES_H

#include <stdbool.h>

#include "schema/base/err.h"

#define MINUTES_S 60

/* By its header: has it minutes already? true where it cannot be read: nothing is to be done with
 * it. */
bool minutes_are(const char *path);
/* Steps 1 to 3. `to` is STORE/sealing.db. -EBADMSG: the archive is damaged. */
int minutes_make(const char *path, const char *to, struct err *e);

#endif
