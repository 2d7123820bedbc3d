/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* disk_who: what all programs of family disk use: which process asks, the epoch, slots of
 * histograms, and what found no room. */
#ifndef SONDE_PROBES_DISK_WHO_BPF_H
#define SONDE_PROBES_DISK_WHO_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/disk.h"

#define BPF_F_NO_PREALLOC 1

volatile __u32 disk_epoch; /* the loader's */
struct disk_lost disk_lost;

static __always_inline void who_of(struct task_struct *task, struct disk_who *who)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	who->start_ns = BPF_CORE_READ(leader, start_boottime);
	who->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	who->tgid = BPF_CORE_READ(task, tgid);
}

static __always_inline void who_fill(struct disk_who *who)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task(),
			   *leader = BPF_CORE_READ(task, group_leader);

	who->start_ns = BPF_CORE_READ(leader, start_boottime);
	who->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	who->tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
}

static __always_inline __u32 slot_of(__u64 ns)
{
	__u64 us = ns / 1000;
	__u32 slot = 0;

#pragma unroll
	for (int i = 0; i < DISK_SLOTS - 1; i++) {
		us >>= 1;
		slot += us != 0;
	}
	return slot;
}

#endif
