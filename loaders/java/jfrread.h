/* SPDX-License-Identifier: Apache-2.0 */
/* jfrread: recordings, which are strangers' files, read by a process without rights (subreader.h):
 * what the loader takes is a block (jfrblock.h). */
#ifndef SONDE_JAVA_JFRREAD_H
#define SONDE_JAVA_JFRREAD_H

#include "loaders/java/jfrblock.h"
#include "loaders/java/jfrpick.h"
#include "loaders/lib/sandbox/subreader.h"

#define JFRREAD_FILE_MAX (128u << 20)

/* 0, or -errno. */
int jfrread_open(struct subreader *r);
/* Starts reading; the caller keeps the file. */
int jfrread_ask(const struct subreader *r, int file, const struct jfrpick_opts *o,
		struct subreader_job *job);
/* Waits up to `wait_ms`. -EINPROGRESS: it is not done yet. Else the job is over. 0: `out` refers to
 * *bytes, which the caller frees. -EAGAIN: the chunk cannot be read at the moment. */
int jfrread_take(struct subreader_job *job, int wait_ms, void **bytes, struct jfrblock *out);

#endif
