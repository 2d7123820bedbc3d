/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mem: the wire struct of one sampled page fault is a stack_event and its frames, whose `tag` says
 * which page it was, of what kind of memory, and how many faults the sample represents:
 *
 *   bits 63..20  the address / 4096
 *   bits 19..18  enum mem_memory
 *   bit  17      1: of faults that had to read the page, from a file or from swap, which are
 *                sampled apart; with MEM_ANON of those that brought a huge page, which are, too,
 *                and count for what they brought alone (mem_huge.bpf.h)
 *   bits 16..0   the period: how many faults the sample represents, never 0
 *
 * A wait for memory (a thread that had to free memory before it got some) is the same with
 *
 *   bits 63..54  how many waits it represents, never 0
 *   bits 53..20  their time together, in units of 64 ns
 *   bits 17..0   0
 *
 * Each wait of MEM_STALL_WHOLE_NS and more is a record; shorter ones are added up on each CPU
 * until they come to that, and recorded with the stack of the last one. One that has no frames at
 * all slept on a kernel without sched_exit_tp: its stack could not be taken.
 *
 * A page that the kernel gave out, of those that are watched (mem_pages.bpf.h), is the same with
 *
 *   bits 63..54  0
 *   bits 53..22  the number of the page frame
 *   bits 21..18  the order: 2^order frames came together
 *   bits 17..0   0
 *
 * It has the time that is in `live`. One that an interrupt took has tgid 0, and no user frames.
 */
#ifndef SONDE_PROBES_MEM_H
#define SONDE_PROBES_MEM_H

#include "probes/lib/stack.h"
#include "probes/lib/tally.h"

#define MEM_PAGE_SHIFT   12
#define MEM_PERIOD_BITS  18
#define MEM_MAJOR        (1u << (MEM_PERIOD_BITS - 1))
#define MEM_PERIOD_MAX   (MEM_MAJOR - 1)
#define MEM_MEMORY_SHIFT MEM_PERIOD_BITS
#define MEM_TAG_SHIFT    (MEM_PERIOD_BITS + 2)

enum mem_memory {
	MEM_UNKNOWN = 0, /* this kernel does not say (bpf_find_vma is there from 5.17 on) */
	MEM_ANON = 1,    /* private memory without a file */
	MEM_PRIVATE = 2, /* a private mapping of a file: its written pages are the process's own */
	MEM_SHARED = 3   /* shared, with a file or without */
};

#define MEM_PAGE(tag)        ((tag) >> MEM_TAG_SHIFT)
#define MEM_PERIOD(tag)      ((__u32)(tag)&MEM_PERIOD_MAX)
#define MEM_HUGE             ((__u64)MEM_ANON << MEM_MEMORY_SHIFT | MEM_MAJOR)
#define MEM_IS_MAJOR(tag)    ((tag)&MEM_MAJOR && MEM_PERIOD(tag) && !MEM_MEMORY(tag))
#define MEM_IS_HUGE(tag)     (MEM_PERIOD(tag) && ((tag)&MEM_HUGE) == MEM_HUGE)
#define MEM_STALL_WHOLE_NS   1000000
#define MEM_STALL_N_SHIFT    54
#define MEM_STALL_N_MAX      1023
#define MEM_STALL_UNIT_SHIFT 6
#define MEM_STALL_UNITS_MAX  ((1ull << (MEM_STALL_N_SHIFT - MEM_TAG_SHIFT)) - 1)
#define MEM_IS_STALL(tag)    (!MEM_PERIOD(tag) && MEM_STALL_N(tag))
#define MEM_STALL_N(tag)     ((tag) >> MEM_STALL_N_SHIFT)
#define MEM_STALL_NS(tag)    (((tag) >> MEM_TAG_SHIFT & MEM_STALL_UNITS_MAX) << MEM_STALL_UNIT_SHIFT)
#define MEM_FRAME_SHIFT      22
#define MEM_FRAME_MAX        ((1ull << (MEM_STALL_N_SHIFT - MEM_FRAME_SHIFT)) - 1)
#define MEM_IS_FRAME(tag)    (!MEM_PERIOD(tag) && !MEM_STALL_N(tag))
#define MEM_FRAME(tag)       ((tag) >> MEM_FRAME_SHIFT & MEM_FRAME_MAX)
#define MEM_FRAME_ORDER(tag) ((__u32)((tag) >> MEM_PERIOD_BITS) & 15)
#define MEM_MEMORY(tag)      ((enum mem_memory)((tag) >> MEM_MEMORY_SHIFT & 3))

/*
 * A range of addresses that a process just got for a new mapping: what was there before is gone,
 * also if something is there again. In the ring `events`; ev.end is MEM_RECORD_MAPPED. Where
 * mremap(2) asked for it, which realloc does of large blocks, what was mapped from `from` to
 * `from_end` goes there, in the same order; else both are 0.
 */
#define MEM_RECORD_MAPPED 0x100
struct mem_mapped {
	struct stack_event ev; /* no frames */
	__u64 start, end;
	__u64 from, from_end;
};
_Static_assert(sizeof(struct mem_mapped) == 112, "wire size");

/*
 * The kernel chose this process to be killed, as memory ran out; what it held then. In the ring
 * `events`; ev.end is MEM_RECORD_VICTIM. ev has the victim's identity and command; start_ns 0: this
 * kernel (5.10) says only its tgid, and nothing below.
 */
#define MEM_RECORD_VICTIM 0x101
struct mem_victim {
	struct stack_event ev; /* no frames */
	__u64 anon_pages, swap_pages;
};
_Static_assert(sizeof(struct mem_victim) == 96, "wire size");

/*
 * The request that a thread served while it waited for memory, or for a page that was read. In the
 * ring `events`, before the record of that, which has the same tid and time; ev.end is
 * MEM_RECORD_SERVES.
 */
#define MEM_RECORD_SERVES 0x102
struct mem_serves {
	struct stack_event ev; /* no frames */
	__u64 tag;             /* inflight.bpf.h; never 0 */
};
_Static_assert(sizeof(struct mem_serves) == 88, "wire size");

/*
 * What is mapped where a thread met a fault that had to read. In the ring `events`, before the
 * record of that fault, which has the same tid and time; ev.end is MEM_RECORD_FILE. Only where the
 * kernel can say it (bpf_find_vma, 5.17).
 */
#define MEM_RECORD_FILE 0x103
#define MEM_FILE_NAMES  6
#define MEM_FILE_NAME   48
struct mem_file {
	struct stack_event ev; /* no frames */
	__u32 has_file;        /* 0: memory without one; names are "" */
	__u32 unused;
	/* the file's, its folder's, and so on up to the root of its file system ("/"); longer ones
	 * are cut off */
	char names[MEM_FILE_NAMES][MEM_FILE_NAME];
};
_Static_assert(sizeof(struct mem_file) == 376, "wire size");

/*
 * Page frames are in groups of 2^shift neighbours, and one of each group is watched: this one. At
 * level 1 only every second group has one, at level 2 every fourth; what is watched at a level is
 * at all lower ones, too.
 */
static inline __attribute__((always_inline)) __u32 mem_group_hash(__u32 group)
{
	__u32 h = group * 0x9e3779b1u;

	h ^= h >> 16;
	h *= 0x85ebca6bu;
	return h ^ h >> 13;
}

#define MEM_GROUP_SHIFT                6 /* at least */
#define MEM_GROUP_SHIFT_MAX            20
#define MEM_GROUP_WATCHED(hash, shift) ((hash) & ((1u << (shift)) - 1))
#define MEM_GROUP_IS_WATCHED(hash, level_) \
	(!((hash) >> MEM_GROUP_SHIFT_MAX & ((1u << (level_)) - 1)))

#endif
