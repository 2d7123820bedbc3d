/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cgroups: what each cgroup used, had and may have: v2, v1, and hosts that have both (a controller
 * is in one of them). A cgroup is its path below the mount points, the same in all hierarchies; if
 * it is missing in one, that one's columns stay empty.
 *
 * Cgroups below a container's own are part of it and have no rows; those of a container inside it
 * have. The root is the host. A container's network is that of the namespace of one of its
 * processes, if that is not the host's; if containers share one, it is counted with the first that
 * was met.
 *
 * A cgroup that is removed before it is read again gets a last row from the ends of its processes:
 *
 *   1. CPU time: what processes that ended after the reading used since each was read itself. Never
 *      more than the kernel charged; less by what they used between the two readings of one round,
 *      up to 20 ms a process of several threads, and by processes whose end was not reported.
 *   2. Out-of-memory kills: those that the cgroup's own counter did not contain at its last
 *      reading. So their number agrees with `events`.
 *   3. All else (memory, throttling, I/O, network, pressure) is as of the last reading: the kernel
 *      keeps none of it for a cgroup that is gone.
 *
 * Disks: a device on top of others (dm, md, loop) has its own rows in cgroup_disk_row; the sums of
 * cgroup_row leave it out, since the kernel also counts its traffic at the devices below.
 */
#ifndef SONDE_HOST_FAMILY_CGROUPS_H
#define SONDE_HOST_FAMILY_CGROUPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/bpf/run/meter.h"
#include "loaders/lib/host/proc/blockdev.h"
#include "schema/base/strbuf.h"

enum cgroups_hierarchy {
	CGROUPS_V2,
	CGROUPS_CPU,
	CGROUPS_CPUACCT,
	CGROUPS_MEMORY,
	CGROUPS_BLKIO,
	CGROUPS_PIDS,
	CGROUPS_N
};

struct cgroups_group;
struct dockerfiles;
struct hostmaps_process;

struct cgroups {
	struct meter meter, disk, nic;
	char *root[CGROUPS_N];        /* where it is mounted; NULL: nowhere */
	struct cgroups_group *groups; /* by path */
	struct blockdev *devices;
	struct cgroups_orphan *orphans; /* what ended in cgroups that were never listed */
	uint64_t round, serial;
	bool incomplete; /* something could not be listed this time */
	bool last;       /* no round follows: rows are written even if no process was met */
	uint64_t host_netns;
	struct strbuf path, text, key;
	struct family_host *h;            /* of this round */
	const struct meter_round *at;     /* the same; borrowed while it lasts */
	const struct dockerfiles *docker; /* knows names; borrowed */
};

void cgroups_init(struct cgroups *c, int64_t idle_ns);
void cgroups_release(struct cgroups *c);
/* Is there a memory controller? */
bool cgroups_has_memory(struct cgroups *c);
/* The tree as it is now. A removed cgroup gets its last row. */
void cgroups_look(struct cgroups *c, struct family_host *h, const struct meter_round *r);
/* A process runs in it: it may tell whose container that is, and which network it has. */
void cgroups_meet(struct cgroups *c, struct hostmaps_process *p);
void cgroups_read(struct cgroups *c, const struct meter_round *r);

/* A process ended in a cgroup. Between rounds. */
struct cgroups_end {
	uint64_t user_us, system_us; /* since the process was read, never more than that */
	bool whole;                  /* it was never read: over its life */
	bool oom_kill;               /* of this end alone; the times are 0 */
};
void cgroups_ended(struct cgroups *c, const struct hostmaps_process *p,
		   const struct cgroups_end *e);

#endif
