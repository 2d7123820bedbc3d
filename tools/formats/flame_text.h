/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_text: a flame graph in lines of text, callers above callees, hottest first: share, amount,
 * a bar, the function.
 *
 *  1. A node with less than FLAME_TEXT_SHARE of everything is not shown; the last line has their
 * number.
 *  2. A caller's only callee is in the same column below it, so a long chain stays upright. If
 * several are shown, each has a `+` (a branch, with unicode), and its callees are indented.
 *  3. From the root on, the hottest callee of each caller on the hottest path is marked with `>`.
 *  4. With `unicode` bars have eighths of a cell, else they are of `#`. Colours are the stream's
 * (term.h).
 *  5. Lines have at most `width` columns; names are cut in the middle. 0: as long as they are.
 */
#ifndef SONDE_TOOLS_FLAME_TEXT_H
#define SONDE_TOOLS_FLAME_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "tools/fold/fold.h"

#define FLAME_TEXT_SHARE 0.005

void flame_text_write(const struct fold *f, FILE *out, unsigned width, bool unicode);

#endif
