/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_message: a message that was moved on a socket, and connections that begin and end, however
 * that was asked for: by a system call (l7.bpf.c) or by io_uring (l7/uring.bpf.h).
 */
#ifndef SONDE_PROBES_L7_MESSAGE_BPF_H
#define SONDE_PROBES_L7_MESSAGE_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/arch_x86.h"
#include "probes/l7.h"
#include "probes/l7/came.bpf.h"
#include "probes/l7/data.bpf.h"
#include "probes/lib/sock.bpf.h"
#include "probes/l7/java.bpf.h"
#include "probes/l7/record.bpf.h"

/* ---- when a write began ---- */

#define BEGINS (1u << 16)
struct begin {
	__u64 at_ns;
	__u32 tid, pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BEGINS);
	__type(key, __u32);
	__type(value, struct begin);
} begins SEC(".maps");

static __always_inline int writes(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid & (BEGINS - 1);
	struct begin *b = bpf_map_lookup_elem(&begins, &slot);

	if (b) {
		b->at_ns = bpf_ktime_get_boot_ns();
		b->tid = tid;
	}
	return 0;
}

static __always_inline __u64 begun_at(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), slot = tid & (BEGINS - 1);
	struct begin *b = bpf_map_lookup_elem(&begins, &slot);

	return b && b->tid == tid ? b->at_ns : bpf_ktime_get_boot_ns();
}

static __always_inline __u64 at_of(__u32 dir)
{
	return dir == L7_OUT ? begun_at() : bpf_ktime_get_boot_ns();
}

/* ---- descriptors ---- */

#define LOADS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

/* Where the kernel offers the current task as one that it vouches for, its fields are loaded, else
 * a helper reads them. */
static __always_inline struct file *fd_file(__u32 fd)
{
	struct file *file = NULL;

	if (LOADS) {
		struct task_struct *task = (struct task_struct *)bpf_get_current_task_btf();
		struct files_struct *files = task->files;
		struct fdtable *table = files ? files->fdt : NULL;

		if (!table || fd >= table->max_fds ||
		    bpf_probe_read_kernel(&file, sizeof(file), table->fd + fd))
			return NULL;
		return file;
	}
	return sock_fd_file((struct task_struct *)bpf_get_current_task(), fd);
}

/* NULL: no socket. */
static __always_inline struct sock *fd_sock(__u32 fd, __u64 *ino)
{
	struct file *file = fd_file(fd);
	struct inode *inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	struct socket *socket;

	if (!inode || (BPF_CORE_READ(inode, i_mode) & SOCK_FILE_TYPE) != SOCK_FILE_SOCKET)
		return NULL;
	*ino = BPF_CORE_READ(inode, i_ino);
	socket = BPF_CORE_READ(file, private_data);
	return BPF_CORE_READ(socket, sk);
}

/* ---- one message ---- */

static __always_inline void pieces_none(struct walk *w)
{
	w->name = w->iov = w->ptr = w->left = 0;
	w->iov_n = w->seq_known = 0;
}

static __always_inline void pieces_vector(struct walk *w, __u64 iov, __u64 n)
{
	w->iov = iov;
	w->iov_n = n > IOV_MOST ? IOV_MOST : (__u32)n;
}

/* A system call moved n bytes on a socket, the first of them at `buf`. A global function, as moved.
 * 1: see tls_outside. */
__noinline int tls_socket_call(__u64 socket, __u64 ino, __u32 dir, __u64 buf, __u64 n)
{
	struct sock *sk = (struct sock *)socket;
	__u32 *flags = tls_process_now();
	struct tls_call_key key;
	struct tls_call *c;
	__u8 type = 0;

	if (!flags)
		return 0;
	if (!(*flags & (TLS_PROCESS_C | TLS_PROCESS_GO)))
		return 0;
	c = tls_call_now(*flags, &key);
	if (!c)
		return tls_outside(sk, ino, &key, buf, dir == L7_OUT ? n | 1ull << 63 : n);
	if (c->dir != dir || c->inside || tls_header_read(buf, &type) < 0)
		return 0;
	c->inside = 1;
	if (c->sk == (__u64)sk && c->ino == ino && !c->memory)
		return 0;
	c->sk = (__u64)sk;
	c->ino = ino;
	c->memory = 0;
	tls_learn(c->conn, sk, ino, 0);
	return 0;
}

/* n bytes: the pieces of slot 0 say where they lie. `how`: the direction, and flags above it. A
 * global function, as moved: of 16 messages of one call it is looked at once. */
__noinline int message_moved_on(__u64 socket, __u64 ino, __u32 how, __u64 n)
{
	struct sock *sk = (struct sock *)socket;
	struct walk *w = walk_get(0);

	if (!w)
		return 0;
	w->first = w->ptr;
	w->first_iov = w->iov;
	w->java = 0;
	moved(socket, ino, how, n, at_of(how & 1));
	if (!w->first)
		w->first = tls_first(w->first_iov);
	if (!w->first || tls_plain(sk, ino, w, w->first, n))
		return 0;
	if ((*(volatile __u32 *)&tls_javas_n && tls_java_socket(sk, ino, how & 1, w->first, n)) ||
	    tls_socket_call(socket, ino, how & 1, w->first, n))
		tls_first_tell(socket, ino);
	return 0;
}

static __always_inline int message_moved(struct sock *sk, __u64 ino, __u32 how, __u64 n)
{
	return message_moved_on((__u64)sk, ino, how, n);
}

/* The other end will send no more. */
static __noinline int read_end(struct sock *sk, __u64 ino)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	if (!e || e->ino != ino || e->protocol == SOCK_UDP || e->flags & S_IN_DONE)
		return 0;
	e->flags |= S_IN_DONE;
	turn_strays(inflight_who());
	if (e->side == L7_SIDE_SERVER)
		inflight_clear(inflight_who(), 0);
	end_send(key, e, L7_EOF, L7_IN, bpf_ktime_get_boot_ns());
	return 0;
}

struct user_msghdr { /* the beginning of struct msghdr of the system call, 64 bits */
	__u64 name;
	__u32 namelen, pad;
	__u64 iov, iov_n;
};

static __always_inline bool header_read(struct walk *w, __u64 at)
{
	struct user_msghdr h = {};

	if (bpf_probe_read_user(&h, sizeof(h), (const void *)at))
		return false;
	w->name = h.namelen ? h.name : 0;
	pieces_vector(w, h.iov, h.iov_n);
	return true;
}

/* ---- connections begin ---- */

static __noinline int accepted_fd(__u32 fd)
{
	struct l7_sock *e;
	struct sock *sk;
	__u64 ino = 0;

	sk = fd_sock(fd, &ino);
	turn_accepted(inflight_who());
	if (!sk || sock_kind(sk) < 0)
		return 0;
	e = sock_enter(sk, ino, L7_SIDE_SERVER, bpf_ktime_get_boot_ns());
	if (tells_came && e)
		came_accepted(sk, e);
	return 0;
}

static __noinline int connected(struct sock *sk, __u64 ino)
{
	__u64 key = (__u64)sk, tag = 0;
	struct l7_sock *e;
	int how;

	if (sock_kind(sk) < 0 || BPF_CORE_READ(sk, sk_protocol) == SOCK_UDP)
		return 0;
	e = bpf_map_lookup_elem(&socks, &key);
	if (e && e->ino == ino) /* its existence was asked for again */
		return 0;
	e = sock_enter(sk, ino, L7_SIDE_CLIENT, bpf_ktime_get_boot_ns());
	if (!e)
		return 0;
	e->tag_who = inflight_who();
	how = turn_opens(e->tag_who, &tag);
	if (how == TURN_OPENED || how == TURN_OPENED_NEXT)
		e->flags |= S_OPENED;
	if (how == TURN_OPENED_NEXT || how == TURN_OPENED_DOUBT)
		e->flags |= S_NEXT;
	e->tag = tag ? tag : inflight_get(e->tag_who);
	return 0;
}

#endif
