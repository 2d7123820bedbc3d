/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlwindow: the views of a store, restricted to what a command line selects, for `sonde sql --last
 * 10m --container web`.
 *
 *  1. For each stable view that has times, processes or both there is a TEMP view win_NAME of the
 * same columns: rows that begin in [from, to), of the processes that the filters select (sonde's
 * own only with --self). processes: those that ran in the range; containers: theirs, and what they
 * used; runs: those that touch it; throttling: of their cgroups; loss, cost, steal: of the range
 * alone.
 *  2. win_waits and win_wait_objects have one more column: idle, 1 if the wait was for a request,
 * by the rules of tools/waits/waitrules.h; win_wait_totals, which has no stacks, has it by the
 * wait's class alone.
 *  3. :from and :to in any statement are the range, in seconds since 1970.
 *  4. A shipped query reads the win_ views instead of those it names, and sonde_totals and
 * sonde_steps for the range and the selected processes.
 */
#ifndef SONDE_TOOLS_SQLWINDOW_H
#define SONDE_TOOLS_SQLWINDOW_H

#include <stdbool.h>

#include "schema/base/err.h"
#include "schema/base/strbuf.h"

struct sqlite3;
struct sqlite3_stmt;
struct selection;
struct sqlview;
struct sqlwindow;

/* `view` and `sel` are borrowed. sqlwindow_free comes before sqlview_close: after it nothing may be
 * asked. */
int sqlwindow_make(struct sqlview *view, const struct selection *sel, struct sqlwindow **out,
		   struct err *e);
void sqlwindow_free(struct sqlwindow *w); /* NULL is fine */
void sqlwindow_bind(const struct sqlwindow *w, struct sqlite3_stmt *st);
/* Rule 4. False: it asks nothing that has a win_ view. */
bool sqlwindow_rewrite(const struct sqlwindow *w, const char *query, struct strbuf *out);

#endif
