/* SPDX-License-Identifier: Apache-2.0 */
/* sqlolder: is a statement refused only since the store is older than a view or a column that it
 * names? */
#ifndef SONDE_TOOLS_SQLOLDER_H
#define SONDE_TOOLS_SQLOLDER_H

#include <sqlite3.h>
#include <stdbool.h>

/* The first statement of `sql` would be understood in a store of the newest schema. `*version`:
 * that of the store's newest segment. `win_NAME` counts as NAME. */
bool sqlolder(sqlite3 *db, const char *sql, int *version);

#endif
