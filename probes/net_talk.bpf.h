/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * net_talk: traffic of Unix sockets and of UDP sockets that have a peer, in the caller's own
 * context, by the tracepoints of each send and receive (sock_send_length, sock_recv_length: 6.3).
 * They fire for TCP as well: then the program only reads the socket's kind and returns.
 *
 * 1. Bytes are summed by (process, side, the server's address): that of a Unix socket by its struct
 *    unix_address, which the accepted sockets share with the one that listens. A socket pair, which
 *    has no address, is left out.
 * 2. The other end's process: the one that called connect or listen there (sk_peer_pid). The loader
 *    knows better if that end has traffic, too: each sum has its last socket and that one's other
 *    end.
 * 3. Traffic without room in `talks` is counted.
 * 4. QUIC: the first TALK_LOOKS messages of each sum of UDP are examined, if the caller has them
 *    (sendto, sendmsg, ...; not io_uring), until one has a long header (RFC 9000, 17.2; RFC 9369):
 *    the two highest bits are set, a version that is known follows, and a connection id of at most
 *    20 bytes. A connection that was open before has short headers, which cannot be recognized.
 */
#ifndef SONDE_PROBES_NET_TALK_BPF_H
#define SONDE_PROBES_NET_TALK_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/arch_x86.h"
#include "probes/net.h"
#include "probes/net_who.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sock.bpf.h"

#define MSG_PEEK_FLAG 2

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, NET_TALKS);
	__type(key, struct net_talk_key);
	__type(value, struct net_talk);
} talks SEC(".maps");

struct talk_scratch {
	struct net_talk_key key;
	struct net_talk talk;
};
/* One a program: it is not run again on a CPU where it runs, but the other may be. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct talk_scratch);
} talk_scratches SEC(".maps");

static __always_inline bool talk_unix(struct net_talk_key *k, struct net_talk *t,
				      struct unix_sock *u)
{
	struct unix_sock *other = (struct unix_sock *)BPF_CORE_READ(u, peer);
	struct unix_address *own = BPF_CORE_READ(u, addr),
			    *its = other ? BPF_CORE_READ(other, addr) : NULL;
	struct unix_address *server = own ? own : its;

	if (!server)
		return false;
	k->at[0] = (__u64)server;
	k->side = own && its ? NET_SIDE_UNKNOWN : own ? NET_SIDE_SERVER : NET_SIDE_CLIENT;
	t->peer_sk = (__u64)other;
	return true;
}

static __always_inline bool talk_udp(struct net_talk_key *k, struct sock *sk)
{
	k->port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (!k->port)
		return false;
	if (sk->__sk_common.skc_num < k->port && sk->__sk_common.skc_num < NET_EPHEMERAL)
		k->lport = sk->__sk_common.skc_num; /* a server's */
	k->netns = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	sock_peer(sk, k->family, (__u8 *)k->at);
	return true;
}

#define TALK_LOOKS 16
#define QUIC_V1    0x00000001u
#define QUIC_V2    0x6b3343cfu
#define QUIC_DRAFT 0xff000000u /* and its number, of which 29 to 34 were in use */

/* Where the message at hand begins in the caller's memory; 0: not known. Of several at once the
 * first. */
static __always_inline __u64 message_at(void)
{
	struct arch_regs regs;
	__u64 iov = 0, at = 0;

	if (arch_task_regs((struct task_struct *)bpf_get_current_task(), &regs) ||
	    !arch_user(&regs) || regs.cs == ARCH_USER32_CS)
		return 0;
	if (regs.orig_ax == ARCH_CALL_SENDTO || regs.orig_ax == ARCH_CALL_RECVFROM ||
	    regs.orig_ax == ARCH_CALL_WRITE || regs.orig_ax == ARCH_CALL_READ)
		return regs.si;
	if (regs.orig_ax == ARCH_CALL_WRITEV || regs.orig_ax == ARCH_CALL_READV)
		iov = regs.si;
	else if (regs.orig_ax != ARCH_CALL_SENDMSG && regs.orig_ax != ARCH_CALL_RECVMSG &&
		 regs.orig_ax != ARCH_CALL_SENDMMSG && regs.orig_ax != ARCH_CALL_RECVMMSG)
		return 0;
	else if (bpf_probe_read_user(&iov, sizeof(iov), (const void *)(regs.si + 16))) /* msg_iov */
		return 0;
	bpf_probe_read_user(&at, sizeof(at), (const void *)iov);
	return at;
}

static __always_inline bool is_quic(const __u8 *m)
{
	__u32 version = (__u32)m[1] << 24 | (__u32)m[2] << 16 | (__u32)m[3] << 8 | m[4];

	return m[0] >> 6 == 3 && m[5] <= 20 &&
	       (version == QUIC_V1 || version == QUIC_V2 ||
		(version >= (QUIC_DRAFT | 29) && version <= (QUIC_DRAFT | 34)));
}

static __always_inline void talk_look(struct net_talk *t, __u32 bytes)
{
	__u8 head[6];
	__u64 at;

	if (t->quic || t->looks >= TALK_LOOKS || bytes < 7)
		return;
	t->looks++;
	at = message_at();
	if (at && !bpf_probe_read_user(head, sizeof(head), (const void *)at))
		t->quic = is_quic(head);
}

/* When sonded slows the family, one message in 2^talks_shift is looked at, by chance, and counts
 * for all of these. The loader sets it, and may change it while the programs run. */
__u32 talks_shift;

static __always_inline void talk_add(struct net_talk *t, __u32 bytes, bool sent)
{
	__u32 shift = talks_shift & 31;

	__sync_fetch_and_add(sent ? &t->tx : &t->rx, (__u64)bytes << shift);
	__sync_fetch_and_add(sent ? &t->sent : &t->received, 1ull << shift);
}

static __noinline int talk_heard(struct sock *sk, __u32 bytes, __u32 sent, __u32 family)
{
	__u32 slot = sent != 0;
	struct talk_scratch *s = bpf_map_lookup_elem(&talk_scratches, &slot);
	struct task_struct *mate;
	struct net_talk *t;

	if (!s)
		return 0;
	__builtin_memset(s, 0, sizeof(*s));
	owner_fill(&s->key.owner, (struct task_struct *)bpf_get_current_task());
	s->key.family = (__u16)family;
	if (family == SOCK_UNIX ? !talk_unix(&s->key, &s->talk, (struct unix_sock *)sk) :
				  !talk_udp(&s->key, sk))
		return 0;
	t = bpf_map_lookup_elem(&talks, &s->key);
	if (t) {
		t->sk = (__u64)sk;
		t->peer_sk = s->talk.peer_sk;
		t->inode = (__u32)sock_ino(sk);
		if (family != SOCK_UNIX)
			talk_look(t, bytes);
		talk_add(t, bytes, sent);
		return 0;
	}
	if (family == SOCK_UNIX) {
		mate = sock_mate(sk);
		if (mate)
			owner_fill(&s->talk.mate, mate);
		s->talk.path_len = sock_path((struct unix_address *)s->key.at[0], s->talk.path);
	} else {
		sock_local(sk, (__u16)family, s->talk.path); /* 16 bytes of it */
		talk_look(&s->talk, bytes);
	}
	s->talk.sk = (__u64)sk;
	s->talk.inode = (__u32)sock_ino(sk);
	talk_add(&s->talk, bytes, sent);
	COUNT(talks);
	if (bpf_map_update_elem(&talks, &s->key, &s->talk, BPF_NOEXIST)) {
		t = bpf_map_lookup_elem(&talks, &s->key); /* another thread's was first */
		if (t)
			talk_add(t, bytes, sent);
		else
			COUNT(talks_lost);
	}
	return 0;
}

static __always_inline int talk(struct sock *sk, int bytes, bool sent)
{
	__u16 family = sk->__sk_common.skc_family;

	if (bytes <= 0 || (family != SOCK_UNIX && (sk->sk_protocol != SOCK_UDP ||
						   (family != SOCK_INET && family != SOCK_INET6))))
		return 0;
	if (talks_shift && bpf_get_prandom_u32() & ((1u << (talks_shift & 31)) - 1))
		return 0;
	return talk_heard(sk, (__u32)bytes, sent, family);
}

TRACEPOINT(sock_send_length, net_sent, struct sock *sk, int ret, int flags)
{
	return talk(sk, ret, true);
}

TRACEPOINT(sock_recv_length, net_received, struct sock *sk, int ret, int flags)
{
	return flags & MSG_PEEK_FLAG ? 0 : talk(sk, ret, false);
}

#endif
