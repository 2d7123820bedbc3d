/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export_db: consistent copies of the segments that touch a selection's range, by SQLite's backup:
 * also of a store that is being written. Copies are plain files without a -wal file. If a range was
 * given they have only its rows (and, of gauges, the rows before it, which are the values at its
 * start); all names, stacks and processes stay, filters do not apply, and an archive becomes rows.
 */
#ifndef SONDE_TOOLS_EXPORT_DB_H
#define SONDE_TOOLS_EXPORT_DB_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/select/select.h"

/* `path` is a folder (it is made if it ends in '/' or several segments match), else a file. NULL:
 * one segment to standard output. EXIT_NOTHING if no segment matches. */
int export_db(const struct selection *sel, const char *path, uint64_t *bytes, struct err *e);

#endif
