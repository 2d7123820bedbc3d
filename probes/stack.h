/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack: what every family's event carries about who it happened to and where. Read by BPF programs and loaders.
 * The BPF side includes probes/kern.h before it, user space <linux/types.h>.
 *
 * A process is (tgid, start_ns, exec_id): start_ns is the group leader's start_boottime (what /proc/PID/stat shows in
 * clock ticks), exec_id the leader's self_exec_id, which the kernel raises at each exec. Frames are addresses, leaf
 * first, kernel part before user part: (image, offset) is made of them in user space, by the mappings that held at
 * time_ns (docs/decisions/0001-frames-as-addresses.md).
 */
#ifndef SONDE_PROBES_STACK_H
#define SONDE_PROBES_STACK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define STACK_KERNEL_MAX 127
#define STACK_USER_MAX   127 /* 512 with the unwinder */
#define STACK_COMM_LEN   16

enum stack_flags {
	STACK_F_KTHREAD = 1,          /* no user part: a kernel thread */
	STACK_F_USER_FAULT = 2,       /* the user stack could not be read */
	STACK_F_TRUNCATED = 4,        /* deeper than the limit */
	STACK_F_KERNEL_FAULT = 8
};

struct stack_event {
	__u64 time_ns;   /* CLOCK_BOOTTIME */
	__u64 start_ns;
	__u64 cgroup_id; /* default (v2) hierarchy */
	__u32 tgid;
	__u32 tid;
	__u32 exec_id;
	__u32 cpu;
	__u16 n_kernel;
	__u16 n_user;
	__u32 flags;     /* enum stack_flags */
	char thread[STACK_COMM_LEN];
	/* followed by n_kernel + n_user __u64 addresses */
};
_Static_assert(sizeof(struct stack_event) == 64, "wire size");

#endif
