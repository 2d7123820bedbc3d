/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: siblings that look the same become one node (flame_merge); the largest are kept,
 * what is below them is summed; then children are sorted and the tree is written in preorder.
 */
#include "tools/fold/flame/flame_tree.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/fold/flame/flame_merge.h"

#define NO_STACK UINT32_MAX
/* in a node's place: it is not kept, the rest is which kept caller it is nearest to */
#define LEFT_OUT 0x80000000u

static const struct fold_frame SMALLER = {.name = "(smaller frames)",
					  .module = "",
					  .module_path = "",
					  .build_id = "",
					  .file = "",
					  .named = true,
					  .origin = FOLD_UNKNOWN};

/* --- what is kept --- */

struct kept {
	const struct flame_merged *m;
	uint32_t *of, *parent; /* which merged node, NO_STACK: the root's own samples; whose callee
				  here */
	size_t n;
	uint32_t *first, *n_children; /* children[first] to children[first + n_children - 1] */
	uint32_t *children;
	struct rest {
		uint64_t ns, samples;
		double variance;
	} * rest;                         /* of callees that are left out */
	uint32_t *emitted, *emitted_rest; /* its place in the tree, and that of its "(smaller
					     frames)"; 0: none, except for the root */
	uint32_t *place;   /* by merged node: which one it is, or LEFT_OUT and whose callee */
	uint32_t no_stack; /* the child of the root that has what has no stack; 0: see `place` of
			      the root */
	size_t elided;
	bool show_rest; /* as "(smaller frames)" */
};

static bool root_has_own(const struct flame_merged *m)
{
	return m->nodes[0].self_ns || m->nodes[0].self_samples;
}

/* Nodes are kept if their total is above this, the largest but max_nodes; found by its bytes, the
 * highest first, among those that begin alike. A caller's total is never below its callee's: what
 * is kept is a tree. */
static uint64_t keep_above(const struct flame_merged *m, size_t max_nodes)
{
	cleanup_free uint64_t *total = NULL;
	size_t left = max_nodes, n = m->n + root_has_own(m); /* which is a callee, as shown */
	uint64_t at = 0;
	int shift = 56; /* of the highest byte that the root's total has: no other is above it */

	if (!max_nodes || n <= max_nodes)
		return 0;
	total = mem_array(n, sizeof(*total));
	total[n - 1] = m->nodes[0].self_ns;
	for (size_t i = 0; i < m->n; i++)
		total[i] = m->nodes[i].total_ns;
	while (shift > 0 && !(m->nodes[0].total_ns >> shift))
		shift -= 8;
	for (; shift >= 0; shift -= 8) {
		size_t count[256] = {0}, alike = 0;
		uint64_t byte = 255;

		for (size_t i = 0; i < n; i++)
			count[total[i] >> shift & 255]++;
		for (; byte > 0 && count[byte] <= left; byte--)
			left -= count[byte];
		at |= byte << shift;
		for (size_t i = 0; i < n; i++)
			if ((total[i] >> shift & 255) == byte)
				total[alike++] = total[i];
		n = alike;
	}
	return at;
}

static size_t count_kept(const struct flame_merged *m, uint64_t above)
{
	size_t n = 1 + root_has_own(m);

	for (size_t i = 1; i < m->n; i++)
		n += !above || m->nodes[i].total_ns > above;
	return n;
}

static uint32_t keep_node(struct kept *k, uint32_t of, uint32_t parent)
{
	k->of[k->n] = of;
	k->parent[k->n] = parent;
	if (k->n)
		k->n_children[parent]++;
	return (uint32_t)k->n++;
}

static void leave_out(struct kept *k, uint32_t parent, struct rest what)
{
	k->rest[parent].ns += what.ns;
	k->rest[parent].samples += what.samples;
	k->rest[parent].variance += what.variance;
	k->elided++;
}

/* The root's own samples are shown as a callee. */
static void keep_no_stack(struct kept *k, uint64_t above)
{
	const struct fold_node *root = &k->m->nodes[0];

	if (!root_has_own(k->m))
		return;
	if (!above || root->self_ns > above) {
		k->no_stack = keep_node(k, NO_STACK, 0);
	} else {
		leave_out(k, 0,
			  (struct rest){root->self_ns, root->self_samples, root->self_variance});
		k->place[0] = LEFT_OUT;
	}
}

/* Callers come first: where a node's caller went is known. */
static void keep_nodes(struct kept *k, uint64_t above)
{
	const struct flame_merged *m = k->m;

	keep_node(k, 0, 0);
	for (size_t i = 1; i < m->n; i++) {
		const struct fold_node *from = &m->nodes[i];
		uint32_t parent = k->place[from->parent];

		if (parent & LEFT_OUT) {
			k->place[i] = parent;
			k->elided++;
		} else if ((!above || from->total_ns > above) &&
			   (!m->smaller || m->look[from->frame] != m->smaller)) {
			k->place[i] = keep_node(k, (uint32_t)i, parent);
		} else {
			leave_out(k, parent,
				  (struct rest){from->total_ns, from->total_samples,
						from->total_variance});
			k->elided -= m->smaller && m->look[from->frame] == m->smaller;
			k->place[i] = parent | LEFT_OUT;
		}
	}
	keep_no_stack(k, above);
}

static void list_children(struct kept *k)
{
	cleanup_free uint32_t *next = mem_array(k->n, sizeof(*next));
	uint32_t begin = 0;

	for (size_t i = 0; i < k->n; begin += k->n_children[i++])
		k->first[i] = next[i] = begin;
	for (size_t i = 1; i < k->n; i++)
		k->children[next[k->parent[i]]++] = (uint32_t)i;
}

static void kept_make(struct kept *k, const struct flame_merged *m, uint64_t above)
{
	size_t room = count_kept(m, above);

	*k = (struct kept){
		.m = m,
		.of = mem_array(room, sizeof(*k->of)),
		.parent = mem_array(room, sizeof(*k->parent)),
		.first = mem_array(room, sizeof(*k->first)),
		.n_children = mem_array(room, sizeof(*k->n_children)),
		.children = mem_array(room, sizeof(*k->children)),
		.rest = mem_array(room, sizeof(*k->rest)),
		.emitted = mem_array(room, sizeof(*k->emitted)),
		.emitted_rest = mem_array(room, sizeof(*k->emitted_rest)),
		.place = mem_array(m->n, sizeof(*k->place)),
	};
	keep_nodes(k, above);
	list_children(k);
}

static void kept_release(struct kept *k)
{
	free(k->of);
	free(k->parent);
	free(k->first);
	free(k->n_children);
	free(k->children);
	free(k->rest);
	free(k->emitted);
	free(k->emitted_rest);
	free(k->place);
}

/* --- in order --- */

/* A kept node as it is shown, but for its place. */
static struct flame_node node_at(const struct kept *k, uint32_t i)
{
	const struct fold_node *from = &k->m->nodes[k->of[i] == NO_STACK ? 0 : k->of[i]];
	struct flame_node n = {.frame = k->m->look[from->frame],
			       .self_ns = from->self_ns,
			       .self_samples = from->self_samples,
			       .total_ns = from->total_ns,
			       .total_samples = from->total_samples,
			       .self_variance = from->self_variance,
			       .total_variance = from->total_variance};

	if (k->of[i] == NO_STACK) {
		n.frame = k->m->no_stack;
		n.total_ns = n.self_ns;
		n.total_samples = n.self_samples;
		n.total_variance = n.self_variance;
	} else if (!i) {
		n.frame = 0;
		n.self_ns = n.self_samples = 0;
		n.self_variance = 0;
	}
	return n;
}

struct order {
	const struct kept *k;
	const struct fold_frame *frames;
};

static int hottest_first(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	const struct flame_node x = node_at(o->k, *(const uint32_t *)a),
				y = node_at(o->k, *(const uint32_t *)b);
	int names;

	if (x.total_ns != y.total_ns)
		return x.total_ns < y.total_ns ? 1 : -1;
	names = strcmp(o->frames[x.frame].name, o->frames[y.frame].name);
	if (names)
		return names;
	return x.frame < y.frame ? -1 : x.frame > y.frame;
}

static void sort_children(const struct kept *k, const struct fold_frame *frames)
{
	struct order o = {k, frames};

	for (size_t i = 0; i < k->n; i++)
		if (k->n_children[i] > 1)
			qsort_r(k->children + k->first[i], k->n_children[i], sizeof(uint32_t),
				hottest_first, &o);
}

static bool has_rest(const struct kept *k, uint32_t node)
{
	return k->show_rest && (k->rest[node].ns || k->rest[node].samples);
}

static uint32_t emit(struct flame_tree *t, struct flame_node n, uint32_t parent)
{
	n.parent = parent;
	n.depth = t->n_nodes ? t->nodes[parent].depth + 1 : 0;
	t->nodes[t->n_nodes] = n;
	return (uint32_t)t->n_nodes++;
}

/* It comes behind the others, and has no callees. */
static void emit_rest(struct flame_tree *t, struct kept *k, uint32_t node, uint32_t smaller)
{
	const struct rest *r = &k->rest[node];
	struct flame_node n = {.frame = smaller,
			       .self_ns = r->ns,
			       .total_ns = r->ns,
			       .self_samples = r->samples,
			       .total_samples = r->samples,
			       .self_variance = r->variance,
			       .total_variance = r->variance};

	k->emitted_rest[node] = emit(t, n, k->emitted[node]);
}

static void walk_preorder(struct flame_tree *t, struct kept *k, uint32_t smaller)
{
	cleanup_free uint32_t *todo =
		mem_array(2 * k->n + 1, sizeof(*todo)); /* LEFT_OUT: what was, of this node */
	size_t n = 1, room = k->n;

	for (uint32_t i = 0; i < k->n; i++)
		room += has_rest(k, i);
	t->nodes = mem_array(room, sizeof(*t->nodes));
	while (n) {
		uint32_t at = todo[--n];

		if (at & LEFT_OUT) {
			emit_rest(t, k, at & ~LEFT_OUT, smaller);
			continue;
		}
		k->emitted[at] = emit(t, node_at(k, at), k->emitted[k->parent[at]]);
		if (has_rest(k, at))
			todo[n++] = at | LEFT_OUT;
		for (uint32_t c = k->n_children[at]; c-- > 0;)
			todo[n++] = k->children[k->first[at] + c];
	}
}

/* A node that is left out counts in the "(smaller frames)" of its nearest shown caller; an empty
 * one in that caller. */
static uint32_t where(const struct kept *k, uint32_t place)
{
	uint32_t at = place & ~LEFT_OUT;

	return place & LEFT_OUT && k->emitted_rest[at] ? k->emitted_rest[at] : k->emitted[at];
}

static void shown_map(struct flame_tree *t, const struct kept *k, const struct flame_merged *m,
		      const struct fold *f)
{
	t->node_of = mem_array(f->n_nodes + 1, sizeof(*t->node_of));
	for (size_t i = 0; i < f->n_nodes; i++)
		t->node_of[i] = where(k, k->place[m->of ? m->of[i] : i]);
	if (k->no_stack)
		t->node_of[0] = k->emitted[k->no_stack];
}

/* Of nodes above that; `show_rest`: frames called "(smaller frames)" have the others. */
static void tree_write(struct flame_tree *t, const struct fold *f, const struct flame_merged *m,
		       struct flame_looks *looks, uint64_t above, bool show_rest)
{
	uint32_t smaller = 0;
	struct kept k;

	kept_make(&k, m, above);
	k.show_rest = show_rest;
	t->elided = k.elided + f->left_out; /* of these, the fold's own were counted there */
	if (t->elided && show_rest)
		smaller = flame_looks_new(looks, &SMALLER);
	sort_children(&k, t->frames);
	walk_preorder(t, &k, smaller);
	shown_map(t, &k, m, f);
	kept_release(&k);
}

void flame_tree_init(struct flame_tree *t, const struct fold *f, size_t max_nodes, bool by_line)
{
	struct flame_looks looks = {.tree = t, .by_line = by_line};
	struct flame_merged m;

	*t = (struct flame_tree){0};
	flame_merge(&m, &looks, f);
	tree_write(t, f, &m, &looks, keep_above(&m, max_nodes), true);
	flame_merged_release(&m);
	idmap_release(&looks.of);
}

void flame_tree_init_least(struct flame_tree *t, const struct fold *f, uint64_t least_ns)
{
	struct flame_looks looks = {.tree = t};
	struct flame_merged m;

	*t = (struct flame_tree){0};
	flame_merge(&m, &looks, f);
	tree_write(t, f, &m, &looks, least_ns ? least_ns - 1 : 0, false);
	flame_merged_release(&m);
	idmap_release(&looks.of);
}

void flame_tree_release(struct flame_tree *t)
{
	free(t->frames);
	free(t->nodes);
	free(t->node_of);
	*t = (struct flame_tree){0};
}
