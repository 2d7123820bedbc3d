/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_class: what a thread waits for, decided at the moment it leaves the CPU.
 *
 *   1. stopped or traced: stop
 *   2. a kernel thread, or 32-bit code, which are not distinguished: other (disk if it waits for
 *      I/O)
 *   3. in the kernel by no system call: page fault (an exception of its code)
 *   4. in a system call: by the table that the loader fills; for calls on any descriptor by what
 *      the first argument is: a FIFO pipe, a socket network, a regular file or block device disk,
 *      all else other; restart_syscall: as before (plain loads as far as the kernel vouches for the
 *      pointers: a helper's reading costs 20 ns each)
 *   5. the kernel says that it waits for I/O (in_iowait), and 4. says neither poll nor page fault:
 *      disk
 *   6. the kernel says that it is stalled for memory (in_memstall, which PSI counts): memory,
 *      whatever 2. to 5. say: it frees some before it gets some, waits for a page that was given up
 *      too early or is in swap, or is above its cgroup's memory.high
 */
#ifndef SONDE_PROBES_OFFCPU_CLASS_BPF_H
#define SONDE_PROBES_OFFCPU_CLASS_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/offcpu.h"
#include "probes/offcpu_file.bpf.h"
#include "probes/offcpu_load.bpf.h"

/* By number of the system call; the loader's. */
const volatile __u8 syscall_class[OFFCPU_SYSCALLS] = {};
const volatile __u32 syscall_yield = OFFCPU_SYSCALLS;

#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED_TRACED  0xc
#define TASK_DEAD            0x80

#define FILE_TYPE    0170000
#define FILE_FIFO    0010000
#define FILE_BLOCK   0060000
#define FILE_REGULAR 0100000
#define FILE_SOCKET  0140000

static __always_inline __u8 class_of_file(struct task_struct *task, __u32 fd)
{
	switch (file_mode(task, fd) & FILE_TYPE) {
	case FILE_FIFO:
		return OFFCPU_PIPE;
	case FILE_SOCKET:
		return OFFCPU_NETWORK;
	case FILE_BLOCK:
	case FILE_REGULAR:
		return OFFCPU_DISK;
	}
	return OFFCPU_OTHER;
}

static __always_inline __u8 class_of_call(struct task_struct *task, const struct arch_entry *in,
					  __u8 before)
{
	__u8 class;

	if (in->call < 0)
		return OFFCPU_FAULT;
	class = in->call < OFFCPU_SYSCALLS ? syscall_class[in->call & (OFFCPU_SYSCALLS - 1)] :
					     OFFCPU_OTHER;
	if (class == OFFCPU_BY_FILE)
		return class_of_file(task, (__u32)in->first);
	return class == OFFCPU_RESTART ? before : class;
}

struct task_struct___stalls { /* with CONFIG_PSI */
	unsigned int in_memstall : 1;
} __attribute__((preserve_access_index));

/* A separate function, as waits_for_io. */
static __noinline bool waits_for_memory(struct task_struct *task)
{
	struct task_struct___stalls *t = (void *)task;

	if (!bpf_core_field_exists(t->in_memstall))
		return false;
	if (plain)
		return BPF_CORE_READ_BITFIELD_PROBED(t, in_memstall);
	return BPF_CORE_READ_BITFIELD(t, in_memstall);
}

/* Why `task`, which is in `state`, does not run. `in`: how it entered the kernel; NULL: not by user
 * code that is known. *call_class: that of the last call, for those that go on. */
static __always_inline __u8 class_of(struct task_struct *task, long state,
				     const struct arch_entry *in, bool iowait, __u8 *call_class)
{
	__u8 class = OFFCPU_OTHER;

	if (state & TASK_STOPPED_TRACED)
		return OFFCPU_STOP;
	if (in) {
		class = class_of_call(task, in, *call_class);
		*call_class = class;
	}
	if (waits_for_memory(task))
		return OFFCPU_MEMORY;
	return iowait && class != OFFCPU_POLL && class != OFFCPU_FAULT ? OFFCPU_DISK : class;
}

#endif
