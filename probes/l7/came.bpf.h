/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_came: when the bytes that a call reads had come to their socket, by the tracepoint
 * sk_data_ready (6.3): how long they lay there.
 *
 * A connection's entry has two moments: when the oldest bytes in the buffer came (came_ns), and
 * when the newest did (last_ns), with the sequence number that those begin with (TCP alone has
 * one).
 *
 * 1. What a call has read is as old as came_ns. All of it is (`together`) if nothing came after
 *    that.
 * 2. After it: nothing is left, and so nothing is old; or all that is left came last; or some of it
 *    came in between, and then its age is unknown until nothing is left. An unknown age is never
 *    guessed.
 * 3. Before accept there is no entry: bytes for a waiting connection are in `early`, by the
 *    socket's address and, because Unix sockets report no end, by its other end's inode.
 *
 * Datagrams have no age: several are in one buffer, each with its own time.
 */
#ifndef SONDE_PROBES_L7_CAME_BPF_H
#define SONDE_PROBES_L7_CAME_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/l7/data.bpf.h"
#include "probes/lib/preempt.bpf.h"

#define EARLY_MOST 4096

/* The oldest are evicted: a Unix socket that is never accepted reports no end. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, EARLY_MOST);
	__type(key, __u64);
	__type(value, struct l7_came);
} early SEC(".maps");

static const volatile struct l7_came nothing_came = {};

/* More bytes came; of TCP, up to the number `end`, and read is what lies before `seq`. */
static __always_inline void came_more(struct l7_came *c, bool tcp, __u32 end, __u32 seq)
{
	__u64 now = bpf_ktime_get_boot_ns();

	if (tcp)
		c->last_seq = c->came_ns || c->flags & CAME_UNSURE ? c->end_seq : seq;
	c->end_seq = end;
	c->last_ns = now;
	if (!c->came_ns && !(c->flags & CAME_UNSURE))
		c->came_ns = now;
}

/* What tells this socket, that has no file yet, from another one at its address. */
static __always_inline __u64 came_whose(struct sock *sk, bool tcp)
{
	struct sock *peer;

	if (tcp)
		return (__u64)BPF_CORE_READ(sk, __sk_common.skc_num) << 16 |
		       BPF_CORE_READ(sk, __sk_common.skc_dport);
	peer = BPF_CORE_READ((struct unix_sock *)sk, peer);
	return peer ? sock_ino(peer) : 0;
}

static __always_inline void came_early(struct sock *sk)
{
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	bool tcp = family != SOCK_UNIX;
	__u64 key = (__u64)sk, whose;
	struct l7_came *c;

	if (BPF_CORE_READ(sk, sk_socket) ||
	    (state != SOCK_ESTABLISHED && state != SOCK_CLOSE_WAIT) || sock_kind(sk) < 0)
		return;
	whose = came_whose(sk, tcp);
	c = bpf_map_lookup_elem(&early, &key);
	if (!whose)
		return;
	if (!c || c->whose != whose) {
		if (bpf_map_update_elem(&early, &key, (const void *)&nothing_came, BPF_ANY))
			return;
		c = bpf_map_lookup_elem(&early, &key);
		if (!c)
			return;
		c->whose = whose;
	}
	came_more(c, tcp, tcp ? BPF_CORE_READ((struct tcp_sock *)sk, rcv_nxt) : 0,
		  tcp ? tcp_seq(sk, L7_IN) : 0);
}

TRACEPOINT(sk_data_ready, l7_ready, struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct l7_sock *e = bpf_map_lookup_elem(&socks, &key);
	struct tcp_sock *tcp;

	if (!e) {
		came_early(sk);
		return 0;
	}
	if (e->flags & S_IGNORED || e->side == L7_SIDE_CLIENT || e->protocol == SOCK_UDP)
		return 0;
	tcp = bpf_skc_to_tcp_sock(sk);
	came_more(&e->came, tcp, tcp ? tcp->rcv_nxt : 0, tcp ? tcp->copied_seq : 0);
	return 0;
}

/* It is accepted: what came before is the entry's. */
static __noinline int came_accepted(struct sock *sk, struct l7_sock *e)
{
	__u64 key = (__u64)sk;
	struct l7_came *c = bpf_map_lookup_elem(&early, &key);

	if (!c || !e)
		return 0;
	if (c->whose == came_whose(sk, e->protocol == SOCK_TCP))
		e->came = *c;
	bpf_map_delete_elem(&early, &key);
	return 0;
}

static __always_inline void came_end(__u64 key)
{
	if (tells_came)
		bpf_map_delete_elem(&early, &key);
}

#endif
