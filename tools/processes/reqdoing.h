/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reqdoing: what the threads that serve running requests did most since they were asked (at most
 * REQDOING_NS before), by CPU samples and waits, and where they were at a recording's end (kind
 * standing). A wait is recorded when it is over. So for a thread that is still waiting, this is
 * what it did before; for one that has waited ever since, nothing. Nothing either for a thread that
 * serves several of the requests: its samples do not say for which.
 *
 * Of requests that run now, on this host, root is shown where such a thread waits now: sonde-pstack
 * reads it.
 */
#ifndef SONDE_TOOLS_REQDOING_H
#define SONDE_TOOLS_REQDOING_H

#include "tools/requests/reqrunning.h"

#define REQDOING_NS   (600 * 1000000000ll)
#define REQDOING_ROWS 30

/* Fills in `doing` and `stack` of the first n rows, of REQDOING_ROWS at most. `now`: they run now.
 */
int reqdoing_read(const struct select_args *asked, const char *store, struct reqrunning *r,
		  size_t n, bool now, struct err *e);

#endif
