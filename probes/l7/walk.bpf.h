/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * l7/walk: the maps that the programs of l7 write, and one walk through the bytes of a call, piece
 * by piece, into records.
 */
#ifndef SONDE_PROBES_L7_WALK_BPF_H
#define SONDE_PROBES_L7_WALK_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#include "probes/l7.h"

#define SLOTS 4 /* of walks */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 * 1024 * 1024);
} records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, L7_WANT_ENTRIES);
	__type(key, __u32);
	__type(value, struct l7_want);
} wants SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct l7_tally);
} tally SEC(".maps");

struct l7_iovec {
	__u64 base, len;
};

/* The bytes of one call, as they are put into records. */
struct walk {
	__u64 iov, ptr, left; /* the next struct iovec; the piece at hand */
	__u64 name;           /* of a datagram: from or to whom, as the call says; 0: it does not */
	__u64 total;          /* bytes of the stream that are not told yet */
	__u64 want;           /* bytes that may still be copied */
	__u32 iov_n, fill;
	__u64 sk;
	__u32 seq, seq_known; /* of TCP: the number of the byte after these */
	__u32 plain;          /* l7_sock.plain of these bytes' connection; 0: it has none */
	__u32 tail;           /* the end of a call of which not all is copied, is */
	__u32 failed, busy;   /* a record was lost; slots but 0: how many use it */
	__u64 wake;           /* how its records are put into the ring */
	struct l7_frames frames;
	__u32 kernel;      /* the pieces lie in the programs' own memory */
	__u32 speaks;      /* these bytes begin as a message of a protocol that is parsed */
	__u32 gap, framed; /* bytes behind `fill` that are left out; frames holds */
	union {            /* frames_step's own, not on the stack */
		struct l7_iovec v;
		__u8 b[16];
	} few;
	struct {                   /* l7/bodies.bpf.h */
		__u64 length;      /* of the body */
		__u32 at, n, size; /* in `bytes`: what is looked at next, where they end; the
				      head's size, 0: its end was not found */
		__u32 marks;       /* enum head_marks */
		__u32 wanted;      /* a message may begin with these bytes; 2: or a body go on */
		__u32 frames;      /* headers of frames among them */
	} head;
	__u64 until, tag,
		used; /* moved()'s own: what is not wanted ends there; its request; of the ring */
	__u64 n, end; /* bytes of the call, and where they end */
	__u64 first, first_iov; /* message_moved()'s own: `ptr` and `iov` as the call has them */
	__u64 java; /* the mark of a record whose clear text waited for it (l7/java.bpf.h); 0 */
	struct l7_data r;
	__u8 bytes[2 * L7_CHUNK];
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, __u32);
	__type(value, struct walk);
} walks SEC(".maps");

static __always_inline struct l7_tally *tally_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&tally, &zero);
}

#define COUNT(field_, n_)                          \
	do {                                       \
		struct l7_tally *t_ = tally_get(); \
		if (t_)                            \
			t_->field_ += (n_);        \
	} while (0)

/* The compiler knows a bound that the verifier of 5.10 does not see, and would leave the check of
 * it away. */
#define FORGET_BOUNDS(n_) asm volatile("" : "+r"(n_))

/* Older kernels (5.10) let a loop go back by a jump alone, and not by running on into its first
 * instruction: this is a jump. tests/check/test_bpf_stack.py finds where it is needed. */
#define LOOP_BACK(i_) ({ asm volatile("goto +0" : "+r"(i_)); })

static __always_inline struct walk *walk_get(__u32 slot)
{
	return bpf_map_lookup_elem(&walks, &slot);
}

static __always_inline void walk_flush(struct walk *w, __u32 len, __u32 size)
{
	__u64 room = len;

	w->r.len = len;
	w->r.size = size;
	FORGET_BOUNDS(room);
	room &= 2 * L7_CHUNK - 1;
	COUNT(records, 1);
	if (w->failed || bpf_ringbuf_output(&records, &w->r, sizeof(w->r) + room, w->wake)) {
		w->failed = 1;
		COUNT(lost, 1);
		COUNT(lost_bytes, size);
	}
	if (!(w->r.h.flags & L7_F_TOGETHER))
		w->r.came_ns = 0;
	w->r.pos += size;
	w->total -= size;
	w->fill = 0;
}

static __always_inline long walk_read(const struct walk *w, void *to, __u32 n, __u64 at)
{
	return w->kernel ? bpf_probe_read_kernel(to, n, (const void *)at) :
			   bpf_probe_read_user(to, n, (const void *)at);
}

#endif
