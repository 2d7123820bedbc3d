/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8flow: which functions are surely running at an instruction of optimised code. Pure over the
 * code's bytes.
 *
 * V8 describes (for deoptimising) only some instructions: a jump to an exit, and a call; a
 * description is a chain of functions, outermost first, each caller with the place of its call. The
 * instructions between have none. But the described ones happen in the order of the program, so:
 *
 * 1. What a description that was last before an instruction and one that comes next after it, by
 *    any way, have in common at their beginnings is running at the instruction: without a loop
 *    nothing leaves an inlined call and comes into the same one again. (From V8 12 on the body of a
 *    loop may have been copied: there the next one must be further on in the same function.)
 * 2. A loop asks in each turn whether it is to stop (v8flow_graph.h); the call that this leads to
 *    describes the function that the loop is of. Within a loop that function is running. A way that
 *    comes to the head of a loop ends there, with the loop's own description.
 * 3. A loop is a jump back to what is on every way to it (its head). Code with other circles, or
 *    with bytes that are no instruction, is not followed.
 *
 * Of the innermost of those functions no place is known; and a function may have been inlined there
 * that has nothing described: it is not told.
 */
#ifndef SONDE_RUNTIMES_V8FLOW_H
#define SONDE_RUNTIMES_V8FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/runtimes/v8/v8tables.h"

#define V8_FLOW_BYTES_MAX (256u << 10) /* longer code is not followed */
#define V8_FLOW_NONE      UINT32_MAX

struct v8flow_chain {
	struct v8_inlined frames[V8_INLINED_MAX]; /* outermost first */
	size_t n;                                 /* 0: not known */
};

struct v8flow_code {
	const uint8_t *bytes;
	size_t len;     /* from the function's first instruction to the first of its exits */
	size_t all;     /* and with what stands behind: exits, then tables of where jumps lead */
	uint64_t start; /* the address of the first instruction */
	uint32_t exits; /* how many follow there that jumps lead to; the k-th has description k */
	uint32_t exit_bytes; /* of each */
	bool copies;         /* bodies of loops may have been copied */
	void *ctx;
	/* The description of the call that returns to this offset; negative: none. */
	int64_t (*of_call)(void *ctx, uint32_t offset);
	/* A description's chain. */
	void (*read)(void *ctx, uint32_t description, struct v8flow_chain *out);
};

struct v8flow;
/* NULL: it cannot be followed. Nothing of *c is kept but what is asked of it in v8flow_at. */
struct v8flow *v8flow_new(const struct v8flow_code *c);
void v8flow_free(struct v8flow *f); /* NULL is fine */
/* What is running at the instruction that begins at `offset`; the last frame's place is V8_NOWHERE.
 * n is 0: nothing but the function that was compiled is known. */
void v8flow_at(struct v8flow *f, const struct v8flow_code *c, uint32_t offset,
	       struct v8flow_chain *out);

#endif
