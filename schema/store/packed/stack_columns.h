/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stack_columns: the columns base, keep, leaf and tail of table `stack` (stacktree.h) together:
 * stacks in order of a tree, each as what it has that the one before it has not.
 *
 *   1. Three columns of numbers (column.h), each behind its length in bytes (LEB128): of each
 *      stack how many frames at the end of the one before it it has not; of each how many it has
 *      beyond those, less one; and all these frames, one after the other.
 *   2. A frame is its distance to the last one that came after the same caller's frame, or to that
 *      caller if there was no such frame. "The same" goes by 18 bits of a hash: what two callers
 *      share costs bytes, no more.
 *   3. The base of a stack is the latest one before it that brought in, or ended in, the frame at
 *      depth `keep`; 0 where that is 0.
 *   4. Stack i is row i, from 1 on. Frames are below 2^32.
 *
 * Pure functions over bytes; nothing aborts.
 */
#ifndef SONDE_STORE_PACKED_STACK_COLUMNS_H
#define SONDE_STORE_PACKED_STACK_COLUMNS_H

#include "schema/store/packed/column.h"

struct stackcolumns {
	struct column base, keep, leaf, tail;
};

/* *out is the caller's (free). -EINVAL: they are not in such an order, or no stacks; -ENOMEM. */
int stack_columns_encode(const struct stackcolumns *c, uint8_t **out, size_t *len);
/* A stack: the first `keep` frames of `base`, then these, the last of which is its leaf. */
struct stackcolumns_stack {
	uint32_t id, base;
	size_t keep, n; /* n: at least 1 */
	const uint32_t *frames;
};
struct stackcolumns_walk {
	/* Called once, before the first: how many frames they have together. 0, or what ends it. */
	int (*begin)(void *ctx, size_t frames);
	int (*each)(void *ctx, const struct stackcolumns_stack *s); /* the same */
	void *ctx;
};
/* Exactly n stacks in order of their ids, without what they come to in memory. What `begin` or
 * `each` said; -EBADMSG: they are not n stacks, which may be seen after the last; -ENOMEM. */
int stack_columns_walk(const void *data, size_t len, size_t n, const struct stackcolumns_walk *w);
/* The same as columns. Exactly n stacks, to be released one by one. -EBADMSG: they are not;
 * -ENOMEM. */
int stack_columns_decode(const void *data, size_t len, size_t n, struct stackcolumns *out);
void stack_columns_release(struct stackcolumns *c);

#endif
