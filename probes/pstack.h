/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pstack: what probes/pstack.bpf.c reports of each thread, one record a thread; read by
 * loaders/pstack.
 *
 * Clocks: the scheduler's own (sched_clock), which user space cannot read. now_ns is when the
 * reading thread itself came onto its CPU: if it has just slept, it knows that moment by its own
 * clock, too, and so the difference of both.
 */
#ifndef SONDE_PROBES_PSTACK_H
#define SONDE_PROBES_PSTACK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#include "probes/lib/sock.h"

#define PSTACK_MAGIC      0x6b737073u
#define PSTACK_KERNEL_MAX 64

enum pstack_flags {
	PSTACK_KTHREAD = 1,
	PSTACK_REGS = 2,       /* regs, pc, fs_base hold */
	PSTACK_IN_SYSCALL = 4, /* it entered the kernel by the system call `syscall` */
	PSTACK_IOWAIT = 8,
	PSTACK_ON_CPU = 16,
	PSTACK_CLOCK = 32, /* left_ns and now_ns hold */
	PSTACK_32BIT = 64
};

struct pstack_record {
	__u32 magic;
	__u32 flags; /* enum pstack_flags */
	__u32 tgid, tid;
	__u64 start_ns; /* of the process, as in struct stack_event */
	__u32 exec_id;
	__u32 state;    /* the kernel's; 0 is running or ready */
	__u64 switches; /* off a CPU, of both kinds: the same number twice, and it has not run
			   between */
	__u64 left_ns;  /* when it left its CPU; of a ready one, when it began to be ready */
	__u64 now_ns;   /* when the reader came onto its own */
	__s32 syscall;
	__u32 n_kernel;
	char thread[16];
	__u64 pc, fs_base;
	__u64 regs[16];       /* as DWARF numbers them */
	struct sock_end sock; /* of the descriptor that is a system call's first argument, if it
				 takes one */
	__u64 kernel[PSTACK_KERNEL_MAX];
};
/* A socket that a process has a descriptor of: of the iterator over files. */
struct pstack_socket {
	__u32 tgid, fd;
	__u64 ino; /* of the socket's file */
	struct sock_end sock;
};
_Static_assert(sizeof(struct pstack_socket) == 16 + 152, "wire size");
_Static_assert(sizeof(struct pstack_record) == 96 + 16 * 8 + 152 + PSTACK_KERNEL_MAX * 8,
	       "wire size");

#endif
