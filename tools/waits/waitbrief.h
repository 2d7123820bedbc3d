/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitbrief: a table of waits in one sentence: "db waited 10.7 s for its
 * WAL, sh 3.2 s for a CPU; throttled lost 51 s to its CPU quota, in 480 of 500 periods".
 *
 * A wait at a futex is called a lock if a named function says so, else a futex.
 * Only waits that have ended and were for something that held up work: CPU, locks, disk, page
 * faults, the network; how long waits lasted that a timer ended is added. Idle waits, sleeps, a
 * parent that waits for its child, and pipes, whose other end may be slow or have no data, are only
 * in the table.
 */
#ifndef SONDE_TOOLS_WAITBRIEF_H
#define SONDE_TOOLS_WAITBRIEF_H

#include "schema/base/strbuf.h"
#include "tools/waits/waitheld.h"
#include "tools/waits/waitpairs.h"
#include "tools/waits/waitsum.h"

/* Each adds one sentence, or nothing. Times are of all threads together. */
void waitbrief_waits(struct strbuf *out, const struct waitsum *w);
void waitbrief_neighbours(struct strbuf *out, const struct waitpairs *w);
void waitbrief_wakers(struct strbuf *out, const struct waitpairs *w);
/* How a cgroup is called: its container, else its path. */
void waitbrief_held_name(struct strbuf *out, const struct waitheld_row *h);

#endif
