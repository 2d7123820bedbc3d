/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sock: from a task's descriptor to its file, from a file to its socket, and who and where that is. Read by helpers, so that it
 * holds for every pointer; offcpu_file has the quick way for those that the kernel vouches for.
 */
#ifndef SONDE_PROBES_SOCK_BPF_H
#define SONDE_PROBES_SOCK_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define SOCK_FILE_TYPE   0170000
#define SOCK_FILE_SOCKET 0140000

#define SOCK_UNIX  1
#define SOCK_INET  2
#define SOCK_INET6 10

#define SOCK_TCP 6
#define SOCK_UDP 17

enum sock_tcp_state {
	SOCK_ESTABLISHED = 1, SOCK_SYN_SENT, SOCK_SYN_RECV, SOCK_FIN_WAIT1, SOCK_FIN_WAIT2, SOCK_TIME_WAIT, SOCK_CLOSE, SOCK_CLOSE_WAIT,
	SOCK_LAST_ACK, SOCK_LISTEN, SOCK_CLOSING
};

/* NULL: there is none. */
static __always_inline struct file *sock_fd_file(struct task_struct *task, __u32 fd)
{
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct file *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds) ||
	    bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd))
		return NULL;
	return file;
}

/* NULL: the file is no socket. */
static __always_inline struct sock *sock_of_file(struct file *file)
{
	struct socket *socket;

	if ((BPF_CORE_READ(file, f_inode, i_mode) & SOCK_FILE_TYPE) != SOCK_FILE_SOCKET)
		return NULL;
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* The inode number of a socket's file: no other socket has it while this one is there, nor soon after. 0: it has no file. */
static __always_inline __u64 sock_ino(struct sock *sk)
{
	struct socket *socket = BPF_CORE_READ(sk, sk_socket);
	struct file *file = socket ? BPF_CORE_READ(socket, file) : NULL;

	return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

/* The other end's address: 16 bytes, IPv4 the first four. */
static __always_inline void sock_peer(struct sock *sk, __u16 family, __u8 *to)
{
	if (family == SOCK_INET)
		bpf_core_read(to, 4, &sk->__sk_common.skc_daddr);
	else
		bpf_core_read(to, 16, &sk->__sk_common.skc_v6_daddr);
}

static __always_inline void sock_local(struct sock *sk, __u16 family, __u8 *to)
{
	if (family == SOCK_INET)
		bpf_core_read(to, 4, &sk->__sk_common.skc_rcv_saddr);
	else
		bpf_core_read(to, 16, &sk->__sk_common.skc_v6_rcv_saddr);
}

#endif
