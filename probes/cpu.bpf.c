/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cpu: on-CPU samples. A perf event on every CPU (cycles, or cpu-clock) runs cpu_sample at each
 * overflow; what is in the capture's scope becomes one record in the ring `events`, without a
 * wake-up: the loader reads on a timer, and is called only when the ring is half full.
 *
 * Scope is decided here (scope.bpf.h), before anything that costs.
 *
 * Nothing here is lost without being counted: struct cpu_tally.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/cpu.h"
#include "probes/lib/scope.bpf.h"
#define UNWIND_REMEMBERS
#include "probes/lib/stack.bpf.h"

struct kstack_tables kstack_tables = {};

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

const volatile __u32 ring_bytes = 256 * 1024; /* of `events` */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_tally);
} tally SEC(".maps");

static __always_inline void tally_run(struct cpu_tally *t, __u64 ns)
{
	__u32 slot = 0;

	t->run_ns += ns;
	if (ns >> 16) {
		ns >>= 16;
		slot += 16;
	}
	if (ns >> 8) {
		ns >>= 8;
		slot += 8;
	}
	if (ns >> 4) {
		ns >>= 4;
		slot += 4;
	}
	if (ns >> 2) {
		ns >>= 2;
		slot += 2;
	}
	if (ns >> 1)
		slot += 1;
	t->slot[slot & (CPU_TALLY_SLOTS - 1)]++;
}

static __always_inline long send(struct stack_scratch *s)
{
	__u64 flags = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > ring_bytes / 2 ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	return bpf_ringbuf_output(&events, &s->ev, stack_event_size(s), flags);
}

SEC("perf_event")
int cpu_sample(struct arch_perf_event_data *ctx)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct stack_scratch *s;
	struct cpu_tally *t;
	__u32 zero = 0;

	if ((__u32)bpf_get_current_pid_tgid() == 0) /* idle, where the event could not exclude it */
		return 0;
	if (!task_in_scope(task))
		return 0;
	t = bpf_map_lookup_elem(&tally, &zero);
	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!t || !s)
		return 0;
	t->seen++;
	stack_fill_task(&s->ev, task, now);
	s->ev.tag = stack_tag(stack_serves(now), now);
	if (stack_fill(s, task, ctx, ctx))
		t->late++;
	else if (send(s))
		t->ring_full++;
	else
		t->sent++;
	tally_run(t, bpf_ktime_get_boot_ns() - now);
	return 0;
}

SEC("?tp_btf/sched_process_fork")
int BPF_PROG(cpu_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 zero = 0;
	struct cpu_tally *t;

	if (scope_fork(parent, child))
		return 0;
	t = bpf_map_lookup_elem(&tally, &zero);
	if (t)
		t->unfollowed++;
	return 0;
}

SEC("?tp_btf/sched_process_exit")
int BPF_PROG(cpu_exit, struct task_struct *task)
{
	scope_exit(task);
	return 0;
}
