/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_place: stacks become nodes when all that have something are known. A stack's caller has the smaller id. Into a fold
 * that has nodes they go one by one, in the order of ids. Into an empty one, which is what a window within one segment is, they
 * go caller by caller: what is the same callee is found among those at hand by a mark at its frame, without a search.
 */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/fold_nodes.h"

#define MORE 0x80000000u /* of a node's first stack: there are others */

struct placing {
	struct folding *f;
	uint32_t *node;              /* by stack; until its caller is done: the caller's next callee that has something, 0: none */
	uint32_t *head;              /* by stack: its first callee that has something */
	uint32_t *first, *same;      /* by node: a stack that became it, MORE: and by that: another one, 0: none */
	struct mark { uint32_t by, node; } *mark; /* by frame of the fold: whose callee it was last (+ 1), and its node */
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

/* Behind `before`, as another stack of the same node. */
static void also(struct placing *p, uint32_t node, uint32_t before, uint32_t stack)
{
	p->same[stack] = p->first[node] & MORE ? p->same[before] : 0;
	p->same[before] = stack;
	p->first[node] |= MORE;
}

/* A callee of `caller`, which became the node `at`. */
static void place(struct placing *p, uint32_t at, uint32_t caller, uint32_t stack)
{
	struct folding *f = p->f;
	uint32_t frame = f->dict->stack_frame[stack];
	struct mark *m;

	p->node[stack] = at;
	if (f->opts.no_inline && f->dict->frames[frame].inlined) {
		also(p, at, caller, stack); /* its callees are the caller's */
		return;
	}
	frame = fold_frame_of(f, frame);
	m = &p->mark[frame];
	if (m->by == at + 1) {
		also(p, m->node, p->first[m->node] & ~MORE, stack);
	} else {
		*m = (struct mark){at + 1, fold_add_child(f->b, at, frame)};
		p->first[m->node] = stack;
	}
	p->node[stack] = m->node;
}

static void place_callees(struct placing *p, uint32_t at)
{
	uint32_t stack = p->first[at] & ~MORE;

	do {
		for (uint32_t k = p->head[stack], next; k; k = next) {
			next = p->node[k];
			place(p, at, stack, k);
		}
		stack = p->first[at] & MORE ? p->same[stack] : 0;
	} while (stack);
}

static void into_empty(struct folding *f)
{
	const struct store_dict *d = f->dict;
	struct placing p = {.f = f, .node = f->seg_plain, .head = mem_array(d->n_stacks + 1, sizeof(*p.head))};
	size_t n = list_callees(&p), left = 1;
	cleanup_free uint32_t *todo = mem_array(n + 1, sizeof(*todo)); /* depth first: what is near in the tree is near in memory */

	fold_expect_nodes(f->b, n);
	fold_expect_frames(f->b, d->n_frames < n ? d->n_frames : n);
	p.same = mem_array(d->n_stacks + 1, sizeof(*p.same));
	p.first = mem_array(n + 1, sizeof(*p.first));
	p.mark = mem_array(f->pub->n_frames + d->n_frames + 1, sizeof(*p.mark));
	p.node[0] = 0;
	while (left) {
		size_t from = f->pub->n_nodes;

		place_callees(&p, todo[--left]);
		for (size_t k = f->pub->n_nodes; k-- > from;)
			todo[left++] = (uint32_t)k;
	}
	free(p.head);
	free(p.same);
	free(p.first);
	free(p.mark);
}

void fold_place_stacks(struct folding *f, size_t first_leaf, size_t first_cell)
{
	const uint32_t *node = f->seg_plain;

	(f->pub->n_nodes == 1 ? into_empty : into_nodes)(f);
	for (size_t i = 0; i < f->dict->n_series; i++)
		f->seg_series[i].node = node[f->seg_series[i].node];
	for (size_t i = first_leaf; i < f->pub->n_leaves; i++)
		f->pub->leaves[i].node = node[f->pub->leaves[i].node];
	for (size_t i = first_cell; i < f->pub->n_cells; i++)
		f->pub->cells[i].node = node[f->pub->cells[i].node];
}
