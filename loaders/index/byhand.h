/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byhand: sonde-index for a person: the parent's side of indexproto.h for one file. The work is
 * done by a sandboxed child all the same.
 */
#ifndef SONDE_INDEX_BYHAND_H
#define SONDE_INDEX_BYHAND_H

#include "loaders/index/indexer.h"
#include "schema/base/err.h"

/* Index `path` into `out` (replaced only by a whole index), with debug files from /usr/lib/debug
 * and beside the file; prints the key. */
int byhand_index(const char *path, const char *out, enum index_lines lines, struct err *e);

#endif
