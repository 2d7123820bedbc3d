// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * cpu: on-CPU samples. A perf event on every CPU (cycles, or cpu-clock) runs cpu_sample at each overflow; what is in
 * the capture's scope becomes one record in the ring `events`, without a wake-up: the loader reads on a timer.
 *
 * Scope is decided here, so that what is not asked for costs one or two look-ups and no stack: process ids (with the
 * children of `-- command`), cgroups (a sample is in if its cgroup or one above it is in the set), names. Kinds of
 * filter that are not used are constants and vanish at load. Different kinds must all hold; within a kind one is enough.
 *
 * Nothing here is lost without being counted: struct cpu_tally.
 */
#include "probes/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/cpu.h"
#include "probes/stack.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile bool filter_pids = false;
const volatile bool filter_cgroups = false;
const volatile bool filter_comms = false;
const volatile bool hierarchy_used[CPU_HIERARCHY_N] = {};

struct comm_key {
	char name[STACK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cpu_tally);
} tally SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tgid */
	__type(value, __u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct cpu_cgroup);
	__type(value, __u8);
} cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct comm_key);
	__type(value, __u8);
} comms SEC(".maps");

/* Is this cgroup, or one above it, asked for? */
static __always_inline bool cgroup_in_scope(struct cgroup *cgroup, __u32 hierarchy)
{
	struct cpu_cgroup key = {.hierarchy = hierarchy};

	for (int i = 0; i < CPU_CGROUP_DEPTH; i++) {
		struct cgroup_subsys_state *parent;

		if (!cgroup)
			return false;
		key.id = BPF_CORE_READ(cgroup, kn, id);
		if (bpf_map_lookup_elem(&cgroups, &key))
			return true;
		parent = BPF_CORE_READ(cgroup, self.parent);
		if (!parent)
			return false;
		cgroup = BPF_CORE_READ(parent, cgroup);
	}
	return false;
}

/* The cgroup of a v1 hierarchy, through its controller's state. */
static __always_inline struct cgroup *cgroup_of_subsys(struct css_set *set, __u32 subsys)
{
	struct cgroup_subsys_state *css = NULL;

	bpf_core_read(&css, sizeof(css), &set->subsys[0] + subsys);
	return css ? BPF_CORE_READ(css, cgroup) : NULL;
}

static __always_inline bool task_cgroup_in_scope(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);

	if (hierarchy_used[CPU_HIERARCHY_V2] && cgroup_in_scope(BPF_CORE_READ(set, dfl_cgrp), CPU_HIERARCHY_V2))
		return true;
	if (hierarchy_used[CPU_HIERARCHY_MEMORY] && bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) &&
	    cgroup_in_scope(cgroup_of_subsys(set, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id)),
			    CPU_HIERARCHY_MEMORY))
		return true;
	return hierarchy_used[CPU_HIERARCHY_PIDS] && bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id) &&
	       cgroup_in_scope(cgroup_of_subsys(set, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id)),
			       CPU_HIERARCHY_PIDS);
}

/* By the thread's own name, or its process's. */
static __always_inline bool task_comm_in_scope(struct task_struct *task)
{
	struct comm_key key = {};

	bpf_get_current_comm(key.name, sizeof(key.name));
	if (bpf_map_lookup_elem(&comms, &key))
		return true;
	BPF_CORE_READ_INTO(&key.name, task, group_leader, comm);
	return bpf_map_lookup_elem(&comms, &key);
}

static __always_inline bool task_in_scope(struct task_struct *task)
{
	if (filter_pids) {
		__u32 tgid = bpf_get_current_pid_tgid() >> 32;

		if (!bpf_map_lookup_elem(&pids, &tgid))
			return false;
	}
	if (filter_cgroups && !task_cgroup_in_scope(task))
		return false;
	return !filter_comms || task_comm_in_scope(task);
}

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
	if (stack_fill(s, task, ctx, ctx))
		t->late++;
	else if (bpf_ringbuf_output(&events, s, stack_event_size(s), BPF_RB_NO_WAKEUP))
		t->ring_full++;
	else
		t->sent++;
	tally_run(t, bpf_ktime_get_boot_ns() - now);
	return 0;
}

/* A child of a process in the set belongs to it; a pid that comes back with another parent does not. */
SEC("?tp_btf/sched_process_fork")
int BPF_PROG(cpu_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = BPF_CORE_READ(parent, tgid);
	__u32 to = BPF_CORE_READ(child, tgid);
	__u32 zero = 0;
	struct cpu_tally *t;
	__u8 one = 1;

	if (from == to) /* a thread */
		return 0;
	if (!bpf_map_lookup_elem(&pids, &from)) {
		if (bpf_map_lookup_elem(&pids, &to))
			bpf_map_delete_elem(&pids, &to);
		return 0;
	}
	if (bpf_map_update_elem(&pids, &to, &one, BPF_ANY)) {
		t = bpf_map_lookup_elem(&tally, &zero);
		if (t)
			t->unfollowed++;
	}
	return 0;
}

/* Gone with its last thread. */
SEC("?tp_btf/sched_process_exit")
int BPF_PROG(cpu_exit, struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return 0;
	if (bpf_map_lookup_elem(&pids, &tgid))
		bpf_map_delete_elem(&pids, &tgid);
	return 0;
}
