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
/* at[i]: the native frame of script frame i, which belongs to chunk[i] of `chunks`. `cut`: there
 * are more than these. */
void chunks_place(const struct chunks_loop *loop, const struct runtime_native *n,
		  const uint32_t *chunk, size_t frames, uint32_t chunks, bool cut, size_t *at);

#endif
