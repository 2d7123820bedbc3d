/* SPDX-License-Identifier: Apache-2.0 */
/*
 * namedquery: the queries that ship with `sonde sql @NAME`, one file each in tools/sql/queries/
 * (their form: its README), built into the program.
 */
#ifndef SONDE_TOOLS_NAMEDQUERY_H
#define SONDE_TOOLS_NAMEDQUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/err.h"

struct sqlite3_stmt;

struct namedquery {
	const char *name;
	const char *text; /* the file */
};
extern const struct namedquery NAMEDQUERIES[]; /* by name, the last one's name is NULL */

/* "@hottest" or "hottest". EXIT_USAGE with the nearest name. */
int namedquery_find(const char *name, const struct namedquery **out, struct err *e);
/* "functions by self CPU time"; points to `buf`. */
const char *namedquery_summary(const struct namedquery *q, char *buf, size_t size);
/* Give each parameter its value: of `words` ("n=5", each a key that the query has), else its
 * default. `now_ns` is what relative times count from; `ranged`: from and to are bound already, and
 * are left unless words set them. EXIT_USAGE with what there is. */
int namedquery_bind(const struct namedquery *q, struct sqlite3_stmt *st, char *const *words,
		    size_t n_words, int64_t now_ns, bool ranged, struct err *e);

#endif
