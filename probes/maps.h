/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * maps: what the small program of sonde-maps reports of processes. One struct for all: an event of
 * the ring buffer (fork, exec, exit), and an element of what the task iterator writes
 * (MAPS_EV_TASK, without arguments).
 *
 * The BPF side includes probes/lib/kern.h before it, user space <linux/types.h>. Identity as in
 * probes/lib/stack.h.
 */
#ifndef SONDE_PROBES_MAPS_H
#define SONDE_PROBES_MAPS_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define MAPS_ARGS_MAX  4096
#define MAPS_COMM_LEN  16
#define MAPS_URGENT_NS 10000000 /* an exec is urgent once in this time a mount namespace */

enum maps_event_type {
	MAPS_EV_FORK = 1, /* a new process, not a thread; the fields are the child's */
	MAPS_EV_EXEC = 2, /* after the new image is mapped, before it runs */
	MAPS_EV_EXIT = 3, /* the last thread is going */
	MAPS_EV_TASK = 4, /* from the iterator: it is there */
	MAPS_EV_USED = 5  /* an ended process was collected by its parent: struct maps_used; of the
			     event only who and when is set */
};

enum maps_event_flags {
	MAPS_F_KTHREAD = 1,
	MAPS_F_ARGS_CUT = 2, /* the arguments were longer than MAPS_ARGS_MAX */
	MAPS_F_ARGS_FAULT = 4,
	MAPS_F_OOM = 8 /* exit: the out-of-memory killer had chosen it */
};

struct maps_event {
	__u64 time_ns;    /* CLOCK_BOOTTIME */
	__u64 start_ns;   /* of the group leader */
	__u64 cgroup_id;  /* default (v2) hierarchy */
	__u64 cgroup1_id; /* the memory controller's cgroup where that is on another hierarchy (v1),
			     else 0 */
	__u64 root_ino;   /* root directory of the process: (mount namespace, device, inode) tells
			     whose files it sees */
	__u32 root_dev;   /* kernel encoding: major << 20 | minor */
	__u32 mntns;
	__u32 type;
	__u32 flags;
	__u32 tgid;
	__u32 exec_id;
	__u32 ppid;
	__u32 from_tgid; /* fork: the process whose mappings were copied (not the parent under
			    CLONE_PARENT) */
	__u32 uid;       /* effective */
	__u32 nspid;     /* pid in the innermost pid namespace */
	__u32 exit_code; /* as in wait(2) */
	__u32 args_len;
	char comm[MAPS_COMM_LEN];
	/* exec: followed by args_len bytes, arguments each ended by NUL. exit: by a struct
	 * maps_sender where args_len is its size. used: by a struct maps_used, args_len is its size
	 */
};

/* What a process used over its whole life, with all its threads, whatever programs it executed: the
 * kernel's sums, once nothing of it runs any more. A kernel that does not count one of them says 0
 * and lacks the flag. */
struct maps_used {
	__u64 cpu_ns;             /* to the nanosecond, as its cgroup is charged */
	__u64 user_ns, system_ns; /* by ticks: how cpu_ns divides */
	__u64 runq_ns;            /* could run and waited for a CPU, its main thread */
	__u64 read_bytes, write_bytes;
	__u64 minflt, majflt;
	__u64 maxrss_pages; /* as wait4(2) tells it: what it had before an exec counts */
	__u32 flags;        /* enum maps_used_flags */
	__u32 pad;
};

enum maps_used_flags {
	MAPS_USED_SINGLE = 1, /* no other thread of it ran: runq_ns is its own */
	MAPS_USED_RUNQ = 2,
	MAPS_USED_IO = 4
};

/* Who sent a process the last signal that asks or forces it to end. Signals from the kernel are not
 * recorded. */
struct maps_sender {
	__u64 time_ns;  /* CLOCK_BOOTTIME */
	__u64 start_ns; /* of the one that it was sent to: a pid is given away again */
	__u32 tgid;     /* of the sender */
	__u32 signal;
	char comm[MAPS_COMM_LEN];
};
_Static_assert(sizeof(struct maps_sender) == 40, "wire size");
_Static_assert(sizeof(struct maps_used) == 80, "wire size");
_Static_assert(sizeof(struct maps_event) == 104, "wire size");

#endif
