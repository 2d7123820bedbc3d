/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks: places script frames that leave no trace in the native stack. One call of an
 * interpreter's loop runs a chunk of them; the k-th chunk belongs to the k-th native frame in the
 * loop's code, counted from the innermost. If there are fewer or more calls of the loop than chunks
 * (JIT code ran some, or a call is just beginning or ending), a complete native stack gets all of
 * them at its outermost call of the loop: their order is right, and their place among the native
 * frames stays open. In a native stack that could not be followed to its root, the remaining chunks
 * come last.
 */
#ifndef SONDE_RUNTIMES_CHUNKS_H
#define SONDE_RUNTIMES_CHUNKS_H

#include <linux/types.h>

#include "loaders/lib/runtimes/script.h"

struct chunks_loop { /* the loop's code; end 0: no more */
	const __u64 *start, *end;
	unsigned ranges;
	uint64_t bias;
};

/* Is a native frame in the loop? */
bool chunks_in_loop(const struct chunks_loop *loop, const struct runtime_native *n);
/* The frames of a walk, innermost first; zeroed at its begin. */
struct chunks {
	uint32_t of[SCRIPT_STACK_MAX]; /* frame -> its chunk */
	size_t n;                      /* frames */
	size_t closed;                 /* of them: those of chunks that are closed */
	uint32_t count;                /* chunks that are closed */
	bool full;                     /* there are more frames than these */
};

/* One more frame, number c->n - 1. false: there is no room. */
bool chunks_add(struct chunks *c);
void chunks_close(struct chunks *c);
/* `whole`: the walk came to the stack's end. If not, what does not close has no place; functions of
 * C that no script called come last. */
void chunks_end(struct chunks *c, bool whole);
/* at[i]: the native frame of script frame i. */
void chunks_place(const struct chunks *c, const struct chunks_loop *loop,
		  const struct runtime_native *n, size_t at[SCRIPT_STACK_MAX]);

#endif
