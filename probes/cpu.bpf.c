/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cpu: on-CPU samples. A perf event on every CPU (cycles, or cpu-clock) runs cpu_sample at each
 * overflow; what is in the capture's scope becomes one record in the ring `events`.
 *
 * Scope is decided here (scope.bpf.h), before anything that costs.
 *
 * Nothing here is lost without being counted: struct sample_tally.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/cpu.h"
#define UNWIND_REMEMBERS
#include "probes/lib/sample.bpf.h"

struct kstack_tables kstack_tables = {};

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int cpu_sample(struct arch_perf_event_data *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct stack_scratch *s;
	struct sample_tally *t;
	__u32 zero = 0;

	if ((__u32)bpf_get_current_pid_tgid() == 0) /* idle, where the event could not exclude it */
		return 0;
	if (!task_in_scope(task))
		return 0;
	t = bpf_map_lookup_elem(&tally, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!t || !s)
		return 0;
	stack_fill_task(&s->ev, task, now);
	s->ev.tag = stack_tag(stack_serves(now), now);
	sample_take(s, t, task, ctx, 1);
	sample_tally_run(t, bpf_ktime_get_boot_ns() - now);
	return 0;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(cpu_fork, struct task_struct *parent, struct task_struct *child)
{
	sample_fork(parent, child);
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(cpu_exit, struct task_struct *task)
{
	scope_exit(task);
	return 0;
}
