/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shadow: the calls that are under way in a single-stepped thread, from what each step did to RSP
 * and RIP.
 *
 * 1. A step that lowered RSP by 8 and left the address behind the instruction there was a call.
 * 2. An entry is over when RSP is above its place on the same stack (return, longjmp, unwinding by
 *    an exception).
 * 3. Another stack (swapcontext, sigaltstack) has its own entries; a signal's entry remembers the
 *    pc it interrupted and which stack that was on.
 */
#ifndef SONDE_TESTS_UNWIND_SHADOW_H
#define SONDE_TESTS_UNWIND_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHADOW_DEPTH  4096
#define SHADOW_STACKS 8

struct shadow_entry {
	uint64_t place; /* where on the stack the return address is */
	uint64_t pc;    /* the return address, or what a signal interrupted */
	bool signal;    /* pc was interrupted; the handler returns to a trampoline first */
	int below;      /* signal: the stack that was interrupted */
};

struct shadow_stack {
	size_t n;
	struct shadow_entry at[SHADOW_DEPTH];
};

struct shadow {
	struct shadow_stack stack[SHADOW_STACKS];
	int n, now; /* now: where RSP points */
};

static inline void shadow_push(struct shadow *s, struct shadow_entry e)
{
	struct shadow_stack *k = &s->stack[s->now];

	if (k->n < SHADOW_DEPTH)
		k->at[k->n++] = e;
}

/* What is below `sp` is over. */
static inline void shadow_drop(struct shadow *s, uint64_t sp)
{
	struct shadow_stack *k = &s->stack[s->now];

	while (k->n && k->at[k->n - 1].place < sp)
		k->n--;
}

#endif
