/* SPDX-License-Identifier: Apache-2.0 */
/*
 * archive: a finished segment as columns.
 *
 *   1. STORE/sealing.db becomes a copy of the segment, whose tables are packed (packing_pack,
 *      packed/module.h): the same names, columns and rows, a fifth of the bytes. Its header says
 *      so (folder_is_archived).
 *   2. Each table is compared with the segment's, row by row, and the file is synced.
 *   3. With the folder's lock held, if the segment is as it was, the file takes its name. Readers
 *      that have the segment open go on reading it.
 * A crash before step 3 leaves the segment as it is. The caller holds the lock of sealing, and has
 * seen that the segment is finished and at rest (seal.h).
 */
#ifndef SONDE_STORE_ARCHIVE_ARCHIVE_H
#define SONDE_STORE_ARCHIVE_ARCHIVE_H

#include "schema/base/err.h"

/* Steps 1 and 2. `to` is STORE/sealing.db. -EBADMSG: the segment is damaged. */
int archive_make(const char *path, const char *to, struct err *e);

#endif
