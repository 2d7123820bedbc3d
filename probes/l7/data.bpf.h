/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_data: from bytes that a process moves on a socket to records in the ring. Each program that
 * sees such bytes (at a system call's tracepoint, or inside a TLS library) calls this file, which
 * decides which connection they belong to, their position in its streams, and how much of them is
 * copied.
 *
 *   l7_bytes(sk, ino, dir, buf, n, at_ns, flags)
 *       n bytes at the user's address buf. flags: 0, or L7_F_TLS: clear text inside TLS
 *   l7_is_tls(sk, ino)
 *       (a connection that is known) from now on its system calls move records of TLS: those are
 *       not reported, only the clear text that l7_bytes brings with L7_F_TLS
 *
 * `sk` is the socket, `ino` the inode number of its file (sock_ino of sock.bpf.h), `dir` L7_OUT or
 * L7_IN, at_ns the boot clock: when a write began, when a read ended. Both must be called in the
 * context of the process whose memory it is. A connection that was not seen before becomes one
 * here.
 *
 * 1. `socks` has an entry for each connection: its positions, and who moved bytes last. TCP's
 *    positions are the kernel's own sequence numbers, so that bytes moved by sendfile, splice and
 *    io_uring are known to be missing; others' are counted here.
 * 2. `wants` is the loader's: see l7.h. Reading an entry is a cache miss: it is read only if an
 *    entry was written since.
 * 3. Under overload, some connections are dropped whole rather than all in part. If seven eighths
 *    of the ring are full, a new connection is shed: it has no records, and its bytes are counted
 *    when it ends (unseen_bytes). At fifteen sixteenths, half of the others are shed, at least for
 *    SHED_NS and until a quarter of the ring is used: their positions show the missing bytes. So do
 *    those of records that find no room at all.
 * 4. Records of up to 4 KB are put together from pieces (struct iovec) in memory of the CPU.
 *    Tracepoints have slot 0, probes in user space the others. A tracepoint's program is not
 *    interrupted by another thread's; a probe's is, if the kernel may be preempted: if all slots
 *    are in use, the bytes are counted, and missing in the connection's positions.
 * 5. Bodies whose length is said in front are not copied: l7/frames.bpf.h (HTTP/2),
 *    l7/bodies.bpf.h.
 * 6. Of a call that is larger than what is copied of any, the last L7_TAIL bytes are copied as
 * well: what an answer says at its end (gRPC-Web's status).
 * 7. The reader is woken only when another part (WAKE_SHIFT) of the ring has filled: it may sleep
 *    while little happens.
 * 8. When sonded slows the family, one connection in 2^conns_shift is read, by its socket's
 * address. Of the others positions go on: their bytes are missing, as those of rule 3.
 */
#ifndef SONDE_PROBES_L7_DATA_BPF_H
#define SONDE_PROBES_L7_DATA_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/inflight.bpf.h"
#include "probes/l7.h"
#include "probes/l7/bodies.bpf.h"
#include "probes/l7/frames.bpf.h"
#include "probes/l7/request.bpf.h"
#include "probes/l7/walk.bpf.h"
#include "probes/l7/who.bpf.h"
#include "probes/lib/scope.bpf.h"
#include "probes/lib/sock.bpf.h"

#define SHED_NS    1000000000ull
#define SHED_NEW   14 /* sixteenths of the ring */
#define SHED_HALF  15
#define SHED_BACK  4
#define WAKE_SHIFT 20
#define STEPS      96
#define IOV_MOST   64

const volatile __u64 ring_part = 512 * 1024; /* a sixteenth of its bytes */
const volatile bool tells_came = false;      /* the kernel tells when bytes come */
const volatile __u32 own_tgid = 0; /* the loader: what it says to its parser is no traffic */
__u32 parser_tgid = 0;             /* and what that says */

/* ---- connections ---- */

static __always_inline void head_fill(struct l7_head *h, __u64 sk, __u64 ino, __u8 what, __u8 dir,
				      __u64 at_ns)
{
	__u64 who = bpf_get_current_pid_tgid();

	h->sk = sk;
	h->ino = ino;
	h->at_ns = at_ns;
	h->tgid = (__u32)(who >> 32);
	h->tid = (__u32)who;
	h->what = what;
	h->dir = dir;
	h->flags = 0;
	h->pad = 0;
}

/* The listening end's address: the server's own, or that of the client's peer. */
static __always_inline void conn_path(struct l7_conn *c, struct sock *sk)
{
	struct unix_sock *u = (struct unix_sock *)sk;
	struct unix_address *addr = BPF_CORE_READ(u, addr);
	int len;

	if (!addr) {
		u = (struct unix_sock *)BPF_CORE_READ(u, peer);
		addr = u ? BPF_CORE_READ(u, addr) : NULL;
	}
	len = addr ? BPF_CORE_READ(addr, len) - 2 : 0;
	if (len <= 0 || len > L7_PATH)
		return;
	c->path_len = (__u32)len;
	bpf_probe_read_kernel(c->path, sizeof(c->path),
			      (const char *)addr +
				      bpf_core_field_offset(struct unix_address, name) + 2);
}

/* 0: told. */
static __noinline int conn_send(struct sock *sk, __u64 at_ns, struct l7_sock *e)
{
	struct task_struct *leader =
		BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), group_leader);
	struct l7_conn *c = bpf_ringbuf_reserve(&records, sizeof(*c), 0);

	COUNT(records, 1);
	if (!c) {
		COUNT(lost, 1);
		return 1;
	}
	__builtin_memset(c, 0, sizeof(*c));
	head_fill(&c->h, (__u64)sk, e->ino, L7_CONN, 0, at_ns);
	c->h.flags = (e->flags & S_BEGUN ? L7_F_BEGUN : 0) | (e->flags & S_TLS ? L7_F_IS_TLS : 0);
	c->start_ns = BPF_CORE_READ(leader, start_boottime);
	c->exec_id = (__u32)BPF_CORE_READ(leader, self_exec_id);
	c->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	c->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	c->protocol = e->protocol;
	c->side = e->side;
	if (c->family == SOCK_UNIX) {
		conn_path(c, sk);
	} else {
		c->lport = BPF_CORE_READ(sk, __sk_common.skc_num);
		c->dport = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		sock_local(sk, c->family, c->local);
		sock_peer(sk, c->family, c->peer);
	}
	who_keep(c);
	bpf_ringbuf_submit(c, BPF_RB_NO_WAKEUP);
	return 0;
}

/* What kind it is, as l7_sock.protocol; -1: none that is looked at. */
static __always_inline int sock_kind(struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family), type = BPF_CORE_READ(sk, sk_type),
	      protocol;

	if (family == SOCK_UNIX)
		return type == 1 ? 0 : -1;
	if (family != SOCK_INET && family != SOCK_INET6)
		return -1;
	protocol = BPF_CORE_READ(sk, sk_protocol);
	return protocol == SOCK_TCP || protocol == SOCK_UDP ? protocol : -1;
}

static __always_inline bool task_wanted(void)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);

	return tgid != own_tgid && tgid != parser_tgid &&
	       task_in_scope((struct task_struct *)bpf_get_current_task());
}

static __always_inline __u32 tcp_seq(struct sock *sk, __u32 dir)
{
	return dir == L7_OUT ? BPF_CORE_READ((struct tcp_sock *)sk, write_seq) :
			       BPF_CORE_READ((struct tcp_sock *)sk, copied_seq);
}

/* Bytes that are not read yet; of TCP, from `seq` on. */
static __always_inline bool bytes_left(struct sock *sk, bool tcp, __u32 seq)
{
	if (!tcp)
		return BPF_CORE_READ(sk, sk_receive_queue.qlen) > 0;
	return (__s32)(BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt) - seq) > 0;
}

static const volatile struct l7_sock no_sock =
	{}; /* not on the stack: older kernels have 512 bytes of it for a chain of calls */

static __always_inline void sock_fill(struct sock *sk, struct l7_sock *e, __u32 side, int kind)
{
	e->side = (__u8)side;
	e->protocol = (__u8)kind;
	e->tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);
	e->flags = (task_wanted() ? 0 : S_IGNORED) | (side != L7_SIDE_UNKNOWN ? S_BEGUN : 0);
	if (tells_came && kind != SOCK_UDP &&
	    bytes_left(sk, kind == SOCK_TCP, kind == SOCK_TCP ? tcp_seq(sk, L7_IN) : 0))
		e->came.flags = CAME_UNSURE;
	if (kind != SOCK_TCP || side == L7_SIDE_UNKNOWN)
		return;
	e->seq[L7_OUT] = tcp_seq(sk, L7_OUT);
	e->flags |= S_SEQ_OUT;
	/* there nothing is known of the other end's numbers */
	if (BPF_CORE_READ(sk, __sk_common.skc_state) != SOCK_SYN_SENT) {
		e->seq[L7_IN] = tcp_seq(sk, L7_IN);
		e->flags |= S_SEQ_IN;
	}
}

/* ---- ends ---- */

/* Bytes of a connection without records: reported as blind, without a process. */
static __always_inline void untold_take(struct l7_sock *e)
{
	COUNT(unseen_bytes, e->pos[0] + e->pos[1] + e->tls_pos[0] + e->tls_pos[1]);
	e->pos[0] = e->pos[1] = e->tls_pos[0] = e->tls_pos[1] = 0;
}

static __always_inline void end_send(__u64 sk, struct l7_sock *e, __u8 what, __u32 dir, __u64 at_ns)
{
	struct l7_end *r;

	if (e->flags & S_IGNORED)
		return;
	if (e->flags & S_UNTOLD) {
		if (what == L7_END)
			untold_take(e);
		return;
	}
	r = bpf_ringbuf_reserve(&records, sizeof(*r), 0);
	COUNT(records, 1);
	if (!r) {
		COUNT(lost, 1);
		if (what == L7_END)
			COUNT(ends_lost, 1);
		return;
	}
	head_fill(&r->h, sk, e->ino, what, (__u8)dir, at_ns);
	r->pos[0] = e->pos[0];
	r->pos[1] = e->pos[1];
	r->tls_pos[0] = e->tls_pos[0];
	r->tls_pos[1] = e->tls_pos[1];
	bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP);
}

/* Another socket has its address now. */
static __always_inline void gone_send(__u64 sk, struct l7_sock *e, __u64 at_ns)
{
	if (e->protocol == SOCK_UDP) /* its bytes are counted by flow */
		e->pos[L7_OUT] = e->pos[L7_IN] = 0;
	end_send(sk, e, L7_END, 0, at_ns);
}

/* ---- entries ---- */

/* 0: it has an entry now. One that the address has already is of a socket that is gone: who has it
 * now may be a process that is not recorded, and then nothing else says so. */
static __noinline int sock_begin(struct sock *sk, __u64 ino, __u32 side, __u64 at_ns)
{
	int kind = sock_kind(sk);
	__u64 key = (__u64)sk;
	struct l7_sock *e;

	if (kind < 0)
		return -1;
	e = bpf_map_lookup_elem(&socks, &key);
	if (e && e->ino != ino)
		gone_send(key, e, at_ns);
	if (bpf_map_update_elem(&socks, &key, (const void *)&no_sock, BPF_ANY)) {
		COUNT(no_room, 1);
		return -1;
	}
	e = bpf_map_lookup_elem(&socks, &key);
	if (!e)
		return -1;
	sock_fill(sk, e, side, kind);
	e->ino = ino;
	return 0;
}

/* In sixteenths. */
static __always_inline __u32 ring_level(void)
{
	return (__u32)(bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA) / ring_part);
}

static __always_inline void shed_begin(struct l7_sock *e, __u64 at_ns)
{
	e->flags |= S_SHED;
	e->shed_until = (__u32)((at_ns + SHED_NS) >> 20);
}

/* Enters and reports a connection that is new, or whose address had another one. NULL: it is not
 * one, or there is no room. */
static __always_inline struct l7_sock *sock_enter(struct sock *sk, __u64 ino, __u32 side,
						  __u64 at_ns)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e;

	if (sock_begin(sk, ino, side, at_ns))
		return NULL;
	e = bpf_map_lookup_elem(&socks, &key);
	if (!e || e->flags & S_IGNORED)
		return e;
	if (ring_level() >= SHED_NEW)
		COUNT(shed, 1);
	else if (!conn_send(sk, at_ns, e))
		return e;
	e->flags |= S_UNTOLD;
	shed_begin(e, at_ns);
	return e;
}

/* The entry of a connection, made if needed; `side`: known side of a new one. NULL: none. */
static __always_inline struct l7_sock *sock_entry(struct sock *sk, __u64 ino, __u32 side,
						  __u64 at_ns)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	return e && e->ino == ino ? e : sock_enter(sk, ino, side, at_ns);
}

/* The other end's FIN has a number too, the last one, and may be read together with the last bytes:
 * all up to `seq` is. */
static __always_inline bool fin_read(struct sock *sk, __u32 seq)
{
	return BPF_CORE_READ(sk, __sk_common.skc_flags) >>
			       bpf_core_enum_value(enum sock_flags, SOCK_DONE) &
		       1 &&
	       !bytes_left(sk, true, seq);
}

/* Where `n` bytes that were just moved begin. */
static __always_inline __u64 pos_take(struct sock *sk, struct l7_sock *e, __u32 dir, __u64 n,
				      struct walk *w)
{
	__u8 known = dir == L7_OUT ? S_SEQ_OUT : S_SEQ_IN;
	__u64 begin = e->pos[dir & 1];
	__u32 seq;
	__s32 more;

	if (e->protocol != SOCK_TCP) {
		e->pos[dir & 1] = begin + n;
		return begin;
	}
	seq = w->seq = w->seq_known ? w->seq : tcp_seq(sk, dir);
	if (!(e->flags & known)) {
		e->flags |= known;
		e->seq[dir & 1] = seq;
		e->pos[dir & 1] = n;
		return 0;
	}
	more = (__s32)(seq - e->seq[dir & 1]);
	if (dir == L7_IN && more == (__s32)n + 1 && fin_read(sk, seq)) {
		more--;
		e->seq[dir & 1]++;
	}
	if (more > 0) { /* else a call that ended later would have been reported before this one */
		e->seq[dir & 1] = seq;
		e->pos[dir & 1] = begin + (__u64)more;
	}
	return begin + (__u64)(__s64)more - n;
}

/* Something was read: since when it lay there, and what is left (l7/came.bpf.h: 1, 2). */
static __noinline int came_read(struct sock *sk, struct l7_sock *e, __u32 seq)
{
	struct l7_came *c;
	bool tcp;

	if (!e || e->protocol == SOCK_UDP)
		return 0;
	c = &e->came;
	tcp = e->protocol == SOCK_TCP;
	c->taken_ns = c->came_ns;
	c->flags &= ~(__u32)CAME_TOGETHER;
	if (c->came_ns && c->came_ns == c->last_ns)
		c->flags |= CAME_TOGETHER;
	c->came_ns = 0;
	if (!bytes_left(sk, tcp, seq)) {
		c->flags &= ~(__u32)CAME_UNSURE;
	} else if (tcp && c->last_ns && (__s32)(seq - c->last_seq) >= 0) {
		c->flags &= ~(__u32)CAME_UNSURE;
		c->came_ns = c->last_ns;
	} else {
		c->flags |= CAME_UNSURE;
	}
	return 0;
}

/* ---- bytes ---- */

/* A piece, or a part of one, into the record at hand. 1: there is nothing more, or no more is
 * wanted. */
__noinline int walk_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	struct l7_iovec v = {};
	__u64 n;
	__u32 fill;

	if (!w)
		return 1;
	if (!w->left) {
		if (!w->iov_n || bpf_probe_read_user(&v, sizeof(v), (const void *)w->iov))
			return 1;
		w->iov_n--;
		w->iov += sizeof(v);
		w->ptr = v.base;
		w->left = v.len;
		if (!v.len)
			return 0;
	}
	fill = w->fill & (L7_CHUNK - 1);
	n = L7_CHUNK - fill;
	if (n > w->left)
		n = w->left;
	if (n > w->want)
		n = w->want;
	if (n > w->total - fill)
		n = w->total - fill;
	if (!n)
		return 1;
	FORGET_BOUNDS(n);
	if (n > L7_CHUNK)
		return 1;
	if (walk_read(w, &w->bytes[fill], (__u32)n, w->ptr)) {
		w->r.h.flags |= L7_F_FAULT;
		COUNT(faults, 1);
		return 1;
	}
	w->ptr += n;
	w->left -= n;
	w->want -= n;
	w->fill = fill + (__u32)n;
	if (w->fill >= L7_CHUNK)
		walk_flush(w, L7_CHUNK, L7_CHUNK);
	return !w->left && !w->iov_n;
}

/* One piece that fits into one record, as most are. */
static __always_inline bool walk_short(struct walk *w)
{
	__u64 n = w->left;

	if (n > w->want)
		n = w->want;
	if (n > w->total)
		n = w->total;
	FORGET_BOUNDS(n);
	if (w->iov_n || n >= L7_CHUNK)
		return false;
	if (n && walk_read(w, w->bytes, (__u32)n, w->ptr)) {
		w->r.h.flags |= L7_F_FAULT;
		COUNT(faults, 1);
		n = 0;
	}
	walk_flush(w, (__u32)n, (__u32)w->total);
	return true;
}

/* Where a message may begin: its first record, and what is left out behind it. true: nothing more
 * remains.
 */
static __always_inline bool walk_begin(struct walk *w, __u32 slot)
{
	for (int i = 0; i < STEPS; i++)
		if (walk_step(slot) || w->total < w->n)
			break;
	if (w->total == w->n) /* its pieces, or what may be copied, end within a record */
		walk_flush(w, w->fill, (__u32)w->total);
	bodies_begin(slot);
	if (w->framed && w->total)
		frames_run(slot);
	return !w->total;
}

/* Leaves out a part of what lies between the copied begin of a call and its end (6). 1: only that
 * is left, or nothing more can be done. */
__noinline int tail_step(__u32 slot)
{
	struct walk *w = bpf_map_lookup_elem(&walks, &slot);
	__u64 n, rest;

	if (!w || w->total <= (__u64)w->fill + w->gap + L7_TAIL)
		return 1;
	if (!w->left) {
		if (!w->iov_n ||
		    bpf_probe_read_user(&w->few.v, sizeof(w->few.v), (const void *)w->iov))
			return 1;
		w->iov_n--;
		w->iov += sizeof(w->few.v);
		w->ptr = w->few.v.base;
		w->left = w->few.v.len;
	}
	rest = w->total - w->fill - w->gap - L7_TAIL;
	n = w->left < rest ? w->left : rest;
	w->ptr += n;
	w->left -= n;
	w->gap += (__u32)n;
	return n == rest;
}

/* 6 */
static __always_inline void walk_tail(struct walk *w, __u32 slot)
{
	w->gap = 0;
	for (int i = 0; i < STEPS; i++)
		if (tail_step(slot))
			break;
	if (w->gap)
		walk_flush(w, w->fill, w->fill + w->gap);
	w->want = L7_TAIL;
	for (int i = 0; i < STEPS; i++)
		if (walk_step(slot))
			break;
}

static __always_inline bool walk_run(struct walk *w, __u32 slot)
{
	if (w->framed) {
		frames_run(slot);
		if (w->framed < 3 || !w->total)
			return !w->failed;
	}
	if (walk_short(w)) {
		if (w->head.wanted)
			bodies_begin(slot);
		return !w->failed;
	}
	if (w->head.wanted && walk_begin(w, slot))
		return !w->failed;
	for (int i = 0; i < STEPS; i++)
		if (walk_step(slot))
			break;
	if (w->tail && !w->want)
		walk_tail(w, slot);
	if (w->total)
		walk_flush(w, w->fill, (__u32)w->total);
	return !w->failed;
}

static __always_inline struct l7_want *want_get(__u64 sk, __u64 ino)
{
	__u32 slot = L7_WANT_SLOT(sk);
	struct l7_want *w = bpf_map_lookup_elem(&wants, &slot);

	return w && w->ino == ino ? w : NULL;
}

/* What l7_sock.wants is compared with; it is read before an entry is. */
static __always_inline __u32 want_count(void)
{
	__u32 last = L7_WANTS;
	struct l7_want *w = bpf_map_lookup_elem(&wants, &last);

	return w ? (__u32) * (volatile __u64 *)&w->ino | 1u << 31 : 0;
}

/* Nothing of what moves from now on is left out. */
static __always_inline bool want_all(const struct l7_sock *e, const struct l7_want *w)
{
	const __u64 *pos = e->flags & S_TLS ? e->tls_pos : e->pos;

	return w->limit[0] == L7_LIMIT_MOST / L7_LIMIT_UNIT &&
	       w->limit[1] == L7_LIMIT_MOST / L7_LIMIT_UNIT && w->until[0] <= pos[0] &&
	       w->until[1] <= pos[1] &&
	       (w->flags & ~(__u32)(L7_WANT_SERVER | L7_WANT_CLIENT)) ==
		       (e->flags & S_TLS ? L7_WANT_TLS : 0);
}

static __always_inline void want_conn(struct sock *sk, struct l7_sock *e, struct l7_want *w,
				      __u64 at_ns)
{
	if (w->flags & L7_WANT_CONN && !conn_send(sk, at_ns, e))
		w->flags &= ~(__u32)L7_WANT_CONN;
}

/* Another process goes on with it. */
static __always_inline void owner_check(struct sock *sk, struct l7_sock *e, __u64 at_ns)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);

	if (e->tgid == tgid)
		return;
	e->tgid = tgid;
	e->threads = e->plain = 0;
	e->flags &= ~S_IGNORED;
	if (!task_wanted())
		e->flags |= S_IGNORED;
	else if (!(e->flags & S_UNTOLD))
		conn_send(sk, at_ns, e);
}

/* A read's record. Clear text is as old as the records that were read last before it came out of
 * them; what comes out after that, not surely. */
static __always_inline void came_tell(struct walk *w, struct l7_sock *e, __u32 dir)
{
	w->r.came_ns = dir == L7_IN ? e->came.taken_ns : 0;
	if (!w->r.came_ns)
		return;
	if (e->came.flags & CAME_TOGETHER)
		w->r.h.flags |= L7_F_TOGETHER;
	else if (w->r.h.flags & L7_F_TLS)
		e->came.taken_ns = 0;
}

/* 1: what was moved is not told (3). One that was never told begins with the next call. */
static __noinline int shed(struct sock *sk, struct l7_sock *e, __u64 at_ns)
{
	__u32 level = ring_level();

	if (!e)
		return 1;
	if (e->flags & S_SHED) {
		if ((__s32)((__u32)(at_ns >> 20) - e->shed_until) < 0 || level >= SHED_BACK)
			return 1;
		e->flags &= (__u16)~S_SHED;
		if (!(e->flags & S_UNTOLD))
			return 0;
		untold_take(e);
		e->flags &= (__u16) ~(S_UNTOLD | S_BEGUN);
		if (!conn_send(sk, at_ns, e))
			return 1;
		e->flags |= S_UNTOLD;
	} else if (level < SHED_HALF || L7_WANT_SLOT(sk) & 1) {
		return 0;
	} else {
		COUNT(shed, 1);
	}
	shed_begin(e, at_ns);
	return 1;
}

/* Who sleeps is woken where these bytes fill one more part of the ring. */
static __always_inline __u64 wake_for(__u64 used, __u64 bytes)
{
	return used >> WAKE_SHIFT == (used + bytes) >> WAKE_SHIFT ? BPF_RB_NO_WAKEUP :
								    BPF_RB_FORCE_WAKEUP;
}

/* To or from whom; family 0: the one it is connected with. */
static __noinline int remote_read(struct walk *w, __u64 name)
{
	struct {
		__u16 family, port;
		__u8 v4[4], v6[16];
	} a = {};

	if (!w || !name || bpf_probe_read_user(&a, 8, (const void *)name) ||
	    (a.family != SOCK_INET && a.family != SOCK_INET6))
		return 0;
	if (a.family == SOCK_INET6)
		bpf_probe_read_user(a.v6, sizeof(a.v6), (const void *)(name + 8));
	else
		__builtin_memcpy(a.v6, a.v4, sizeof(a.v4));
	w->r.family = a.family;
	w->r.port = bpf_ntohs(a.port);
	__builtin_memcpy(w->r.remote, a.v6, sizeof(a.v6));
	return 0;
}

/* One of its ports is a server's that has spoken a protocol which is parsed. */
static __noinline bool port_speaks(struct sock *sk)
{
	__u16 port[2] = {BPF_CORE_READ(sk, __sk_common.skc_num),
			 bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport))};

	for (int i = 0; i < 2; i++) {
		__u32 at = L7_WANT_PORTS + (port[i] >> 8);
		const __u8 *bits = bpf_map_lookup_elem(&wants, &at);

		if (bits && bits[port[i] >> 3 & 31] >> (port[i] & 7) & 1)
			return true;
	}
	return false;
}

/* The bytes of `how` and `n` as moved() has them, whose head and position are in w->r, as records.
 * A separate function: moved() is a part of deep chains of calls, and the stack is small. */
static __noinline int moved_record(struct walk *w, struct l7_sock *e, __u32 how, __u64 n)
{
	__u32 dir = how & 1, flags = how >> 1 & 0x7fff, slot = how >> 16;
	__u64 pos = w->r.pos;

	w->r.family = w->r.port = 0;
	if (e->protocol == SOCK_UDP && !(flags & L7_F_TLS)) {
		flags |= L7_F_DATAGRAM;
		remote_read(w, w->name);
	}
	w->r.h.flags = (__u16)(flags | asks_flags(w->tag));
	w->r.tag = w->tag & ASKS_TAG;
	came_tell(w, e, dir);
	w->r.seq = flags & L7_F_TLS ? 0 : e->seq[dir] - (__u32)(e->pos[dir] - pos);
	w->fill = w->failed = w->speaks = 0;
	w->wake = wake_for(w->used, w->framed ? n >> 4 : n < w->want ? n : w->want);
	w->total = n;
	if (w->until >= pos + n) { /* the last of what is not wanted */
		w->left = 0;
		w->iov_n = 0;
	}
	w->n = n;
	w->end = pos + n;
	if (!walk_run(w, slot)) {
		shed_begin(e, w->r.h.at_ns);
		request_hidden(e, w->r.h.dir, w->r.h.at_ns);
	}
	if (w->speaks)
		e->flags |= S_SPEAKS;
	if (w->framed || w->head.wanted == 2)
		frames_keep(slot, w->r.h.sk, w->r.h.dir, w->end);
	return 0;
}

/* How these bytes are handled: a message may begin with them, they are framed, or neither
 * (w->head.wanted, w->framed). 1: they all lie within a body, and are not told. */
static __noinline int body_moved(struct walk *w, struct l7_sock *e, __u32 how, __u64 n)
{
	__u32 dir = how & 1, slot = how >> 16;
	bool turns = !w->r.pos || !(e->flags & S_WAS_IN) != !(dir == L7_IN);

	if (dir == L7_IN)
		e->flags |= S_WAS_IN;
	else
		e->flags &= (__u16)~S_WAS_IN;
	w->framed = w->head.wanted = 0;
	if (e->protocol == SOCK_UDP)
		return 0;
	if (!w->r.pos || e->flags & S_FRAMES << dir)
		w->framed = (__u32)frames_ready(slot, w->r.h.sk, dir, w->r.pos, n);
	if (!w->framed) {
		w->head.wanted = turns;
	} else if (w->frames.kind != L7_FRAMES_HTTP2) {
		if (turns) {
			w->framed = 0;
			w->head.wanted = 2;
		} else if (n < w->frames.body && !w->frames.copy) {
			w->frames.body -= (__u32)n;
			frames_keep(slot, w->r.h.sk, dir, w->r.pos + n);
			return 1;
		}
	}
	return 0;
}

/* Rule 8; the loader sets it, and may change it while the programs run. */
__u32 conns_shift;

static __always_inline bool is_left(__u64 sk)
{
	return L7_WANT_SLOT(sk) >> 4 & ((1u << (conns_shift & 7)) - 1);
}

/*
 * n bytes that were moved. The walk at `slot` has the pieces (iov, iov_n or ptr, left) and the
 * name. `how`: the direction, flags, slot. A global function: the verifier looks at it once, and
 * not for each of the messages of a call (many_end).
 */
__noinline int moved(__u64 key, __u64 ino, __u32 how, __u64 n, __u64 at_ns)
{
	struct sock *sk = (struct sock *)key;
	__u32 dir = how & 1, flags = how >> 1 & 0x7fff, slot = how >> 16;
	struct walk *w = walk_get(slot);
	struct l7_want *want;
	struct l7_sock *e;
	__u64 pos;
	__u32 wants_now;

	if (!w)
		return 0;
	w->plain = w->r.len = 0;
	w->until = w->tag = 0;
	if (!n || n > 0x7fffffff)
		return 0;
	/* before the connection's record: it must not be later than that of its bytes */
	if (dir == L7_IN)
		at_ns &= ~1ull;
	e = sock_entry(sk, ino, L7_SIDE_UNKNOWN, at_ns);
	if (!e) {
		if (sock_kind(sk) >= 0)
			COUNT(no_room_bytes, n);
		return 0;
	}
	if (flags & L7_F_TLS) {
		pos = e->tls_pos[dir];
		e->tls_pos[dir] = pos + n;
	} else {
		pos = pos_take(sk, e, dir, n, w);
		if (tells_came && dir == L7_IN)
			came_read(sk, e, w->seq);
	}
	owner_check(sk, e, at_ns);
	w->plain = e->plain;
	if (e->flags & S_IGNORED || (e->flags & S_TLS && !(flags & L7_F_TLS)))
		return 0;
	if (conns_shift && is_left((__u64)sk))
		return request_hidden(e, dir, at_ns);
	if (e->side == L7_SIDE_SERVER)
		at_ns = request_note(e, dir, at_ns, (__u64)sk);
	else if (dir == L7_OUT)
		w->tag = request_asks(e, at_ns);
	else
		request_hears(e, at_ns);
	w->r.pos = pos;
	w->r.h.sk = (__u64)sk;
	if (body_moved(w, e, how, n))
		return 0;
	w->want = L7_LIMIT_MOST;
	wants_now = want_count();
	want = e->wants == wants_now ? NULL : want_get((__u64)sk, ino);
	if (want) {
		want_conn(sk, e, want, at_ns);
		want_side(e, want);
		e->wants = want_all(e, want) ? wants_now : 0;
		if (!(want->flags & L7_WANT_TLS) == !(flags & L7_F_TLS)) {
			w->until = want->until[dir];
			if (want->flags & L7_WANT_NOTHING)
				return request_hidden(e, dir, at_ns);
			if (pos + n < w->until)
				return 0;
			if (want->limit[dir] && !w->framed)
				w->want = (__u64)want->limit[dir] * L7_LIMIT_UNIT;
		}
	} else if (e->wants != wants_now && pos >= L7_FIRST && !w->framed &&
		   !(e->flags & S_SPEAKS) && !port_speaks(sk)) {
		w->want = L7_LIMIT;
	}
	w->tail = w->want == L7_LIMIT_MOST;
	w->used = bpf_ringbuf_query(&records, BPF_RB_AVAIL_DATA);
	if ((e->flags & S_SHED || w->used >= SHED_HALF * ring_part) && shed(sk, e, at_ns)) {
		if (!(e->flags & S_UNTOLD))
			COUNT(lost_bytes, n);
		return request_hidden(e, dir, at_ns);
	}
	head_fill(&w->r.h, (__u64)sk, ino, L7_DATA, (__u8)dir, at_ns);
	w->r.pos = pos;
	return moved_record(w, e, how, n);
}

/* A free slot; 0: none. */
static __always_inline __u32 slot_take(void)
{
	for (__u32 slot = 1; slot < SLOTS; slot++) {
		struct walk *w = walk_get(slot);

		if (!w)
			return 0;
		__sync_fetch_and_add(&w->busy, 1);
		if (*(volatile __u32 *)&w->busy == 1)
			return slot;
		__sync_fetch_and_add(&w->busy, -1);
	}
	return 0;
}

static __noinline int bytes_lost(__u64 key, __u64 ino, __u32 dir, __u64 n)
{
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	if (e && e->ino == ino)
		e->tls_pos[dir & 1] += n;
	COUNT(lost_bytes, n);
	COUNT(lost, 1);
	return 0;
}

/* `buf` of `len` bytes, which may be fewer than n; with `kernel` in the programs' own memory. */
static __always_inline void l7_bytes_at(struct sock *sk, __u64 ino, __u32 dir, __u64 buf, __u64 len,
					__u64 n, __u64 at_ns, __u32 flags, __u32 kernel)
{
	__u32 slot = slot_take();
	struct walk *w = slot ? walk_get(slot) : NULL;

	if (!w) {
		bytes_lost((__u64)sk, ino, dir, n);
		return;
	}
	w->iov = w->iov_n = 0;
	w->name = 0;
	w->ptr = buf;
	w->left = buf ? len : 0;
	w->kernel = kernel;
	moved((__u64)sk, ino, dir | flags << 1 | slot << 16, n, at_ns);
	__sync_fetch_and_add(&w->busy, -1);
}

static __always_inline void l7_bytes(struct sock *sk, __u64 ino, __u32 dir, const void *buf,
				     __u64 n, __u64 at_ns, __u32 flags)
{
	l7_bytes_at(sk, ino, dir, (__u64)buf, n, n, at_ns, flags, 0);
}

static __always_inline void l7_is_tls(struct sock *sk, __u64 ino)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	if (e && e->ino == ino)
		e->flags |= S_TLS;
}

#endif
