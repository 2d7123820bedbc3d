/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memlimit: what this process may have of memory, and whether the kernel has ended a process for
 * lack of it: a child that it ends is only told as "signal 9".
 */
#ifndef SONDE_BASE_MEMLIMIT_H
#define SONDE_BASE_MEMLIMIT_H

#include <stdint.h>

struct memlimit {
	uint64_t bytes;  /* UINT64_MAX: no limit */
	char what[384];  /* "its cgroup /x may use 40.0 MiB of memory (memory.max)" */
	const char *fix; /* how it is raised */
};

/* The narrowest: RLIMIT_AS, RLIMIT_DATA, or that of its cgroup or one around it (v2, or v1 at
 * /sys/fs/cgroup/memory). */
void memlimit_read(struct memlimit *out);
/* How many processes the kernel has ended so far because this cgroup was at its limit, or because
 * the host was out of memory. */
uint64_t memlimit_kills(void);

#endif
