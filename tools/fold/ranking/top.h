/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: self and total of each function of a flame tree. A function is (name, module); a recursion
 * counts once in total.
 */
#ifndef SONDE_TOOLS_TOP_H
#define SONDE_TOOLS_TOP_H

#include "tools/fold/flame/flame_tree.h"

struct top_row {
	uint32_t frame; /* one of its frames */
	uint64_t self_ns, total_ns, self_samples, total_samples;
	bool inlined; /* also as a caller */
};

struct top {
	struct top_row *rows; /* the most self time first, then the most total, then by name */
	size_t n_rows;
	uint32_t *row_of; /* by frame of the tree, UINT32_MAX for groups and the root */
};

void top_init(struct top *top, const struct flame_tree *t);
/* The same of a fold's sums of functions (fold_opts.flat): *t, zeroed, gets the frames and no
 * nodes. */
void top_of_flat(struct top *top, struct flame_tree *t, const struct fold *f);
void top_release(struct top *top);

#endif
