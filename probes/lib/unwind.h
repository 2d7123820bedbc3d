/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * unwind: from a frame to its caller, by the rows of tables.h. Compiled twice: into the BPF
 * programs (unwind.bpf.h) and into the loaders (loaders/lib/host/unwind/unwind.c), which unwind
 * what came before its rows, and the tests.
 *
 * A frame is (pc, sp, bp), and the address of its RBX, which is read only by a rule that asks for
 * it. `exact` says that pc was interrupted there: then the row is that of pc itself, and mostly all
 * registers are known. A return address is looked up at pc - 1, so that a call that ends its
 * function stays in it.
 *
 * Where a row says nothing, the frame pointer is followed, and the next pc is looked up in the rows
 * again. The end of a chain of frame pointers is not a root: only a row can say that.
 *
 * A CFA must lie above the stack pointer, so each step moves up the stack. Those that change the
 * stack (a signal's frame, Go's systemstack) take their target from memory. The number of frames is
 * bounded in any case.
 *
 * The includer defines, before unwind_step:
 *   int   unwind_place(u, at)        find the mapping that holds `at`, fill u->map_* and u->rows;
 *                                    0: none
 *   __u32 unwind_number(u, row_pc)   the number of the rule that holds there; 0: none;
 *                                    UNWIND_ABSENT: not there yet
 *   __u64 unwind_element(u, i)       element i of the image's array (tables.h, 3 and 4); 0: none
 *   __u64 unwind_rule_at(u, row_pc)  unwind_search(u, row_pc), or what it said before of that place
 *                                    in that image
 *   int   unwind_read(u, addr, v)    a word of memory; != 0: not readable
 *   void  unwind_emit(u, frame)      the next frame, leaf first
 */
#ifndef SONDE_PROBES_UNWIND_H
#define SONDE_PROBES_UNWIND_H

#include "probes/lib/arch_x86.h"
#include "probes/lib/stack.h"
#include "probes/lib/tables.h"

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif

#define UNWIND_ABSENT      0xffffffffu /* no number of a rule */
#define UNWIND_RULE_ABSENT (~0ull)     /* no rule */
/* words of stack read at once: 512 B to 4 KB are alike, one word at a time costs twice */
#define UNWIND_WINDOW 128

struct unwind {
	__u64 pc, sp, bp;
	__u64 regs[ROW_REG_N]; /* by DWARF number */
	__u64 fs_base;
	__u32 exact;      /* pc was interrupted there */
	__u32 regs_known; /* regs are this frame's */
	__u32 bx_how;     /* enum row_bx: SAME, as regs has it; SAVED, at bx_at */
	__u64 bx_at;
	__u32 end;     /* enum stack_end */
	__u32 guessed; /* frames that were left by the frame pointer in a file that describes its
			  code elsewhere */

	/* where pc lies; of the last frame at first, which is mostly the same */
	__u64 map_start, map_end;
	__u64 map_file;  /* added to an address: offset in the file */
	__u64 map_row;   /* added to an address: row address */
	__u32 map_state; /* enum tables_image_state; TABLES_IMAGE_FREE: executable memory without a
			    file */
	__u32 map_image; /* what its frames say */
	__u32 page_first, page_count, rule_first, ext_first, ext_count, row_first, row_count,
		use_first;

	__u64 window_at;    /* address of window[0] */
	__u32 window_bytes; /* of it that are filled */

	__u32 n;                        /* frames said so far */
	__u32 slice_first, slice_count; /* BPF: the process's mappings */

	/* BPF: frames of scripts among the native ones (runtimes/runtime.bpf.h) */
	__u32 map_runtime; /* of the file that pc lies in: tables_image.runtime */
	__u32 script;      /* enum script_phase */
	__u32 script_said; /* some were said for the native frame at hand */
	__u32 script_rest; /* the native ones have come to their end */
	__u32 script_kind; /* enum runtime_kind */
	__u32 script_deep; /* its callers do not fit */
	__u32 script_home; /* number of the mapping in the slice that shows an interpreter, from 1;
			      0: none */
	__u32 script_free; /* the native ones ended in code without a file */
	__u32 own_code;    /* enum unwind_own: machine code that its process makes */
	__u32 own_n; /* UNWIND_OWN_OBJECTS: how many frames of it were met, and the frame pointer of
			each */
	__u64 own_bp[STACK_OBJECTS];
	__u32 own_called; /* MET in the caller of native code; own_bp[0] is RBP there */
	__u32 own_pad;
	__u64 script_sp, script_pc; /* of the native frame that was said last */
	void *ctx;                  /* user space: the includer's */
	__u64 window[UNWIND_WINDOW];
};

/* THERE: it leads to no caller by the frame pointer; where it is MET the walk ends, user space
 * knows more. OBJECTS: the walk goes on. */
enum unwind_own { UNWIND_OWN_NONE, UNWIND_OWN_THERE, UNWIND_OWN_MET, UNWIND_OWN_OBJECTS };

/* Go's g: m at 48, sched (struct gobuf) at 56 with sp, pc first (runtime/runtime2.go, alike
 * from 1.5 to 1.26). */
#define UNWIND_GO_M     48
#define UNWIND_GO_SCHED 56

static __always_inline int unwind_place(struct unwind *u, __u64 at);
static __always_inline __u32 unwind_number(struct unwind *u, __u32 pc);
static __always_inline __u64 unwind_element(struct unwind *u, __u32 i);
static __always_inline __u64 unwind_rule_at(struct unwind *u, __u64 pc);
static __always_inline int unwind_read(struct unwind *u, __u64 addr, __u64 *value);
static __always_inline void unwind_emit(struct unwind *u, __u64 frame);

static __always_inline int unwind_stop(struct unwind *u, __u32 why)
{
	u->end = why;
	return 0;
}

/* The caller: a return address. */
static __always_inline int unwind_move(struct unwind *u, __u64 pc, __u64 sp, __u64 bp)
{
	u->pc = pc;
	u->sp = sp;
	u->bp = bp;
	u->exact = 0;
	u->regs_known = 0;
	return 1;
}

/* {caller's RBP, return address} are at RBP. */
static __always_inline int unwind_by_pointer(struct unwind *u)
{
	__u64 at = u->bp, bp = 0, pc = 0;

	if (at < u->sp || (at & 7))
		return unwind_stop(u, STACK_END_FRAME_POINTER);
	if (unwind_read(u, at, &bp) || unwind_read(u, at + 8, &pc))
		return unwind_stop(u, STACK_END_STACK_READ);
	if (!pc)
		return unwind_stop(u, STACK_END_FRAME_POINTER);
	u->bx_how = ROW_BX_LOST;
	return unwind_move(u, pc, at + 16, bp);
}

/* A frame with known CFA and address of RBP (0: it is in `bp`); the return address is at CFA - 8.
 */
static __always_inline int unwind_across(struct unwind *u, __u64 cfa, __u64 bp_at, __u64 bp)
{
	__u64 pc = 0;

	if (bp_at && unwind_read(u, bp_at, &bp))
		return unwind_stop(u, STACK_END_STACK_READ);
	if (unwind_read(u, cfa - 8, &pc))
		return unwind_stop(u, STACK_END_STACK_READ);
	return unwind_move(u, pc, cfa, bp);
}

/* The same on one stack: it leads upwards. */
static __always_inline int unwind_to(struct unwind *u, __u64 cfa, __u64 bp_at, __u64 bp)
{
	if (cfa <= u->sp || (cfa & 7))
		return unwind_stop(u, STACK_END_CFA);
	return unwind_across(u, cfa, bp_at, bp);
}

/* Address of the caller's RBX. */
static __always_inline void unwind_bx(struct unwind *u, __u64 rule, __u64 cfa)
{
	if (ROW_RULE_BX(rule) == ROW_BX_SAVED) {
		u->bx_how = ROW_BX_SAVED;
		u->bx_at = cfa - ROW_RULE_BX_SAVED(rule) * 8;
	} else if (ROW_RULE_BX(rule) != ROW_BX_SAME) {
		u->bx_how = ROW_BX_LOST;
	}
}

/* A register of this frame: RSP and RBP always, RBX mostly, the others where it was interrupted. */
static __always_inline int unwind_reg(struct unwind *u, __u32 reg, __u64 *value)
{
	if (reg == ROW_REG_RSP)
		*value = u->sp;
	else if (reg == ROW_REG_RBP)
		*value = u->bp;
	else if (reg == ROW_REG_RBX && u->bx_how == ROW_BX_SAVED)
		return unwind_read(u, u->bx_at, value);
	else if (u->regs_known || (reg == ROW_REG_RBX && u->bx_how == ROW_BX_SAME))
		*value = u->regs[reg & (ROW_REG_N - 1)];
	else
		return -1;
	return 0;
}

/* A signal handler has returned to its trampoline: RSP points to struct ucontext. What it
 * interrupted goes on. */
static __always_inline int unwind_signal(struct unwind *u)
{
	const __u8 dwarf[16] = ARCH_SIG_DWARF;
	__u64 at = u->sp + ARCH_SIGCONTEXT, pc = 0;

	for (int i = 0; i < 16; i++)
		if (unwind_read(u, at + i * 8, &u->regs[dwarf[i] & (ROW_REG_N - 1)]))
			return unwind_stop(u, STACK_END_STACK_READ);
	if (unwind_read(u, at + ARCH_SIG_IP * 8, &pc))
		return unwind_stop(u, STACK_END_STACK_READ);
	u->pc = pc;
	u->sp = u->regs[ROW_REG_RSP];
	u->bp = u->regs[ROW_REG_RBP];
	u->exact = 1;
	u->regs_known = 1;
	u->bx_how = ROW_BX_SAME;
	return 1;
}

/* From a thread's system stack to the goroutine it works for. */
static __always_inline int unwind_go(struct unwind *u, __u32 kind, __s32 tls, __s32 curg_at,
				     __s32 bp_at)
{
	__u64 g = 0, m = 0, curg = 0, sp = 0, pc = 0, bp = 0;

	u->bx_how = ROW_BX_LOST;
	if (unwind_read(u, u->fs_base + tls, &g) || unwind_read(u, g + UNWIND_GO_M, &m) ||
	    unwind_read(u, m + curg_at, &curg))
		return unwind_stop(u, STACK_END_STACK_READ);
	if (!curg) /* the scheduler itself: it has no caller */
		return unwind_stop(u, STACK_END_ROOT);
	if (unwind_read(u, curg + UNWIND_GO_SCHED, &sp) ||
	    unwind_read(u, curg + UNWIND_GO_SCHED + bp_at, &bp))
		return unwind_stop(u, STACK_END_STACK_READ);
	if (kind == ROW_EXT_GO_SCHED) {
		if (unwind_read(u, curg + UNWIND_GO_SCHED + 8, &pc))
			return unwind_stop(u, STACK_END_STACK_READ);
		return unwind_move(u, pc, sp, bp);
	}
	if (unwind_read(u, sp, &pc))
		return unwind_stop(u, STACK_END_STACK_READ);
	return unwind_move(u, pc, sp + 8, bp);
}

static __always_inline int unwind_ext(struct unwind *u, __u64 rule)
{
	__u32 number = ROW_RULE_EXT(rule);
	__u64 head, tail, value = 0, cfa, bp_at = 0, bp = u->bp;
	__u32 kind, how;
	__s32 a, b, bp_offset;

	if (number >= u->ext_count)
		return unwind_stop(u, STACK_END_UNSUPPORTED);
	head = unwind_element(u, u->ext_first + number * 2);
	tail = unwind_element(u, u->ext_first + number * 2 + 1);
	kind = head & 0xff;
	how = head >> 16 & 0xff;
	a = (__s32)(head >> 32);
	b = (__s32)tail;
	bp_offset = (__s32)(tail >> 32);
	if (kind == ROW_EXT_GO_STACK || kind == ROW_EXT_GO_SCHED)
		return unwind_go(u, kind, a, b, bp_offset);
	if (unwind_reg(u, head >> 8 & 0xff, &value))
		return unwind_stop(u, STACK_END_UNSUPPORTED);
	cfa = value + a;
	if (kind == ROW_EXT_RA_REG) {
		if (unwind_reg(u, head >> 24 & 0xff, &value))
			return unwind_stop(u, STACK_END_UNSUPPORTED);
		unwind_bx(u, rule, cfa);
		return cfa < u->sp ? unwind_stop(u, STACK_END_CFA) : unwind_move(u, value, cfa, bp);
	}
	if (kind == ROW_EXT_INDEX) {
		if (unwind_reg(u, head >> 24 & 0xff, &value))
			return unwind_stop(u, STACK_END_UNSUPPORTED);
		cfa += value * 8;
	}
	/* g and depth, as asmcgocall left them on the system stack */
	if (kind == ROW_EXT_GO_DEPTH) {
		__u64 depth = 0;

		if (unwind_read(u, cfa, &value) || unwind_read(u, cfa - a + b, &depth) ||
		    unwind_read(u, value + 8, &cfa))
			return unwind_stop(u, STACK_END_STACK_READ);
		cfa += 8 * (head >> 24 & 0xff) - depth;
	}
	if (kind == ROW_EXT_DEREF || kind == ROW_EXT_INDEX) {
		if (unwind_read(u, cfa, &value))
			return unwind_stop(u, STACK_END_STACK_READ);
		cfa = value + b;
	}
	if (how == ROW_EXT_BP_CFA)
		bp_at = cfa + bp_offset;
	else if (how == ROW_EXT_BP_RBP)
		bp_at = u->bp + bp_offset;
	else if (how == ROW_EXT_BP_RSP)
		bp_at = u->sp + bp_offset;
	else if (how == ROW_EXT_BP_LOST)
		bp = 0;
	unwind_bx(u, rule, cfa);
	if (kind == ROW_EXT_SWITCH || kind == ROW_EXT_GO_DEPTH)
		return unwind_across(u, cfa, bp_at, bp);
	if (!unwind_to(u, cfa, bp_at, bp))
		return 0;
	u->exact = kind == ROW_EXT_INJECTED;
	return 1;
}

static __always_inline int unwind_special(struct unwind *u, __u64 rule)
{
	__u32 special = ROW_RULE_SPECIAL(rule);

	if (special == ROW_NONE || special == ROW_FP) {
		if (u->own_code == UNWIND_OWN_THERE && u->map_state == TABLES_IMAGE_FREE) {
			u->own_code = UNWIND_OWN_MET;
			u->own_called = !u->regs_known;
			u->own_bp[0] = u->bp;
			return unwind_stop(u, STACK_END_UNSUPPORTED);
		}
		if (u->own_code == UNWIND_OWN_OBJECTS && u->own_n < STACK_OBJECTS)
			u->own_bp[u->own_n++ & (STACK_OBJECTS - 1)] = u->bp;
		u->guessed += special == ROW_NONE && u->map_state == TABLES_IMAGE_READY;
		return unwind_by_pointer(u);
	}
	if (special == ROW_ROOT)
		return unwind_stop(u, STACK_END_ROOT);
	if (special == ROW_SIGNAL)
		return unwind_signal(u);
	if (special == ROW_PLT)
		return unwind_to(u, u->sp + 8 + ((u->pc & 15) >= ROW_RULE_ARG(rule) ? 8 : 0), 0,
				 u->bp);
	return unwind_stop(u, STACK_END_UNSUPPORTED);
}

/* The rule that the rows have for `pc`, a row address of the mapping found last;
 * UNWIND_RULE_ABSENT: they are not there. */
static __always_inline __u64 unwind_search(struct unwind *u, __u64 pc)
{
	__u32 number = unwind_number(u, (__u32)pc);

	if (number == UNWIND_ABSENT)
		return UNWIND_RULE_ABSENT;
	return number < u->ext_first - u->rule_first ? unwind_element(u, u->rule_first + number) :
						       ROW_MAKE_SPECIAL(ROW_NONE, 0);
}

/* The rule that holds at `at`, an address of the mapping found last. */
static __always_inline __u64 unwind_rule(struct unwind *u, __u64 at)
{
	__u64 pc = at + u->map_row;

	if (u->map_state != TABLES_IMAGE_READY || pc >> TABLES_PAGE_SHIFT >= u->page_count)
		return ROW_MAKE_SPECIAL(ROW_NONE, 0);
	return unwind_rule_at(u, pc);
}

/* Say the frame, then go to its caller. 0: that was the last; u->end says why. */
static __always_inline int unwind_step(struct unwind *u)
{
	__u64 at = u->pc - !u->exact, exact = u->exact ? FRAME_EXACT : 0, cfa, rule;

	if ((at < u->map_start || at >= u->map_end) && !unwind_place(u, at)) {
		unwind_emit(u, (u->pc & (FRAME_EXACT - 1)) | exact);
		return unwind_stop(u, STACK_END_NO_MAPPING);
	}
	if (u->map_image)
		unwind_emit(u, FRAME_IMAGE | exact |
				       (__u64)(u->map_image & FRAME_IMAGE_MAX)
					       << FRAME_OFFSET_BITS |
				       ((u->pc + u->map_file) & FRAME_OFFSET_MASK));
	else
		unwind_emit(u, (u->pc & (FRAME_EXACT - 1)) | exact);
	if (u->map_state == TABLES_IMAGE_PENDING)
		return unwind_stop(u, STACK_END_PENDING);

	rule = unwind_rule(u, at);
	if (rule == UNWIND_RULE_ABSENT)
		return unwind_stop(u, STACK_END_PENDING);
	if (ROW_RULE_KIND(rule) == ROW_SPECIAL)
		return unwind_special(u, rule);
	if (ROW_RULE_KIND(rule) == ROW_EXT)
		return unwind_ext(u, rule);
	cfa = (ROW_RULE_KIND(rule) == ROW_RSP ? u->sp : u->bp) + ROW_RULE_OFFSET(rule) * 8;
	unwind_bx(u, rule, cfa);
	return unwind_to(u, cfa,
			 ROW_RULE_BP(rule) == ROW_BP_SAVED ? cfa - ROW_RULE_SAVED(rule) * 8 : 0,
			 ROW_RULE_BP(rule) == ROW_BP_LOST ? 0 : u->bp);
}

/* The number in the last row at or before byte `in_page` of a page among its `count` rows (at most
 * 1023), of which the first is the lower or upper half of an element: `first` counts halves.
 * `number` if there is no such row. */
#define UNWIND_SEARCH(element, first, count, in_page, number)                      \
	({                                                                         \
		__u32 found_ = (number), at_ = (first), left_ = (count);           \
		for (int i_ = 0; i_ < 10 && left_; i_++) {                         \
			__u32 half_ = left_ >> 1, k_ = at_ + half_;                \
			__u32 row_ = (__u32)(element(k_ >> 1) >> ((k_ & 1) << 5)); \
			if (ROW_IN_PAGE(row_) <= (in_page)) {                      \
				found_ = ROW_NUMBER(row_);                         \
				at_ += half_ + 1;                                  \
				left_ -= half_ + 1;                                \
			} else {                                                   \
				left_ = half_;                                     \
			}                                                          \
		}                                                                  \
		found_;                                                            \
	})

#endif
