/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_tell: a profile that was read (tools/formats/import.h), as the lines that sonde-import
 * takes (loaders/import/line.h).
 *
 *  1. When: a file that has its own time (pprof) keeps it; else it ends at `to_ns`. Its times are
 * whole buckets: at most IMPORT_BUCKETS of them, of 1 s or more.
 *  2. Where samples have their own times (perf script) they go there. Else they are spread evenly
 * over the time that the file says it took; one that says none took as long as one CPU needs for
 * it.
 *  3. A sample of CPU time stands for the file's period, or 1 / `hz` where nothing says what one
 * stands for. Where the samples of a file stand for different times they become as many as come
 * nearest.
 *  4. Memory in use is told once, at the end.
 */
#ifndef SONDE_TOOLS_IMPORT_TELL_H
#define SONDE_TOOLS_IMPORT_TELL_H

#include <stdint.h>
#include <stdio.h>

#include "tools/fold/fold.h"

#define IMPORT_BUCKETS 60

struct import_when {
	int64_t from_ns, to_ns; /* whole buckets */
	uint32_t bucket_s;
	uint64_t period_ns;
};

/* Of the kinds cpu, and those that are no time on a CPU. `to_ns`: when it ended, if the file does
 * not say. */
void import_plan(const struct fold *f, int64_t to_ns, uint64_t hz, struct import_when *out);
/* The run, once; then each fold with its leaves. Folds of one file have the same processes in the
 * same order: they are told with the first one (*frames is 0), and `name` is for those that have
 * none. *frames is how many were told before, and is counted on. */
void import_tell_run(const struct import_when *w, const char *options, FILE *out);
void import_tell(const struct fold *f, const struct import_when *w, const char *name,
		 uint32_t *frames, FILE *out);

#endif
