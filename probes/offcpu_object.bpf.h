/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_object: what a thread waits on: the futex's address, the file behind the descriptor that
 * is the call's first argument, or a socket's other end. Asked of waits whose stack is taken: it
 * takes some reading of the kernel's memory.
 */
#ifndef SONDE_PROBES_OFFCPU_OBJECT_BPF_H
#define SONDE_PROBES_OFFCPU_OBJECT_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/offcpu.h"
#include "probes/offcpu_class.bpf.h"
#include "probes/offcpu_load.bpf.h"
#include "probes/lib/sock.bpf.h"

const volatile __u32 syscall_futex = OFFCPU_SYSCALLS;
const volatile __u32 syscall_sync =
	OFFCPU_SYSCALLS; /* a call for the disk that takes no descriptor */

#define FD_MAX (1u << 20)

static __always_inline void object_socket(struct offcpu_object *on, struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u16 port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));

	if (family != SOCK_INET && family != SOCK_INET6)
		return;
	on->family = family;
	on->kind = OFFCPU_ON_PEER;
	on->port = port;
	if (!port || BPF_CORE_READ(sk, __sk_common.skc_state) == SOCK_LISTEN) {
		on->kind = OFFCPU_ON_PORT;
		on->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	} else {
		sock_peer(sk, family, on->peer);
	}
}

static __always_inline void object_file(struct offcpu_object *on, struct task_struct *task,
					__u64 fd)
{
	struct file *file = fd < FD_MAX ? sock_fd_file(task, (__u32)fd) : NULL;
	struct sock *sk;

	if (!file)
		return;
	on->kind = OFFCPU_ON_FILE;
	on->fd = (__u32)fd;
	on->value = BPF_CORE_READ(file, f_inode, i_ino);
	sk = sock_of_file(file);
	if (sk)
		object_socket(on, sk);
}

/* `task` leaves the CPU now. */
static __noinline void object_find(struct offcpu_object *on, struct task_struct *task, __u8 class)
{
	struct arch_entry in;

	on->kind = OFFCPU_ON_NOTHING;
	if (LOAD(task, flags) & PF_KTHREAD || !entry_read(task, &in) || in.call < 0)
		return;
	if (in.call == syscall_futex) {
		on->kind = OFFCPU_ON_FUTEX;
		on->value = in.first;
	} else if ((class == OFFCPU_DISK || class == OFFCPU_NETWORK || class == OFFCPU_PIPE ||
		    class == OFFCPU_OTHER) &&
		   in.call < OFFCPU_SYSCALLS && in.call != syscall_sync) {
		__u8 of = syscall_class[in.call & (OFFCPU_SYSCALLS - 1)];

		if (of == OFFCPU_BY_FILE || of == OFFCPU_NETWORK || of == OFFCPU_DISK)
			object_file(on, task, in.first);
	}
}

#endif
