/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlview: one SQLite connection over a whole store, read-only, with the stable views of
 * docs/SCHEMA.md.
 *
 * One segment is opened as it is. Several become TEMP views (or, where one is an archive, schemas
 * differ, stores are several or files more than SQLite can attach, virtual tables: sqlunion.h) of
 * the same names: the UNION ALL over the segments. Ids mean something in one segment only, so there
 * each is raised by its segment's number << 40, the newest being 0: joins between views stay right,
 * equal things of two segments stay two. functions_top is summed over them.
 */
#ifndef SONDE_TOOLS_SQLVIEW_H
#define SONDE_TOOLS_SQLVIEW_H

#include <stddef.h>

#include "schema/base/err.h"

struct sqlite3;
struct sqlview;

/* `store`: a folder or one .db file. Errors as store_segments; EXIT_NOTHING when it holds no
 * segment. */
int sqlview_open(const char *store, struct sqlview **out, struct err *e);
void sqlview_close(struct sqlview *v);         /* NULL is fine */
struct sqlite3 *sqlview_db(struct sqlview *v); /* borrowed */
/* The stable views that a store may have; static. */
const char *const *sqlview_views(size_t *n);
/* Lets `make` add TEMP views and tables, which nothing that is asked later may do. */
int sqlview_change(struct sqlview *v, int (*make)(struct sqlite3 *db, void *ctx, struct err *e),
		   void *ctx, struct err *e);
/* Call both, before and after a statement is prepared. Returns a table that the statement reads
 * from the newest segment only, although there are several: its result is not that of the whole
 * store. Else NULL. `sql` is borrowed until the next call. */
void sqlview_asks(struct sqlview *v, const char *sql);
const char *sqlview_of_one(const struct sqlview *v);
/* A query ends once `over`, called now and then while it runs, does not return 0. */
void sqlview_watch(struct sqlview *v, int (*over)(void *ctx), void *ctx);

#endif
