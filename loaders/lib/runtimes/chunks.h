/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chunks: where script frames stand of which nothing lies in the native stack. One call of an
 * interpreter's loop runs a chunk of them; the k-th chunk stands for the k-th native frame in the
 * loop's code, counted from the innermost. Where there are not as many calls of the loop as chunks
 * (code of a JIT ran some, or one is just being entered or left), a native stack that is whole has
 * all of them with its outermost call of the loop: their order is right, and nothing is claimed of
 * the native frames between. One that could not be followed to its root has those that are left
 * over last.
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

/* Does a native frame lie in the loop? */
bool chunks_in_loop(const struct chunks_loop *loop, const struct runtime_native *n);
/* at[i]: the native frame of script frame i, which belongs to chunk[i] of `chunks`. `cut`: there
 * are more than these. */
void chunks_place(const struct chunks_loop *loop, const struct runtime_native *n,
		  const uint32_t *chunk, size_t frames, uint32_t chunks, bool cut, size_t *at);

#endif
