/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_tls: clear text inside TLS, where it enters and leaves a library. One program for all sites
 * (loaders/index/code/tlspart.h says how they are found), distinguished by the cookie of its
 * attachment, before 5.15 by the place in the page.
 *
 * 1. An entry keeps connection, buffer and size of the call, by thread, or, in Go, by goroutine
 *    (r14 there, and still in its system calls). A result says how many bytes went, ends the call,
 *    and gives the bytes to l7_data. A call with another entry inside was passed on: only the later
 *    one counts.
 * 2. Which socket: the one that a system call inside moved bytes on, in the call's direction, if
 *    they begin as a record of TLS does. That is remembered for (process, connection), and checked
 *    again with each such system call. A socket that is closed, or has another inode, is forgotten.
 * 3. Libraries that are given memory instead of a socket (Node, Python's asyncio) have no system
 *    call inside. There the length of records decides: what a thread read from a socket last, or
 *    wrote to one next, is a record of exactly the clear text's size and what ciphers add: 17
 *    (1.3), 24 (1.2, AES-GCM), 16 (1.2, ChaCha20). If two connections match, neither is taken. The
 *    result is checked again with each read. A connection that the library frees is forgotten. What
 *    is written first is kept until the thread's next write tells its socket (tls_firsts).
 * 4. Go reads ahead: after a handshake the first read may find its bytes already there. Then two
 *    must agree: the socket that this goroutine read a record from last, outside, and the
 *    descriptor where a net.TCPConn has it (tls.Conn: the interface conn at 0, its pointer at 8;
 *    there *netFD; 16 bytes in, Sysfd; Go 1.9 on).
 * 5. Without a known socket, bytes are counted as unknown, and reported as blind. Nothing is
 *    guessed.
 * 6. A buffer on a goroutine's stack moves with it: it is kept as a distance from the stack's upper
 *    end.
 * 7. Libraries none of whose functions for clear text is in the file (rustls, where it is inlined):
 *    record by record, in record.bpf.h.
 */
#ifndef SONDE_PROBES_L7_TLS_BPF_H
#define SONDE_PROBES_L7_TLS_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/l7/data.bpf.h"
#include "probes/l7_tls.h"

#define TLS_PLAIN_MOST 16384
#define TLS_EXACT      (1ull << 63)
#define TLS_OTHERS     8

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TLS_SITES);
	__type(key, __u32);
	__type(value, struct tls_site);
} tls_sites SEC(".maps");

struct { /* by place in the page: the number of the site and 1 */
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TLS_PAGE);
	__type(key, __u32);
	__type(value, __u32);
} tls_places SEC(".maps");

/* How often a process was found to have such a library, by the loader, and to use it, by the
 * programs: what was known before holds no more. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tls_epoch SEC(".maps");
__u32 tls_uses = 0;

struct { /* processes with such a library: enum tls_process_flags */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u32);
} tls_processes SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tls_call_key);
	__type(value, struct tls_call);
} tls_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, struct tls_conn_key);
	__type(value, struct tls_conn);
} tls_conns SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct tls_call_key);
	__type(value, struct tls_last);
} tls_lasts SEC(".maps");

struct { /* by thread, of Java by record; taken out when its socket is known */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct tls_call_key);
	__type(value, struct tls_first);
} tls_firsts SEC(".maps");

struct { /* condition 7: by socket, with the direction in bit 0 */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 32768);
	__type(key, __u64);
	__type(value, struct tls_cipher);
} tls_ciphers SEC(".maps");

const volatile struct tls_first tls_no_first = {};
const volatile struct tls_last tls_no_last = {}; /* not on the stack, of which there is little */
const volatile struct tls_call tls_no_call = {};

/* ---- sockets ---- */

static __noinline int tls_learn(__u64 conn, struct sock *sk, __u64 ino, __u32 memory)
{
	struct tls_conn_key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .conn = conn};
	struct tls_conn c = {.sk = (__u64)sk, .ino = ino, .memory = memory};

	if (bpf_map_update_elem(&tls_conns, &key, &c, BPF_ANY))
		COUNT(tls_no_room, 1);
	l7_is_tls(sk, ino);
	return 0;
}

static __always_inline bool tls_open(__u64 sk, __u64 ino)
{
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &sk);

	return e && e->ino == ino;
}

/* 0: not known, or closed since. */
static __always_inline __u64 tls_known(__u64 conn, __u64 *ino, __u8 *memory)
{
	struct tls_conn_key key = {.tgid = bpf_get_current_pid_tgid() >> 32, .conn = conn};
	struct tls_conn *c = bpf_map_lookup_elem(&tls_conns, &key);

	if (!c || !tls_open(c->sk, c->ino))
		return 0;
	*ino = c->ino;
	*memory = (__u8)c->memory;
	return c->sk;
}

struct tls_header {
	__u8 type, major, minor, high, low;
};

static __always_inline bool tls_header_is(const struct tls_header *h)
{
	return h->type >= 20 && h->type <= 23 && h->major == 3 && h->minor <= 4;
}

/* What begins a record; its length, -1: none. */
static __always_inline int tls_header_read(__u64 at, __u8 *type)
{
	struct tls_header h = {};

	if (bpf_probe_read_user(&h, sizeof(h), (const void *)at) || !tls_header_is(&h))
		return -1;
	*type = h.type;
	return h.high << 8 | h.low;
}

static __always_inline bool tls_fits(__u32 record, __u64 plain)
{
	__u64 more = record - plain;

	return more == 17 || more == 24 || more == 16;
}

/* Records of data that begin or end in a socket's read. `same`: the thread's last read was of this
 * socket, too, and may have begun a record that goes on here. */
static __always_inline void tls_records(struct tls_last *l, __u64 buf, __u64 n, bool same)
{
	__u64 at = same ? l->left : 0;
	__u32 count = 0, len = l->part;

	l->count = l->left = 0;
	if (at > n) {
		l->left = (__u32)(at - n);
		return;
	}
	if (at && len)
		l->lens[count++] = len;
	for (int i = 0; i < TLS_RECORDS && at + sizeof(struct tls_header) <= n; i++) {
		__u8 type = 0;
		int found = tls_header_read(buf + at, &type);

		if (found < 0)
			break;
		len = type == 23 ? (__u32)found : 0;
		if (len)
			l->lens[count++ & (TLS_RECORDS - 1)] = len;
		at += sizeof(struct tls_header) + (__u32)found;
	}
	l->count = count < TLS_RECORDS ? count : TLS_RECORDS;
	l->part = len;
	l->left = at > n ? (__u32)(at - n) : 0;
}

/* One of the records that were written with one call, in pieces from `iov` on if it has some, is
 * this clear text's; with TLS_EXACT, has this length. */
static __noinline int tls_written(__u64 buf, __u64 n, __u64 iov, __u64 plain)
{
	struct l7_iovec v = {.base = buf, .len = n};
	__u64 at = 0, done = 0;

	if (iov && bpf_probe_read_user(&v, sizeof(v), (const void *)iov))
		return 0;
	for (int i = 0; i < 2 * TLS_RECORDS; i++) {
		__u8 type = 0;
		int len;

		if (at + sizeof(struct tls_header) > v.len) {
			if (at < v.len) /* a header in two pieces */
				break;
			at -= v.len;
			done += v.len;
			iov += sizeof(v);
			if (done >= n || bpf_probe_read_user(&v, sizeof(v), (const void *)iov))
				break;
			continue;
		}
		len = tls_header_read(v.base + at, &type);
		if (len < 0)
			break;
		if (type == 23 &&
		    (plain & TLS_EXACT ? (__u32)len == (__u32)plain : tls_fits((__u32)len, plain)))
			return 1;
		at += sizeof(struct tls_header) + (__u32)len;
	}
	return 0;
}

/* Clear text whose socket the thread's next write will tell. */
static __noinline int tls_first_keep(struct tls_call_key *key, __u64 conn, __u64 buf, __u64 n,
				     __u64 at_ns)
{
	struct tls_first *f = bpf_map_lookup_elem(&tls_firsts, key);
	__u64 len = n < TLS_FIRST ? n : TLS_FIRST;

	if (!f) {
		bpf_map_update_elem(&tls_firsts, key, (const void *)&tls_no_first, BPF_ANY);
		f = bpf_map_lookup_elem(&tls_firsts, key);
	}
	if (!f) {
		COUNT(tls_no_room, 1);
		return 0;
	}
	FORGET_BOUNDS(len);
	len &= TLS_FIRST;
	f->conn = bpf_probe_read_user(f->bytes, (__u32)len, (const void *)buf) ? 0 : conn;
	f->n = (__u32)n;
	f->have = (__u32)len;
	f->at_ns = at_ns;
	return 0;
}

/* Its socket is known now, and tls_first_tell reports it. */
static __always_inline int tls_first_is(struct tls_call_key *key, __u64 conn)
{
	struct tls_first *f = bpf_map_lookup_elem(&tls_firsts, key);

	return f && f->conn == conn;
}

static __noinline int tls_first_tell(__u64 sk, __u64 ino)
{
	struct tls_call_key key = {.who = bpf_get_current_pid_tgid()};
	struct walk *w = walk_get(0);
	struct tls_first *f;

	if (w && w->java)
		key = (struct tls_call_key){.who = w->java, .g = 1ull << 63};
	f = bpf_map_lookup_elem(&tls_firsts, &key);
	if (!f)
		return 0;
	if (f->n) {
		COUNT(tls_calls, 1);
		l7_bytes_at((struct sock *)sk, ino, L7_OUT, (__u64)f->bytes, f->have, f->n,
			    f->at_ns, L7_F_TLS, 1);
	}
	bpf_map_delete_elem(&tls_firsts, &key);
	return 0;
}

/* Condition 7: the socket of a connection that ciphers record by record, in one direction. Another
 * connection is not believed where this socket is one's already. */
static __noinline int tls_cipher_is(__u64 conn, __u64 sk, __u64 ino, __u32 dir)
{
	__u64 key = sk | dir;
	struct tls_cipher *o = bpf_map_lookup_elem(&tls_ciphers, &key), c = {conn, ino};

	if (o && o->ino == ino && o->conn != conn)
		return 0;
	if ((!o || o->conn != conn || o->ino != ino) &&
	    bpf_map_update_elem(&tls_ciphers, &key, &c, BPF_ANY))
		COUNT(tls_no_room, 1);
	return 1;
}

/* Condition 7: the clear text waits, and the thread wrote other records. Those of a handshake may
 * have been sealed before, and are written first, to the same socket (sqlx's Finished). 1: it goes
 * on waiting. */
static __always_inline int tls_waits_on(struct tls_last *l, struct sock *sk, __u64 ino)
{
	__u64 key = (__u64)sk | L7_OUT;
	struct tls_cipher *o = bpf_map_lookup_elem(&tls_ciphers, &key);

	if (!l->ciphers || (o && o->ino == ino) || (l->outs_sk && l->outs_sk != (__u64)sk) ||
	    l->others++ >= TLS_OTHERS)
		return 0;
	l->outs_sk = (__u64)sk;
	return 1;
}

/* A thread outside of the library wrote to a socket: is it the one of what it wrote into TLS
 * before? 1: tls_first_tell reports that. */
static __noinline int tls_outside_out(struct tls_last *l, struct sock *sk, __u64 ino, __u64 buf,
				      __u64 n)
{
	struct tls_call_key key = {.who = bpf_get_current_pid_tgid()};
	struct walk *w = walk_get(0);
	__u8 type = 0;
	int len = tls_header_read(buf, &type), told = 0;

	if (len < 0 && l->ciphers)
		return 0; /* the rest of an earlier record, or no TLS */
	if (len > 0 && l->writes == 1 && l->conn && (!l->outs_sk || l->outs_sk == (__u64)sk) &&
	    tls_written(buf, n, w ? w->first_iov : 0, l->n)) {
		told = !l->ciphers || tls_cipher_is(l->conn, (__u64)sk, ino, L7_OUT);
		if (told) {
			tls_learn(l->conn, sk, ino, 1);
			told = tls_first_is(&key, l->conn);
		}
	} else if (len > 0 && tls_waits_on(l, sk, ino)) {
		return 0;
	}
	l->writes = l->ciphers = l->others = 0;
	l->outs_sk = l->conn = 0;
	return told;
}

/* A thread or goroutine outside of the library moved bytes on a socket. 1: see tls_outside_out. */
static __always_inline int tls_outside(struct sock *sk, __u64 ino, struct tls_call_key *key,
				       __u64 buf, __u64 n)
{
	struct tls_last *l = bpf_map_lookup_elem(&tls_lasts, key);
	bool out = n >> 63, same;
	__u8 type = 0;
	int len;

	n &= ~(1ull << 63);
	if (l && out)
		return key->g ? 0 : tls_outside_out(l, sk, ino, buf, n);
	len = tls_header_read(buf, &type);
	if (!l) {
		if (out || len < 0)
			return 0;
		if (bpf_map_update_elem(&tls_lasts, key, (const void *)&tls_no_last, BPF_ANY))
			COUNT(tls_no_room, 1);
		l = bpf_map_lookup_elem(&tls_lasts, key);
		if (!l)
			return 0;
	}
	same = l->sk == (__u64)sk && l->ino == ino;
	l->sk = len < 0 && key->g ? 0 : (__u64)sk;
	l->ino = ino;
	if (!key->g)
		tls_records(l, buf, n, same);
	return 0;
}

/* enum tls_process_flags; NULL: the current process has no such library. */
static __always_inline __u32 *tls_process_now(void)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32);

	return bpf_map_lookup_elem(&tls_processes, &tgid);
}

static __always_inline __u32 tls_plain_now(void)
{
	__u32 zero = 0, *epoch = bpf_map_lookup_elem(&tls_epoch, &zero);

	return ((epoch ? *epoch : 0) + *(volatile __u32 *)&tls_uses) | 1u << 31;
}

static __always_inline void tls_uses_it(__u32 *flags)
{
	*flags |= TLS_PROCESS_SEEN;
	__sync_fetch_and_add(&tls_uses, 1);
}

/* The process has moved no record of TLS so far, nor entered its library, if it has one. That holds
 * for `now`. */
static __noinline int tls_plain_note(struct sock *sk, __u64 ino, __u32 now)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	if (e && e->ino == ino)
		e->plain = now;
	return 0;
}

/*
 * Is the call of no interest? Of a process that has no such library, or none of whose sockets moved
 * a record and which has not entered it, those are that do not begin as a record does. `first`: the
 * bytes, where they were copied.
 */
static __always_inline bool tls_plain(struct sock *sk, __u64 ino, struct walk *w, __u64 buf,
				      __u64 n)
{
	__u32 now = tls_plain_now(), *flags;
	__u8 type = 0;
	bool header;

	header = w->r.len >= sizeof(struct tls_header) && w->r.size == n ?
			 tls_header_is((const struct tls_header *)w->bytes) :
			 tls_header_read(buf, &type) >= 0;
	if (!header && w->plain == now)
		return true;
	flags = tls_process_now();
	if (flags && *flags & TLS_PROCESS_SEEN)
		return false;
	if (!header)
		tls_plain_note(sk, ino, now);
	else if (flags)
		tls_uses_it(flags);
	return !header || !flags;
}

/* Address of the first struct iovec. 0: none. */
static __always_inline __u64 tls_first(__u64 iov)
{
	__u64 buf = 0;

	if (iov)
		bpf_probe_read_user(&buf, sizeof(buf), (const void *)iov);
	return buf;
}

/* The call that the thread or goroutine is in; its key. */
static __always_inline struct tls_call *tls_call_now(__u32 flags, struct tls_call_key *key)
{
	struct tls_call *c = NULL;

	*key = (struct tls_call_key){.who = bpf_get_current_pid_tgid()};
	if (flags & TLS_PROCESS_C)
		c = bpf_map_lookup_elem(&tls_calls, key);
	if (c && c->active == TLS_CALLED)
		return c;
	if (!(flags & TLS_PROCESS_GO))
		return NULL;
	if (bpf_probe_read_kernel(&key->g, sizeof(key->g),
				  (char *)arch_current_entry((void *)bpf_get_current_task()) +
					  __builtin_offsetof(struct arch_regs, r14)) ||
	    !key->g)
		return NULL;
	key->who &= ~0xffffffffull;
	c = bpf_map_lookup_elem(&tls_calls, key);
	return c && c->active == TLS_CALLED ? c : NULL;
}

/* ---- sites ---- */

/* A register by its place in struct pt_regs. By a switch: the context is read in place only at
 * places known when it is compiled, and a helper costs several times that. */
#define TLS_CASE(name_)                                                                     \
	case __builtin_offsetof(struct arch_regs, name_):                                   \
		asm volatile("%0 = *(u64 *)(%1 + %2)"                                       \
			     : "=r"(v)                                                      \
			     : "r"(ctx), "i"(__builtin_offsetof(struct arch_regs, name_))); \
		break
static __noinline __u64 tls_reg(void *ctx, __u32 at)
{
	__u64 v;

	switch (at) {
		TLS_CASE(ax);
		TLS_CASE(bx);
		TLS_CASE(cx);
		TLS_CASE(dx);
		TLS_CASE(si);
		TLS_CASE(di);
		TLS_CASE(bp);
		TLS_CASE(sp);
		TLS_CASE(r8);
		TLS_CASE(r9);
		TLS_CASE(r10);
		TLS_CASE(r11);
		TLS_CASE(r12);
		TLS_CASE(r13);
		TLS_CASE(r14);
		TLS_CASE(r15);
	default:
		v = 0;
	}
	return v;
}
#define TLS_REG(ctx_, name_) (((const struct arch_regs *)(ctx_))->name_)

static __always_inline __s64 tls_value_read(void *ctx, const struct tls_value *v)
{
	__u64 x = 0;

	if (v->place == TLS_NUMBER)
		return v->at;
	if (v->place == TLS_REGISTER)
		x = tls_reg(ctx, v->reg);
	else if (v->place == TLS_STACK)
		bpf_probe_read_user(&x, sizeof(x),
				    (const void *)(TLS_REG(ctx, sp) + (__u64)(__s64)v->at));
	return v->bytes == 4 ? (__s32)x : (__s64)x;
}

static __always_inline struct tls_call_key tls_key(void *ctx, bool go)
{
	__u64 who = bpf_get_current_pid_tgid(), g = TLS_REG(ctx, r14);

	if (!go)
		return (struct tls_call_key){.who = who};
	return (struct tls_call_key){.who = who & ~0xffffffffull, .g = g};
}

static __always_inline bool tls_process(bool go)
{
	__u32 tgid = (__u32)(bpf_get_current_pid_tgid() >> 32),
	      flag = TLS_PROCESS_SEEN | (go ? TLS_PROCESS_GO : TLS_PROCESS_C);
	__u32 *flags = bpf_map_lookup_elem(&tls_processes, &tgid);

	if (!flags && !task_wanted())
		return false;
	if (!flags && bpf_map_update_elem(&tls_processes, &tgid, &flag, BPF_ANY)) {
		COUNT(tls_no_room, 1);
		return false;
	}
	if (!flags || (*flags & flag) != flag)
		__sync_fetch_and_add(&tls_uses, 1);
	if (flags)
		*flags |= flag;
	return true;
}

/* The thread's socket calls outside are looked at from now on. */
static __always_inline void tls_watch(void)
{
	struct tls_call_key key = {.who = bpf_get_current_pid_tgid()};

	if (bpf_map_lookup_elem(&tls_lasts, &key))
		return;
	if (bpf_map_update_elem(&tls_lasts, &key, (const void *)&tls_no_last, BPF_ANY))
		COUNT(tls_no_room, 1);
}

/* The place of this thread's or goroutine's call; what was there is overwritten, for to make and
 * remove one each time costs more than all else here. The loader takes out those of who is gone. */
static __always_inline struct tls_call *tls_call_place(struct tls_call_key *key, bool go)
{
	struct tls_call *c = bpf_map_lookup_elem(&tls_calls, key);

	if (c)
		return c;
	if (!tls_process(go))
		return NULL;
	if (bpf_map_update_elem(&tls_calls, key, (const void *)&tls_no_call, BPF_ANY)) {
		COUNT(tls_no_room, 1);
		return NULL;
	}
	c = bpf_map_lookup_elem(&tls_calls, key);
	if (c)
		c->g = key->g;
	return c;
}

static __always_inline void tls_call_begin(void *ctx, struct tls_site *s, struct tls_call *c)
{
	__u64 stack[2] = {}, ino = 0, conn = tls_reg(ctx, s->args[0]);
	__u8 memory = 0;

	c->conn = conn;
	c->buf = tls_reg(ctx, s->args[1]);
	c->size = tls_reg(ctx, s->args[2]);
	c->out = tls_reg(ctx, s->args[3]);
	c->dir = s->dir;
	c->on_stack = 0;
	c->at_ns = s->dir == L7_OUT ? bpf_ktime_get_boot_ns() : 0;
	if (s->go && !bpf_probe_read_user(stack, sizeof(stack), (const void *)c->g) &&
	    c->buf >= stack[0] && c->buf < stack[1]) {
		c->on_stack = 1;
		c->buf = stack[1] - c->buf;
	}
	c->sk = tls_known(c->conn, &ino, &memory);
	c->ino = ino;
	c->memory = memory;
	c->inside = c->nested = 0;
	c->active = TLS_CALLED;
}

/* A handshake inside a write, whose records go the same way: its results are not the write's. */
static __noinline int tls_nested(struct tls_call_key *key, __u8 dir)
{
	struct tls_call *c = bpf_map_lookup_elem(&tls_calls, key);

	if (c && c->active == TLS_CALLED && c->dir == dir)
		c->nested++;
	return 0;
}

static __noinline int tls_entry(void *ctx, struct tls_site *s)
{
	struct tls_call_key key = tls_key(ctx, s->go);
	struct tls_call *c;

	for (int i = 0; i < 2; i++)
		if (s->check_reg[i] != TLS_NO_REG &&
		    (__u32)tls_reg(ctx, s->check_reg[i]) != s->check_value[i])
			return tls_nested(&key, s->dir);
	c = tls_call_place(&key, s->go);
	if (!c)
		return 0;
	tls_call_begin(ctx, s, c);
	if (!c->sk && !s->go)
		tls_watch();
	return 0;
}

static __always_inline __s64 tls_length(void *ctx, const struct tls_site *s,
					const struct tls_call *c)
{
	__s64 v = tls_value_read(ctx, &s->value[0]),
	      second = s->value[1].place ? tls_value_read(ctx, &s->value[1]) : 0;
	__u64 n = 0;

	if (s->result == TLS_PAIR)
		return v ? 0 : second;
	if (s->result == TLS_LENGTH)
		return v + second;
	if (v <= 0 || bpf_probe_read_user(&n, sizeof(n), (const void *)c->out))
		return 0;
	return (__s64)n;
}

/* By the length of records. What is read was on the socket that the thread read last, or it is not
 * known. */
static __always_inline void tls_by_record(struct tls_call *c, __u64 n)
{
	struct tls_call_key key = {.who = bpf_get_current_pid_tgid()};
	struct tls_last *l = bpf_map_lookup_elem(&tls_lasts, &key);

	if (!l)
		return;
	if (c->dir == L7_OUT) {
		l->writes++;
		l->conn = n <= TLS_PLAIN_MOST ? c->conn : 0;
		l->n = n;
		if (!c->sk && l->conn && l->writes == 1)
			tls_first_keep(&key, c->conn, c->buf, n, c->at_ns);
		return;
	}
	if (c->sk && c->sk == l->sk && c->ino == l->ino)
		return;
	c->sk = 0;
	for (__u32 i = 0; i < TLS_RECORDS; i++) {
		if (i >= l->count || !tls_fits(l->lens[i], n))
			continue;
		if (!tls_open(l->sk, l->ino))
			return;
		c->sk = l->sk;
		c->ino = l->ino;
		tls_learn(c->conn, (struct sock *)c->sk, c->ino, 1);
		return;
	}
}

/* By the descriptor of a net.TCPConn: a known socket must be that one, an unknown one must be the
 * last that this goroutine read. */
static __always_inline void tls_by_descriptor(struct tls_call *c)
{
	struct tls_call_key key = {.who = bpf_get_current_pid_tgid() & ~0xffffffffull, .g = c->g};
	struct tls_last *l = c->sk ? NULL : bpf_map_lookup_elem(&tls_lasts, &key);
	__u64 at = c->conn + 8,
	      sk = c->sk ? c->sk :
		   l     ? l->sk :
			   0,
	      ino = c->sk ? c->ino :
		    l     ? l->ino :
			    0;
	struct file *file;
	__s32 fd = -1;

	c->sk = 0;
	if (!sk || bpf_probe_read_user(&at, sizeof(at), (const void *)at) ||
	    bpf_probe_read_user(&at, sizeof(at), (const void *)at) ||
	    bpf_probe_read_user(&fd, sizeof(fd), (const void *)(at + 16)) || fd < 0)
		return;
	file = sock_fd_file((struct task_struct *)bpf_get_current_task(), (__u32)fd);
	if (!file || (__u64)sock_of_file(file) != sk || BPF_CORE_READ(file, f_inode, i_ino) != ino)
		return;
	c->sk = sk;
	c->ino = ino;
	if (!l)
		return;
	tls_learn(c->conn, (struct sock *)sk, ino, 0);
	bpf_map_delete_elem(&tls_lasts, &key);
}

static __noinline int tls_done(struct tls_call *c, __u64 n)
{
	__u64 high = 0, now = c->dir == L7_OUT ? c->at_ns : bpf_ktime_get_boot_ns();

	if (!c->inside && c->g)
		tls_by_descriptor(c);
	else if (!c->inside && (!c->sk || c->memory))
		tls_by_record(c, n);
	if (!c->sk) {
		COUNT(tls_unknown, 1);
		COUNT(tls_unknown_bytes, n);
		return 0;
	}
	if (c->on_stack) {
		bpf_probe_read_user(&high, sizeof(high), (const void *)(c->g + 8));
		c->buf = high - c->buf;
	}
	COUNT(tls_calls, 1);
	l7_bytes((struct sock *)c->sk, c->ino, c->dir, (const void *)c->buf, n, now, L7_F_TLS);
	return 0;
}

static __noinline int tls_result(void *ctx, struct tls_site *s)
{
	struct tls_call_key key = tls_key(ctx, s->go);
	struct tls_call *c = bpf_map_lookup_elem(&tls_calls, &key);
	__s64 n;

	if (!c || c->active != TLS_CALLED || c->dir != s->dir)
		return 0;
	if (c->nested) {
		c->nested--;
		return 0;
	}
	c->active = 0;
	n = tls_length(ctx, s, c);
	if (n <= 0)
		return 0;
	if ((__u64)n > c->size) { /* not what these sites were made for */
		COUNT(tls_odd, 1);
		return 0;
	}
	return tls_done(c, (__u64)n);
}

static __always_inline int tls_forget(void *ctx, struct tls_site *s)
{
	struct tls_conn_key key = {.tgid = bpf_get_current_pid_tgid() >> 32,
				   .conn = tls_reg(ctx, s->args[0])};

	bpf_map_delete_elem(&tls_conns, &key);
	return 0;
}

static __always_inline struct tls_site *tls_site_of(void *ctx)
{
	__u32 place, n, *found;

	if (bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_attach_cookie)) {
		n = (__u32)bpf_get_attach_cookie(ctx);
		return bpf_map_lookup_elem(&tls_sites, &n);
	}
	place = (__u32)TLS_REG(ctx, ip) & (TLS_PAGE - 1);
	found = bpf_map_lookup_elem(&tls_places, &place);
	if (!found || !*found)
		return NULL;
	n = *found - 1;
	return bpf_map_lookup_elem(&tls_sites, &n);
}

#endif
