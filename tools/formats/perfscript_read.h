/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * perfscript_read: what `perf script` prints, as a fold. Pure over bytes; bounded.
 *
 *  1. A sample is a line that does not begin with white space, the lines of its stack (leaf first),
 * and an empty line:
 *
 *     my app  812/815  [001]  1234.567890:    250000 cpu-clock:pppH:
 *             55d0c0ffee work+0x1c (/usr/bin/app)
 *             ffffffff81000000 do_syscall_64 ([kernel.kallsyms])
 *
 * The head line is read from the right: the event's name and a colon; the period; seconds and a
 * colon; [cpu]; tid or pid/tid; the rest is the command. cpu, time, period and event may be missing
 * (perf script -F), the ids may not.
 *  2. A frame is a hexadecimal address, a name, perhaps +0x offset, and the file in brackets at the
 * end; `[unknown]` has no name. `(inlined)` marks a frame inlined into the next one. Without a name
 * it is "file+0xaddress".
 *  3. Of clock events the period is time in ns. Of other events only samples are counted: their
 * period is not a time.
 *  4. Times are those of perf's clock. leaf.slice is the second of a sample, counted from the
 * first, and slice_ns a second; without times slice_ns is 0. There are no other slices.
 *  5. Lines that begin with # are skipped. Any other line is an error.
 */
/* clang-format on */
#ifndef SONDE_TOOLS_PERFSCRIPT_READ_H
#define SONDE_TOOLS_PERFSCRIPT_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

/* Does the beginning look like it: a frame's line soon? */
bool perfscript_looks(const char *data, size_t len);
/* EXIT_USAGE with the number of the line. */
int perfscript_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
		    struct fold **out, struct err *e);

#endif
