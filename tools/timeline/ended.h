/* SPDX-License-Identifier: Apache-2.0 */
/* ended: how a process ended, in words: "exit 1", "signal 11 (SEGV)", "out of memory". */
#ifndef SONDE_TOOLS_ENDED_H
#define SONDE_TOOLS_ENDED_H

#include <stdint.h>

#include "schema/store/read/reader.h"

#define ENDED_MAX 48

/* "" where it has not ended, or is not known to have. */
void ended_say(enum store_end_how how, uint32_t status, char out[ENDED_MAX]);

#endif
