/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scope: is a task one that the capture is about? Decided in the kernel, so that what is not asked
 * for costs one or two look-ups: process ids (with the children of `-- command`), cgroups (a task
 * is in if its cgroup or one above it is in the set), names. Kinds of filter that are not used are
 * constants and vanish at load. Different kinds must all hold; within a kind one is enough. The
 * loader fills the maps (loaders/lib/bpf/load/scope.h).
 */
#ifndef SONDE_PROBES_SCOPE_BPF_H
#define SONDE_PROBES_SCOPE_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/scope.h"
#include "probes/lib/stack.h"

const volatile struct scope_config scope = {};

struct comm_key {
	char name[STACK_COMM_LEN];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* tgid */
	__type(value, __u8);
} pids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct scope_cgroup);
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
	struct scope_cgroup key = {.hierarchy = hierarchy};

	for (int i = 0; i < SCOPE_CGROUP_DEPTH; i++) {
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

	if (scope.hierarchy_used[SCOPE_V2] &&
	    cgroup_in_scope(BPF_CORE_READ(set, dfl_cgrp), SCOPE_V2))
		return true;
	if (scope.hierarchy_used[SCOPE_V1_MEMORY] &&
	    bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) &&
	    cgroup_in_scope(cgroup_of_subsys(set, bpf_core_enum_value(enum cgroup_subsys_id,
								      memory_cgrp_id)),
			    SCOPE_V1_MEMORY))
		return true;
	return scope.hierarchy_used[SCOPE_V1_PIDS] &&
	       bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id) &&
	       cgroup_in_scope(cgroup_of_subsys(set, bpf_core_enum_value(enum cgroup_subsys_id,
									 pids_cgrp_id)),
			       SCOPE_V1_PIDS);
}

/* By the thread's own name, or its process's. */
static __always_inline bool task_comm_in_scope(struct task_struct *task)
{
	struct comm_key own = {}, leader = {};

	/* as strings: before 5.17 the kernel leaves the end of a longer name before it behind the
	 * NUL */
	BPF_CORE_READ_STR_INTO(&own.name, task, comm);
	if (bpf_map_lookup_elem(&comms, &own))
		return true;
	BPF_CORE_READ_STR_INTO(&leader.name, task, group_leader, comm);
	return bpf_map_lookup_elem(&comms, &leader);
}

static __always_inline bool task_in_scope(struct task_struct *task)
{
	if (scope.pids) {
		__u32 tgid = BPF_CORE_READ(task, tgid);

		if (!bpf_map_lookup_elem(&pids, &tgid))
			return false;
	}
	if (scope.cgroups && !task_cgroup_in_scope(task))
		return false;
	return !scope.comms || task_comm_in_scope(task);
}

/* A child of a process in the set belongs to it; a pid that comes back with another parent does
 * not. For sched_process_fork. false: the set has no room for it. */
static __always_inline bool scope_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 from = BPF_CORE_READ(parent, tgid);
	__u32 to = BPF_CORE_READ(child, tgid);
	__u8 one = 1;

	if (from == to) /* a thread */
		return true;
	if (!bpf_map_lookup_elem(&pids, &from)) {
		if (bpf_map_lookup_elem(&pids, &to))
			bpf_map_delete_elem(&pids, &to);
		return true;
	}
	return !bpf_map_update_elem(&pids, &to, &one, BPF_ANY);
}

/* Gone with its last thread. For sched_process_exit. */
static __always_inline void scope_exit(struct task_struct *task)
{
	__u32 tgid = BPF_CORE_READ(task, tgid);

	if (BPF_CORE_READ(task, signal, live.counter) > 0)
		return;
	if (bpf_map_lookup_elem(&pids, &tgid))
		bpf_map_delete_elem(&pids, &tgid);
}

#endif
