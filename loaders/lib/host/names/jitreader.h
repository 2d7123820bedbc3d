/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitreader: the processes without rights that read perf maps and jitdumps, which are strangers'
 * files (docs/decisions/0233).
 *
 * A small process is forked from the loader before the loader has much memory, and before it gives
 * up starting processes. It has no capability and reads no file: for each job it forks a child,
 * which enters the sandbox (SANDBOX_NAMES), reads the open files of the job, and writes what it
 * found into a memfd. The loader takes that as what a stranger said (perfmap_unpack). A child that
 * breaks, or meets a limit, costs the names of one process.
 *
 * The loader never waits longer than it wants: jitjob_take can be called again.
 */
#ifndef SONDE_HOST_JITREADER_H
#define SONDE_HOST_JITREADER_H

#include <stdint.h>

#include "loaders/lib/host/names/jitnames.h"

struct perfmap;
struct jitreader;

/* NULL: it could not be started; then all jobs are refused, -ENOSYS. Call it from a program's main
 * thread. */
struct jitreader *jitreader_open(void);
/* Jobs that still run are ended. NULL is fine. */
void jitreader_close(struct jitreader *r);

#define JITREADER_JOBS_MAX 8

struct jitjob {
	int said, out;    /* descriptors; -1: no job */
	int64_t until_ns; /* boot clock */
	struct jitreader *of;
};
/* clang-format off */
#define JITJOB_NONE (struct jitjob){.said = -1, .out = -1}
/* clang-format on */

/* Starts reading; the caller keeps the files, and may close them. -EBUSY: JITREADER_JOBS_MAX run
 * already. -ENOSYS: there is no process to ask. */
int jitreader_ask(struct jitreader *r, const struct jitnames_files *f, struct jitjob *job);
/* Waits up to `wait_ms`. -EINPROGRESS: it is not done yet. Else the job is over, and becomes
 * JITJOB_NONE: 0 and the map, or why it was not read (jitnames_read); `told` is filled. */
int jitjob_take(struct jitjob *job, int wait_ms, struct perfmap **out, struct jitnames_told *told);
/* Its result is not wanted. JITJOB_NONE is fine. */
void jitjob_drop(struct jitjob *job);

/* What a child does, for tests: as in the sandbox. */
int jitreader_parse(const struct jitnames_files *f, struct perfmap **out,
		    struct jitnames_told *told);

#endif
