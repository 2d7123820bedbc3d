/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: starts one of sonde's programs so that it does not outlive sonded by accident.
 *
 * As far as the system permits: it gets SIGTERM when sonded dies (PR_SET_PDEATHSIG), cannot gain
 * privileges (no_new_privs) and has no capabilities but those in `caps`; it writes no core dumps;
 * the kernel's out-of-memory killer prefers it to others.
 */
#ifndef SONDE_SUPERVISOR_CHILD_H
#define SONDE_SUPERVISOR_CHILD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"

struct child_fd {
	int from, to; /* `from` (ours) is `to` in the child */
};

struct child_opts {
	char *const *argv; /* argv[0] is the path */
	const struct child_fd *fds;
	size_t n_fds;          /* at most 16; all else but 0, 1 and 2 is closed by close-on-exec */
	uint64_t caps;         /* bit 1 << CAP_x */
	uint64_t memory_bytes; /* limit of its private memory (RLIMIT_DATA; soft, so that the child
				  may raise it for its own children); 0: none */
};

int child_start(const struct child_opts *o, pid_t *pid, struct err *e);
/* Start time of a process in clock ticks since boot; with the pid it identifies the process. 0:
 * there is no such process. */
uint64_t child_start_ticks(pid_t pid);

#endif
