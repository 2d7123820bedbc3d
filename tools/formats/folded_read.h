/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folded_read: folded stacks (one a line: `main;work;small 30`, root first) as a fold. Pure over
 * bytes; bounded.
 *
 *  1. The count is the number after the last space or tab. It counts samples; as the time that a
 * sample represents is unknown, the fold has no duration: only shares are meaningful. A count may
 * have a fraction (to a millionth): the fold then counts the largest part of a sample that keeps
 * each of them, of which fold.parts make one.
 *  2. Where every line ends with two numbers (difffolded.pl writes so) the second one counts, as
 * flamegraph.pl takes it; what is left out is in fold.losses.
 *  3. `\x3b` in a name is a semicolon, as tools/formats/folded.h writes it. The marks of
 * stackcollapse (`_[k]` kernel, `_[j]` JIT,
 *     `_[i]` inlined) are taken off.
 *  4. Empty lines and lines that begin with # are skipped. Any other line that is not of this form
 * is an error.
 */
#ifndef SONDE_TOOLS_FOLDED_READ_H
#define SONDE_TOOLS_FOLDED_READ_H

#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

/* EXIT_USAGE with the number of the line. */
int folded_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
		struct fold **out, struct err *e);

#endif
