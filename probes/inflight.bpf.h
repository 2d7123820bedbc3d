/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * inflight: which request a thread serves. One map (tables.h), which sonde-maps makes and hands out, sonde-l7 writes, and whoever takes stacks
 * reads (stack.bpf.h).
 *
 * A thread writes its own entry, but for the end of an answer that another thread wrote. Two threads may have one place: who finds
 * another's number there has no tag.
 */
#ifndef SONDE_PROBES_INFLIGHT_BPF_H
#define SONDE_PROBES_INFLIGHT_BPF_H

#include <bpf/bpf_helpers.h>

#include "probes/tables.h"

/* A stand-in: the loader puts sonde-maps' own map in its place. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct tables_inflight);
} inflight SEC(".maps");

static __always_inline volatile struct tables_inflight *inflight_at(__u32 tid)
{
	__u32 place = tid & (TABLES_INFLIGHT - 1);

	return bpf_map_lookup_elem(&inflight, &place);
}

static __always_inline __u64 inflight_get(__u32 tid)
{
	volatile struct tables_inflight *x = inflight_at(tid);

	return x && x->tid == tid ? x->tag : 0;
}

static __always_inline void inflight_set(__u32 tid, __u64 tag)
{
	volatile struct tables_inflight *x = inflight_at(tid);

	if (!x)
		return;
	x->tag = 0;
	x->tid = tid;
	x->tag = tag;
}

/* tag 0: whichever it has. */
static __always_inline void inflight_clear(__u32 tid, __u64 tag)
{
	volatile struct tables_inflight *x = inflight_at(tid);

	if (x && x->tid == tid && (!tag || x->tag == tag))
		x->tag = 0;
}

#endif
