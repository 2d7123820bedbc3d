/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacktree: how stacks stand in a segment. The one place that knows the form (docs/decisions/0040-stack-dictionary.md):
 * a tree of (parent, frame) without any index for look-up. A writer knows the nodes that it put there itself; two
 * writers, or one before and after its epoch, may put the same node twice, which is harmless, because whoever asks
 * compares by content. Parents are written before children, so their ids are smaller.
 */
#ifndef SONDE_STORE_STACKTREE_H
#define SONDE_STORE_STACKTREE_H

#include <stddef.h>
#include <stdint.h>

struct commit;
struct sqlite3;

/* The id of a node in the segment, with its ancestors and their frames written if need be. 0: see c->rc. */
uint32_t stacktree_put(struct commit *c, uint32_t node);
/* All stacks of a segment, by id: stack i is (parent[i], frame[i]). The arrays are the caller's. A SQLite code. */
int stacktree_load(struct sqlite3 *db, uint32_t **parent, uint32_t **frame, size_t *n);

#endif
