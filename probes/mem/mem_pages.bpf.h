/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mem_pages: pages that the kernel gives out, to processes and to itself, until it gets them back.
 * Only where a person asks for it: both programs run at each allocation and at each free.
 *
 *   1. Of each group of neighbouring page frames one is watched (mem_group_hash): an allocation is
 *      a sample if a watched frame lies in it. So the same arithmetic decides when it is freed,
 * also where a block is freed in parts, and nothing is looked up for all others.
 *   2. `live` has the time of the allocation of each watched frame, by group; 0: it is free, or was
 *      taken before the recording. The loader reads it. A record in the ring has the stack. So a
 *      lost record costs a stack, and never makes a page look as if it were still in use.
 *   3. A struct page's address says the number of its frame, once pages_base is known. The loader
 *      finds that out: it touches pages, and asks the kernel for their numbers (pages_seen).
 *   4. An interrupt takes pages for others than the thread that it interrupts: such a sample has
 *      the kernel's stack alone. One that interrupts another program of this family has none, as
 *      both would build it in the same place (stack_free).
 *   5. Not seen: pages that come in bulk without this event (for network cards and vmalloc, as the
 *      kernel's version has it), and those that compaction moves.
 */
#ifndef SONDE_PROBES_MEM_PAGES_BPF_H
#define SONDE_PROBES_MEM_PAGES_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sample.bpf.h"
#include "probes/mem.h"
#include "probes/mem/mem_stack.bpf.h"

#define PAGE_STRUCT_SHIFT 6  /* the loader makes sure of it */
#define PAGES_ORDER_MAX   10 /* of one allocation */
#define PAGES_GROUPS_MOST (1u << (PAGES_ORDER_MAX - MEM_GROUP_SHIFT))

const volatile __u32 pages_groups = 0;
const volatile __u32 pages_shift = MEM_GROUP_SHIFT;

__u64 pages_base = 0; /* the struct page of frame 0; 0: not known yet, nothing is watched */
__u32 pages_level = 0;
__u32 pages_tid = 0;   /* the thread that looks for pages_base */
__u64 pages_seen = 0;  /* the struct page that it got last */
__u64 pages_taken = 0; /* samples */
__u64 pages_bare = 0;  /* of those, such whose stack was not taken, or found no room */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} live SEC(".maps");

/* Writes `time` for each watched frame of the block. Returns how many there are. */
static __always_inline __u32 pages_mark(__u64 frame, __u32 order, __u64 time)
{
	const __u64 end = frame + (1ull << order), shift = pages_shift;
	__u32 group = (__u32)(frame >> shift), n = 0;

	for (int i = 0; i <= (int)PAGES_GROUPS_MOST; i++, group++) {
		__u32 hash = mem_group_hash(group);
		__u64 *at, watched = ((__u64)group << shift) + MEM_GROUP_WATCHED(hash, shift);

		if (((__u64)group << shift) >= end || group >= pages_groups)
			break;
		if (watched < frame || watched >= end ||
		    !MEM_GROUP_IS_WATCHED(hash, pages_level & 7))
			continue;
		at = bpf_map_lookup_elem(&live, &group);
		if (!at)
			break;
		*at = time;
		n++;
	}
	return n;
}

/* Is it the one of its group? (Most are not.) */
static __always_inline bool page_is_watched(__u64 frame)
{
	__u32 hash = mem_group_hash((__u32)(frame >> pages_shift));

	return (frame & ((1u << pages_shift) - 1)) == MEM_GROUP_WATCHED(hash, pages_shift);
}

static __always_inline void pages_stack(void *ctx, struct task_struct *task, __u64 now, __u64 tag,
					bool interrupt)
{
	struct stack_scratch *s;
	__u32 zero = 0;
	bool sent;

	s = bpf_map_lookup_elem(&scratch, &zero);
	if (!s)
		return;
	stack_fill_task(&s->ev, task, now);
	if (interrupt) {
		s->ev.tgid = s->ev.tid = s->ev.exec_id = 0;
		s->ev.start_ns = s->ev.cgroup_id = 0;
		s->ev.flags = STACK_F_KTHREAD;
		__builtin_memset(s->ev.thread, 0, sizeof(s->ev.thread));
		__builtin_memcpy(s->ev.thread, "kernel", 6);
	}
	s->ev.tag = tag;
	sent = stack_fill(s, task, ctx, NULL) || !sample_send(s);
	if (!sent)
		__sync_fetch_and_add(&pages_bare, 1);
}

static __always_inline bool pages_wanted(struct task_struct *task, bool interrupt)
{
	if (interrupt)
		return !scope.pids && !scope.cgroups && !scope.comms;
	return task_in_scope(task);
}

/* It is a sample. */
static __always_inline void pages_take(void *ctx, __u64 frame, __u32 order)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct stack_room *room;
	__u64 now, tag = frame << MEM_FRAME_SHIFT | (__u64)(order & 15) << MEM_PERIOD_BITS;
	__u32 zero = 0;
	bool interrupt;

	room = bpf_map_lookup_elem(&stack_rooms, &zero);
	if (!room)
		return;
	interrupt = serves_interrupt(task, room, ctx);
	now = bpf_ktime_get_boot_ns();
	if (!pages_wanted(task, interrupt)) {
		pages_mark(frame, order, 0); /* that it was freed may have been missed */
		return;
	}
	if (!pages_mark(frame, order, now))
		return;
	__sync_fetch_and_add(&pages_taken, 1);
	room = stack_free();
	if (!room) {
		__sync_fetch_and_add(&pages_bare, 1);
		return;
	}
	pages_stack(ctx, task, now, tag, interrupt);
	room->busy = 0;
}

static __always_inline int pages_alloc(unsigned long long *ctx)
{
	__u64 page = ctx[0], frame = (page - pages_base) >> PAGE_STRUCT_SHIFT;
	__u32 order = (__u32)ctx[1];

	if (!pages_base) {
		if (pages_tid && (__u32)bpf_get_current_pid_tgid() == pages_tid && !order)
			pages_seen = page;
		return 0;
	}
	if (page && order <= PAGES_ORDER_MAX && frame <= MEM_FRAME_MAX &&
	    (order || page_is_watched(frame)))
		pages_take(ctx, frame, order);
	return 0;
}

static __always_inline int pages_free(unsigned long long *ctx)
{
	__u64 frame = (ctx[0] - pages_base) >> PAGE_STRUCT_SHIFT;
	__u32 order = (__u32)ctx[1];

	if (pages_base && order <= PAGES_ORDER_MAX && (order || page_is_watched(frame)))
		pages_mark(frame, order, 0);
	return 0;
}

PREEMPT_PAIR("raw_tp/mm_page_alloc", mem_page_alloc, pages_alloc(ctx))
PREEMPT_PAIR("raw_tp/mm_page_free", mem_page_free, pages_free(ctx))

#endif
