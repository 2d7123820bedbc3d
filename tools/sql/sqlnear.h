/* SPDX-License-Identifier: Apache-2.0 */
/* sqlnear: "did you mean" for a statement that SQLite refused, since it has a table or a column in
 * it that is not there. */
#ifndef SONDE_TOOLS_SQLNEAR_H
#define SONDE_TOOLS_SQLNEAR_H

#include <sqlite3.h>

#include "schema/base/strbuf.h"

/* `message`: SQLite's, copied before; `sql`: the statement. Adds nothing if no name is near. Of a
 * column, the columns of the views that the statement names are searched. */
void sqlnear(sqlite3 *db, const char *message, const char *sql, struct strbuf *out);

#endif
