/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* who: a task's process, for keys of maps. */
#ifndef SONDE_PROBES_WHO_BPF_H
#define SONDE_PROBES_WHO_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/who.h"

static __always_inline void who_leader_read(struct who_id *who, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	who->start_ns = BPF_CORE_READ(leader, start_boottime);
	who->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
}

/* The current one, which `task` is: its number needs no read. */
static __always_inline void who_id_fill(struct who_id *who, struct task_struct *task)
{
	who_leader_read(who, task);
	who->tgid = bpf_get_current_pid_tgid() >> 32;
}

/* The current one. */
static __always_inline void who_fill(struct who_id *who)
{
	who_id_fill(who, (struct task_struct *)bpf_get_current_task());
}

/* The current one, by plain loads, in programs that only kernels since 5.11 load. */
static __always_inline void who_fill_typed(struct who_id *who)
{
	struct task_struct *task = bpf_get_current_task_btf(), *leader = task->group_leader;

	who->start_ns = leader->start_boottime;
	who->exec_id = (__u32)leader->self_exec_id;
	who->tgid = (__u32)task->tgid;
}

/* Any. */
static __always_inline void who_id_of(struct who_id *who, struct task_struct *task)
{
	who_leader_read(who, task);
	who->tgid = BPF_CORE_READ(task, tgid);
}

#endif
