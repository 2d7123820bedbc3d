/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack: what every family's event carries about its thread and its stack. Read by BPF programs and
 * loaders. The BPF side includes probes/lib/kern.h before it, user space <linux/types.h>.
 *
 * A process is (tgid, start_ns, exec_id): start_ns is the group leader's start_boottime (what
 * /proc/PID/stat shows in clock ticks), exec_id the leader's self_exec_id, which the kernel raises
 * at each exec.
 *
 * Frames: leaf first, kernel part before user part. A kernel frame is an address. A user frame is
 *   FRAME_IMAGE | image id << FRAME_OFFSET_BITS | offset within the file
 *       where a published mapping held its pc, or
 *   the address itself
 *       where none did (JIT code, unknown process), or
 *   FRAME_SCRIPT and what runtimes/runtime.h defines
 *       for a script, in place of its interpreter's frame.
 * A frame with FRAME_EXACT is a pc that was interrupted there: the leaf of an interrupt or a fault,
 * and what a signal interrupted. One without is a return address, or lies behind a system call
 * instruction: names are looked up at - 1. Image ids are sonde-maps' (mp_image.id). They hold as of
 * tables_ns: where the process's mappings changed between tables_ns and time_ns, the frames are
 * turned back into addresses and named again, and what was unwound beyond a changed mapping is cut
 * off (end STACK_END_STALE).
 */
#ifndef SONDE_PROBES_STACK_H
#define SONDE_PROBES_STACK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/runtimes/object.h"

#define STACK_KERNEL_MAX 127
#define STACK_USER_MAX   1664 /* of a stack with frames of scripts: 400 of CPython 3.8 are 1600 */
#define STACK_NATIVE_MAX 512  /* of one without */
#define STACK_COMM_LEN   16

#define FRAME_IMAGE       (1ull << 62)
#define FRAME_EXACT       (1ull << 61)
#define FRAME_OFFSET_BITS 40
#define FRAME_OFFSET_MASK ((1ull << FRAME_OFFSET_BITS) - 1)
#define FRAME_IMAGE_MAX   ((1u << 21) - 1)
#define FRAME_IMAGE_OF(f) ((__u32)((f) >> FRAME_OFFSET_BITS) & FRAME_IMAGE_MAX)
/* A frame of a script: bits 60-63 are 8, which no address has. */
#define FRAME_SCRIPT       (1ull << 63)
#define FRAME_IS_SCRIPT(f) ((f) >> 60 == 8)
#define FRAME_ADDRESS(f)   ((f) & ~FRAME_EXACT) /* of a frame without FRAME_IMAGE */

enum stack_flags {
	STACK_F_KTHREAD = 1,    /* no user part: a kernel thread */
	STACK_F_USER_FAULT = 2, /* no user registers to begin with */
	STACK_F_TRUNCATED = 4,  /* deeper than the limit */
	STACK_F_KERNEL_FAULT = 8,
	STACK_F_TABLES = 16, /* tables_ns holds */
	STACK_F_LATE = 32, /* a struct stack_late: registers and raw stack instead of user frames */
	STACK_F_MORE = 128,  /* a struct stack_more */
	STACK_F_LOGICAL = 64 /* not from a probe: each user frame represents one function, the
				innermost at its place, and the functions it was inlined into have
				their own frames; the leaf is a return address, too */
};

/* Why the user part ends where it does. Stored: never renumbered. */
enum stack_end {
	STACK_END_NONE = 0, /* there is no user part, or none any more: the process is ending, its
			       memory is gone */
	STACK_END_ROOT = 1, /* complete */
	STACK_END_NO_PROCESS = 2,  /* its mappings were not published (yet) */
	STACK_END_NO_MAPPING = 3,  /* the next pc lies in no executable mapping */
	STACK_END_PENDING = 4,     /* rows of the last frame's file were not there yet */
	STACK_END_UNSUPPORTED = 5, /* a rule that cannot be expressed */
	STACK_END_STACK_READ = 6,  /* stack memory could not be read */
	STACK_END_CFA = 7,         /* the rule led to an impossible place */
	STACK_END_FRAME_POINTER =
		8, /* the chain of frame pointers ended (0, or no stack address) before a root */
	STACK_END_DEPTH =
		9, /* deeper than STACK_USER_MAX, STACK_NATIVE_MAX, or what fits of a script */
	STACK_END_STALE = 10, /* a mapping changed under it (found in user space) */
	STACK_END_32BIT = 11, /* 32-bit code */
	STACK_END_NO_REGISTERS = 12,
	STACK_END_SHORT_COPY =
		13,             /* unwound in user space: the copied piece of stack was too short */
	STACK_END_GONE = 14,    /* exec or exit has given its memory away: in the kernel, or before
				   user space could read it (found in user space) */
	STACK_END_NO_ROOM = 15, /* the ring `late` was full, through which user space gets what it
				   unwinds */
	STACK_END_N
};

struct stack_event {
	__u64 time_ns; /* CLOCK_BOOTTIME */
	__u64 start_ns;
	__u64 cgroup_id; /* default (v2) hierarchy */
	__u64 tables_ns; /* as_of_ns of the mappings it was unwound with; see STACK_F_TABLES */
	__u64 tag; /* of the request that the thread, or its goroutine, served (inflight.bpf.h); 0:
		      none that is known */
	__u32 tgid;
	__u32 tid;
	__u32 exec_id;
	__u32 cpu;
	__u16 n_kernel;
	__u16 n_user;
	__u16 flags; /* enum stack_flags */
	__u16 end;   /* enum stack_end */
	char thread[STACK_COMM_LEN];
	/* followed by n_kernel + n_user __u64 frames */
};
_Static_assert(sizeof(struct stack_event) == 80, "wire size");

#define STACK_LATE_PAGES 4 /* this many, and the rest of the one that RSP points into */
#define STACK_LATE_BYTES ((STACK_LATE_PAGES + 1) * 4096)
#define STACK_LATE_CODE  32
#define STACK_MORE_BYTES (4 * 4096u)
#define STACK_MORE_PARTS 4
#define STACK_LATE_ALL   (STACK_LATE_BYTES + STACK_MORE_PARTS * STACK_MORE_BYTES)
/*
 * A record of the ring `late`: what a user stack can be unwound from when its rows are there, or by
 * who knows its process's own code. ev.flags has STACK_F_LATE, ev.n_user is 0, ev.end says what was
 * missing.
 */
struct stack_late {
	struct stack_event ev;
	__u64 kernel[STACK_KERNEL_MAX]; /* ev.n_kernel of them */
	__u64 regs[16];                 /* as DWARF numbers them */
	__u64 pc;
	__u64 fs_base;
	__u32 exact; /* 1: pc was interrupted; 0: it lies behind a system call instruction */
	__u32 size;  /* bytes of `stack` that are filled */
	struct stack_object objects[STACK_OBJECTS];
	__u8 code[STACK_LATE_CODE]; /* the bytes at pc; 0 if they could not be read */
	__u8 stack[STACK_LATE_ALL]; /* memory from regs[7] (RSP) on; the record ends with what is
				       filled, STACK_LATE_BYTES at most */
};
_Static_assert(sizeof(struct stack_late) ==
		       80 + 127 * 8 + 152 + 56 * STACK_OBJECTS + STACK_LATE_CODE + STACK_LATE_ALL,
	       "wire size");

/*
 * What a deep stack has beyond: before its struct stack_late, in order, come up to STACK_MORE_PARTS
 * of these, of the same CPU, thread and time. Only of processes whose own code user space unwinds:
 * frames of a script's interpreter are 50 to 200 bytes each.
 */
struct stack_more {
	struct stack_event ev; /* time_ns, tid and cpu; flags is STACK_F_MORE */
	__u32 from; /* bytes from RSP on that come before it; STACK_MORE_ASIDE | enum stack_aside */
	__u32 size;
	__u8 stack[STACK_MORE_BYTES]; /* the record ends with what is filled */
};
_Static_assert(sizeof(struct stack_more) == 80 + 8 + STACK_MORE_BYTES, "wire size");

/*
 * Memory that is no part of the thread's stack, also before its struct stack_late: the first 8
 * bytes are its address. Of a thread that runs Erlang and is in C code that Erlang called: the
 * Erlang process's stack lies in its heap. The code that called keeps the top of it in the process,
 * or in RBP, which only its next instructions say (loaders/lib/runtimes/beam): so both are sent.
 */
#define STACK_MORE_ASIDE  0x80000000u
#define STACK_ASIDE_BYTES 4096u
enum stack_aside { STACK_ASIDE_STORED, STACK_ASIDE_RBP, STACK_ASIDE_N };

/* What the loader tells the program of such a thread (map `erlang`, by tgid << 32 | tid): where the
 * thread's scheduler says which Erlang process it runs, and where in that the top of its stack is.
 */
struct stack_erlang {
	__u64 running;
	__u32 top;
	__u32 pad;
};
#define STACK_ERLANGS 512 /* threads */

#endif
