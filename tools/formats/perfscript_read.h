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
 * The head line: the command; tid or pid/tid; [cpu]; letters of -F +misc; seconds and a colon; the
 * period; the event's name and a colon. cpu, misc, time, period and event may be missing (perf script
 * -F), the ids may not. The command ends before the first number after which the rest of the line has
 * this form. Without -g the frame follows on the same line; the fields of a tracepoint are skipped.
 *  2. A frame is a hexadecimal address, a name, perhaps +0x offset, and the file in brackets at the
 * end; `[unknown]` has no name. `(inlined)` marks a frame inlined into the next one. Without a name
 * it is "file+0xaddress". White space before it may be missing. The line below it may be its place in
 * the source (-F +srcline).
 *  3. One event is read: opts->event, or the first in the file. Samples of the others are counted in
 * fold.losses, by the event's name.
 *  4. Of clock events the period is time in ns. Of other events only samples are counted: their
 * period is not a time.
 *  5. Times are those of perf's clock. leaf.slice is the second of a sample, counted from the
 * first, and slice_ns a second; without times slice_ns is 0. There are no other slices.
 *  6. Lines that begin with # and PERF_RECORD lines are skipped. Any other line is an error.
 */
/* clang-format on */
#ifndef SONDE_TOOLS_PERFSCRIPT_READ_H
#define SONDE_TOOLS_PERFSCRIPT_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

/* Does the beginning look like it: a head line or an indented frame soon? */
bool perfscript_looks(const char *data, size_t len);
/* EXIT_USAGE with the number of the line. */
int perfscript_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
		    struct fold **out, struct err *e);

#endif
