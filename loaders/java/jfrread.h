/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jfrread: the process without rights that reads recordings, which are strangers' files.
 *
 * It is forked from the loader before that gives up starting processes, and has no capability. For
 * each reading it forks a child, which enters the sandbox, reads the open file, writes a block
 * (jfrblock.h) into a memfd, and ends. A child that breaks, or meets a limit, costs one reading of
 * one Java program. The loader never waits: jfrread_take can be called again.
 */
#ifndef SONDE_JAVA_JFRREAD_H
#define SONDE_JAVA_JFRREAD_H

#include <stdint.h>
#include <sys/types.h>

#include "loaders/java/jfrblock.h"
#include "loaders/java/jfrpick.h"

#define JFRREAD_FILE_MAX (128u << 20)

struct jfrread {
	int sock;
	pid_t pid;
};

/* 0, or -errno. */
int jfrread_open(struct jfrread *r);
void jfrread_close(struct jfrread *r);

struct jfrread_job {
	int said, out; /* -1: no job */
	int64_t until_ns;
};
/* Starts reading; the caller keeps the file. */
int jfrread_ask(const struct jfrread *r, int file, const struct jfrpick_opts *o,
		struct jfrread_job *job);
/* Waits up to `wait_ms`. -EINPROGRESS: it is not done yet. Else the job is over. 0: `out` refers to
 * *bytes, which the caller frees. -EAGAIN: the chunk cannot be read at the moment. */
int jfrread_take(struct jfrread_job *job, int wait_ms, void **bytes, struct jfrblock *out);
void jfrread_drop(struct jfrread_job *job);

#endif
