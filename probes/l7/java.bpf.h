/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_java: clear text of the JDK's own TLS, which is Java code and calls no library. sonde-java
 * loads an agent into chosen programs (loaders/java/agent); it writes each piece of clear text,
 * behind a struct tls_java_head, to /dev/null. Here that write is seen where it begins.
 *
 * 1. Only processes in tls_javas are believed, and only with the secret that their agent was given:
 *    another program that writes such bytes says nothing. What an agent says is of sockets of its
 *    own process alone.
 * 2. An SSLSocket is named by its descriptor.
 * 3. An SSLEngine is named by a number, and its socket found by a record: eight bytes that no other
 *    record has (tls_java_mark), which the agent gives with the text. What is read comes from the
 *    socket first: tls_java_ins has the sockets that moved such a record lately. What is written
 *    comes from the agent first: tls_java_outs has who waits for it, tls_firsts the text. Once the
 *    socket is known no record of it is looked at (l7_sock.plain), and the engine's number is
 *    enough. Records of handshakes tell it before there is any text.
 * 4. Both are tables with one place for each of some bits: what is not asked for is overwritten,
 *    and its text with it: an engine that works for no socket fills nothing.
 */
#ifndef SONDE_PROBES_L7_JAVA_BPF_H
#define SONDE_PROBES_L7_JAVA_BPF_H

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/l7/data.bpf.h"
#include "probes/l7/tls.bpf.h"
#include "probes/l7_tls.h"
#include "probes/lib/calls.bpf.h"

#define TLS_JAVA_CONN  (1ull << 63) /* no address of a library's object */
#define TLS_JAVA_INS   4096u
#define TLS_JAVA_OUTS  64u
#define TLS_JAVA_LEAST 21       /* bytes of a record that has a mark */
#define TLS_JAVA_MARK  13       /* where it is */
#define DEV_NULL       0x100003 /* 1:3 as the kernel has it */

struct { /* process -> secret */
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, __u64);
} tls_javas SEC(".maps");
__u32 tls_javas_n = 0;

struct tls_java_record {
	__u64 mark;
	__u64 sk, ino; /* outs: the connection, 0 */
	__u32 tgid, pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TLS_JAVA_INS);
	__type(key, __u32);
	__type(value, struct tls_java_record);
} tls_java_ins SEC(".maps");
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TLS_JAVA_OUTS);
	__type(key, __u32);
	__type(value, struct tls_java_record);
} tls_java_outs SEC(".maps");

static __always_inline struct tls_java_record *tls_java_in(__u64 mark)
{
	__u32 slot = (__u32)(mark >> 32) & (TLS_JAVA_INS - 1);

	return bpf_map_lookup_elem(&tls_java_ins, &slot);
}

static __always_inline struct tls_java_record *tls_java_out(__u64 mark)
{
	__u32 slot = (__u32)(mark >> 32) & (TLS_JAVA_OUTS - 1);

	return bpf_map_lookup_elem(&tls_java_outs, &slot);
}

static __always_inline __u32 tls_java_tgid(void)
{
	return (__u32)(bpf_get_current_pid_tgid() >> 32);
}

/* l7_sock.plain of a socket that this recording's agent knows; tls_plain_now is never that. */
static __always_inline __u32 tls_java_known(__u64 secret)
{
	return ((__u32)secret & 0x7fffffff) | 1;
}

/* The entry says that clear text comes from the agent from now on. */
static __noinline int tls_java_learn(struct sock *sk, __u64 ino, __u64 secret)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);

	if (!e || e->ino != ino)
		e = sock_enter(sk, ino, L7_SIDE_UNKNOWN, bpf_ktime_get_boot_ns());
	if (!e)
		return 0;
	e->flags |= S_TLS;
	e->plain = tls_java_known(secret);
	return 1;
}

/* ---- what sockets move ---- */

/* The mark of the record that begins at `at`, 0: it has none; its length with its header. */
static __always_inline __u64 tls_java_mark(__u64 at, __u64 left, __u32 *len)
{
	__u8 type = 0, kind = 0;
	__u64 mark = 0;
	int found = left < TLS_JAVA_LEAST ? -1 : tls_header_read(at, &type);

	if (found < 0)
		return 0;
	*len = (__u32)found + sizeof(struct tls_header);
	if (type == 22 && bpf_probe_read_user(&kind, 1, (const void *)(at + 5)))
		return 0;
	if ((type != 23 && kind != 1 && kind != 2) || *len < TLS_JAVA_LEAST ||
	    bpf_probe_read_user(&mark, sizeof(mark), (const void *)(at + TLS_JAVA_MARK)))
		return 0;
	return mark;
}

/* A record of this mark was written on a socket. true: text waited for it and is complete now. */
static __always_inline bool tls_java_written(struct sock *sk, struct l7_sock *e, __u64 secret,
					     __u64 mark)
{
	struct tls_call_key key = {.who = mark, .g = TLS_JAVA_CONN};
	struct tls_java_record *o = tls_java_out(mark);
	struct walk *w = walk_get(0);
	__u64 conn;

	if (!o || o->mark != mark || o->tgid != tls_java_tgid())
		return false;
	conn = o->sk;
	o->mark = 0;
	tls_learn(conn, sk, e->ino, 0);
	e->plain = tls_java_known(secret);
	if (!w || !tls_first_is(&key, conn))
		return false;
	w->java = mark;
	return true;
}

/* As tls_socket_call, of a process that may have an agent. */
static __noinline int tls_java_socket(struct sock *sk, __u64 ino, __u64 how, __u64 buf, __u64 n)
{
	__u32 tgid = tls_java_tgid(), dir = how & 1;
	__u64 *secret = bpf_map_lookup_elem(&tls_javas, &tgid), key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);
	struct walk *w = walk_get(0);
	struct l7_iovec v = {};

	if (!secret || !w || !e || e->ino != ino || e->plain == tls_java_known(*secret))
		return 0;
	if (w->first_iov && !bpf_probe_read_user(&v, sizeof(v), (const void *)w->first_iov) &&
	    v.len < n)
		n = v.len;
	for (int i = 0; i < TLS_RECORDS; i++) {
		struct tls_java_record *r;
		__u32 len = 0;
		__u64 mark = tls_java_mark(buf, n, &len);

		if (!len)
			break;
		r = mark && dir == L7_IN ? tls_java_in(mark) : NULL;
		if (r) {
			r->sk = (__u64)sk;
			r->ino = ino;
			r->tgid = tgid;
			r->mark = mark;
		}
		if (mark && dir == L7_OUT && tls_java_written(sk, e, *secret, mark))
			return 1;
		if (len >= n)
			break;
		buf += len;
		n -= len;
	}
	return 0;
}

/* ---- what agents say ---- */

/* The socket of an engine: known by its number, or by the record that was read from it. */
static __always_inline __u64 tls_java_engine(const struct tls_java_head *h, __u64 *ino)
{
	__u8 memory;
	__u64 sk = tls_known(h->conn, ino, &memory);
	struct tls_java_record *r =
		sk || h->dir != L7_IN || !h->record ? NULL : tls_java_in(h->record);

	if (!r || r->mark != h->record || r->tgid != tls_java_tgid() || !tls_open(r->sk, r->ino))
		return sk;
	*ino = r->ino;
	tls_learn(h->conn, (struct sock *)r->sk, r->ino, 0);
	return r->sk;
}

/* Its socket will be known when the record is written. */
static __always_inline void tls_java_wait(const struct tls_java_head *h, __u64 buf)
{
	struct tls_call_key key = {.who = h->record, .g = TLS_JAVA_CONN};
	struct tls_java_record *o = h->record && h->dir == L7_OUT ? tls_java_out(h->record) : NULL;

	if (!o) {
		if (h->size) {
			COUNT(tls_unknown, 1);
			COUNT(tls_unknown_bytes, h->size);
		}
		return;
	}
	if (o->mark) { /* its record never came, or not yet */
		key.who = o->mark;
		bpf_map_delete_elem(&tls_firsts, &key);
		key.who = h->record;
	}
	o->mark = 0;
	o->sk = h->conn;
	o->tgid = tls_java_tgid();
	o->mark = h->record;
	if (h->size)
		tls_first_keep(&key, h->conn, buf, h->size, bpf_ktime_get_boot_ns());
}

static __noinline int tls_java_said(struct tls_java_head *h, __u64 buf)
{
	__u64 ino = 0, sk;
	struct file *file;

	h->conn |= TLS_JAVA_CONN;
	if (h->fd >= 0) {
		file = sock_fd_file((struct task_struct *)bpf_get_current_task(), (__u32)h->fd);
		sk = file ? (__u64)sock_of_file(file) : 0;
		ino = sk ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
	} else {
		sk = tls_java_engine(h, &ino);
	}
	if (!sk) {
		tls_java_wait(h, buf);
		return 0;
	}
	if (!tls_java_learn((struct sock *)sk, ino, h->secret) || !h->size)
		return 0;
	COUNT(tls_calls, 1);
	l7_bytes((struct sock *)sk, ino, h->dir & 1, (const void *)buf, h->size,
		 bpf_ktime_get_boot_ns(), L7_F_TLS);
	return 0;
}

/* A write begins. */
static __noinline int tls_java_write(struct sys_enter *x)
{
	__u32 tgid = tls_java_tgid();
	__u64 *secret = bpf_map_lookup_elem(&tls_javas, &tgid);
	struct tls_java_head h = {};
	struct file *file;

	if (!secret || x->args[2] < sizeof(h) ||
	    bpf_probe_read_user(&h, sizeof(h), (const void *)x->args[1]) || h.secret != *secret ||
	    h.size != x->args[2] - sizeof(h))
		return 0;
	file = sock_fd_file((struct task_struct *)bpf_get_current_task(), (__u32)x->args[0]);
	if (!file || BPF_CORE_READ(file, f_inode, i_rdev) != DEV_NULL)
		return 0;
	return tls_java_said(&h, x->args[1] + sizeof(h));
}

#endif
