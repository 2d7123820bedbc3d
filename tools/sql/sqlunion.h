/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlunion: a view of many segments as one table, for stores of more segments than SQLite can
 * attach.
 *
 * A virtual table: each scan reads the segments one after the other, each through its own
 * connection, with the columns and the comparisons (=, <, <=, >, >=) that the query uses. SQLite
 * checks each row again, so passing comparisons down makes a query faster, never wrong. Ids mean
 * something in one segment only: each is raised by its segment's number << SQLUNION_ID_SHIFT, and a
 * comparison with one id, as in a join, reads one segment.
 *
 * Its columns are those that the view has in the segment of the newest schema (the model). A
 * segment of an older schema may lack some, which are NULL there, or the view, and then has no
 * rows.
 */
#ifndef SONDE_TOOLS_SQLUNION_H
#define SONDE_TOOLS_SQLUNION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

#define SQLUNION_ID_SHIFT 40
/* If names are qualified by host (schema/store/read/reader.h), each table has a last column `host`:
 * this function of the connection to a segment, which `prepare` makes. */
#define SQLUNION_HOST "sonde_host"

struct sqlite3;
struct sqlunion;

/* When a segment's buckets begin and end, seconds since 1970; both 0: not known. */
struct sqlunion_span {
	int64_t from_s, to_s;
};

/* Of segments 0..n-1 (borrowed paths), `model` one of the newest schema among them; `spans` (may be
 * NULL) of each: a comparison with ts then leaves out those that lie elsewhere. Tables are made in
 * `db`, which must be closed before sqlunion_free. `prepare` (may be NULL) is called with each
 * connection that is opened, once; what it returns but 0 is an error. */
int sqlunion_new(struct sqlite3 *db, const char *const *paths, const struct sqlunion_span *spans,
		 size_t n, size_t model,
		 int (*prepare)(struct sqlite3 *db, void *ctx, struct err *e), void *ctx,
		 struct sqlunion **out, struct err *e);
void sqlunion_free(struct sqlunion *u); /* NULL is fine */
/* TEMP table `name`: the union of the views `view`; also of a table-valued function, whose
 * arguments are handed down. */
int sqlunion_table(struct sqlunion *u, const char *name, const char *view, struct err *e);
/* Does the model have a view of that name? 1, 0, or -errno. An archive keeps its views as text:
 * they are there once `prepare` has made them. */
int sqlunion_has_view(struct sqlunion *u, const char *view, struct err *e);
/* Does a column of this name hold an id of its segment? */
bool sqlunion_is_id(const char *column);

#endif
