/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlview: one SQLite connection over a whole store, read-only, with the stable views of docs/SCHEMA.md.
 *
 * One segment is opened as it is. Several are attached to the newest one, and each stable view becomes a TEMP view of
 * the same name: the UNION ALL over the segments. Ids mean something in one segment only, so there each is raised by
 * its segment's number << 40: joins between views stay right, equal things of two segments stay two. functions_top is
 * summed over them. SQLite attaches at most ten: the newest ones are taken, `left_out` says how many were not.
 */
#ifndef SONDE_TOOLS_SQLVIEW_H
#define SONDE_TOOLS_SQLVIEW_H

#include <stddef.h>

#include "schema/base/err.h"

struct sqlite3;
struct sqlview;

/* `store`: a folder or one .db file. Errors as store_segments; EXIT_NOTHING when it holds no segment. */
int sqlview_open(const char *store, struct sqlview **out, struct err *e);
void sqlview_close(struct sqlview *v); /* NULL is fine */
struct sqlite3 *sqlview_db(struct sqlview *v); /* borrowed */
size_t sqlview_segments(const struct sqlview *v);
size_t sqlview_left_out(const struct sqlview *v);

#endif
