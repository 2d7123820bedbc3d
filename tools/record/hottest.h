/* SPDX-License-Identifier: Apache-2.0 */
/* hottest: who used most CPU in a recording, a line each, as `record` says at its end. */
#ifndef SONDE_TOOLS_HOTTEST_H
#define SONDE_TOOLS_HOTTEST_H

#include <stdio.h>

#include "tools/fold/fold.h"

/* `f` (with leaves) by container, or by command outside of containers: a build's two hundred
 * compilers are one line. Prints the three that used most, with their pid or their number of
 * processes, and the function with most of their time. sonde's own processes are left out. The
 * first one's name (borrowed from `f`); NULL: nothing ran. */
const char *hottest_print(const struct fold *f, FILE *out);

#endif
