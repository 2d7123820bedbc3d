/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target: what --pid, --cgroup, --container, --comm and `-- command` mean on this host now: the
 * process ids and cgroup ids that the BPF program compares with. Names that match nothing are
 * errors (EXIT_USAGE) before anything is loaded.
 */
#ifndef SONDE_BPF_TARGET_H
#define SONDE_BPF_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/start/options.h"
#include "schema/store/write/writer.h"

struct hostmaps_process;

struct target {
	uint32_t *pids;
	size_t n_pids, cap_pids;
	struct family_cgroup *cgroups;
	size_t n_cgroups, cap_cgroups;
	struct family_target family; /* borrows the above and the options */
};

/* `command` is the pid of `-- command`, 0: none. */
int target_resolve(struct target *t, const struct options *o, pid_t command, struct err *e);
void target_release(struct target *t);

/* Which processes such a capture covers completely. */
enum store_scope target_scope(const struct target *t);
/* Is it of some processes only? NULL: no. */
bool target_is_narrow(const struct family_target *t);
/* May it be of this process, of which nothing but its pid is known? */
bool target_may_cover(const struct family_target *t, uint32_t tgid);
/* True if the target is a set of processes and all of them have ended: no more events can come. */
bool target_gone(const struct target *t);
/* Is this process part of the target? By /proc, for families without a filter in BPF. Compares the
 * main thread's name. */
bool target_covers(const struct family_target *t, struct hostmaps *hm,
		   const struct hostmaps_process *p);

#endif
