/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offcpu_object: what a thread waits on: the futex's address, the file behind the descriptor that is the call's first
 * argument, or a socket's other end. Asked of waits whose stack is taken: it takes some reading of the kernel's memory.
 */
#ifndef SONDE_PROBES_OFFCPU_OBJECT_BPF_H
#define SONDE_PROBES_OFFCPU_OBJECT_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "probes/arch_x86.h"
#include "probes/offcpu.h"
#include "probes/offcpu_class.bpf.h"
#include "probes/offcpu_load.bpf.h"

const volatile __u32 syscall_futex = OFFCPU_SYSCALLS;
const volatile __u32 syscall_sync = OFFCPU_SYSCALLS; /* a call for the disk that takes no descriptor */

#define FD_MAX     (1u << 20)
#define INET       2
#define INET6      10
#define TCP_LISTEN 10

static __always_inline void object_socket(struct offcpu_object *on, struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u16 port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));

	if (family != INET && family != INET6)
		return;
	on->family = family;
	on->kind = OFFCPU_ON_PEER;
	on->port = port;
	if (!port || BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN) {
		on->kind = OFFCPU_ON_PORT;
		on->port = BPF_CORE_READ(sk, __sk_common.skc_num);
	} else if (family == INET) {
		bpf_core_read(on->peer, 4, &sk->__sk_common.skc_daddr);
	} else {
		bpf_core_read(on->peer, sizeof(on->peer), &sk->__sk_common.skc_v6_daddr);
	}
}

static __always_inline void object_file(struct offcpu_object *on, struct task_struct *task, __u64 fd)
{
	struct file *file = fd < FD_MAX ? file_read(task, (__u32)fd) : NULL;
	struct inode *inode;

	if (!file)
		return;
	inode = BPF_CORE_READ(file, f_inode);
	on->kind = OFFCPU_ON_FILE;
	on->fd = (__u32)fd;
	on->value = BPF_CORE_READ(inode, i_ino);
	if ((BPF_CORE_READ(inode, i_mode) & FILE_TYPE) == FILE_SOCKET)
		object_socket(on, file);
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
	} else if ((class == OFFCPU_DISK || class == OFFCPU_NETWORK || class == OFFCPU_PIPE || class == OFFCPU_OTHER) &&
		   in.call < OFFCPU_SYSCALLS && in.call != syscall_sync) {
		__u8 of = syscall_class[in.call & (OFFCPU_SYSCALLS - 1)];

		if (of == OFFCPU_BY_FILE || of == OFFCPU_NETWORK || of == OFFCPU_DISK)
			object_file(on, task, in.first);
	}
}

#endif
