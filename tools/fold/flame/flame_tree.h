/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_tree: a fold as it is shown: frames told apart by what a person sees of them (name, module,
 * origin, inlined; if asked for, file and line), not by address; siblings that look the same are
 * one node; children hottest first, then by name. Nodes are in preorder, so that the subtree of i
 * is [i, end).
 */
#ifndef SONDE_TOOLS_FLAME_TREE_H
#define SONDE_TOOLS_FLAME_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "tools/fold/fold.h"

struct flame_node {
	uint32_t frame; /* index into frames; node 0 is the root, its frame is 0 */
	uint32_t depth; /* root: 0 */
	uint32_t parent;
	uint64_t self_ns, total_ns, self_samples, total_samples;
	double self_variance, total_variance; /* as in fold_node */
};

struct flame_tree {
	struct fold_frame *frames;
	size_t n_frames; /* copies; their strings are the fold's, or constants */
	struct flame_node *nodes;
	size_t n_nodes;
	uint32_t *node_of; /* by node of the fold: where its own samples are */
	size_t elided;     /* nodes left out, their time kept in frames called "(smaller frames)";
			      of flame_tree_init_least in none */
};

/* max_nodes 0: all. The fold must outlive the tree. */
void flame_tree_init(struct flame_tree *t, const struct fold *f, size_t max_nodes, bool by_line);
/* Nodes whose total is at least that, and the root; what the others have is in their callers'
 * totals alone. */
void flame_tree_init_least(struct flame_tree *t, const struct fold *f, uint64_t least_ns);
void flame_tree_release(struct flame_tree *t);

#endif
