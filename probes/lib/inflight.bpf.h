/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * inflight: which request a thread serves, or, in Go, a goroutine. One map (tables.h), which
 * sonde-maps makes and hands out, sonde-l7 writes, and the families that take stacks read
 * (stack.bpf.h).
 *
 * A thread writes its own entry, but for the end of an answer that another thread wrote. Two may
 * have one place: who finds another's number there has no tag.
 *
 * Goroutines move between threads unseen, and several share one. In a process that sonde-maps marks
 * as Go's (tables_process.flags), the request belongs to the goroutine that the current thread runs
 * at this moment, by its number, which is never reused. If the number cannot be read, there is no
 * tag.
 */
#ifndef SONDE_PROBES_INFLIGHT_BPF_H
#define SONDE_PROBES_INFLIGHT_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/tables.h"

/* Stand-ins: the loader puts sonde-maps' own maps in their place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_inflight);
} inflight SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_process);
} processes SEC(".maps");

/* ---- who ---- */

static __always_inline __u64 inflight_word(__u64 at)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (const void *)at);
	return value;
}

/* The goroutine on the current thread, which may be running on the thread's own stack for it. 0:
 * none, or unknown. */
static __always_inline __u64 inflight_goroutine(__u32 flags)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u64 g, goid, at = 8 * (__u64)TABLES_GO_GOID(flags);

	if (!TABLES_GO_TLS(flags))
		return 0;
	g = inflight_word(BPF_CORE_READ(task, thread.fsbase) - 8 * (__u64)TABLES_GO_TLS(flags));
	goid = g ? inflight_word(g + at) : 0;
	if (g && !goid) {
		g = inflight_word(inflight_word(g + 8 * TABLES_GO_M) +
				  8 * (__u64)TABLES_GO_CURG(flags));
		goid = g ? inflight_word(g + at) : 0;
	}
	return goid ? TABLES_WHO_GOROUTINE(bpf_get_current_pid_tgid() >> 32, goid) : 0;
}

/* Who serves, on the current thread. 0: it is not known. A process that is not published counts as
 * one that is not Go's: its tags say so. */
static __noinline __u64 inflight_who(void)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = (__u32)(id >> 32);
	struct tables_process *p = bpf_map_lookup_elem(&processes, &tgid);
	struct task_struct *leader;
	__u32 flags = p ? p->flags : 0;

	if (!p || !(flags & TABLES_PROCESS_GO))
		return (__u32)id;
	leader = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	if (p->start_ns != BPF_CORE_READ(leader, start_boottime) ||
	    p->exec_id != (__u32)BPF_CORE_READ(leader, self_exec_id))
		return (__u32)id;
	return inflight_goroutine(flags);
}

/* ---- what ---- */

static __always_inline volatile struct tables_inflight *inflight_at(__u64 who)
{
	__u32 place = TABLES_WHO_PLACE(who);

	return bpf_map_lookup_elem(&inflight, &place);
}

static __always_inline __u64 inflight_get(__u64 who)
{
	volatile struct tables_inflight *x = inflight_at(who);
	__u64 tag = x && who && x->who == who ? x->tag : 0;

	return tag && x->who == who ? tag : 0; /* another one may have taken the place meanwhile */
}

static __always_inline void inflight_set(__u64 who, __u64 tag)
{
	volatile struct tables_inflight *x = inflight_at(who);

	if (!x || !who)
		return;
	x->tag = 0;
	x->who = who;
	x->tag = tag;
}

/* tag 0: whichever it has. */
static __always_inline void inflight_clear(__u64 who, __u64 tag)
{
	volatile struct tables_inflight *x = inflight_at(who);

	if (x && x->who == who && (!tag || x->tag == tag))
		x->tag = 0;
}

#endif
