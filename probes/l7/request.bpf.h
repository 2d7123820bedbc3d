/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_request: which request the bytes that a thread moves belong to: at a server's end it begins
 * and ends one, at a client's end it asks for one (l7/turn.bpf.h).
 */
#ifndef SONDE_PROBES_L7_REQUEST_BPF_H
#define SONDE_PROBES_L7_REQUEST_BPF_H

#include <bpf/bpf_helpers.h>

#include "probes/lib/inflight.bpf.h"
#include "probes/l7.h"
#include "probes/l7/turn.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct l7_sock);
} socks SEC(".maps");

bool goroutines = false; /* some request was a goroutine's */

/* The loader knows which side it is by what it speaks. */
static __always_inline void want_side(struct l7_sock *e, const struct l7_want *w)
{
	if (e->side != L7_SIDE_UNKNOWN || !(w->flags & (L7_WANT_SERVER | L7_WANT_CLIENT)))
		return;
	e->side = w->flags & L7_WANT_SERVER ? L7_SIDE_SERVER : L7_SIDE_CLIENT;
	if (e->side == L7_SIDE_SERVER)
		e->tag = 0;
}

/* inflight_who; that a process is not Go's is asked once a second for each connection. */
static __always_inline __u64 who_moves(struct l7_sock *e, __u64 at_ns)
{
	__u32 now = (__u32)(at_ns >> 30) | 1u << 31;
	__u64 who;

	if (e->threads == now)
		return (__u32)bpf_get_current_pid_tgid();
	who = inflight_who();
	e->threads = who && !(who >> 63) ? now : 0;
	return who;
}

/* It reads a request: is the one that it read before, on another connection, still open? */
static __always_inline void turn_both(__u64 who, const struct l7_sock *e, __u64 at_ns, __u64 sk)
{
	struct l7_turn *t = turn_get(who);
	struct l7_sock *before;

	if (!t || t->last == e->tag)
		return;
	before = t->last ? bpf_map_lookup_elem(&socks, &t->sk) : NULL;
	if (before && before->ino == t->ino && before->tag == t->last)
		t->both_ns = at_ns + BOTH_NS;
	t->sk = sk;
	t->ino = e->ino;
	t->last = e->tag;
}

/* The request of a server's end is answered, by `who`. */
static __always_inline void request_over(struct l7_sock *e, __u64 who)
{
	inflight_clear(e->tag_who, e->tag);
	turn_answers(e->tag_who, e->tag);
	if (who != e->tag_who) {
		inflight_clear(who, e->tag);
		turn_answers(who, e->tag);
	}
	e->tag = 0;
}

/*
 * Whose request is the thread's, or its goroutine's? Bytes that a server's end reads while nothing
 * of an answer has been written begin one, or are more of it; the first that is written of the
 * answer ends it: what is done from then on may be another one's. What a goroutine has begun a
 * thread does not go on with, nor the other way round. When the bytes came, whose last bit says, of
 * what a server reads, who did: 1, a goroutine (TABLES_TAG_OF).
 */
static __noinline __u64 request_note(struct l7_sock *e, __u32 dir, __u64 at_ns, __u64 sk)
{
	__u64 who;

	if (!e)
		return at_ns;
	who = who_moves(e, at_ns);
	if (dir == L7_IN) {
		at_ns |= who >> 63;
		if (!e->tag)
			e->tag = TABLES_TAG_OF(at_ns);
		e->tag_who = who;
		if (who >> 63)
			goroutines = true;
		if (who >> 63 == (e->tag >> 59 & 1)) {
			inflight_set(who, e->tag);
			turn_reads(who, e->tag, at_ns);
			turn_both(who, e, at_ns, sk);
		}
	} else if (e->tag) {
		request_over(e, who);
	} else {
		turn_strays(who);
	}
	return at_ns;
}

/* It ends without an answer. */
static __always_inline void request_drop(struct l7_sock *e)
{
	if (e->side != L7_SIDE_SERVER || !e->tag)
		return;
	request_over(e, e->tag_who);
}

#define ASKS_OPENER (1ull << 63)
#define ASKS_SERVES (1ull << 62)
#define ASKS_NEXT   (1ull << 61)
#define ASKS_LOOP   (1ull << 60)
#define ASKS_TAG    (ASKS_LOOP - 1)

/*
 * The request for which these bytes are sent, and how that is known. The first bytes of a
 * connection are for the request that it was opened for, whichever the thread has read since: an
 * event loop waits for its new connection. The connection keeps the tag of samples: a thread that
 * waits for its answer is not idle.
 */
static __noinline __u64 request_asks(struct l7_sock *e, __u64 at_ns)
{
	__u64 who, tag, opener;
	bool serves = false, loop = false, doubt;

	if (!e)
		return 0;
	who = who_moves(e, at_ns);
	opener = e->flags & S_OPENED && e->tag_who == who ? e->tag : 0;
	doubt = (e->flags & (S_OPENED | S_NEXT)) == S_NEXT && e->tag_who == who;
	if (opener)
		opener |= ASKS_OPENER | (e->flags & S_NEXT ? ASKS_NEXT : 0);
	turn_moves(who, opener ? opener & ASKS_TAG : turn_tag(who), at_ns);
	tag = turn_asks(who, at_ns, &serves, &loop);
	e->flags &= (__u16) ~(S_OPENED | S_NEXT);
	e->tag = inflight_get(who);
	e->tag_who = who;
	if (opener) {
		serves = serves && (opener & ASKS_TAG) == tag;
		tag = opener;
	}
	if (doubt && loop)
		return ASKS_LOOP;
	return tag | (serves ? ASKS_SERVES : 0) | (loop ? ASKS_LOOP : 0);
}

static __always_inline __u16 asks_flags(__u64 asks)
{
	return (__u16)((asks & ASKS_OPENER ? L7_F_OPENER : 0) |
		       (asks & ASKS_SERVES ? L7_F_SERVES : 0) | (asks & ASKS_NEXT ? L7_F_NEXT : 0) |
		       (asks & ASKS_LOOP ? L7_F_LOOP : 0));
}

/* Bytes read of a connection on which the process is not known to be the server. */
static __noinline int request_hears(struct l7_sock *e, __u64 at_ns)
{
	if (e)
		turn_moves(who_moves(e, at_ns), e->tag, at_ns);
	return 0;
}

/* What a server's end has read is not told to the parser. */
static __noinline int request_hidden(struct l7_sock *e, __u32 dir, __u64 at_ns)
{
	if (e && dir == L7_IN && e->side == L7_SIDE_SERVER)
		turn_unsure(who_moves(e, at_ns), at_ns);
	return 0;
}

#endif
