/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_read: profiles in JSON as a fold: those of speedscope (its file-format-schema.json) and
 * those of the Firefox Profiler, processed (as samply writes them) or as Gecko writes them
 * (gecko_read.c). Pure over bytes; bounded.
 *
 *  1. Of speedscope's profiles those in a unit of the first one's sort (time, bytes, none) are
 * read, sampled or evented; each is a thread. A unit of time is time on CPU, "none" counts samples;
 * "bytes" needs --type alloc or inuse.
 *  2. Of Firefox's threads a sample counts for its threadCPUDelta where the file has it in a unit
 * of time, else for its weight times the interval.
 *  3. Sums are kept to a nanosecond, and of counts to a thousandth (fold.parts): what one weight
 * loses by rounding the next one gains.
 *  4. Indexes that lead nowhere and negative weights are errors.
 */
#ifndef SONDE_TOOLS_JSON_READ_H
#define SONDE_TOOLS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>

#include "schema/base/err.h"
#include "tools/fold/fold.h"

bool json_read_looks(const char *data, size_t len);
/* EXIT_USAGE with what is wrong. */
int json_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
	      struct fold **out, struct err *e);

#endif
