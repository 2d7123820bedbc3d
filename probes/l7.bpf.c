/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7: what programs read from and write to their sockets, at the system calls that move bytes, as
 * records in a ring that wakes no reader. l7/data.bpf.h decides what happens to bytes;
 * loaders/l7/hooks.c lists the calls to which the programs without a name in their section attach.
 *
 * 1. A call is handled when it ends, because then the number of moved bytes is known. Its arguments
 *    are still in the registers that the task entered the kernel with, so nothing is kept from its
 *    begin except, of calls that write, the time: another thread may read the answer before the
 *    call ends. The time is kept in an array by the thread's number; if another thread has the same
 *    place, the end's time is used. If the kernel has it, the socket's own event is used for writes
 *    instead, which comes just before (l7_sent).
 * 2. From the descriptor the program walks to the file, and returns if that is not a socket.
 * 3. accept and connect tell which side a connection is, and that nothing of it was missed. An
 *    older one, or one that was opened otherwise, has no side: its protocol tells.
 * 4. TCP's ends come from its states. Unix and UDP sockets report no end: the loader reads the
 *    descriptors of all processes from time to time (l7_sweep) and removes from `socks` those
 *    without a descriptor.
 * 5. Which request a thread serves is noted for the families that take stacks (request_note,
 *    inflight.bpf.h), until the thread waits for any of its descriptors.
 * 6. io_uring moves bytes without such calls: l7/uring.bpf.h. Before 5.19, and if it reports no
 *    request, TCP's sequence numbers show that bytes are missing, and they are reported as blind.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/arch_x86.h"
#include "probes/l7.h"
#include "probes/l7/came.bpf.h"
#include "probes/l7/data.bpf.h"
#include "probes/lib/calls.bpf.h"
#include "probes/lib/passon.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sock.bpf.h"
#include "probes/l7/message.bpf.h"
#include "probes/l7/record.bpf.h"
#include "probes/l7/uring.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define MSG_PEEK     2
#define MSG_TRUNC    0x20
#define MSG_ERRQUEUE 0x2000
#define MSGS_MOST    16
#define ENOSYS       38 /* the result while a call is under way */
#define EINPROGRESS  115

/* ---- the call at hand ---- */

struct call {
	__u64 r10, r9, r8, ax, cx, dx, si, di; /* as in arch_regs */
};

static __always_inline bool call_read(struct call *c)
{
	const volatile struct arch_regs *r;

	if (!LOADS)
		return !bpf_probe_read_kernel(
			c, sizeof(*c),
			(char *)arch_current_entry((void *)bpf_get_current_task()) +
				__builtin_offsetof(struct arch_regs, r10));
	r = (const volatile struct arch_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	c->r10 = r->r10;
	c->r8 = r->r8;
	c->dx = r->dx;
	c->si = r->si;
	c->di = r->di;
	return true;
}

static __always_inline __u32 call_dir(__u32 nr)
{
	return nr == ARCH_CALL_READ || nr == ARCH_CALL_READV || nr == ARCH_CALL_RECVFROM ||
			       nr == ARCH_CALL_RECVMSG ?
		       L7_IN :
		       L7_OUT;
}

/* By the socket's own event; of several messages at once (sendmmsg) it does not say which one. */
static __always_inline bool call_sends(__u32 nr)
{
	switch (nr) {
	case ARCH_CALL_WRITE:
	case ARCH_CALL_WRITEV:
	case ARCH_CALL_SENDTO:
	case ARCH_CALL_SENDMSG:
	case ARCH_CALL_SENDFILE:
	case ARCH_CALL_SPLICE:
		return true;
	default:
		return false;
	}
}

/* Nothing is taken out of the socket, or it is no message of its stream. */
static __always_inline bool call_looks(__u32 nr, const struct call *c)
{
	__u64 flags = nr == ARCH_CALL_RECVFROM ? c->r10 : nr == ARCH_CALL_RECVMSG ? c->dx : 0;

	return flags & (MSG_PEEK | MSG_ERRQUEUE);
}

/* Where the bytes lie that it moved; those of sendfile and splice never were in the program's
 * memory. false: that cannot be read. */
static __always_inline bool call_pieces(struct walk *w, __u32 nr, const struct call *c)
{
	pieces_none(w);
	switch (nr) {
	case ARCH_CALL_RECVFROM:
		w->name = c->r8;
		w->ptr = c->r10 & MSG_TRUNC ? 0 : c->si;
		break;
	case ARCH_CALL_SENDTO:
		w->name = c->r8;
		w->ptr = c->si;
		break;
	case ARCH_CALL_READ:
	case ARCH_CALL_WRITE:
		w->ptr = c->si;
		break;
	case ARCH_CALL_READV:
	case ARCH_CALL_WRITEV:
		pieces_vector(w, c->si, c->dx);
		return true;
	case ARCH_CALL_RECVMSG:
	case ARCH_CALL_SENDMSG:
		return header_read(w, c->si);
	default:
		return true;
	}
	w->left = w->ptr ? c->dx : 0;
	return true;
}

/* A read of no room ends with 0 too. */
static __always_inline bool call_asked(__u32 nr, const struct call *c, const struct walk *w)
{
	return nr == ARCH_CALL_RECVMSG ? w->iov_n > 0 : c->dx > 0;
}

/* ---- calls ---- */

/* One program for all: what is in use by many is not copied once for each. */
SEC("tracepoint")
int call_ends(struct sys_exit *x)
{
	__u32 nr = (__u32)x->nr, dir = call_dir(nr);
	struct call c = {};
	struct walk *w;
	struct sock *sk;
	__u64 ino = 0;

	if (x->ret < 0 || (!x->ret && dir == L7_OUT) || !call_read(&c) || call_looks(nr, &c))
		return PASS_ON;
	sk = fd_sock((__u32)(nr == ARCH_CALL_SPLICE ? c.dx : c.di), &ino);
	if (!sk && nr == ARCH_CALL_READ) /* a pipe or an eventfd: a loop learns so that other work
					    is done */
		turn_strays((__u32)bpf_get_current_pid_tgid());
	w = sk ? walk_get(0) : NULL;
	if (!w || !call_pieces(w, nr, &c))
		return PASS_ON;
	if (x->ret > 0)
		message_moved(sk, ino, dir, (__u64)x->ret);
	else if (call_asked(nr, &c, w))
		read_end(sk, ino);
	return PASS_ON;
}

/*
 * What a call writes, by the socket's own event (hooks.c says on which kernels): the socket is
 * there, and its fields are loaded. Who writes on files pays nothing. It must be what the call was
 * asked for: a file system's own socket, or a request of io_uring that is done at the end of
 * another call, is not.
 */
TRACEPOINT(sock_send_length, l7_sent, struct sock *sk, int ret, int flags)
{
	const volatile struct arch_regs *r;
	struct tcp_sock *tcp;
	struct socket *socket;
	struct call c = {};
	struct file *file;
	struct walk *w;
	__u32 nr;
	__u64 ino;

	if (ret <= 0 || !LOADS)
		return 0;
	r = (const volatile struct arch_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	nr = (__u32)r->orig_ax;
	if (!call_sends(nr) || r->ax != (__u64)-ENOSYS || !call_read(&c))
		return 0;
	socket = sk->sk_socket;
	file = socket ? socket->file : NULL;
	w = walk_get(0);
	if (!w || !file || file != fd_file((__u32)(nr == ARCH_CALL_SPLICE ? c.dx : c.di)) ||
	    !call_pieces(w, nr, &c))
		return 0;
	ino = file->f_inode->i_ino;
	tcp = bpf_skc_to_tcp_sock(sk);
	if (tcp) {
		w->seq = tcp->write_seq;
		w->seq_known = 1;
	}
	w->sk = (__u64)sk; /* a number from here on, not a pointer that is vouched for */
	return message_moved(*(struct sock *volatile *)&w->sk, ino, L7_OUT, (__u64)ret);
}

#define MMSGHDR_SIZE 64 /* struct mmsghdr: a msghdr, and how many bytes were moved */
#define MMSGHDR_LEN  56

SEC("tracepoint")
int many_end(struct sys_exit *x)
{
	__u32 dir = (__u32)x->nr == ARCH_CALL_RECVMMSG ? L7_IN : L7_OUT;
	struct walk *w = walk_get(0);
	struct call c = {};
	struct sock *sk;
	__u64 ino = 0;

	if (x->ret <= 0 || !w || !call_read(&c) ||
	    (dir == L7_IN && c.r10 & (MSG_PEEK | MSG_ERRQUEUE)))
		return PASS_ON;
	sk = fd_sock((__u32)c.di, &ino);
	if (!sk)
		return PASS_ON;
	for (int i = 0; i < MSGS_MOST; i++) {
		__u64 at = c.si + (__u64)i * MMSGHDR_SIZE;
		__u32 n = 0;

		pieces_none(w);
		if (i >= x->ret || !header_read(w, at) ||
		    bpf_probe_read_user(&n, sizeof(n), (const void *)(at + MMSGHDR_LEN)))
			break;
		message_moved(sk, ino, dir, n);
	}
	return PASS_ON;
}

SEC("tracepoint")
int call_writes(struct sys_enter *x)
{
	writes();
	if (*(volatile __u32 *)&tls_javas_n && (__u32)x->nr == ARCH_CALL_WRITE)
		tls_java_write(x);
	return PASS_ON;
}

/* ---- connections begin ---- */

SEC("tracepoint")
int call_accepts(struct sys_exit *x)
{
	if (x->ret >= 0)
		accepted_fd((__u32)x->ret);
	return PASS_ON;
}

SEC("tracepoint")
int call_connects(struct sys_exit *x)
{
	struct call c = {};
	struct sock *sk;
	__u64 ino = 0;

	if ((x->ret && x->ret != -EINPROGRESS) || !call_read(&c))
		return PASS_ON;
	sk = fd_sock((__u32)c.di, &ino);
	if (sk)
		connected(sk, ino);
	return PASS_ON;
}

/* ---- threads that wait for whatever comes next ---- */

static __always_inline void turn_ends(struct l7_turn *t, const struct sys_enter *x)
{
	__u32 nr = (__u32)x->nr;
	struct call c = {};

	if (nr == ARCH_CALL_ACCEPT || nr == ARCH_CALL_ACCEPT4)
		turn_accepts(t);
	else if (call_read(&c)) /* not from x: some of these calls have fewer arguments */
		turn_waits(t, turn_wait(nr, c.dx, c.r10, c.r8),
			   nr == ARCH_CALL_EPOLL_WAIT || nr == ARCH_CALL_EPOLL_PWAIT ||
				   nr == ARCH_CALL_EPOLL_PWAIT2);
}

/* Go's runtime waits on a thread that runs no goroutine: that does not make a goroutine idle. */
/* It waits for whatever comes next: with the request that it serves, if that is the only one. */
static __noinline int thread_waits(__u64 who, const struct sys_enter *x)
{
	struct l7_turn *t = turn_get(who);
	__u32 nr = x ? (__u32)x->nr : 0;
	bool accepts = nr == ARCH_CALL_ACCEPT || nr == ARCH_CALL_ACCEPT4;

	if (who && (!t || accepts || who >> 63 || bpf_ktime_get_boot_ns() < t->both_ns))
		inflight_clear(who, 0);
	if (t && x)
		turn_ends(t, x);
	return 0;
}

SEC("tracepoint")
int thread_idles(struct sys_enter *x)
{
	__u64 who =
		*(volatile bool *)&goroutines ? inflight_who() : (__u32)bpf_get_current_pid_tgid();

	thread_waits(who, x);
	return PASS_ON;
}

/*
 * A thread that waits for one descriptor alone, on which it has asked something for the request
 * that it serves (or opened it for that), waits for the answer, as libpq, PHP and Java do before
 * they read.
 */
SEC("tracepoint")
int thread_polls(struct sys_enter *x)
{
	__u64 who = inflight_who(), tag = inflight_get(who), ino = 0, key;
	struct l7_sock *e;
	__u32 fd = 0;

	if (!tag) {
		thread_waits(who, x);
		return PASS_ON;
	}
	if (x->args[1] == 1 && !bpf_probe_read_user(&fd, sizeof(fd), (const void *)x->args[0])) {
		key = (__u64)fd_sock(fd, &ino);
		e = key ? bpf_map_lookup_elem(&socks, &key) : NULL;
		if (e && e->ino == ino && e->side != L7_SIDE_SERVER && e->tag == tag &&
		    e->tag_who == who)
			return PASS_ON;
	}
	thread_waits(who, x);
	return PASS_ON;
}

TRACEPOINT(sched_process_exit, l7_exit, struct task_struct *task)
{
	struct l7_turn *t = turn_get((__u32)bpf_get_current_pid_tgid());

	inflight_clear((__u32)bpf_get_current_pid_tgid(), 0);
	if (t)
		t->who = 0;
	return 0;
}

/* ---- connections end ---- */

/* Bytes moved since its last record, which no record has. */
static __always_inline void rest_take(struct sock *sk, struct l7_sock *e, __u32 dir)
{
	__u8 known = dir == L7_OUT ? S_SEQ_OUT : S_SEQ_IN,
	     done = dir == L7_OUT ? S_OUT_DONE : S_IN_DONE;
	__u32 seq;
	__s32 more;

	if (!(e->flags & known) || e->flags & done)
		return;
	seq = tcp_seq(sk, dir);
	more = (__s32)(seq - e->seq[dir & 1]);
	if (dir == L7_IN && fin_read(sk, seq))
		more--;
	if (more > 0)
		e->pos[dir & 1] += (__u32)more;
	e->flags |= done;
}

static __always_inline void untold(struct sock *sk)
{
	__u64 bytes = BPF_CORE_READ((struct tcp_sock *)sk, bytes_received) +
		      BPF_CORE_READ((struct tcp_sock *)sk, bytes_acked);

	if (bytes <= 2) /* SYN and FIN */
		return;
	COUNT(unseen, 1);
	COUNT(unseen_bytes, bytes);
}

TRACEPOINT(inet_sock_set_state, l7_state, struct sock *sk, int old, int new)
{
	__u64 key = (__u64)sk, now;
	struct l7_sock *e;

	if (new != SOCK_FIN_WAIT1 &&new != SOCK_LAST_ACK &&new != SOCK_CLOSE)
		return 0;
	e = bpf_map_lookup_elem(&socks, &key);
	if (new == SOCK_CLOSE && !e)
		came_end(key);
	if (!e) {
		if (new == SOCK_CLOSE &&
		    old != SOCK_LISTEN &&old != SOCK_SYN_SENT &&old != SOCK_CLOSE)
			untold(sk);
		return 0;
	}
	/* another kind of socket had the address, and its end was not reported */
	now = bpf_ktime_get_boot_ns();
	if (e->protocol != SOCK_TCP) {
		gone_send(key, e, now);
		bpf_map_delete_elem(&socks, &key);
		return 0;
	}
	request_drop(e);
	rest_take(sk, e, L7_OUT);
	if (new != SOCK_CLOSE) {
		end_send(key, e, L7_EOF, L7_OUT, now);
		return 0;
	}
	rest_take(sk, e, L7_IN);
	end_send(key, e, L7_END, 0, now);
	bpf_map_delete_elem(&socks, &key);
	return 0;
}

/* ---- the reading of descriptors ---- */

/* Each Unix and UDP socket that a process has: its address and inode. */
SEC("iter/task_file")
int l7_sweep(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sock *sk;
	__u64 found[2];
	__u16 family;

	if (!task || !file)
		return 0;
	sk = sock_of_file(file);
	if (!sk)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family != SOCK_UNIX && BPF_CORE_READ(sk, sk_protocol) != SOCK_UDP)
		return 0;
	found[0] = (__u64)sk;
	found[1] = BPF_CORE_READ(file, f_inode, i_ino);
	bpf_seq_write(ctx->meta->seq, found, sizeof(found));
	return 0;
}
