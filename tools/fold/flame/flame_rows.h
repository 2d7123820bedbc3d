/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_rows: the leaves of a fold as the page gets them: what was counted, by node of the flame
 * tree, owner (a thread of a process) and slot of time. From these the page computes every view: a
 * range, one container, callers first.
 */
#ifndef SONDE_TOOLS_FLAME_ROWS_H
#define SONDE_TOOLS_FLAME_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/fold/flame/flame_tree.h"
#include "tools/fold/fold.h"

struct flame_owner {
	uint32_t process; /* index into the fold's processes */
	uint32_t tid;
	const char *thread; /* borrowed */
};

struct flame_row {
	uint32_t node, owner, slot;
	uint64_t n, value; /* how many; what is drawn, in the fold's unit */
};

struct flame_rows {
	const struct fold *f; /* borrowed: whose processes the owners are */
	struct flame_row *rows;
	size_t n_rows; /* by node, owner, slot; each of these once */
	struct flame_owner *owners;
	size_t n_owners;
	int64_t slots_from_ns, slot_ns;
	uint32_t n_slots;     /* the fold's slices, or pairs of them; 0: not told apart by time */
	uint64_t *covered_ns; /* of each slot, while something recorded */
	struct flame_row *spare; /* between begin and end: room to sort into */
	uint64_t means;
};

/* The part that does not need the tree: it may be made by another thread meanwhile. */
void flame_rows_begin(struct flame_rows *r, const struct fold *f);
/* Of a difference (fold_join): the leaves of one side, in that side's slots. Values of a gauge are
 * divided by `means` (how many moments were added): 0 of all else. */
struct flame_rows_side {
	const struct fold *f; /* as it was joined */
	bool base;
	uint64_t means;
};
void flame_rows_begin_side(struct flame_rows *r, const struct fold *both,
			   const struct flame_rows_side *side);
/* `t` is the tree of that fold. Where there are more than max_rows, slots are joined in pairs until
 * there are not, or there is one slot. */
void flame_rows_end(struct flame_rows *r, const struct flame_tree *t, size_t max_rows);
void flame_rows_release(struct flame_rows *r);

#endif
