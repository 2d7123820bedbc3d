/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v8flow: which functions are certainly running at an instruction of optimised code. Pure over the
 * code's bytes.
 *
 * V8 describes (for deoptimising) only some instructions: a jump to an exit, and a call; a
 * description is a chain of functions, outermost first, each caller with the place of its call. The
 * instructions between have none. But the described ones happen in the order of the program, so:
 *
 * 1. Take the description that was last before an instruction and those that can come next after
 *    it, on any path: the functions that they share at their beginnings are running at the
 *    instruction, because without a loop nothing leaves an inlined call and enters the same one
 *    again. (From V8 12 on the body of a loop may have been copied: then the next one must be
 *    further on in the same function.)
 * 2. A loop checks in each iteration whether it must stop (v8flow_graph.h); the call on that path
 *    describes the function of the loop. Within a loop that function is running. A path that
 *    reaches the head of a loop ends there, with the loop's own description.
 * 3. A loop is a jump back to an instruction that is on every path to it (its head). Code with
 *    other cycles, or with bytes that are not an instruction, is not followed.
 *
 * The place in the innermost of these functions is unknown; and if a function was inlined there
 * that has nothing described, it is not reported.
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
	size_t all;     /* including what follows the code: exits, then jump tables */
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
/* NULL: it cannot be followed. Keeps nothing of *c but what v8flow_at needs. */
struct v8flow *v8flow_new(const struct v8flow_code *c);
void v8flow_free(struct v8flow *f); /* NULL is fine */
/* What is running at the instruction that begins at `offset`; the last frame's place is V8_NOWHERE.
 * n is 0: nothing but the function that was compiled is known. */
void v8flow_at(struct v8flow *f, const struct v8flow_code *c, uint32_t offset,
	       struct v8flow_chain *out);

#endif
