/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child: starting a program of ours so that nothing of it outlives us by accident.
 *
 * Where the system lets us: it gets SIGTERM when we die (PR_SET_PDEATHSIG), can gain no rights
 * (no_new_privs), and none but those in `caps` are in its reach; no core dumps; the kernel's
 * out-of-memory killer takes it before others.
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
	uint64_t memory_bytes; /* most that it may have of its own (RLIMIT_DATA, soft: one it starts
				  may have more); 0: no limit */
};

int child_start(const struct child_opts *o, pid_t *pid, struct err *e);
/* Start time of a process in clock ticks since boot: with the pid its identity. 0: there is none.
 */
uint64_t child_start_ticks(pid_t pid);

#endif
