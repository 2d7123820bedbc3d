/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_nodes: two folds as one tree of functions. Callees are taken caller by caller, of both sides at once: which are the
 * same function is known by a mark at it, without a search.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/diff_parts.h"

static const struct fold_frame NO_STACK = {.name = "[no stack]", .module = "", .module_path = "", .build_id = "", .file = "",
					   .named = true, .origin = FOLD_UNKNOWN};

static uint32_t function_of(struct diffing *d, const struct fold_frame *fr)
{
	uint64_t h = hash_str(HASH_SEED, fr->name), i;

	if (!d->pub.names_only)
		h = hash_str(h, fr->module);
	for (; idmap_get(&d->function_of, h, &i); h = hash_u64(h, 1)) {
		struct diff_function *f = &d->pub.functions[i];

		if (!strcmp(f->frame->name, fr->name) && (d->pub.names_only || !strcmp(f->frame->module, fr->module))) {
			f->inlined &= fr->inlined;
			return (uint32_t)i;
		}
	}
	mem_grow(d->pub.functions, d->pub.n_functions, d->cap_functions);
	idmap_set(&d->function_of, h, d->pub.n_functions);
	d->pub.functions[d->pub.n_functions] = (struct diff_function){.frame = fr, .inlined = fr->inlined};
	return (uint32_t)d->pub.n_functions++;
}

/* --- one tree --- */

/* Nodes of the folds are numbered through: those of the second side behind those of the first, if they are others. */
struct joining {
	struct diffing *d;
	bool same;                  /* one tree, with numbers of both sides */
	size_t begin[3];            /* of each side; of none */
	uint32_t *function[2];      /* by frame of a fold, + 1, 0: not met yet */
	uint32_t *head, *next;      /* by node of a fold: its first callee; of that: the next one, 0: none */
	uint32_t *first, *also;     /* by node here: a node that became it, + 1; by that: another one, + 1, 0: none */
	struct mark { uint32_t by, node; } *mark; /* by function: whose callee it was last (+ 1), and its node */
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
	mem_grow(d->pub.nodes, d->pub.n_nodes, d->cap_nodes);
	d->pub.nodes[d->pub.n_nodes] = (struct diff_node){.function = function, .parent = parent,
		.depth = d->pub.n_nodes ? d->pub.nodes[parent].depth + 1 : 0};
	return (uint32_t)d->pub.n_nodes++;
}

static uint32_t callee(struct joining *j, uint32_t at, uint32_t function)
{
	struct mark *m = &j->mark[function];

	if (m->by != at + 1)
		*m = (struct mark){at + 1, node_new(j->d, at, function)};
	return m->node;
}

static void add_self(struct diffing *d, uint32_t to, int side, const struct fold_node *n)
{
	uint64_t means = d->pub.side[side].means;

	if (!n->self_ns && !n->self_samples)
		return;
	d->pub.nodes[to].self_ns[side] += means == 1 ? n->self_ns : n->self_ns / means;
	d->pub.nodes[to].self_samples[side] += means == 1 ? n->self_samples : n->self_samples / means;
}

/* What the root has of its own stands below it here. */
static void take_no_stack(struct joining *j)
{
	struct diffing *d = j->d;

	for (int side = 0; side < 2; side++)
		if (d->pub.side[side].f->nodes[0].self_samples)
			d->no_stack = callee(j, 0, function_of(d, &NO_STACK));
	for (int side = 0; side < 2; side++)
		add_self(d, d->no_stack, side, &d->pub.side[side].f->nodes[0]);
}

static void take(struct joining *j, uint32_t at, uint32_t k)
{
	struct diffing *d = j->d;
	int side = k >= j->begin[1];
	size_t i = k - j->begin[side];
	const struct fold_node *n = &d->pub.side[side].f->nodes[i];
	uint32_t *function = &j->function[side][n->frame], to;

	if (!*function)
		*function = function_of(d, &d->pub.side[side].f->frames[n->frame]) + 1;
	to = callee(j, at, *function - 1);
	add_self(d, to, side, n);
	if (j->same)
		add_self(d, to, DIFF_AFTER, &d->pub.side[DIFF_AFTER].f->nodes[i]);
	d->node[side][i] = to;
	j->also[k] = j->first[to];
	j->first[to] = k + 1;
}

static void take_callees(struct joining *j, uint32_t at)
{
	for (uint32_t of = j->first[at]; of; of = j->also[of - 1])
		for (uint32_t k = j->head[of - 1]; k; k = j->next[k])
			take(j, at, k);
}

/* Depth first: what is near in the tree is near in memory. */
static void join_all(struct joining *j)
{
	struct diff *pub = &j->d->pub;
	cleanup_free uint32_t *todo = mem_array(j->begin[2] + 1, sizeof(*todo));
	size_t n = 1;

	node_new(j->d, 0, 0);
	j->also[0] = j->same ? 0 : (uint32_t)j->begin[1] + 1;
	j->first[0] = 1;
	take_no_stack(j);
	while (n) {
		uint32_t at = todo[--n];
		size_t from = at ? pub->n_nodes : 1;

		take_callees(j, at);
		for (size_t k = pub->n_nodes; k-- > from;)
			todo[n++] = (uint32_t)k;
	}
}

void diff_nodes_make(struct diffing *d)
{
	const struct fold *const f[2] = {d->pub.side[0].f, d->pub.side[1].f};
	const bool same = fold_same_tree(f[0], f[1]);
	struct joining j = {.d = d, .same = same, .begin = {0, f[0]->n_nodes, f[0]->n_nodes + (same ? 0 : f[1]->n_nodes)}};
	size_t n = j.begin[2] + 2;

	d->cap_nodes = n;
	d->pub.nodes = mem_array(n, sizeof(*d->pub.nodes)); /* none is moved while they come */
	j.head = mem_array(n, sizeof(*j.head));
	j.next = mem_array(n, sizeof(*j.next));
	j.first = mem_array(n, sizeof(*j.first));
	j.also = mem_array(n, sizeof(*j.also));
	j.mark = mem_array(f[0]->n_frames + f[1]->n_frames + 2, sizeof(*j.mark));
	for (int side = 0; side < (same ? 1 : 2); side++) {
		j.function[side] = mem_array(f[side]->n_frames + 1, sizeof(*j.function[side]));
		d->node[side] = mem_array(f[side]->n_nodes + 1, sizeof(*d->node[side]));
		callees_list(&j, side);
	}
	if (same)
		d->node[DIFF_AFTER] = d->node[DIFF_BEFORE];
	function_of(d, &f[0]->frames[0]);
	join_all(&j);
	free(j.head);
	free(j.next);
	free(j.first);
	free(j.also);
	free(j.mark);
	free(j.function[0]);
	free(j.function[1]);
}

/* --- sums, and places --- */

void diff_nodes_sum(struct diffing *d)
{
	for (size_t i = d->pub.n_nodes; i-- > 0;) {
		struct diff_node *n = &d->pub.nodes[i], *up = &d->pub.nodes[n->parent];

		for (int s = 0; s < 2; s++) {
			n->total_ns[s] += n->self_ns[s];
			n->total_samples[s] += n->self_samples[s];
			if (!i)
				continue;
			up->total_ns[s] += n->total_ns[s];
			up->total_samples[s] += n->total_samples[s];
		}
	}
}

void diff_preorder_make(struct diffing *d)
{
	const size_t n = d->pub.n_nodes;
	cleanup_free uint32_t *next = mem_array(n, sizeof(*next)); /* where its next callee comes */

	d->place = mem_array(n, sizeof(*d->place));
	d->end = mem_array(n, sizeof(*d->end)); /* its size, so far */
	d->at = mem_array(n, sizeof(*d->at));
	for (size_t i = n; i-- > 1;)
		d->end[d->pub.nodes[i].parent] += ++d->end[i];
	d->end[0] = (uint32_t)n;
	next[0] = 1;
	for (size_t i = 1; i < n; i++) {
		uint32_t *to = &next[d->pub.nodes[i].parent];

		d->place[i] = *to;
		*to += d->end[i];
		d->end[i] = *to;
		d->at[d->place[i]] = (uint32_t)i;
		next[i] = d->place[i] + 1;
	}
}

/* No caller of it is the same function: what is open of a function ends where the outermost one does. */
void diff_outer_find(struct diffing *d)
{
	cleanup_free uint32_t *open = mem_array(d->pub.n_functions, sizeof(*open));

	d->outer = mem_array(d->pub.n_nodes, sizeof(*d->outer));
	d->outer[0] = true; /* and what is called like it is not below the same function */
	for (uint32_t p = 1; p < d->pub.n_nodes; p++) {
		uint32_t i = d->at[p], *until = &open[d->pub.nodes[i].function];

		d->outer[i] = *until <= p;
		if (d->outer[i])
			*until = d->end[i];
	}
}
