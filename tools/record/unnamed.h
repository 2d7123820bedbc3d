/* SPDX-License-Identifier: Apache-2.0 */
/* unnamed: which file a recording could not name the functions of, where that was much, and what
 * brings the names. */
#ifndef SONDE_TOOLS_UNNAMED_H
#define SONDE_TOOLS_UNNAMED_H

#include <stdint.h>
#include <stdio.h>

#include "tools/fold/fold.h"

#define UNNAMED_TELL 0.2 /* share of the CPU time, in one file, from which it is reported */

/* The frame (index into f->frames) of the file, neither kernel nor made at run time, in whose
 * unnamed functions most was used, sonde's own processes left out, and how much that is of all. `f`
 * has leaves. UINT32_MAX: nothing was. */
uint32_t unnamed_most(const struct fold *f, double *share);
/* Two lines, or none where it is less than UNNAMED_TELL. */
void unnamed_print(const struct fold *f, FILE *out);

#endif
