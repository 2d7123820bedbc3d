/* SPDX-License-Identifier: Apache-2.0 */
/* live_screen: `sonde top` on a terminal: draws what live has read, and handles keys, until `q`. */
#ifndef SONDE_TOOLS_LIVE_SCREEN_H
#define SONDE_TOOLS_LIVE_SCREEN_H

#include <stdint.h>

#include "schema/base/err.h"
#include "tools/processes/live.h"

/* `l` was read once. every_ns: how often a window that follows the clock is read. */
int live_screen(struct live *l, int64_t every_ns, struct err *e);

#endif
