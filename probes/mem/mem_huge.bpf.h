/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mem_huge: faults that bring a huge page, which are sampled apart. One brings as much as
 * 512 others, so that 100 MB are 50 faults: of every 500th fault none is among them as a rule, and
 * one that is would count as 1 GB.
 *
 *   1. mem_huge_alloc runs where the kernel gives out pages, and goes on only where it gives a
 *      block of the order of a huge page (huge_order).
 *   2. Which address it is for no argument says. handle_mm_fault() keeps it in a struct vm_fault on
 *      the kernel's stack, below which the allocation runs: huge_page() looks for it there. What it
 *      takes for one points to a mapping of this process that has its address, at its page offset.
 *      So pages that MAP_POPULATE, mlock and O_DIRECT bring have an address,
 *      too; blocks for anything else (the page cache, slab, khugepaged) have none.
 *   3. One of huge_every faults is a sample, drawn by chance; and where the loader has the program
 *      attached for one of `huge_turns` periods of time, it represents that many more.
 *   4. The perf event counts the same fault before it is handled, when its size is not known. So
 *      the number of faults is of that event's samples alone, and what huge pages brought of these:
 *      mem_huge_alloc's represent bytes, and no faults. In the tally one counts if it is lost.
 */
#ifndef SONDE_PROBES_MEM_HUGE_BPF_H
#define SONDE_PROBES_MEM_HUGE_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sample.bpf.h"
#include "probes/mem.h"
#include "probes/mem/mem_stack.bpf.h"
#include "probes/mem/mem_sampled.bpf.h"

#define HUGE_WORDS 320 /* of the kernel's stack, from the allocation up */
#define HUGE_PAST  16  /* words of a struct vm_fault that are looked at, at most */
#define HUGE_SMALL 9   /* 2^9 small pages */

const volatile __u32 huge_order = 0; /* 0: not recorded */

__u32 huge_every = 1, huge_turns = 1;
__u64 huge_seen = 0; /* faults that samples represent, of the time in which it was attached */

struct vm_fault___huge {
	struct vm_area_struct___huge *vma;
	unsigned long pgoff, address;
} __attribute__((preserve_access_index));

struct vm_area_struct___huge {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	struct mm_struct *vm_mm;
	struct file *vm_file;
} __attribute__((preserve_access_index));

struct task_struct___huge {
	struct mm_struct *mm;
} __attribute__((preserve_access_index));

struct huge_cpu {
	__u64 words[HUGE_WORDS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct huge_cpu);
} huge_cpus SEC(".maps");

/* 1: the mapping at `at` has the address there, and is the current process's own memory, without a
 * file. A global function: the kernel checks it once, and not in each turn of the loop. */
__noinline int huge_is_own(__u64 at, __u64 address, __u64 pgoff)
{
	struct task_struct___huge *task = (void *)bpf_get_current_task();
	struct vm_area_struct___huge *vma = (void *)at;
	__u64 start = BPF_CORE_READ(vma, vm_start), end = BPF_CORE_READ(vma, vm_end);

	if (address < start || address >= end ||
	    pgoff != ((address - start) >> MEM_PAGE_SHIFT) + BPF_CORE_READ(vma, vm_pgoff))
		return 0;
	if (BPF_CORE_READ(vma, vm_mm) != BPF_CORE_READ(task, mm))
		return 0;
	return !BPF_CORE_READ(vma, vm_file) && !(BPF_CORE_READ(vma, vm_flags) & MEM_VM_SHARED);
}

/* The page that the fault is about that the current thread is in, address / 4096; 0: none. */
static __noinline __u64 huge_page(struct task_struct *task, struct huge_cpu *cpu, __u64 at)
{
	const __u64 vma_at = bpf_core_field_offset(struct vm_fault___huge, vma),
		    address_at = bpf_core_field_offset(struct vm_fault___huge, address),
		    pgoff_at = bpf_core_field_offset(struct vm_fault___huge, pgoff);
	__u64 size = (__u64)BPF_CORE_READ(task, stack) + ARCH_THREAD_SIZE - at;

	if (!cpu || vma_at > 8 * (HUGE_PAST - 1) || address_at > 8 * (HUGE_PAST - 1) ||
	    pgoff_at > 8 * (HUGE_PAST - 1))
		return 0;
	if (size > sizeof(cpu->words))
		size = sizeof(cpu->words);
	if (bpf_probe_read_kernel(cpu->words, (__u32)size, (void *)at))
		return 0;
	for (__u32 i = 0; i < HUGE_WORDS - HUGE_PAST; i++) {
		const char *fault = (const char *)&cpu->words[i];
		__u64 vma = *(const __u64 *)(fault + vma_at);
		__u64 address = *(const __u64 *)(fault + address_at);

		if (8 * (__u64)i >= size)
			break;
		if (!(vma >> 63) || !address || address >> 63 ||
		    address & ((1 << MEM_PAGE_SHIFT) - 1))
			continue;
		if (huge_is_own(vma, address, *(const __u64 *)(fault + pgoff_at)))
			return address >> MEM_PAGE_SHIFT;
	}
	return 0;
}

static __always_inline void huge_sample(void *ctx, struct task_struct *task, __u64 page)
{
	__u64 now = bpf_ktime_get_boot_ns(), n = (__u64)huge_every * huge_turns;
	struct mem_stack x;

	n = n > MEM_PERIOD_MAX ? MEM_PERIOD_MAX : n;
	__sync_fetch_and_add(&huge_seen, huge_every);
	if (!mem_stack_begin(&x, 1))
		return;
	stack_fill_task(&x.s->ev, task, now);
	x.s->ev.tag = page << MEM_TAG_SHIFT | MEM_HUGE | n;
	if (!stack_fill(x.s, task, ctx, NULL) && sample_send(x.s)) {
		x.t->seen++;
		x.t->ring_full++;
	}
	mem_stack_end(&x);
}

static __noinline int huge_take(void *ctx)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct stack_room *room;
	struct huge_cpu *cpu;
	__u32 zero = 0;
	__u64 page;

	room = bpf_map_lookup_elem(&stack_rooms, &zero);
	cpu = bpf_map_lookup_elem(&huge_cpus, &zero);
	if (!room || !cpu || !task_in_scope(task) || serves_interrupt(task, room, ctx))
		return 0;
	page = huge_page(task, cpu, *(volatile __u64 *)&room->at);
	if (!page)
		return 0;
	if (huge_every > 1 && bpf_get_prandom_u32() % huge_every)
		return 0;
	mem_sampled_note((__u32)(bpf_get_current_pid_tgid() >> 32));
	huge_sample(ctx, task, page);
	return 0;
}

static __always_inline int huge_alloc(unsigned long long *ctx)
{
	if (ctx[0] && (__u32)ctx[1] == huge_order)
		huge_take(ctx);
	return 0;
}

PREEMPT_PAIR("raw_tp/mm_page_alloc", mem_huge_alloc, huge_alloc(ctx))

#endif
