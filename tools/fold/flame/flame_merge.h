/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_merge: the first step of flame_tree: frames that look the same get one number, siblings
 * with the same number become one node, in the order of the fold: parents before children.
 */
#ifndef SONDE_TOOLS_FLAME_MERGE_H
#define SONDE_TOOLS_FLAME_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"

/* What a person sees of a frame -> its number in tree->frames. A zeroed `of` is right to begin
 * with. */
struct flame_looks {
	struct idmap of;
	struct flame_tree *tree;
	size_t cap;
	bool by_line;
};

struct flame_merged {
	const struct fold_node
		*nodes; /* the fold's own where no two siblings look the same, else `made` */
	size_t n;
	uint32_t *look; /* by frame of those nodes */
	uint32_t *of;   /* by node of the fold: which one it became; NULL: itself */
	struct fold_node *made;
	uint32_t smaller;  /* look of what the fold itself left out (fold.smaller), 0: nothing */
	uint32_t no_stack; /* look of what has no stack, 0: nothing has none. It is the root's own,
			      or (made) its child's */
};

extern const struct fold_frame FLAME_NO_STACK; /* what stacks without frames are shown as */

/* A frame that looks like no other. */
uint32_t flame_looks_new(struct flame_looks *l, const struct fold_frame *fr);
/* All that a fold has, into an empty tree's frames. `look`: by frame of the fold, zeroed;
 * *no_stack: as in flame_merged. False: two frames share one. */
bool flame_looks_all(struct flame_looks *l, const struct fold *f, uint32_t *look,
		     uint32_t *no_stack);
/* The fold must outlive it. */
void flame_merge(struct flame_merged *m, struct flame_looks *l, const struct fold *f);
void flame_merged_release(struct flame_merged *m);

#endif
