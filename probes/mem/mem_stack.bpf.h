/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mem_stack: the place where the programs of this family build a sample with its stack. Each CPU
 * has one: a program that an interrupt runs within another one finds it taken.
 */
#ifndef SONDE_PROBES_MEM_STACK_BPF_H
#define SONDE_PROBES_MEM_STACK_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "probes/lib/sample.bpf.h"

struct stack_room {
	__u32 busy; /* a program of this family builds a stack */
	__u32 unused;
	__u64 at; /* where the current program's arguments are */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_room);
} stack_rooms SEC(".maps");

/* NULL: another program of this CPU is at it. Else the caller clears `busy` afterwards. */
static __always_inline struct stack_room *stack_free(void)
{
	struct stack_room *room;
	__u32 zero = 0;

	room = bpf_map_lookup_elem(&stack_rooms, &zero);
	if (!room || room->busy)
		return NULL;
	room->busy = 1;
	return room;
}

/* Interrupts run on other stacks than threads, and a raw tracepoint's arguments are on the stack of
 * who calls it. (The CPU's preempt_count would say it, but not each kernel tells programs where
 * that is.) */
static __always_inline bool serves_interrupt(struct task_struct *task, struct stack_room *room,
					     void *ctx)
{
	__u64 stack = (__u64)BPF_CORE_READ(task, stack);

	*(void *volatile *)&room->at = ctx; /* what is read back is a number, for the verifier */
	return *(volatile __u64 *)&room->at - stack >= ARCH_THREAD_SIZE;
}

struct mem_stack {
	struct stack_scratch *s;
	struct sample_tally *t;
	struct stack_room *room;
};

/* false: it is taken, and `n` events are lost, as if there were no room in the ring. Else it is the
 * caller's until mem_stack_end. */
static __always_inline bool mem_stack_begin(struct mem_stack *x, __u64 n)
{
	__u32 zero = 0;

	x->t = bpf_map_lookup_elem(&tally, &zero);
	x->s = bpf_map_lookup_elem(&scratch, &zero);
	if (!x->t || !x->s)
		return false;
	x->room = stack_free();
	if (x->room)
		return true;
	x->t->seen += n;
	x->t->ring_full += n;
	return false;
}

/* It was begun at its event's time. */
static __always_inline void mem_stack_end(const struct mem_stack *x)
{
	x->room->busy = 0;
	sample_tally_run(x->t, bpf_ktime_get_boot_ns() - x->s->ev.time_ns);
}

#endif
