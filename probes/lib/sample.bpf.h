/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sample: what the programs of perf events share: their ring, their tally, and the pid set's hooks.
 * Records enter the ring without a wake-up: the loader reads on a timer, and is called only when
 * the ring is half full. The program includes probes/lib/stack.bpf.h before it.
 */
#ifndef SONDE_PROBES_SAMPLE_BPF_H
#define SONDE_PROBES_SAMPLE_BPF_H

#include "probes/lib/scope.bpf.h"
#include "probes/lib/stack.bpf.h"
#include "probes/lib/tally.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 256 * 1024);
} events SEC(".maps");

const volatile __u32 ring_bytes = 256 * 1024; /* of `events` */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample_tally);
} tally SEC(".maps");

static __always_inline void sample_tally_run(struct sample_tally *t, __u64 ns)
{
	__u32 slot = 0;

	t->run_ns += ns;
	if (ns >> 16) {
		ns >>= 16;
		slot += 16;
	}
	if (ns >> 8) {
		ns >>= 8;
		slot += 8;
	}
	if (ns >> 4) {
		ns >>= 4;
		slot += 4;
	}
	if (ns >> 2) {
		ns >>= 2;
		slot += 2;
	}
	if (ns >> 1)
		slot += 1;
	t->slot[slot & (SAMPLE_TALLY_SLOTS - 1)]++;
}

/* An event found no room in a table. */
static __always_inline void sample_no_room(void)
{
	__u32 zero = 0;
	struct sample_tally *t = bpf_map_lookup_elem(&tally, &zero);

	if (!t)
		return;
	t->seen++;
	t->no_room++;
}

/* Sends a record that says more about samples. One that finds no room is lost, too. */
static __always_inline void sample_note(void *record, __u64 size, __u64 flags)
{
	struct sample_tally *t;
	__u32 zero = 0;

	if (!bpf_ringbuf_output(&events, record, size, flags))
		return;
	t = bpf_map_lookup_elem(&tally, &zero);
	if (!t)
		return;
	t->seen++;
	t->ring_full++;
}

static __always_inline long sample_send(struct stack_scratch *s)
{
	__u64 flags = bpf_ringbuf_query(&events, BPF_RB_AVAIL_DATA) > ring_bytes / 2 ?
			      BPF_RB_FORCE_WAKEUP :
			      BPF_RB_NO_WAKEUP;

	return bpf_ringbuf_output(&events, &s->ev, stack_event_size(s), flags);
}

/* Takes the stack of `task`, which is current, sends it, and counts it as `n`. `s` and `t`: of this
 * CPU. */
static __always_inline void sample_take(struct stack_scratch *s, struct sample_tally *t,
					struct task_struct *task, struct arch_perf_event_data *ctx,
					__u64 n)
{
	t->seen += n;
	if (stack_fill(s, task, ctx, ctx))
		t->late += n;
	else if (sample_send(s))
		t->ring_full += n;
	else
		t->sent += n;
}

/* A child of `-- command`'s. */
static __always_inline void sample_fork(struct task_struct *parent, struct task_struct *child)
{
	__u32 zero = 0;
	struct sample_tally *t;

	if (scope_fork(parent, child))
		return;
	t = bpf_map_lookup_elem(&tally, &zero);
	if (t)
		t->unfollowed++;
}

#endif
