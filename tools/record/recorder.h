/* SPDX-License-Identifier: Apache-2.0 */
/* recorder: is a recording going on here and now? */
#ifndef SONDE_TOOLS_RECORDER_H
#define SONDE_TOOLS_RECORDER_H

#include <stdbool.h>

#include "tools/select/select.h"

/* The store says it goes on, and its writer is a living process of this host. */
bool recorder_is_live(const struct select_recording *r);

#endif
