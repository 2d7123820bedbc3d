/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* net_who: what all programs of family net use: whose a socket is, and the tally by CPU. */
#ifndef SONDE_PROBES_NET_WHO_BPF_H
#define SONDE_PROBES_NET_WHO_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/net.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct net_tally);
} tally SEC(".maps");

static __always_inline struct net_tally *tally_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tally, &zero);
}

#define COUNT(field_)                               \
	do {                                        \
		struct net_tally *t_ = tally_get(); \
		if (t_)                             \
			t_->field_++;               \
	} while (0)

static __always_inline void owner_fill(struct net_owner *o, struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	o->start_ns = BPF_CORE_READ(leader, start_boottime);
	o->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	o->tgid = BPF_CORE_READ(task, tgid);
}

#endif
