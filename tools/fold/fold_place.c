/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_place: stacks become nodes when all that have something are known. A stack's caller has the
 * smaller id. Into a fold that has nodes they go one by one, in the order of ids. Into an empty
 * one, which is what a window within one segment is, they go caller by caller: what is the same
 * callee is found among those at hand by a mark at its frame, without a search. A callee is a slot
 * at first, and a node when its turn comes: nodes come depth first, so that what is near in the
 * tree is near in memory.
 */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_parts.h"

#define MORE 0x80000000u /* of a slot's first stack: there are others */

struct placing {
	struct folding *f;
	uint32_t *node; /* by stack: its slot; until its caller is done: the caller's next callee
			   that has something, 0: none */
	uint32_t *head; /* by stack: its first callee that has something */
	uint32_t *same; /* by stack: another one of the same slot, 0: none */
	struct slot {
		uint32_t frame;
		uint32_t node;  /* its caller's; its own when its turn has come */
		uint32_t first; /* a stack of it, MORE: and others */
	} * slots;
	uint32_t n_slots;
	struct mark {
		uint32_t by, slot;
	} * mark; /* by frame of the fold: whose callee it was last (+ 1), and its slot */
};

/* --- one by one --- */

/* Callers of what has something have it too. How many there are. */
static size_t find_callers(const struct store_dict *d, uint32_t *node)
{
	size_t n = 0;

	for (size_t i = d->n_stacks; i-- > 1;)
		if (node[i]) {
			node[d->stack_parent[i]] = 1;
			n++;
		}
	return n;
}

static void into_nodes(struct folding *f)
{
	const struct store_dict *d = f->dict;
	uint32_t *node = f->seg_plain;

	fold_expect_nodes(f->b, find_callers(d, node));
	node[0] = 0;
	for (size_t i = 1; i < d->n_stacks; i++)
		if (node[i])
			node[i] = fold_child_of(f, node[d->stack_parent[i]], (uint32_t)i);
}

/* --- caller by caller --- */

/* The same, and lists of callees in order of their ids. */
static size_t list_callees(struct placing *p)
{
	const struct store_dict *d = p->f->dict;
	size_t n = 0;

	for (size_t i = d->n_stacks; i-- > 1;) {
		uint32_t up = d->stack_parent[i];

		if (!p->node[i])
			continue;
		p->node[up] = 1;
		p->node[i] = p->head[up];
		p->head[up] = (uint32_t)i;
		n++;
	}
	return n;
}

/* Behind `before`, as another stack of the same slot. */
static void also(struct placing *p, uint32_t slot, uint32_t before, uint32_t stack)
{
	p->same[stack] = p->slots[slot].first & MORE ? p->same[before] : 0;
	p->same[before] = stack;
	p->slots[slot].first |= MORE;
	p->node[stack] = slot;
}

/* A callee of `caller`, which is in the slot `at`. */
static void place(struct placing *p, uint32_t at, uint32_t caller, uint32_t stack)
{
	struct folding *f = p->f;
	uint32_t frame = f->dict->stack_frame[stack];
	struct mark *m;

	if (fold_leaves_out(f, stack)) {
		also(p, at, caller, stack); /* its callees are the caller's */
		return;
	}
	frame = fold_frame_of(f, frame);
	m = &p->mark[frame];
	if (m->by == at + 1) {
		also(p, m->slot, p->slots[m->slot].first & ~MORE, stack);
		return;
	}
	*m = (struct mark){at + 1, p->n_slots};
	p->slots[p->n_slots] = (struct slot){frame, p->slots[at].node, stack};
	p->node[stack] = p->n_slots++;
}

static void place_callees(struct placing *p, uint32_t at)
{
	uint32_t stack = p->slots[at].first & ~MORE;

	do {
		for (uint32_t k = p->head[stack], next; k; k = next) {
			next = p->node[k];
			place(p, at, stack, k);
		}
		stack = p->slots[at].first & MORE ? p->same[stack] : 0;
	} while (stack);
}

/* The root's is there. */
static void take_turns(struct placing *p, size_t n)
{
	cleanup_free uint32_t *todo = mem_array(n + 1, sizeof(*todo));
	size_t left = 1;

	p->n_slots = 1;
	while (left) {
		uint32_t at = todo[--left], from = p->n_slots;
		struct slot *s = &p->slots[at];

		if (at)
			s->node = fold_add_child(p->f->b, s->node, s->frame);
		place_callees(p, at);
		for (uint32_t k = p->n_slots; k-- > from;)
			todo[left++] = k;
	}
}

static void into_empty(struct folding *f)
{
	const struct store_dict *d = f->dict;
	struct placing p = {
		.f = f, .node = f->seg_plain, .head = mem_array(d->n_stacks + 1, sizeof(*p.head))};
	size_t n = list_callees(&p);

	fold_expect_nodes(f->b, n);
	fold_expect_frames(f->b, d->n_frames < n ? d->n_frames : n);
	p.same = mem_array(d->n_stacks + 1, sizeof(*p.same));
	p.slots = mem_array(n + 1, sizeof(*p.slots));
	p.mark = mem_array(f->pub->n_frames + d->n_frames + 1, sizeof(*p.mark));
	p.node[0] = 0;
	take_turns(&p, n);
	for (size_t i = 1; i < d->n_stacks; i++)
		p.node[i] = p.slots[p.node[i]].node;
	free(p.head);
	free(p.same);
	free(p.slots);
	free(p.mark);
}

void fold_place_stacks(struct folding *f)
{
	if (f->opts.flat)
		fold_sum_functions(f);
	else if (f->sparse)
		(f->late ? fold_place_largest : fold_place_series)(f);
	else
		(f->pub->n_nodes == 1 ? into_empty : into_nodes)(f);
}

static uint32_t node_of(const struct folding *f, uint32_t at)
{
	uint64_t place;

	if (!f->by_stack)
		return f->seg_series[at].node;
	if (!f->sparse)
		return f->seg_plain[at];
	return idmap_get(&f->seg_place, at, &place) ? f->seg_stacks[place].node : 0;
}

void fold_point_at_nodes(struct folding *f)
{
	for (size_t i = 0; i < f->n_seg_stacks && f->late && !f->opts.flat; i++) {
		const struct seg_stack *sum = &f->seg_stacks[i];

		fold_add_to_node(f, f->sparse ? sum->node : f->seg_plain[sum->stack], sum->n,
				 sum->ns, sum->variance);
	}
	for (size_t i = f->first_leaf; i < f->pub->n_leaves; i++)
		f->pub->leaves[i].node = node_of(f, f->pub->leaves[i].node);
	for (size_t i = f->first_cell; i < f->pub->n_cells; i++)
		f->pub->cells[i].node = node_of(f, f->pub->cells[i].node);
}
