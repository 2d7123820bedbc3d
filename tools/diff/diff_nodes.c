/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_nodes: two folds as one tree of functions. Callees are taken caller by caller, of both sides
 * at once: which are the same function is known by a mark at it, without a search. Two windows of
 * one archive, folded by function, are one tree already.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"

const struct fold_frame DIFF_NO_STACK = {.name = "[no stack]",
					 .module = "",
					 .module_path = "",
					 .build_id = "",
					 .file = "",
					 .named = true,
					 .origin = FOLD_UNKNOWN};

uint32_t diff_function_of(struct diffing *d, const struct fold_frame *fr)
{
	uint64_t h = hash_str(HASH_SEED, fr->name), i;

	if (!d->pub.names_only)
		h = hash_str(h, fr->module);
	for (; idmap_get(&d->function_of, h, &i); h = hash_u64(h, 1)) {
		struct diff_function *f = &d->pub.functions[i];

		if (!strcmp(f->frame->name, fr->name) &&
		    (d->pub.names_only || !strcmp(f->frame->module, fr->module))) {
			f->inlined &= fr->inlined;
			return (uint32_t)i;
		}
	}
	mem_grow(d->pub.functions, d->pub.n_functions, d->cap_functions);
	idmap_set(&d->function_of, h, d->pub.n_functions);
	d->pub.functions[d->pub.n_functions] =
		(struct diff_function){.frame = fr, .inlined = fr->inlined};
	return (uint32_t)d->pub.n_functions++;
}

/* --- one tree --- */

/*
 * Nodes of the folds are numbered through: those of the second side behind those of the first, if
 * they are others. What some of them become is a slot at first, and a node when its turn comes:
 * nodes come depth first.
 */
struct joining {
	struct diffing *d;
	bool same;             /* one tree, with numbers of both sides */
	size_t begin[3];       /* of each side; of none */
	uint32_t *function[2]; /* by frame of a fold, + 1, 0: not met yet */
	uint32_t *head,
		*next;  /* by node of a fold: its first callee; of that: the next one, 0: none */
	uint32_t *also; /* by node of a fold: another one of the same slot, + 1, 0: none */
	struct slot {
		uint32_t function;
		uint32_t node;  /* its caller's; its own when its turn has come */
		uint32_t first; /* a node of a fold that became it, + 1; 0: none */
	} * slots;
	uint32_t n_slots;
	struct mark {
		uint32_t by, slot;
	} * mark; /* by function: whose callee it was last (+ 1), and its slot */
};

static void callees_list(struct joining *j, int side)
{
	const struct fold *f = j->d->pub.side[side].f;
	size_t begin = j->begin[side];

	for (size_t i = f->n_nodes; i-- > 1;) {
		uint32_t *head = &j->head[begin + f->nodes[i].parent];

		j->next[begin + i] = *head;
		*head = (uint32_t)(begin + i);
	}
}

static uint32_t node_new(struct diffing *d, uint32_t parent, uint32_t function)
{
	d->pub.nodes[d->pub.n_nodes] =
		(struct diff_node){.function = function,
				   .parent = parent,
				   .depth = d->pub.n_nodes ? d->pub.nodes[parent].depth + 1 : 0};
	return (uint32_t)d->pub.n_nodes++;
}

static uint32_t callee(struct joining *j, uint32_t at, uint32_t function)
{
	struct mark *m = &j->mark[function];

	if (m->by != at + 1) {
		*m = (struct mark){at + 1, j->n_slots};
		j->slots[j->n_slots++] = (struct slot){function, j->slots[at].node, 0};
	}
	return m->slot;
}

/* `node` is of a fold. */
static void take(struct joining *j, uint32_t slot, uint32_t node)
{
	j->also[node] = j->slots[slot].first;
	j->slots[slot].first = node + 1;
}

static void take_callee(struct joining *j, uint32_t at, uint32_t k)
{
	const struct fold *f = j->d->pub.side[k >= j->begin[1]].f;
	uint32_t frame = f->nodes[k >= j->begin[1] ? k - j->begin[1] : k].frame;
	uint32_t *function = &j->function[k >= j->begin[1]][frame];

	if (!*function)
		*function = diff_function_of(j->d, &f->frames[frame]) + 1;
	take(j, callee(j, at, *function - 1), k);
}

static void take_callees(struct joining *j, uint32_t at)
{
	for (uint32_t of = j->slots[at].first; of; of = j->also[of - 1])
		for (uint32_t k = j->head[of - 1]; k; k = j->next[k])
			take_callee(j, at, k);
}

/* The root's own samples are below it here: its first callee, if there are any. */
static void take_no_stack(struct joining *j)
{
	for (int side = 0; side < 2; side++)
		if (j->d->pub.side[side].f->nodes[0].self_samples)
			callee(j, 0, diff_function_of(j->d, &DIFF_NO_STACK));
}

static void take_turns(struct joining *j)
{
	cleanup_free uint32_t *todo = mem_array(j->begin[2] + 2, sizeof(*todo));
	size_t n = 1;

	j->n_slots = 1;
	take(j, 0, 0);
	if (!j->same)
		take(j, 0, (uint32_t)j->begin[1]);
	while (n) {
		uint32_t at = todo[--n], from = j->n_slots;
		struct slot *s = &j->slots[at];

		s->node = node_new(j->d, s->node, s->function);
		if (!at)
			take_no_stack(j);
		take_callees(j, at);
		for (uint32_t k = j->n_slots; k-- > from;)
			todo[n++] = k;
	}
}

/* --- is one tree --- */

/* Its functions are its frames, and its nodes those here: behind the node of stacks without frames,
 * where there is one. */
static void take_over(struct diffing *d)
{
	const struct fold *f = d->pub.side[0].f;
	const uint32_t before = d->no_stack;

	d->pub.functions = mem_array(f->n_frames + 1, sizeof(*d->pub.functions));
	for (size_t i = 0; i < f->n_frames; i++)
		d->pub.functions[d->pub.n_functions++] = (struct diff_function){
			.frame = &f->frames[i], .inlined = f->frames[i].inlined};
	d->pub.nodes = mem_array(f->n_nodes + 1, sizeof(*d->pub.nodes));
	node_new(d, 0, 0);
	if (before) {
		d->pub.functions[d->pub.n_functions] =
			(struct diff_function){.frame = &DIFF_NO_STACK};
		node_new(d, 0, (uint32_t)d->pub.n_functions++);
	}
	for (size_t i = 1; i < f->n_nodes; i++) {
		uint32_t parent = f->nodes[i].parent;

		d->node[0][i] = node_new(d, parent ? parent + before : 0, f->nodes[i].frame);
	}
}

/* --- both --- */

static void add_self(struct diffing *d, uint32_t to, int side, const struct fold_node *n)
{
	uint64_t means = d->pub.side[side].means;

	if (!n->self_ns && !n->self_samples)
		return;
	d->pub.nodes[to].self_ns[side] += means == 1 ? n->self_ns : n->self_ns / means;
	d->pub.nodes[to].self_samples[side] +=
		means == 1 ? n->self_samples : n->self_samples / means;
}

/* By node of a fold: the node here. */
static void note_nodes(struct joining *j, int side)
{
	uint32_t *node = j->d->node[side];

	for (uint32_t k = 1; k < j->n_slots; k++)
		for (uint32_t of = j->slots[k].first; of; of = j->also[of - 1])
			if (of > j->begin[side] && of <= j->begin[side + 1])
				node[of - 1 - j->begin[side]] = j->slots[k].node;
}

static void sides_add(struct diffing *d)
{
	for (int side = 0; side < 2; side++) {
		const struct fold *f = d->pub.side[side].f;

		add_self(d, d->no_stack, side, &f->nodes[0]);
		for (size_t i = 1; i < f->n_nodes; i++)
			add_self(d, d->node[side][i], side, &f->nodes[i]);
	}
}

static void join(struct diffing *d, bool same)
{
	const struct fold *const f[2] = {d->pub.side[0].f, d->pub.side[1].f};
	struct joining j = {
		.d = d,
		.same = same,
		.begin = {0, f[0]->n_nodes, f[0]->n_nodes + (same ? 0 : f[1]->n_nodes)}};
	size_t n = j.begin[2] + 2;

	d->pub.nodes = mem_array(n, sizeof(*d->pub.nodes));
	j.head = mem_array(n, sizeof(*j.head));
	j.next = mem_array(n, sizeof(*j.next));
	j.also = mem_array(n, sizeof(*j.also));
	j.slots = mem_array(n, sizeof(*j.slots));
	j.mark = mem_array(f[0]->n_frames + f[1]->n_frames + 2, sizeof(*j.mark));
	for (int side = 0; side < (same ? 1 : 2); side++) {
		j.function[side] = mem_array(f[side]->n_frames + 1, sizeof(*j.function[side]));
		callees_list(&j, side);
	}
	diff_function_of(d, &f[0]->frames[0]);
	take_turns(&j);
	for (int side = 0; side < (same ? 1 : 2); side++)
		note_nodes(&j, side);
	free(j.head);
	free(j.next);
	free(j.also);
	free(j.slots);
	free(j.mark);
	free(j.function[0]);
	free(j.function[1]);
}

void diff_nodes_make(struct diffing *d)
{
	const struct fold *const f[2] = {d->pub.side[0].f, d->pub.side[1].f};
	const bool same = fold_same_tree(f[0], f[1]);

	d->node[0] = mem_array(f[0]->n_nodes + 1, sizeof(*d->node[0]));
	d->node[1] = same ? d->node[0] : mem_array(f[1]->n_nodes + 1, sizeof(*d->node[1]));
	d->no_stack = f[0]->nodes[0].self_samples || f[1]->nodes[0].self_samples ? 1 : 0;
	if (same && f[0]->functions)
		take_over(d);
	else
		join(d, same);
	sides_add(d);
}

/* --- sums --- */

void diff_nodes_sum(struct diffing *d)
{
	d->end = mem_array(d->pub.n_nodes, sizeof(*d->end)); /* its size, so far */
	for (size_t i = d->pub.n_nodes; i-- > 0;) {
		struct diff_node *n = &d->pub.nodes[i], *up = &d->pub.nodes[n->parent];
		const uint32_t size = d->end[i] + 1;

		for (int s = 0; s < 2; s++) {
			n->total_ns[s] += n->self_ns[s];
			n->total_samples[s] += n->self_samples[s];
			if (!i)
				continue;
			up->total_ns[s] += n->total_ns[s];
			up->total_samples[s] += n->total_samples[s];
		}
		if (i)
			d->end[n->parent] += size;
		d->end[i] = (uint32_t)i + size;
	}
}

/* No caller of it is the same function: what is open of a function ends where the outermost one
 * does. */
void diff_outer_find(struct diffing *d)
{
	cleanup_free uint32_t *open = mem_array(d->pub.n_functions, sizeof(*open));

	d->outer = mem_array(d->pub.n_nodes, sizeof(*d->outer));
	d->outer[0] = true; /* and what is called like it is not below the same function */
	for (uint32_t i = 1; i < d->pub.n_nodes; i++) {
		uint32_t *until = &open[d->pub.nodes[i].function];

		d->outer[i] = *until <= i;
		if (d->outer[i])
			*until = d->end[i];
	}
}
