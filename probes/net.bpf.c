/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * net: the life of TCP connections, from the tracepoints of their states, at no cost per packet:
 * bytes, segments and round trips are what the kernel counts in its tcp_sock, read at the end and
 * whenever the loader reads the map `conns`.
 *
 * 1. A connection begins with CLOSE -> SYN_SENT (a client, in its process), or with SYN_RECV ->
 *    ESTABLISHED (a server, in an interrupt). Its end is -> CLOSE; a record of it goes through the
 *    ring without waking the reader while that has room. A connection without room in `conns` still
 *    has that record.
 * 2. Its owner: the process that opened it. For an accepted one the tracepoints do not have it; the
 *    process that closes it, or its sending direction, does so in its own context (-> FIN_WAIT1, ->
 *    LAST_ACK, -> CLOSE, the destruction), which the address of the tracepoint's arguments
 *    distinguishes from an interrupt. If CLOSE came from an interrupt (a reset), the destruction
 *    reports the owner later, in a separate record (NET_CLOSER). The holders of open connections
 *    come from reading descriptors.
 * 3. A listening socket is an entry too: from -> LISTEN on.
 * 4. An entry ends with tcp_destroy_sock at the latest: an address is not reused before that.
 * 5. Unix and UDP sockets: net_talk.bpf.h.
 * 6. `conns` is read by its iterator (net_read). If the kernel refuses that, the loader looks up
 *    the keys and net_look makes the same records of them.
 * 7. The reading of descriptors (iter/task_file) finds older connections; it walks all namespaces,
 *    which iter/tcp does not.
 */
#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "probes/lib/arch_x86.h"
#include "probes/net.h"
#include "probes/net_talk.bpf.h"
#include "probes/lib/preempt.bpf.h"
#include "probes/lib/sock.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u64);
	__type(value, struct net_conn);
} conns SEC(".maps");

const volatile __u32 ends_bytes = 4 * 1024 * 1024;
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024);
} ends SEC(".maps");

struct scratch {
	__u64 at; /* an address, to be read back as a number */
	struct net_other record;
};
/* 0: of the tracepoints, which may interrupt one another only between a process and a soft
 * interrupt (1). 2: of the readings. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 3);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* net_destroy is loaded */
const volatile bool tells_destroyed = true;

__u32 sweep = 0; /* the loader counts its readings of descriptors */

/* The loader sleeps a second where little happens: it is called when half of the ring is full. */
static __always_inline __u64 ends_flags(void)
{
	return bpf_ringbuf_query(&ends, BPF_RB_AVAIL_DATA) > ends_bytes / 2 ? BPF_RB_FORCE_WAKEUP :
									      BPF_RB_NO_WAKEUP;
}

/* ---- who ---- */

/* Is this a process's own doing? Its kernel stack is then the one in use; interrupts have another.
 */
static __always_inline bool in_process(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &zero);

	if (!s || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return false;
	*(volatile __u64 *)&s->at = (__u64)ctx;
	return *(volatile __u64 *)&s->at - (__u64)BPF_CORE_READ(task, stack) < ARCH_THREAD_SIZE;
}

static __always_inline void owner_set(struct net_conn *c, __u8 how)
{
	owner_fill(&c->owner, (struct task_struct *)bpf_get_current_task());
	c->how = how;
}

/* ---- records ---- */

/* Where the kernel vouches for the socket (`typed`, a constant) its fields are loaded, else a
 * helper reads them, 20 ns each. */
#define FIELD(typed_, from_, field_) ((typed_) ? (from_)->field_ : BPF_CORE_READ(from_, field_))

static __always_inline void record_where(struct net_record *r, struct sock *sk, const bool typed)
{
	struct net *net = FIELD(typed, sk, __sk_common.skc_net.net);

	r->family = FIELD(typed, sk, __sk_common.skc_family);
	r->protocol = FIELD(typed, sk, sk_protocol);
	r->type = (__u8)FIELD(typed, sk, sk_type);
	r->state = FIELD(typed, sk, __sk_common.skc_state);
	r->netns = BPF_CORE_READ(net, ns.inum);
	if (r->family != SOCK_INET && r->family != SOCK_INET6)
		return;
	r->lport = FIELD(typed, sk, __sk_common.skc_num);
	if (!r->lport) /* freed before -> CLOSE is reported */
		r->lport = bpf_ntohs(BPF_CORE_READ((struct inet_sock *)sk, inet_sport));
	r->dport = bpf_ntohs(FIELD(typed, sk, __sk_common.skc_dport));
	if (typed && r->family == SOCK_INET) {
		*(__u32 *)r->local = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)r->peer = sk->__sk_common.skc_daddr;
		return;
	}
	sock_local(sk, r->family, r->local);
	sock_peer(sk, r->family, r->peer);
}

static __always_inline void record_tcp(struct net_record *r, struct sock *sk, const bool typed)
{
	struct tcp_sock *tp = typed ? bpf_skc_to_tcp_sock(sk) : (struct tcp_sock *)sk;

	if (!tp)
		return;
	r->acked = FIELD(typed, tp, bytes_acked);
	r->received = FIELD(typed, tp, bytes_received);
	r->snd_una = FIELD(typed, tp, snd_una);
	r->rcv_nxt = FIELD(typed, tp, rcv_nxt);
	r->write_seq = FIELD(typed, tp, write_seq);
	r->srtt_us = FIELD(typed, tp, srtt_us);
	r->retrans = FIELD(typed, tp, total_retrans);
	r->lost = FIELD(typed, tp, lost);
	r->segs_out = FIELD(typed, tp, segs_out);
	r->segs_in = FIELD(typed, tp, segs_in);
	r->error = (__u16)FIELD(typed, sk, sk_err);
	if (FIELD(typed, sk, __sk_common.skc_flags) >>
		    bpf_core_enum_value(enum sock_flags, SOCK_DONE) &
	    1)
		r->flags |= NET_F_FIN_IN;
}

/*
 * An open one goes on while it is read. What the program has read counts, not what has arrived: a
 * FIN counts as a byte until the state changes. The state is read last: while it is ESTABLISHED,
 * neither end's FIN is in the numbers.
 */
static __always_inline void record_open(struct net_record *r, struct sock *sk)
{
	__s32 unread = (__s32)(r->rcv_nxt - BPF_CORE_READ((struct tcp_sock *)sk, copied_seq));

	if (unread > 0 && r->received >= (__u32)unread) {
		r->received -= (__u32)unread;
		r->rcv_nxt -= (__u32)unread;
	}
	r->state = BPF_CORE_READ(sk, __sk_common.skc_state);
}

static __always_inline void record_entry(struct net_record *r, const struct net_conn *c)
{
	r->begin_ns = c->begin_ns;
	r->established_ns = c->established_ns;
	r->owner = c->owner;
	r->holder = c->holder;
	r->repeated = c->repeated;
	r->flags = c->flags;
	r->side = c->side;
	r->how = c->how;
}

/* A record of a TCP socket. `c` NULL: it has no entry. */
static __always_inline void record_make(struct net_record *r, struct sock *sk,
					const struct net_conn *c, __u8 what, const bool typed)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->sk = (__u64)sk;
	r->time_ns = bpf_ktime_get_boot_ns();
	r->what = what;
	if (c)
		record_entry(r, c);
	else
		r->flags = NET_F_NO_ENTRY;
	record_where(r, sk, typed);
	if (r->state == SOCK_LISTEN || r->side == NET_SIDE_LISTENER) {
		r->backlog = BPF_CORE_READ(sk, sk_ack_backlog);
		r->backlog_max = BPF_CORE_READ(sk, sk_max_ack_backlog);
		r->drops = (__u32)BPF_CORE_READ(sk, sk_drops.counter);
	} else {
		record_tcp(r, sk, typed);
		if (!typed)
			record_open(r, sk);
	}
}

static __noinline int end_send(struct sock *sk, const struct net_conn *c, __u32 old_state,
			       __u32 by_process)
{
	struct net_record *r = bpf_ringbuf_reserve(&ends, sizeof(*r), 0);

	COUNT(ends);
	if (!r) {
		COUNT(lost);
		return 0;
	}
	record_make(r, sk, c, NET_END, true);
	r->state = (__u8)old_state;
	r->closed_by = by_process != 0;
	if (!c && by_process) {
		owner_fill(&r->owner, (struct task_struct *)bpf_get_current_task());
		r->how = NET_OWNER_CLOSER;
	}
	bpf_ringbuf_submit(r, ends_flags());
	return 0;
}

static __always_inline void closer_send(const struct net_conn *c, __u64 sk)
{
	struct net_record *r = bpf_ringbuf_reserve(&ends, sizeof(*r), 0);

	if (!r)
		return; /* its listener represents it */
	__builtin_memset(r, 0, sizeof(*r));
	r->sk = sk;
	r->begin_ns = c->begin_ns;
	r->time_ns = bpf_ktime_get_boot_ns();
	r->what = NET_CLOSER;
	r->how = NET_OWNER_CLOSER;
	owner_fill(&r->owner, (struct task_struct *)bpf_get_current_task());
	bpf_ringbuf_submit(r, ends_flags());
}

/* ---- states ---- */

static __always_inline struct net_conn *conn_get(__u64 sk)
{
	return bpf_map_lookup_elem(&conns, &sk);
}

static __noinline int conn_begin(struct sock *sk, __u32 side, __u32 flags)
{
	struct net_conn c = {.side = (__u8)side, .flags = (__u16)flags};
	__u64 key = (__u64)sk;

	c.begin_ns = bpf_ktime_get_boot_ns();
	if (side == NET_SIDE_SERVER) {
		c.established_ns = c.begin_ns;
		c.repeated = BPF_CORE_READ((struct tcp_sock *)sk, total_retrans);
	} else {
		owner_set(&c, NET_OWNER_OPENER);
	}
	c.lport = sk->__sk_common.skc_num;
	c.dport = bpf_ntohs(sk->__sk_common.skc_dport);
	if (bpf_map_update_elem(&conns, &key, &c, BPF_ANY))
		COUNT(no_room);
	return 0;
}

static __always_inline void established(struct sock *sk, int old)
{
	struct net_conn *c;

	if (old == SOCK_SYN_SENT)
		COUNT(opened);
	else
		COUNT(accepted);
	c = conn_get((__u64)sk);
	if (c && c->side == NET_SIDE_CLIENT) {
		c->established_ns = bpf_ktime_get_boot_ns();
		c->lport = sk->__sk_common.skc_num; /* it had none at -> SYN_SENT */
	} else if (old == SOCK_SYN_RECV) {
		conn_begin(sk, NET_SIDE_SERVER, 0);
	}
}

static __always_inline void closes(void *ctx, struct sock *sk, int new)
{
	struct net_conn *c = conn_get((__u64)sk);

	if (!c)
		return;
	c->flags |= NET_F_FIN_SENT | (new == SOCK_FIN_WAIT1 ? NET_F_CLOSED_FIRST : 0);
	if (c->how != NET_OWNER_OPENER && in_process(ctx))
		owner_set(c, NET_OWNER_CLOSER);
}

/*
 * Where the packet that ends a handshake and the one behind it are handled on two CPUs at once,
 * each makes a socket of the listener's request. The second one is closed at once
 * (inet_ehash_nolisten) and was never a connection. A host without memory closes one that is
 * already dead; one that was opened with data (TCP Fast Open) still has its request.
 */
static __always_inline bool is_second(struct sock *sk, int old)
{
	return old == SOCK_SYN_RECV &&
	       !(BPF_CORE_READ(sk, __sk_common.skc_flags) >>
			 bpf_core_enum_value(enum sock_flags, SOCK_DEAD) &
		 1) &&
	       !BPF_CORE_READ((struct tcp_sock *)sk, fastopen_rsk);
}

static __always_inline void closed(void *ctx, struct sock *sk, int old)
{
	__u64 key = (__u64)sk;
	struct net_conn *c = conn_get(key);
	bool process = in_process(ctx);

	if (c ? c->flags & NET_F_CLOSED : is_second(sk, old))
		return;
	if (c && process && c->how != NET_OWNER_OPENER && c->how != NET_OWNER_CLOSER)
		owner_set(c, NET_OWNER_CLOSER);
	end_send(sk, c, old, process);
	if (!c)
		return;
	c->flags |= NET_F_CLOSED;
	if (!tells_destroyed || c->how == NET_OWNER_OPENER || c->how == NET_OWNER_CLOSER)
		bpf_map_delete_elem(&conns, &key);
}

TRACEPOINT(inet_sock_set_state, net_state, struct sock *sk, int old, int new)
{
	if (sk->sk_protocol != SOCK_TCP)
		return 0;
	switch (new) {
	case SOCK_SYN_SENT:
		COUNT(opens);
		conn_begin(sk, NET_SIDE_CLIENT, 0);
		break;
	case SOCK_LISTEN:
		COUNT(listens);
		conn_begin(sk, NET_SIDE_LISTENER, 0);
		break;
	case SOCK_ESTABLISHED:
		established(sk, old);
		break;
	case SOCK_FIN_WAIT1:
	case SOCK_LAST_ACK:
		closes(ctx, sk, new);
		break;
	case SOCK_CLOSE:
		if (old != SOCK_CLOSE)
			closed(ctx, sk, old);
		break;
	}
	return 0;
}

TRACEPOINT(tcp_destroy_sock, net_destroy, struct sock *sk)
{
	__u64 key = (__u64)sk;
	struct net_conn *c = conn_get(key);

	if (!c)
		return 0;
	if (!(c->flags & NET_F_CLOSED))
		end_send(sk, c, BPF_CORE_READ(sk, __sk_common.skc_state), in_process(ctx));
	else if (in_process(ctx))
		closer_send(c, key);
	bpf_map_delete_elem(&conns, &key);
	return 0;
}

TRACEPOINT(tcp_receive_reset, net_reset_in, struct sock *sk)
{
	struct net_conn *c = conn_get((__u64)sk);

	COUNT(resets_in);
	if (c)
		c->flags |= NET_F_RESET_IN;
	return 0;
}

TRACEPOINT(tcp_send_reset, net_reset_out, struct sock *sk)
{
	struct net_conn *c = sk ? conn_get((__u64)sk) : NULL;

	COUNT(resets_out);
	if (!sk)
		COUNT(resets_out_nobody);
	if (c && c->side != NET_SIDE_LISTENER)
		c->flags |= NET_F_RESET_OUT;
	return 0;
}

TRACEPOINT(tcp_retransmit_synack, net_synack, struct sock *sk)
{
	struct net_conn *c = conn_get((__u64)sk);

	COUNT(synacks);
	if (c)
		c->repeated++;
	return 0;
}

/* ---- readings ---- */

static __always_inline struct scratch *reading(void)
{
	__u32 slot = 2;

	return bpf_map_lookup_elem(&scratches, &slot);
}

/* An entry, as it is now. The socket may end meanwhile: what is read of one with other ports is not
 * told (false). */
static __always_inline bool live_make(struct net_record *r, __u64 sk, const struct net_conn *c)
{
	if (c->flags & NET_F_CLOSED)
		return false;
	record_make(r, (struct sock *)sk, c, NET_LIVE, false);
	return (!c->lport || r->lport == c->lport) &&
	       (c->side == NET_SIDE_LISTENER || r->dport == c->dport);
}

SEC("iter/bpf_map_elem")
int net_read(struct bpf_iter__bpf_map_elem *ctx)
{
	struct scratch *s = reading();
	struct net_conn *c = ctx->value;
	__u64 *key = ctx->key;
	struct net_record *r;

	if (!s || !c || !key)
		return 0;
	r = &s->record.r;
	if (live_make(r, *key, c))
		bpf_seq_write(ctx->meta->seq, r, sizeof(*r));
	return 0;
}

/* The loader puts the sockets' addresses (`sk`) into the first `n_looks`; the program makes records
 * of them, with `what` 0 if there is no such socket. */
struct net_record looks[NET_LOOKS];
__u32 n_looks = 0;

__noinline int look_make(__u32 i)
{
	struct net_record *r;
	struct net_conn *c;
	__u64 sk;

	if (i >= NET_LOOKS)
		return 0;
	r = &looks[i];
	sk = r->sk;
	c = conn_get(sk);
	if (!c || !live_make(r, sk, c))
		r->what = 0;
	return 0;
}

/* Run by the loader itself; how many it made records of. */
SEC("?raw_tp")
int net_look(void *ctx)
{
	__u32 i;

	(void)ctx;
	for (i = 0; i < NET_LOOKS && i < n_looks; i++)
		look_make(i);
	return (int)i;
}

static __always_inline void swept(struct net_conn *c, struct task_struct *task)
{
	struct net_owner who;

	owner_fill(&who, task);
	if (c->sweep != sweep) {
		c->sweep = sweep;
		c->holders = 0;
		c->holder = who;
	}
	c->holders++;
	if (c->how == NET_OWNER_NONE) {
		c->owner = who;
		c->how = NET_OWNER_HOLDER;
	}
}

static __always_inline void sweep_tcp(struct sock *sk, struct task_struct *task)
{
	__u64 key = (__u64)sk;
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct net_conn *c = conn_get(key), new = {};

	if (!c && state != SOCK_CLOSE && state != SOCK_TIME_WAIT) {
		new.begin_ns = bpf_ktime_get_boot_ns();
		new.flags = NET_F_STANDING;
		new.side = state == SOCK_LISTEN   ? NET_SIDE_LISTENER :
			   state == SOCK_SYN_SENT ? NET_SIDE_CLIENT :
						    NET_SIDE_UNKNOWN;
		if (state == SOCK_FIN_WAIT1 || state == SOCK_FIN_WAIT2 || state == SOCK_LAST_ACK ||
		    state == SOCK_CLOSING)
			new.flags |= NET_F_FIN_SENT;
		new.lport = BPF_CORE_READ(sk, __sk_common.skc_num);
		new.dport = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
		/* once: later sweeps come by those again that found no room */
		if (bpf_map_update_elem(&conns, &key, &new, BPF_NOEXIST) && sweep == 1)
			COUNT(no_room);
		c = conn_get(key);
	}
	if (c)
		swept(c, task);
}

static __always_inline void other_unix(struct net_other *o, struct unix_sock *u)
{
	struct sock *peer = BPF_CORE_READ(u, peer);

	o->peer_sk = (__u64)peer;
	o->peer_inode = peer ? (__u32)sock_ino(peer) : 0;
	o->path_len = sock_path(BPF_CORE_READ(u, addr), o->path);
}

static __noinline int sweep_other(struct seq_file *seq, struct sock *sk, struct task_struct *task,
				  __u32 family)
{
	struct scratch *s = reading();
	struct net_other *o;

	if (!s)
		return 0;
	o = &s->record;
	__builtin_memset(o, 0, sizeof(*o));
	o->r.sk = (__u64)sk;
	o->r.time_ns = bpf_ktime_get_boot_ns();
	o->r.what = NET_OTHER;
	owner_fill(&o->r.owner, task);
	o->r.how = NET_OWNER_HOLDER;
	record_where(&o->r, sk, false);
	o->r.inode = (__u32)sock_ino(sk);
	o->r.backlog = BPF_CORE_READ(sk, sk_ack_backlog);
	o->r.backlog_max = BPF_CORE_READ(sk, sk_max_ack_backlog);
	o->r.drops = (__u32)BPF_CORE_READ(sk, sk_drops.counter);
	if (family == SOCK_UNIX)
		other_unix(o, (struct unix_sock *)sk);
	bpf_seq_write(seq, o, sizeof(*o));
	return 0;
}

SEC("iter/task_file")
int net_sweep(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct sock *sk;
	__u16 family;

	if (!task || !file)
		return 0;
	sk = sock_of_file(file);
	if (!sk)
		return 0;
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if ((family == SOCK_INET || family == SOCK_INET6) &&
	    BPF_CORE_READ(sk, sk_protocol) == SOCK_TCP)
		sweep_tcp(sk, task);
	else if (family == SOCK_UNIX || ((family == SOCK_INET || family == SOCK_INET6) &&
					 BPF_CORE_READ(sk, sk_protocol) == SOCK_UDP))
		sweep_other(ctx->meta->seq, sk, task, family);
	return 0;
}
