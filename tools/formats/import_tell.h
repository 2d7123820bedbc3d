/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_tell: writes a profile that was read (tools/formats/import.h) as the lines that
 * sonde-import takes (loaders/import/line.h).
 *
 *  1. When: a file that has its own time (pprof) keeps it; else it ends at `to_ns`. Samples are
 *     stored in at most IMPORT_BUCKETS buckets of whole seconds. The recording begins with the
 * first bucket and lasts as long as the profile.
 *  2. Samples with their own times (perf script) keep them. Else they are spread evenly over the
 *     file's duration; a file without one is taken to have lasted as long as one CPU needs for its
 *     samples.
 *  3. A sample of CPU time represents the file's period, or 1 / `hz` if the file has none. If a
 *     file's samples represent different times, they are counted in the largest unit that keeps
 * each of them exactly (`divided`).
 *  4. Memory in use is written once, at the end.
 */
#ifndef SONDE_TOOLS_IMPORT_TELL_H
#define SONDE_TOOLS_IMPORT_TELL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/fold/fold.h"

#define IMPORT_BUCKETS 60

struct import_when {
	int64_t from_ns, to_ns; /* from: the beginning of a bucket */
	uint32_t bucket_s, buckets;
	uint64_t period_ns;
	bool divided; /* period_ns is shorter than the file's samples */
};

/* Of the kinds cpu, and those that are no time on a CPU. `to_ns`: when it ended, if the file does
 * not say. */
void import_plan(const struct fold *f, int64_t to_ns, uint64_t hz, struct import_when *out);
/* The run, once; then each fold with its leaves. Folds of one file have the same processes in the
 * same order: they are written with the first one (*frames is 0), and `name` is for those without a
 * name. *frames is the number of frames written so far, and is updated. */
void import_tell_run(const struct import_when *w, const char *options, FILE *out);
void import_tell(const struct fold *f, const struct import_when *w, const char *name,
		 uint32_t *frames, FILE *out);
/* How many of its rows have stacks that are deeper than a store's: the outermost frames are cut
 * off.
 */
uint64_t import_cut(const struct fold *f);
/* How many samples, events or objects of it the store has afterwards. */
uint64_t import_samples(const struct fold *f, const struct import_when *w);

#endif
