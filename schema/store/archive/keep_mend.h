/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keep_mend: how the files that keep.c makes get their names, and what becomes of those that a keep
 * left when it was killed, or failed. Such a file is STORE/keeping-N.db until it has its name.
 *
 *   1. A store's segment says that rows of a window are elsewhere before the first of the window's
 *      files has its name, and both are synced in this order.
 *   2. So where files are left and one of them has its name, the others get theirs. Where none has
 *      one, the segments' rows are taken back first, and then the files are removed: the store is
 *      as before.
 *   3. Until then a question about that time misses what the segments hide. Each sealing and each
 *      keep begins with rule 2, and so does a keep that fails.
 */
#ifndef SONDE_STORE_ARCHIVE_KEEP_MEND_H
#define SONDE_STORE_ARCHIVE_KEEP_MEND_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"
#include "schema/store/archive/keep.h"

#define KEEP_MADE_MAX 128

void keep_made_name(size_t i, char out[24]);
/* Removes all of them. `at`: the store's folder. */
void keep_made_remove(int at);
/* Names all of them, with the folder's lock held. Adds to out->segments and out->bytes. */
int keep_made_place(const struct keep_opts *o, int at, struct keep_report *out, struct err *e);
/* Rule 2. The caller holds the sealer's lock; of the second also the folder's. 0 or -errno: then
 * what is left stays. */
int keep_mend(const char *dir, int at, struct err *e);
int keep_mend_locked(const char *dir, int at, struct err *e);

#endif
