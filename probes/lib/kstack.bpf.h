/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kstack: the kernel part of a stack that an interrupt took, by the kernel's own ORC tables, as
 * bpf_get_stack finds it too. That looks up each frame in tables of some 5 MB, half a dozen misses
 * of cache and TLB a frame at a hundred samples a second. The entry of an address in the kernel's
 * own text never changes: here it is cached, and a frame costs one cache line.
 *
 * All else is left to bpf_get_stack, for the whole stack: addresses outside of the
 * kernel's text (modules, BPF programs, trampolines), registers other than RSP and RBP, return
 * addresses that a probe has replaced, kernels whose tables have another form (before 6.4), or
 * whose location is unknown.
 *
 * The tables (arch/x86/include/asm/orc_types.h): `ips` holds sorted 32-bit distances from each
 * element to its address, `entries` struct orc_entry at the same index; an entry holds from its
 * address to the next one's. A frame's CFA is sp_reg + sp_offset (or the value there); the return
 * address is at CFA - 8 (CALL), or the registers of the interrupted code at the CFA (REGS;
 * REGS_PARTIAL: as the CPU leaves them); RBP is at bp_reg + bp_offset. Of a return address the
 * instruction before it is looked up, of an interrupted pc (`signal`) the pc itself.
 */
#ifndef SONDE_PROBES_KSTACK_BPF_H
#define SONDE_PROBES_KSTACK_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/lib/kstack.h"

/* The includer defines it; the loader fills it once it knows. All 0 until then. */
extern struct kstack_tables kstack_tables;

struct orc_entry {
	unsigned int signal : 1; /* since 6.3 */
	unsigned int end : 1;    /* before 6.4 */
} __attribute__((preserve_access_index));

/* struct orc_entry of 6.4 and later, as a number */
#define KSTACK_SP_OFFSET(e) ((__s64)(__s16)(e))
#define KSTACK_BP_OFFSET(e) ((__s64)(__s16)((e) >> 16))
#define KSTACK_SP_REG(e)    ((__u32)((e) >> 32) & 15)
#define KSTACK_BP_REG(e)    ((__u32)((e) >> 36) & 15)
#define KSTACK_TYPE(e)      ((__u32)((e) >> 40) & 7)
#define KSTACK_SIGNAL(e)    ((__u32)((e) >> 43) & 1)

enum kstack_reg {
	KSTACK_REG_UNDEFINED = 0,
	KSTACK_REG_PREV_SP = 1,
	KSTACK_REG_BP = 4,
	KSTACK_REG_SP = 5,
	KSTACK_REG_BP_INDIRECT = 8,
	KSTACK_REG_SP_INDIRECT = 9
};
enum kstack_type {
	KSTACK_UNDEFINED = 0,
	KSTACK_END = 1,
	KSTACK_CALL = 2,
	KSTACK_REGS = 3,
	KSTACK_REGS_PARTIAL = 4
};

enum kstack_how { KSTACK_MORE = 0, KSTACK_DONE = 1, KSTACK_OTHERWISE = 2 };

struct kstack_known {
	__u64 at; /* 0: free */
	__u64 entry;
};

struct kstack {
	__u64 ip, sp, bp;
	__u32 exact; /* ip was interrupted there */
	__u32 how;   /* enum kstack_how */
	struct kstack_known known[1 << KSTACK_KNOWN_BITS];
};

/* Has this kernel such tables? */
static __always_inline bool kstack_possible(void)
{
	return bpf_core_field_exists(struct orc_entry, signal) &&
	       !bpf_core_field_exists(struct orc_entry, end);
}

/* The entry that holds at `at`, by the tables; 0: none. */
__noinline __u64 kstack_search(__u64 at)
{
	__u64 from = kstack_tables.ips, entry = 0;
	__u32 left = kstack_tables.count, first = 0;

	for (int i = 0; i < 23 && left; i++) {
		__u32 half = left >> 1;
		__u64 place = from + 4ull * (first + half);
		__s32 distance = 0;

		if (bpf_probe_read_kernel(&distance, sizeof(distance), (const void *)place))
			return 0;
		if (place + (__s64)distance <= at) {
			first += half + 1;
			left -= half + 1;
		} else {
			left = half;
		}
	}
	if (!first ||
	    bpf_probe_read_kernel(&entry, 6,
				  (const void *)(kstack_tables.entries + 6ull * (first - 1))))
		return 0;
	return entry;
}

static __always_inline __u64 kstack_entry(struct kstack *k, __u64 at)
{
	struct kstack_known *known =
		&k->known[at * 0x9e3779b97f4a7c15ull >> (64 - KSTACK_KNOWN_BITS)];

	if (known->at != at) {
		known->entry = kstack_search(at);
		known->at = at;
	}
	return known->entry;
}

static __always_inline bool kstack_word(__u64 at, __u64 *to)
{
	return !bpf_probe_read_kernel(to, sizeof(*to), (const void *)at);
}

static __always_inline bool kstack_cfa(const struct kstack *k, __u64 entry, __u64 *cfa)
{
	switch (KSTACK_SP_REG(entry)) {
	case KSTACK_REG_SP:
		*cfa = k->sp + KSTACK_SP_OFFSET(entry);
		return *cfa > k->sp || KSTACK_TYPE(entry) != KSTACK_CALL;
	case KSTACK_REG_BP:
		*cfa = k->bp + KSTACK_SP_OFFSET(entry);
		return true;
	case KSTACK_REG_SP_INDIRECT:
		if (!kstack_word(k->sp, cfa))
			return false;
		*cfa += KSTACK_SP_OFFSET(entry);
		return true;
	case KSTACK_REG_BP_INDIRECT:
		return kstack_word(k->bp + KSTACK_SP_OFFSET(entry), cfa);
	}
	return false;
}

static __always_inline bool kstack_bp(struct kstack *k, __u64 entry, __u64 cfa)
{
	switch (KSTACK_BP_REG(entry)) {
	case KSTACK_REG_UNDEFINED:
		return true;
	case KSTACK_REG_PREV_SP:
		return kstack_word(cfa + KSTACK_BP_OFFSET(entry), &k->bp);
	case KSTACK_REG_BP:
		return kstack_word(k->bp + KSTACK_BP_OFFSET(entry), &k->bp);
	}
	return false;
}

/* Interrupted code: its registers are at `at`. */
static __always_inline enum kstack_how kstack_interrupted(struct kstack *k, __u64 at, bool whole)
{
	struct arch_iret frame;

	if (bpf_probe_read_kernel(&frame, sizeof(frame),
				  (const void *)(whole ? at + ARCH_IRET : at)))
		return KSTACK_OTHERWISE;
	if (frame.cs & 3) /* user code */
		return KSTACK_DONE;
	if (!whole || !kstack_word(at + ARCH_REGS_BP, &k->bp))
		return KSTACK_OTHERWISE;
	k->ip = frame.ip;
	k->sp = frame.sp;
	return KSTACK_MORE;
}

/* From the frame at k->ip to its caller. DONE: it has none, OTHERWISE: not by these tables. */
static __always_inline enum kstack_how kstack_up(struct kstack *k)
{
	enum kstack_how how = KSTACK_MORE;
	__u64 entry, cfa = 0;

	if (k->ip - kstack_tables.text >= kstack_tables.text_bytes || k->ip == kstack_tables.hook)
		return KSTACK_OTHERWISE;
	entry = kstack_entry(k, k->ip - !k->exact);
	if (KSTACK_TYPE(entry) == KSTACK_END)
		return KSTACK_DONE;
	if (!kstack_cfa(k, entry, &cfa))
		return KSTACK_OTHERWISE;
	if (KSTACK_TYPE(entry) == KSTACK_CALL) {
		if (!kstack_bp(k, entry, cfa) || !kstack_word(cfa - 8, &k->ip))
			return KSTACK_OTHERWISE;
		k->sp = cfa;
	} else if (KSTACK_TYPE(entry) == KSTACK_REGS || KSTACK_TYPE(entry) == KSTACK_REGS_PARTIAL) {
		how = kstack_interrupted(k, cfa, KSTACK_TYPE(entry) == KSTACK_REGS);
		if (how == KSTACK_MORE && KSTACK_BP_REG(entry) != KSTACK_REG_UNDEFINED)
			return KSTACK_OTHERWISE;
	} else {
		return KSTACK_OTHERWISE;
	}
	k->exact = KSTACK_SIGNAL(entry);
	return how;
}

/* At who was interrupted. */
static __always_inline void kstack_begin(struct kstack *k, const struct arch_regs *regs)
{
	k->ip = regs->ip;
	k->sp = regs->sp;
	k->bp = regs->bp;
	k->exact = 1;
	k->how = KSTACK_OTHERWISE;
}

#endif
