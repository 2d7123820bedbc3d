/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* scope: which tasks a capture is about, as the loader tells every family's program. See
 * scope.bpf.h. */
#ifndef SONDE_PROBES_SCOPE_H
#define SONDE_PROBES_SCOPE_H

#ifndef __bpf__
#include <linux/types.h>
#include <stdbool.h>
#endif

/* Key of the map `cgroups`: a cgroup id is unique within its hierarchy only. */
enum scope_hierarchy {
	SCOPE_V2 = 0,
	SCOPE_V1_MEMORY = 1,
	SCOPE_V1_PIDS = 2,
	SCOPE_HIERARCHIES = 3
};
struct scope_cgroup {
	__u64 id;
	__u32 hierarchy; /* enum scope_hierarchy */
	__u32 pad;
};
_Static_assert(sizeof(struct scope_cgroup) == 16, "wire size");

#define SCOPE_CGROUP_DEPTH 16 /* levels searched upwards */

/* In .rodata: kinds of filter that are not used vanish at load. */
struct scope_config {
	bool pids, cgroups, comms;
	bool hierarchy_used[SCOPE_HIERARCHIES];
};

#endif
