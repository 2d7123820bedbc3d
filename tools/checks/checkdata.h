/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkdata: what checks read: a database in memory, with a table for each view of docs/SCHEMA.md
 * that one of them names, which holds the rows of the last minutes that these checks ask for. So a
 * check's query takes as long in a store of two weeks as in one of an hour, and cannot change
 * anything: the connection is not the store's, and once it is filled nothing but reading is allowed
 * on it.
 *
 * Rows of several segments are in one table; ids (NAME_id) mean something in one segment only and
 * are raised by its number, as sonde sql does.
 */
#ifndef SONDE_TOOLS_CHECKDATA_H
#define SONDE_TOOLS_CHECKDATA_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/checks/checkfile.h"

struct sqlite3;

/* `to_s`: a whole minute; of each check its window before it, and `earlier_s` seconds more, are
 * read. EXIT_STORE, EXIT_NOTHING. */
int checkdata_open(const char *store, const struct checkfiles *checks, int64_t to_s,
		   int64_t earlier_s, struct sqlite3 **out, struct err *e);
void checkdata_close(struct sqlite3 *db);
/* The last second that this family (NULL: any) has stored, as far as was read; 0: nothing. */
int64_t checkdata_last(struct sqlite3 *db, const char *family);

#endif
