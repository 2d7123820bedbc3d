/* SPDX-License-Identifier: Apache-2.0 */
/*
 * waitrows: rows of the groups: of one part, the group's exact numbers; of several, these divided
 * as the stacks are, with the error that this has.
 */
#ifndef SONDE_TOOLS_WAITROWS_H
#define SONDE_TOOLS_WAITROWS_H

#include "tools/waits/waitgroups.h"
#include "tools/waits/waitsum.h"

/* Of groups that are read, most time first; `held` is left empty. It takes their histograms. The
 * caller's (waitsum_free). */
struct waitsum *waitrows_make(struct waitgroups *g);

#endif
