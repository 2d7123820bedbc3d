/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probeview: a TEMP view for each probe that a statement names: its single hits, with a column for
 * each of its arguments. It is made when a statement asks for it, since only a search through all
 * probes' rows tells which names there are.
 *
 * 1. Its rows are those of view probe_events of that probe. `win_NAME` has those of
 *    win_probe_events.
 * 2. The arguments of all recordings of that name, in the order in which they were given; NULL
 * where a recording had none of that name.
 * 3. Where an argument has the name of another column, such as pid, that one is called hit_NAME:
 *    the process that hit the probe, not the one that it is about.
 * 4. A number of 64 bits that SQLite has no integer for is text.
 * 5. A name that a table or another view has stays theirs.
 */
#ifndef SONDE_TOOLS_PROBEVIEW_H
#define SONDE_TOOLS_PROBEVIEW_H

#include <stdbool.h>

#include "schema/base/err.h"

struct sqlview;

/* After a statement was refused: makes the view that it misses. *made false: it misses something
 * else. */
int probeview_make(struct sqlview *v, bool *made, struct err *e);

#endif
