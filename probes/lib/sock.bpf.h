/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sock: from a task's descriptor to its file, from a file to its socket, and who and where that is.
 * Read by helpers, so that it holds for every pointer; offcpu_file has the quick way for those that
 * the kernel vouches for.
 */
#ifndef SONDE_PROBES_SOCK_BPF_H
#define SONDE_PROBES_SOCK_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/sock.h"

#define SOCK_PIDTYPE_TGID 1

#define SOCK_FILE_TYPE   0170000
#define SOCK_FILE_SOCKET 0140000

#define SOCK_UNIX  1
#define SOCK_INET  2
#define SOCK_INET6 10

#define SOCK_TCP 6
#define SOCK_UDP 17

enum sock_tcp_state {
	SOCK_ESTABLISHED = 1,
	SOCK_SYN_SENT,
	SOCK_SYN_RECV,
	SOCK_FIN_WAIT1,
	SOCK_FIN_WAIT2,
	SOCK_TIME_WAIT,
	SOCK_CLOSE,
	SOCK_CLOSE_WAIT,
	SOCK_LAST_ACK,
	SOCK_LISTEN,
	SOCK_CLOSING
};

/* NULL: none. */
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

/* The inode number of a socket's file: no other socket has it while this one is there, nor soon
 * after. 0: it has no file. */
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

/* The socket's cookie: fixed as long as the socket exists, but it may be made only now. */
static __always_inline __u64 sock_id(struct sock *sk)
{
	__u64 cookie = (__u64)BPF_CORE_READ(sk, __sk_common.skc_cookie.counter), ino;

	if (cookie)
		return cookie;
	ino = sock_ino(sk);
	return ino ? SOCK_ID_INODE | ino : 0;
}

/* Of a Unix socket: the process that had the other end's number when it was connected, if it still
 * has. NULL: unknown. */
static __always_inline struct task_struct *sock_mate(struct sock *sk)
{
	struct pid *pid = BPF_CORE_READ(sk, sk_peer_pid);
	struct hlist_node *first = pid ? BPF_CORE_READ(pid, tasks[SOCK_PIDTYPE_TGID].first) : NULL;

	return first ? (struct task_struct *)((char *)first -
					      bpf_core_field_offset(struct task_struct, pid_links) -
					      SOCK_PIDTYPE_TGID * sizeof(struct hlist_node)) :
		       NULL;
}

/* The address of a Unix socket: its length in `to`, which has SOCK_PATH. 0: none. */
static __always_inline __u32 sock_path(struct unix_address *addr, __u8 *to)
{
	int len = BPF_CORE_READ(addr, len) - 2;

	if (len <= 0 || len > SOCK_PATH)
		return 0;
	bpf_probe_read_kernel(to, SOCK_PATH,
			      (const char *)addr +
				      bpf_core_field_offset(struct unix_address, name) + 2);
	return (__u32)len;
}

static __always_inline void sock_end_unix(struct sock_end *to, struct unix_sock *u)
{
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ(u, peer);
	struct unix_address *own = BPF_CORE_READ(u, addr),
			    *its = other ? BPF_CORE_READ(other, addr) : NULL,
			    *server = own ? own : its;
	struct task_struct *mate = to->listens ? NULL : sock_mate((struct sock *)u);

	if (server)
		to->path_len = sock_path(server, to->path);
	if (mate)
		to->mate = (__u32)BPF_CORE_READ(mate, tgid);
}

/* `to` is zeroed. */
static __always_inline void sock_end_fill(struct sock_end *to, struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (family != SOCK_INET && family != SOCK_INET6 && family != SOCK_UNIX)
		return;
	to->family = family;
	to->id = sock_id(sk);
	to->listens = BPF_CORE_READ(sk, __sk_common.skc_state) == SOCK_LISTEN;
	if (family == SOCK_UNIX) {
		sock_end_unix(to, (struct unix_sock *)sk);
		return;
	}
	to->lport = BPF_CORE_READ(sk, __sk_common.skc_num);
	to->port = to->listens ? 0 : bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (to->port)
		sock_peer(sk, family, to->peer);
}

#endif
