/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkdata: the data that checks read: an in-memory database with a table for each view of
 * docs/SCHEMA.md that a check names, holding the rows of the last minutes that the checks need. So
 * a query takes as long in a store of two weeks as in one of an hour, and cannot change anything:
 * this is not the store's connection, and once filled it allows only reading.
 * Rows of several segments are in one table; ids (NAME_id) are valid in one segment only, and are
 * offset by its number, like in sonde sql.
 */
#ifndef SONDE_TOOLS_CHECKDATA_H
#define SONDE_TOOLS_CHECKDATA_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/checks/checkfile.h"

struct sqlite3;

/* `to_s` is a multiple of 10; for each check its window before it is read, and `earlier_s` seconds
 * more. EXIT_STORE, EXIT_NOTHING. */
int checkdata_open(const char *store, const struct checkfiles *checks, int64_t to_s,
		   int64_t earlier_s, struct sqlite3 **out, struct err *e);
void checkdata_close(struct sqlite3 *db);
/* The last second for which this family (NULL: any) has stored data, as far as was read; 0:
 * none. */
int64_t checkdata_last(struct sqlite3 *db, const char *family);

#endif
