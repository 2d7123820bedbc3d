/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfscript: CPU samples as `perf script` prints them, for programs that read it. The form is that
 * of tools/formats/perfscript_read.h: a block a sample, in order of time. Times are UTC, to the
 * slice of the fold; within one, samples are evenly spaced. The CPU is not recorded: [000].
 */
#ifndef SONDE_TOOLS_PERFSCRIPT_H
#define SONDE_TOOLS_PERFSCRIPT_H

#include <stdio.h>

#include "tools/fold/fold.h"

#define PERFSCRIPT_SLICES 600

/* Of a fold of CPU samples with leaves and slices, without groups. A stream that refuses bytes says
 * so at its end. */
void perfscript_write(const struct fold *f, FILE *out);

#endif
