/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacktree: how stacks are stored in a segment (docs/decisions/0040-stack-dictionary.md);
 * write/commit_dict.c writes them.
 *
 * A row of `stack` is the first `keep` frames of an earlier stack `base`, then `tail`, then `leaf`;
 * base is the stack that brought in the frame at depth `keep`, so that chains are as short as the
 * stacks branch. There is no index for look-up: a writer knows what it put there itself. Two
 * writers, or one before and after its epoch, may put the same stack twice, which is harmless,
 * because queries compare by content. base < id always.
 *
 * In memory, on both sides, stacks are a tree of (parent, frame).
 */
#ifndef SONDE_STORE_READ_STACKTREE_H
#define SONDE_STORE_READ_STACKTREE_H

#include <stddef.h>
#include <stdint.h>

struct sqlite3;

struct stacktree {
	uint32_t *parent, *frame; /* node i is its parent's frames, then frame[i]; parent[i] < i; 0:
				     the empty stack */
	size_t n, cap;
	uint32_t *node;  /* by stack id: its last node */
	size_t n_stacks; /* greatest id + 1 */
};
/* All stacks of a segment as a tree. The arrays are the caller's (free). A SQLite code;
 * SQLITE_CORRUPT for rows that no writer of ours wrote. */
int stacktree_load(struct sqlite3 *db, struct stacktree *out);
/* The same of those that are named (0: none), and of those that they begin as; all others have the
 * empty stack as their last node. */
int stacktree_load_some(struct sqlite3 *db, const uint32_t *ids, size_t n, struct stacktree *out);
void stacktree_free(struct stacktree *t);
/* Room for one more node. */
void stacktree_grow(struct stacktree *t);

#endif
