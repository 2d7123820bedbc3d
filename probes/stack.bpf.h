/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack: fills a stack_event and its frames for the current task. Shared by every family's program. The event is built
 * in a per-CPU scratch and only its used length is copied to the ring: a reservation would have to be of the largest
 * size, four times what most stacks need.
 */
#ifndef SONDE_PROBES_STACK_BPF_H
#define SONDE_PROBES_STACK_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/stack.h"
#include "probes/unwind.bpf.h"

struct stack_scratch {
	struct stack_event ev;
	__u64 frames[STACK_KERNEL_MAX + STACK_USER_MAX + 2]; /* + 2: room that a masked index may point at */
};

/* Frames asked for, of each part: min(STACK_*_MAX, kernel.perf_event_max_stack), set before load. */
const volatile __u32 stack_depth = STACK_USER_MAX;

/* Who: identity, thread, cgroup, CPU. `time_ns` is CLOCK_BOOTTIME. */
static __always_inline void stack_fill_task(struct stack_event *ev, struct task_struct *task, __u64 time_ns)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	ev->time_ns = time_ns;
	ev->start_ns = BPF_CORE_READ(leader, start_boottime);
	ev->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	ev->cgroup_id = bpf_get_current_cgroup_id();
	ev->tgid = pid_tgid >> 32;
	ev->tid = (__u32)pid_tgid;
	ev->cpu = bpf_get_smp_processor_id();
	ev->flags = BPF_CORE_READ(task, flags) & PF_KTHREAD ? STACK_F_KTHREAD : 0;
	bpf_get_current_comm(ev->thread, sizeof(ev->thread));
}

/* Where: kernel frames, then user frames. */
static __always_inline void stack_fill_frames(struct stack_scratch *s, void *ctx)
{
	struct stack_event *ev = &s->ev;
	__u32 n_kernel = 0, n_user = 0;
	long got;

	got = bpf_get_stack(ctx, s->frames, STACK_KERNEL_MAX * sizeof(s->frames[0]), 0);
	if (got < 0)
		ev->flags |= STACK_F_KERNEL_FAULT;
	else
		n_kernel = (__u64)got / sizeof(s->frames[0]);
	if (n_kernel > STACK_KERNEL_MAX)
		n_kernel = STACK_KERNEL_MAX;

	if (!(ev->flags & STACK_F_KTHREAD)) {
		got = unwind_user(ctx, &s->frames[n_kernel & 0x7f]);
		if (got < 0)
			ev->flags |= STACK_F_USER_FAULT;
		else
			n_user = (__u32)got;
		if (n_user > STACK_USER_MAX)
			n_user = STACK_USER_MAX;
	}
	if (n_kernel >= stack_depth || n_user >= stack_depth)
		ev->flags |= STACK_F_TRUNCATED;
	ev->n_kernel = (__u16)n_kernel;
	ev->n_user = (__u16)n_user;
}

/* Bytes of the event that are used. */
static __always_inline __u32 stack_event_size(const struct stack_scratch *s)
{
	__u32 n = (__u32)s->ev.n_kernel + s->ev.n_user;

	if (n > STACK_KERNEL_MAX + STACK_USER_MAX)
		n = STACK_KERNEL_MAX + STACK_USER_MAX;
	return sizeof(s->ev) + n * sizeof(s->frames[0]);
}

#endif
