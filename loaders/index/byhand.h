/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byhand: sonde-index for a person: the parent's side of indexproto.h for one file, and printing an index. The work is
 * done by a sandboxed child all the same.
 */
#ifndef SONDE_INDEX_BYHAND_H
#define SONDE_INDEX_BYHAND_H

#include "schema/base/err.h"

/* Index `path` into `out` (replaced only by a whole index), with debug files from /usr/lib/debug and beside the file;
 * prints the key. */
int byhand_index(const char *path, const char *out, struct err *e);
/* Identity ("# " lines), then "ADDR SIZE NAME" for each piece, ADDR and SIZE in hexadecimal. */
int byhand_dump(const char *path, struct err *e);

#endif
