/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_uring: what programs move on sockets by io_uring, by the tracepoint io_uring_complete (its
 * second argument is the request from 5.18 on, which has its result since 5.19). It costs only
 * programs that use io_uring.
 *
 * 1. A request that is done still has its file, its operation and its result; from 6.0 on, too, the
 *    beginning of what the operation was asked with: io_sr_msg (SEND, RECV, SENDMSG, RECVMSG, and
 *    SEND and SENDMSG without a copy), io_rw (READ, WRITE, READV, WRITEV), io_accept. The program
 *    has not seen the completion yet: its buffer still holds the moved bytes.
 * 2. Where the kernel chose the buffer, the buffer was registered, or the request went on after a
 *    part of it, the address of the bytes is unknown: they are counted as moved and unreadable
 *    (L7_F_FAULT). Completions without a request (all but the last of a repeated one) are found
 *    missing by TCP's numbers.
 * 3. Its begin is unknown: the time of completion is used.
 */
#ifndef SONDE_PROBES_L7_URING_BPF_H
#define SONDE_PROBES_L7_URING_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/l7/message.bpf.h"
#include "probes/lib/preempt.bpf.h"

enum uring_op { /* of linux/io_uring.h, that say nothing of their kernel's age */
		URING_READV = 1,
		URING_WRITEV = 2,
		URING_SENDMSG = 9,
		URING_RECVMSG = 10,
		URING_ACCEPT = 13,
		URING_CONNECT = 16,
		URING_READ = 22,
		URING_WRITE = 23,
		URING_SEND = 26,
		URING_RECV = 27,
		URING_SEND_ZC = 47,
		URING_SENDMSG_ZC = 48
};
#define URING_BUFFER_SELECT (1u << 5) /* of the request's flags, as of the submission's */

/* -1: no operation that is looked at. */
static __always_inline int uring_dir(__u8 op)
{
	switch (op) {
	case URING_READV:
	case URING_RECVMSG:
	case URING_READ:
	case URING_RECV:
		return L7_IN;
	case URING_WRITEV:
	case URING_SENDMSG:
	case URING_WRITE:
	case URING_SEND:
	case URING_SEND_ZC:
	case URING_SENDMSG_ZC:
		return L7_OUT;
	default:
		return -1;
	}
}

/* Where the bytes lie. false: that is not known. */
static __always_inline bool uring_pieces(struct io_kiocb *req, __u8 op, __u64 n, struct walk *w)
{
	void *cmd = (char *)req + bpf_core_field_offset(struct io_kiocb, cmd);
	struct io_sr_msg *sr = cmd;
	struct io_rw *rw = cmd;

	pieces_none(w);
	if (!bpf_core_field_exists(struct io_kiocb, cmd) ||
	    BPF_CORE_READ(req, flags) & URING_BUFFER_SELECT)
		return false;
	w->left = n;
	if (op == URING_READ || op == URING_WRITE) {
		w->ptr = BPF_CORE_READ(rw, addr);
		return w->ptr;
	}
	if (op == URING_SEND || op == URING_RECV || op == URING_SEND_ZC) {
		w->ptr = BPF_CORE_READ(sr, done_io) ? 0 : (__u64)BPF_CORE_READ(sr, buf);
		return w->ptr;
	}
	w->left = 0;
	if (op == URING_READV || op == URING_WRITEV)
		pieces_vector(w, BPF_CORE_READ(rw, addr), BPF_CORE_READ(rw, len));
	else if (!BPF_CORE_READ(sr, done_io))
		header_read(w, (__u64)BPF_CORE_READ(sr, umsg));
	return w->iov;
}

/* A descriptor of the process; one of the ring's own table is identified by its bytes. */
static __always_inline void uring_accepted(struct io_kiocb *req, __s32 fd)
{
	struct io_accept *a = (void *)((char *)req + bpf_core_field_offset(struct io_kiocb, cmd));

	if (fd >= 0 && bpf_core_field_exists(struct io_kiocb, cmd) && !BPF_CORE_READ(a, file_slot))
		accepted_fd((__u32)fd);
}

static __always_inline int uring_done(unsigned long long *x)
{
	struct io_kiocb *req = (struct io_kiocb *)x[1];
	struct file *file;
	struct walk *w;
	struct sock *sk;
	__u32 flags;
	__s32 res;
	int dir;
	__u8 op;

	if (!req || !bpf_core_field_exists(struct io_kiocb, cqe))
		return 0;
	op = BPF_CORE_READ(req, opcode);
	res = BPF_CORE_READ(req, cqe.res);
	dir = uring_dir(op);
	if (op == URING_ACCEPT)
		uring_accepted(req, res);
	if (dir < 0 && op != URING_CONNECT)
		return 0;
	file = BPF_CORE_READ(req, file);
	sk = file ? sock_of_file(file) : NULL;
	if (!sk)
		return 0;
	if (op == URING_CONNECT)
		return res ? 0 : connected(sk, BPF_CORE_READ(file, f_inode, i_ino));
	w = walk_get(0);
	if (!w)
		return 0;
	writes(); /* 3 */
	if (res > 0) {
		flags = uring_pieces(req, op, (__u64)res, w) ? 0 : L7_F_FAULT << 1;
		if (flags)
			pieces_none(w);
		message_moved(sk, BPF_CORE_READ(file, f_inode, i_ino), (__u32)dir | flags,
			      (__u64)res);
	} else if (!res && dir == L7_IN) {
		read_end(sk, BPF_CORE_READ(file, f_inode, i_ino));
	}
	return 0;
}

PREEMPT_PAIR("raw_tp/io_uring_complete", l7_uring, uring_done(ctx))

#endif
