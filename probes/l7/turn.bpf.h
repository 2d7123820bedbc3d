/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7_turn: for which request does a thread (or a goroutine) ask something? A thread that serves
 * one request after the other asks for the one that it serves. An event loop has several open at
 * once, and the request that it read last need not be the one that it works on now. So a record
 * says three things of a question (l7.h), and the parser, which knows what is open, decides:
 *
 *   L7_F_SERVES  the thread read the request in this turn and has not answered it
 *   L7_F_OPENER  the thread opened the connection while it served the request, and these are the
 *                first bytes
 *   L7_F_NEXT    with OPENER: opening the connection was the next that it did after the read
 *
 * and L7_F_LOOP: it may be a loop, since it has waited for whatever comes while a request was open,
 * or has not asked for one yet and answered it without.
 *
 * 1. A turn ends where the thread waits for whatever comes next. A wait of no time does not count:
 * a loop asks like that while it has work left to do. But what it does after that need not belong
 * to what was read last, so NEXT is over.
 * 2. NEXT is also over at all else that a loop may turn to: reading from another connection, from a
 *    pipe or an eventfd, answering on another one, an end, accepting, and the time at which a timer
 *    is due: that is how long it wanted to wait. A loop may have looked at the clock at the begin
 *    of its turn, and in milliseconds: DUE_EARLY_NS.
 * 3. A turn in which a second request was read before anything was asked for the first one is
 *    mixed: nothing that is asked in it has a request.
 * 4. A thread that opens connections out of turn defers its work: for ASTRAY_NS nothing is NEXT.
 * 5. A thread that reads requests that the parser does not see (an unknown protocol, lost records)
 *    may have more open than is known: for UNSURE_NS nothing is SERVES.
 * 6. A thread that may be a loop, and has waited, SERVES only where NEXT holds, or where nothing
 *    else can have been asked for: in this turn it has read no other request, nothing from a pipe,
 *    an eventfd or another connection, accepted one connection at most, and no timer is due.
 *    Waits of no time do not end this: what was ready before the turn began is done. The first
 *    bytes on a connection that it opened when this did not hold have no request.
 * 7. For samples, a thread that waits for whatever comes goes on with its request, if it never had
 *    two open at once in the last BOTH_NS: a backend of PostgreSQL waits for a lock by epoll.
 * 8. Of goroutines the parser knows only the thread. One that ever had two requests open at once is
 *    a loop, and its questions have no request.
 */
#ifndef SONDE_PROBES_L7_TURN_BPF_H
#define SONDE_PROBES_L7_TURN_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/arch_x86.h"
#include "probes/lib/inflight.bpf.h"

#define ASTRAY_NS    30000000000ull
#define UNSURE_NS    60000000000ull
#define BOTH_NS      30000000000ull
#define DUE_EARLY_NS 2000000ull
#define TURN_ALWAYS  (~0ull) /* no timer is due */

enum turn_flags {
	TURN_NEXT = 1,    /* 2 */
	TURN_ASKED = 2,   /* something was asked since `tag` was read */
	TURN_MIXED = 4,   /* 3 */
	TURN_SEVERAL = 8, /* 8 */
	TURN_LOOP = 16,   /* it waited for whatever comes with a request open */
	TURN_SYNC = 32,   /* it asked for one, and answered it without waiting */
	TURN_WAITED = 64, /* it has waited for whatever comes since its first request */
	TURN_CAME = 128   /* it accepted a connection in this turn */
};
/* What stays when a turn ends. */
#define TURN_LASTING (TURN_SEVERAL | TURN_LOOP | TURN_SYNC | TURN_WAITED)

struct l7_turn { /* by TABLES_WHO_PLACE */
	__u64 who;
	__u64 tag;      /* of the request that was read last and is not answered; 0: none */
	__u64 due_ns;   /* boot clock: when a timer is due */
	__u64 pure_ns;  /* 6: until when nothing else can have been asked for */
	__u64 began_ns; /* the first that was seen of this turn; 0: nothing yet */
	__u64 unsure_ns, astray_ns, both_ns; /* until when */
	__u64 sk, ino, last; /* the request that it read last, answered or not: where, its tag */
	__u32 flags;         /* enum turn_flags */
	__u32 pad;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLES_INFLIGHT);
	__type(key, __u32);
	__type(value, struct l7_turn);
} turns SEC(".maps");

static __always_inline struct l7_turn *turn_place(__u64 who)
{
	__u32 place = TABLES_WHO_PLACE(who);

	return bpf_map_lookup_elem(&turns, &place);
}

/* NULL: it has read no request. */
static __always_inline struct l7_turn *turn_get(__u64 who)
{
	struct l7_turn *t = who ? turn_place(who) : NULL;

	return t && t->who == who ? t : NULL;
}

/* ---- what it does ---- */

static __noinline int turn_reads(__u64 who, __u64 tag, __u64 now_ns)
{
	struct l7_turn *t = who ? turn_place(who) : NULL;

	if (!t)
		return 0;
	if (t->who != who) {
		t->who = who;
		t->tag = t->began_ns = t->unsure_ns = t->astray_ns = 0;
		t->both_ns = t->last = 0;
		t->due_ns = t->pure_ns = 0; /* how long it waited for this is not known */
		t->flags = 0;
	}
	if (!t->began_ns)
		t->began_ns = now_ns;
	if (t->tag && t->tag != tag) {
		t->pure_ns = 0;
		if (!(t->flags & TURN_ASKED))
			t->flags |= TURN_MIXED;
		if (who >> 63)
			t->flags |= TURN_SEVERAL;
	}
	if (t->tag != tag)
		t->flags &= ~(__u32)TURN_ASKED;
	t->tag = tag;
	t->flags |= TURN_NEXT;
	return 0;
}

static __always_inline void turn_other(struct l7_turn *t)
{
	t->flags &= ~(__u32)TURN_NEXT;
	t->pure_ns = 0;
}

/* The request `tag` is answered: by this one, or by another one. */
static __always_inline void turn_answers(__u64 who, __u64 tag)
{
	struct l7_turn *t = turn_get(who);

	if (!t)
		return;
	turn_other(t);
	if (t->tag != tag)
		return;
	t->tag = 0;
	if (t->flags & TURN_ASKED)
		t->flags |= TURN_SYNC;
}

/* Something else than reading its request, or asking for it. */
static __always_inline void turn_strays(__u64 who)
{
	struct l7_turn *t = turn_get(who);

	if (t)
		turn_other(t);
}

/* It has accepted a connection. */
static __always_inline void turn_accepted(__u64 who)
{
	struct l7_turn *t = turn_get(who);

	if (!t)
		return;
	if (t->flags & TURN_CAME)
		t->pure_ns = 0;
	t->flags |= TURN_CAME;
}

/* It moved bytes on a connection that is of the request `tag` (0: of none, or unknown). */
static __always_inline void turn_moves(__u64 who, __u64 tag, __u64 now_ns)
{
	struct l7_turn *t = turn_get(who);

	if (!t)
		return;
	if (!t->began_ns)
		t->began_ns = now_ns;
	if (t->tag != tag)
		turn_other(t);
}

static __always_inline void turn_unsure(__u64 who, __u64 now_ns)
{
	struct l7_turn *t = turn_get(who);

	if (t)
		t->unsure_ns = now_ns + UNSURE_NS;
}

/* It waits for whatever comes next, as long as `wait_ns`; TURN_ALWAYS: without a limit. `epoll`:
 * by epoll, as loops do. urllib3 looks by poll or select, without a wait, at a connection before it
 * uses it again: that makes no loop. */
static __always_inline void turn_waits(struct l7_turn *t, __u64 wait_ns, bool epoll)
{
	__u64 began = t->began_ns;

	t->began_ns = 0;
	t->flags |= TURN_WAITED;
	if (t->tag && (wait_ns || epoll))
		t->flags |= TURN_LOOP;
	if (!wait_ns) {
		t->flags &= ~(__u32)TURN_NEXT;
		t->due_ns = 0;
		return;
	}
	t->tag = 0;
	t->flags &= TURN_LASTING;
	t->due_ns = TURN_ALWAYS;
	if (wait_ns != TURN_ALWAYS)
		t->due_ns = (began ? began : bpf_ktime_get_boot_ns()) + wait_ns - DUE_EARLY_NS;
	t->pure_ns = t->due_ns;
}

static __always_inline void turn_accepts(struct l7_turn *t)
{
	if (t->tag && !(t->flags & TURN_ASKED))
		t->flags |= TURN_MIXED;
	t->flags &= ~(__u32)TURN_NEXT;
	t->tag = 0;
}

/* A system call's time limit, of `unit_ns` behind a pointer to two words; NULL: none. */
static __noinline __u64 turn_limit(__u64 at, __u64 unit_ns)
{
	__u64 t[2] = {};

	if (!at || bpf_probe_read_user(t, sizeof(t), (const void *)at))
		return TURN_ALWAYS;
	return t[0] > 1000000000ull ? TURN_ALWAYS : t[0] * 1000000000ull + t[1] * unit_ns;
}

static __always_inline __u64 turn_millis(__u64 arg)
{
	return (__s32)arg < 0 ? TURN_ALWAYS : (__u64)(__u32)arg * 1000000ull;
}

/* How long this call would wait at most, by its third to fifth argument. */
static __always_inline __u64 turn_wait(__u32 nr, __u64 third, __u64 fourth, __u64 fifth)
{
	switch (nr) {
	case ARCH_CALL_EPOLL_WAIT:
	case ARCH_CALL_EPOLL_PWAIT:
		return turn_millis(fourth);
	case ARCH_CALL_EPOLL_PWAIT2:
		return turn_limit(fourth, 1);
	case ARCH_CALL_SELECT:
		return turn_limit(fifth, 1000);
	case ARCH_CALL_PSELECT6:
		return turn_limit(fifth, 1);
	case ARCH_CALL_POLL:
		return turn_millis(third);
	case ARCH_CALL_PPOLL:
		return turn_limit(third, 1);
	default:
		return TURN_ALWAYS;
	}
}

/* ---- what it asks ---- */

static __always_inline bool turn_loop(const struct l7_turn *t)
{
	return (t->flags & (TURN_LOOP | TURN_SYNC)) != TURN_SYNC;
}

/* 6: can what it asks be asked for another request than the one that it read, or for none? */
static __always_inline bool turn_doubt(const struct l7_turn *t, bool next, __u64 now_ns)
{
	return turn_loop(t) && t->flags & TURN_WAITED && !next && now_ns >= t->pure_ns;
}

static __always_inline bool turn_next(const struct l7_turn *t, __u64 now_ns)
{
	return t->flags & TURN_NEXT && now_ns < t->due_ns && now_ns >= t->astray_ns;
}

#define TURN_OPENED       1
#define TURN_OPENED_NEXT  2
#define TURN_OPENED_DOUBT 3

/* It opens a connection. *tag: for which request; 0: for none that is known, and DOUBT returned:
 * nor is the first that it asks on it. */
static __noinline int turn_opens(__u64 who, __u64 *tag)
{
	struct l7_turn *t = turn_get(who);
	__u64 now = bpf_ktime_get_boot_ns();
	bool next;

	if (!t || !tag)
		return 0;
	*tag = 0;
	if (!t->tag) {
		t->astray_ns = now + ASTRAY_NS;
		t->pure_ns = 0;
		return turn_loop(t) ? TURN_OPENED_DOUBT : 0;
	}
	next = turn_next(t, now);
	t->flags |= TURN_ASKED;
	if (turn_doubt(t, next, now))
		return TURN_OPENED_DOUBT;
	if (t->flags & (TURN_MIXED | TURN_SEVERAL) || (!next && now < t->unsure_ns))
		return 0;
	*tag = t->tag;
	return next ? TURN_OPENED_NEXT : TURN_OPENED;
}

/* Of the request that it read last and has not answered; 0: none. */
static __always_inline __u64 turn_tag(__u64 who)
{
	const struct l7_turn *t = turn_get(who);

	return t ? t->tag : 0;
}

/* It writes a question. *serves: it may be asked for the request that is returned. */
static __always_inline __u64 turn_asks(__u64 who, __u64 now_ns, bool *serves, bool *loop)
{
	struct l7_turn *t = turn_get(who);

	*serves = *loop = false;
	if (!t)
		return 0;
	*loop = turn_loop(t);
	if (!t->tag) {
		t->pure_ns = 0;
		return 0;
	}
	t->flags |= TURN_ASKED;
	*serves = !(t->flags & (TURN_MIXED | TURN_SEVERAL)) && now_ns >= t->unsure_ns &&
		  !turn_doubt(t, turn_next(t, now_ns), now_ns);
	return t->tag;
}

#endif
