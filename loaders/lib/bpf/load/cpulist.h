/* SPDX-License-Identifier: Apache-2.0 */
/* cpulist: the kernel's notation for sets of CPUs, "0-3,8,10-11". */
#ifndef SONDE_BPF_CPULIST_H
#define SONDE_BPF_CPULIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPULIST_MAX 4096

struct cpulist {
	bool has[CPULIST_MAX];
	uint32_t n;    /* how many are set */
	uint32_t last; /* the highest of them; 0 also for an empty set */
};

/* Pure. -EINVAL: not such a list, or a number past CPULIST_MAX. */
int cpulist_parse(const char *s, size_t len, struct cpulist *out);
/* The CPUs that are online now. */
int cpulist_online(struct cpulist *out);

#endif
