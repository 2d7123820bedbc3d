// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* demo: counts, by process, the page faults of programs (not of the kernel for them). */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/demo.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/scope.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct demo_process);
	__type(value, __u64);
} faults SEC(".maps");

struct { /* the loader's: how much of it is in the store */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct demo_process);
	__type(value, __u64);
} told SEC(".maps");

__u64 lost; /* for want of room */

TRACEPOINT(page_fault_user, demo_fault)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct demo_process key = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .start_ns = BPF_CORE_READ(task, group_leader, start_boottime)};
	__u64 zero = 0, *n = bpf_map_lookup_elem(&faults, &key);

	if (!n) {
		if (!task_in_scope(task))
			return 0;
		bpf_map_update_elem(&faults, &key, &zero, BPF_NOEXIST);
		n = bpf_map_lookup_elem(&faults, &key);
	}
	__sync_fetch_and_add(n ? n : &lost, 1);
	return 0;
}
