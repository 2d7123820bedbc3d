/* SPDX-License-Identifier: Apache-2.0 */
/*
 * subreader: the processes without rights that read strangers' files (docs/decisions/0233).
 *
 * A small process is forked from the loader before the loader has much memory, and before it gives
 * up starting processes. It has no capability and reads no file: for each job it forks a child,
 * which gets the job's bytes and open files, reads them in a sandbox, and writes what it found into
 * a memfd. The loader takes that as what a stranger said. A child that breaks, or meets a limit,
 * costs one job.
 *
 * The loader never waits longer than it wants: subreader_take can be called again.
 */
#ifndef SONDE_SANDBOX_SUBREADER_H
#define SONDE_SANDBOX_SUBREADER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define SUBREADER_JOB_MAX   64 /* bytes */
#define SUBREADER_FILES_MAX 2

struct subreader_files {
	const int *files;
	size_t n;
	int said, out; /* a pipe for the status, the memfd */
};
/* In the child: enters a sandbox, reads, fills `out` (subreader_put), writes its status into
 * `said`. Its result is the process's. `size` bytes of `job` are as they were asked. */
typedef int (*subreader_work)(const void *job, size_t size, const struct subreader_files *f);

struct subreader {
	int sock; /* -1: there is no process to ask */
	pid_t pid;
};

/* `name`: of its thread, at most 15 characters. 0 or -errno. Call it from a program's main thread.
 */
int subreader_open(struct subreader *r, const char *name, subreader_work work);
/* Jobs that still run are ended. One that is not open is fine. */
void subreader_close(struct subreader *r);

struct subreader_job {
	int said, out;    /* descriptors; -1: no job */
	int64_t until_ns; /* boot clock */
};

/* Starts reading; the caller keeps the files. -EBUSY: too many wait; -ENOSYS: there is no process
 * to ask. */
int subreader_ask(const struct subreader *r, const void *job, size_t size, const int *files,
		  size_t n, int64_t most_ns, struct subreader_job *out);
/* Waits up to `wait_ms` for the status, of `size` bytes. -EINPROGRESS: not yet, call again. -ETIME,
 * -ECHILD: the child did not end in time, or broke. 0: it said its status. */
int subreader_take(const struct subreader_job *job, int wait_ms, void *status, size_t size);
/* What it wrote: *bytes is the caller's, with a NUL behind it. -EBADMSG: more than `most`. */
int subreader_result(const struct subreader_job *job, size_t most, void **bytes, size_t *len);
/* The end of a job, in any case; none is fine. */
void subreader_drop(struct subreader_job *job);

/* In a child: all of it into the memfd; all that a file has at this place. */
int subreader_put(int fd, const void *bytes, size_t len);
size_t subreader_get(int fd, void *to, size_t size, size_t from);

#endif
