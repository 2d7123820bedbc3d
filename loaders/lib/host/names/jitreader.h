/* SPDX-License-Identifier: Apache-2.0 */
/* jitreader: perf maps and jitdumps, which are strangers' files, read by a process without rights
 * (subreader.h): what the loader takes is what a stranger said (perfmap_unpack). */
#ifndef SONDE_HOST_JITREADER_H
#define SONDE_HOST_JITREADER_H

#include "loaders/lib/host/names/jitnames.h"
#include "loaders/lib/sandbox/subreader.h"

struct perfmap;
struct jitreader;

/* NULL: it could not be started; then all jobs are refused, -ENOSYS. Call it from a program's main
 * thread. */
struct jitreader *jitreader_open(void);
/* Jobs that still run are ended. NULL is fine. */
void jitreader_close(struct jitreader *r);

#define JITREADER_JOBS_MAX 8

struct jitjob {
	struct subreader_job read;
	struct jitreader *of;
};
/* clang-format off */
#define JITJOB_NONE (struct jitjob){.read = {.said = -1, .out = -1}}
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
