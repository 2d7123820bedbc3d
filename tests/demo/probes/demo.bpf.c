/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* demo: takes the stack of one in `every` page faults of programs (not of the kernel for them). */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/preempt.bpf.h"
#include "probes/lib/scope.bpf.h"
#include "probes/lib/stack.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 every = 1000;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} events SEC(".maps");

__u64 stacks, ring_full; /* stacks taken; those of them that found no room in the ring */

static __noinline int fault_send(struct task_struct *task, void *ctx)
{
	__u32 zero = 0;
	struct stack_scratch *s = bpf_map_lookup_elem(&scratch, &zero);

	if (!s)
		return 0;
	__sync_fetch_and_add(&stacks, 1);
	stack_fill_task(&s->ev, task, bpf_ktime_get_boot_ns());
	if (!stack_fill(s, task, ctx, NULL) &&
	    bpf_ringbuf_output(&events, &s->ev, stack_event_size(s), BPF_RB_NO_WAKEUP))
		__sync_fetch_and_add(&ring_full, 1);
	return 0;
}

TRACEPOINT(page_fault_user, demo_fault)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!every || bpf_get_prandom_u32() % every || !task_in_scope(task))
		return 0;
	return fault_send(task, ctx);
}
