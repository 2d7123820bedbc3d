/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: frames that look the same get one number (looks_make); siblings with the same number become one node
 * (merged), still parents before children; then the children are sorted and the tree is written in preorder.
 */
#include "tools/flame_tree.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

static const struct fold_frame ALL = {.name = "all", .module = "", .module_path = "", .build_id = "", .file = "",
				      .named = true, .origin = FOLD_GROUP};
static const struct fold_frame NO_STACK = {.name = "[no stack]", .module = "", .module_path = "", .build_id = "",
					   .file = "", .origin = FOLD_UNKNOWN};
static const struct fold_frame SMALLER = {.name = "(smaller frames)", .module = "", .module_path = "", .build_id = "",
					  .file = "", .named = true, .origin = FOLD_UNKNOWN};

/* What a person sees of a frame -> its number. */
struct looks {
	struct idmap of;
	struct flame_tree *tree;
	size_t cap;
	bool by_line;
};

static uint64_t look_hash(const struct looks *l, const struct fold_frame *fr)
{
	uint64_t h = hash_str(hash_str(HASH_SEED, fr->name), fr->module);

	if (l->by_line)
		h = hash_u64(hash_str(h, fr->file), fr->line);
	return hash_u64(h, (uint64_t)fr->origin << 1 | fr->inlined);
}

/* Mostly the fold's own strings, which are one copy each. */
static bool same_text(const char *a, const char *b)
{
	return a == b || !strcmp(a, b);
}

static bool same_look(const struct looks *l, const struct fold_frame *a, const struct fold_frame *b)
{
	return a->origin == b->origin && a->inlined == b->inlined && same_text(a->name, b->name) && same_text(a->module, b->module) &&
	       (!l->by_line || (a->line == b->line && same_text(a->file, b->file)));
}

static uint32_t frame_new(struct looks *l, const struct fold_frame *fr)
{
	struct flame_tree *t = l->tree;

	mem_grow(t->frames, t->n_frames, l->cap);
	t->frames[t->n_frames] = *fr;
	return (uint32_t)t->n_frames++;
}

/* Frames that look the same share a number; a line stays only where all agree on it. */
static uint32_t look_get(struct looks *l, const struct fold_frame *fr)
{
	uint64_t h = look_hash(l, fr), i;

	for (; idmap_get(&l->of, h, &i); h = hash_u64(h, 1)) {
		struct fold_frame *seen = &l->tree->frames[i];

		if (!same_look(l, seen, fr))
			continue;
		if (!*seen->file)
			seen->file = fr->file;
		if (seen->line != fr->line || !same_text(seen->file, fr->file))
			seen->line = 0;
		return (uint32_t)i;
	}
	i = frame_new(l, fr);
	idmap_set(&l->of, h, i);
	return (uint32_t)i;
}

struct merged {
	struct flame_node *nodes;
	uint32_t *first;        /* by merged node: its children are children[first] to children[first + n_children - 1] */
	uint32_t *n_children;
	uint32_t *children;
	size_t n, cap;
	uint32_t *of;           /* by node of the fold */
	uint32_t *emitted;      /* by merged node: where it stands in the tree; 0: not there (the root is never asked for) */
	uint32_t *rest;         /* by merged node: its "(smaller frames)", 0: none */
};

/* Nodes of the fold that become one are a list; a child is found by what it looks like, among the children at hand. */
struct merging {
	struct merged *m;
	const struct fold *f;
	const uint32_t *shown;    /* by frame of the fold: its look */
	uint32_t *first, *kids;   /* of node i of the fold: kids[first[i]] to kids[first[i + 1]] */
	uint32_t *head, *next;    /* by merged node: its first node of the fold; by that: the next, 0: none */
	uint32_t *stamp, *child;  /* by look: whose child it was seen as last (+ 1), and which node that is */
};

static void merging_init(struct merging *g)
{
	const struct fold *f = g->f;

	g->first = mem_array(f->n_nodes + 2, sizeof(*g->first));
	g->kids = mem_array(f->n_nodes + 1, sizeof(*g->kids));
	g->head = mem_array(f->n_nodes + 2, sizeof(*g->head));
	g->next = mem_array(f->n_nodes + 2, sizeof(*g->next));
	for (size_t i = 1; i < f->n_nodes; i++)
		g->first[f->nodes[i].parent + 2]++;
	for (size_t i = 2; i < f->n_nodes + 2; i++)
		g->first[i] += g->first[i - 1];
	for (size_t i = 1; i < f->n_nodes; i++)
		g->kids[g->first[f->nodes[i].parent + 1]++] = (uint32_t)i;
}

static uint32_t merged_child(struct merging *g, uint32_t parent, uint32_t look)
{
	struct merged *m = g->m;

	if (g->stamp[look] == parent + 1)
		return g->child[look];
	g->stamp[look] = parent + 1;
	g->child[look] = (uint32_t)m->n;
	m->n_children[parent]++;
	m->nodes[m->n] = (struct flame_node){.frame = look, .parent = parent};
	return (uint32_t)m->n++;
}

static void take_self(struct merging *g, uint32_t to, uint32_t from)
{
	const struct fold_node *n = &g->f->nodes[from];

	g->m->of[from] = to;
	g->m->nodes[to].self_ns += n->self_ns;
	g->m->nodes[to].self_samples += n->self_samples;
}

static void merge_children(struct merging *g, uint32_t at)
{
	g->m->first[at] = (uint32_t)g->m->n;
	for (uint32_t x = g->head[at];; x = g->next[x]) {
		for (uint32_t k = g->first[x]; k < g->first[x + 1]; k++) {
			uint32_t kid = g->kids[k], to = merged_child(g, at, g->shown[g->f->nodes[kid].frame]);

			take_self(g, to, kid);
			g->next[kid] = g->head[to];
			g->head[to] = kid;
		}
		if (!g->next[x])
			return;
	}
}

/* Only self values are taken over; totals are summed up afterwards, so that they always fit. */
static void sum_up(struct merged *m)
{
	for (size_t i = m->n; i-- > 0;) {
		struct flame_node *at = &m->nodes[i];

		at->total_ns += at->self_ns;
		at->total_samples += at->self_samples;
		if (i) {
			m->nodes[at->parent].total_ns += at->total_ns;
			m->nodes[at->parent].total_samples += at->total_samples;
		}
	}
}

/* Depth first, as the nodes of a fold mostly lie. */
static void merge_all(struct merging *g, uint32_t no_stack)
{
	struct merged *m = g->m;
	cleanup_free uint32_t *todo = mem_array(g->f->n_nodes + 2, sizeof(*todo));
	size_t n = 1;

	m->nodes[m->n++] = (struct flame_node){0};
	if (no_stack) {
		m->first[0] = 1;
		take_self(g, merged_child(g, 0, no_stack), 0);
	}
	while (n) {
		uint32_t at = todo[--n];

		if (at && !g->head[at])
			continue; /* what has no stack has no callees */
		merge_children(g, at);
		if (!at)
			m->first[0] = 1;
		for (uint32_t k = m->n_children[at]; k-- > 0;)
			todo[n++] = m->first[at] + k;
	}
}

static void merge(struct merged *m, const struct fold *f, const uint32_t *shown, size_t n_looks, uint32_t no_stack)
{
	struct merging g = {.m = m, .f = f, .shown = shown};

	merging_init(&g);
	g.stamp = mem_array(n_looks + 1, sizeof(*g.stamp));
	g.child = mem_array(n_looks + 1, sizeof(*g.child));
	merge_all(&g, no_stack);
	sum_up(m);
	for (size_t i = 0; i < m->n; i++)
		m->children[i] = (uint32_t)i;
	free(g.first);
	free(g.kids);
	free(g.head);
	free(g.next);
	free(g.stamp);
	free(g.child);
}

/* No two frames look alike: siblings are merged as they stand. What the root has of its own comes last, as its child. */
static void take_all(struct merged *m, const struct fold *f, const uint32_t *shown, uint32_t no_stack)
{
	cleanup_free uint32_t *next = mem_array(f->n_nodes + 2, sizeof(*next));
	uint32_t begin = 0;

	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct fold_node *n = &f->nodes[i];

		m->of[i] = (uint32_t)i;
		m->nodes[i] = (struct flame_node){.frame = shown[n->frame], .parent = n->parent, .self_ns = n->self_ns,
			.self_samples = n->self_samples, .total_ns = n->total_ns, .total_samples = n->total_samples};
	}
	m->n = f->n_nodes;
	m->nodes[0].frame = 0;
	if (no_stack) {
		struct flame_node *root = &m->nodes[0];

		m->of[0] = (uint32_t)m->n;
		m->nodes[m->n++] = (struct flame_node){.frame = no_stack, .self_ns = root->self_ns, .self_samples = root->self_samples,
			.total_ns = root->self_ns, .total_samples = root->self_samples};
		root->self_ns = root->self_samples = 0;
	}
	for (size_t i = 1; i < m->n; i++)
		m->n_children[m->nodes[i].parent]++;
	for (size_t i = 0; i < m->n; begin += m->n_children[i++])
		m->first[i] = next[i] = begin;
	for (size_t i = 1; i < m->n; i++)
		m->children[next[m->nodes[i].parent]++] = (uint32_t)i;
}

/* By frame of the fold: its look, 0 for what no node has. False: two of them share one. */
static bool looks_make(struct looks *l, const struct fold *f, uint32_t *shown)
{
	size_t before = l->tree->n_frames, frames = 0;

	for (size_t i = 1; i < f->n_nodes; i++)
		if (!shown[f->nodes[i].frame]) {
			shown[f->nodes[i].frame] = look_get(l, &f->frames[f->nodes[i].frame]);
			frames++;
		}
	return l->tree->n_frames - before == frames;
}

static void merged_make(struct merged *m, struct looks *l, const struct fold *f)
{
	cleanup_free uint32_t *shown = mem_array(f->n_frames + 1, sizeof(*shown));
	uint32_t no_stack = 0;
	bool differ;

	frame_new(l, &ALL);
	if (f->nodes[0].self_samples || f->nodes[0].self_ns)
		no_stack = look_get(l, &NO_STACK);
	differ = looks_make(l, f, shown);
	m->nodes = mem_array(f->n_nodes + 2, sizeof(*m->nodes));
	m->first = mem_array(f->n_nodes + 2, sizeof(*m->first));
	m->n_children = mem_array(f->n_nodes + 2, sizeof(*m->n_children));
	m->children = mem_array(f->n_nodes + 2, sizeof(*m->children));
	m->of = mem_array(f->n_nodes + 1, sizeof(*m->of));
	if (differ)
		take_all(m, f, shown, no_stack);
	else
		merge(m, f, shown, l->tree->n_frames, no_stack);
}

/* Nodes are kept if their total is above this, the largest but max_nodes; found by its bytes, the highest first, among those
 * that begin alike. A caller's total is never below its callee's: what is kept is a tree. */
static uint64_t keep_above(const struct merged *m, size_t max_nodes)
{
	cleanup_free uint64_t *total = NULL;
	size_t left = max_nodes, n = m->n;
	uint64_t at = 0;
	int shift = 56; /* of the highest byte that the root's total has: no other is above it */

	if (!max_nodes || m->n <= max_nodes)
		return 0;
	total = mem_array(n, sizeof(*total));
	for (size_t i = 0; i < n; i++)
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

struct order {
	const struct merged *m;
	const struct fold_frame *frames;
};

static int hottest_first(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	const struct flame_node *x = &o->m->nodes[*(const uint32_t *)a], *y = &o->m->nodes[*(const uint32_t *)b];
	int names;

	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	names = strcmp(o->frames[x->frame].name, o->frames[y->frame].name);
	if (names)
		return names;
	return x->frame < y->frame ? -1 : x->frame > y->frame;
}

struct walk {
	struct flame_tree *t;
	struct merged *m;
	uint64_t above;
	uint32_t smaller;       /* frame of what is left out */
	size_t cap;
};

/* Of those that are kept: hottest first. */
static void sort_children(struct walk *w)
{
	const struct merged *m = w->m;
	struct order o = {m, w->t->frames};

	for (size_t i = 0; i < m->n; i++)
		if (m->n_children[i] > 1 && (!w->above || m->nodes[i].total_ns > w->above))
			qsort_r(m->children + m->first[i], m->n_children[i], sizeof(uint32_t), hottest_first, &o);
}

static uint32_t emit(struct walk *w, struct flame_node n, uint32_t parent)
{
	struct flame_tree *t = w->t;

	mem_grow(t->nodes, t->n_nodes, w->cap);
	n.parent = parent;
	n.depth = t->n_nodes ? t->nodes[parent].depth + 1 : 0;
	t->nodes[t->n_nodes] = n;
	return (uint32_t)t->n_nodes++;
}

/* How many children of `node` are kept: they come first. The rest becomes one node without callees. */
static size_t kept_children(const struct walk *w, uint32_t node, struct flame_node *rest)
{
	size_t kept = 0;

	*rest = (struct flame_node){.frame = w->smaller};
	for (size_t k = 0; k < w->m->n_children[node]; k++) {
		const struct flame_node *c = &w->m->nodes[w->m->children[w->m->first[node] + k]];

		if (!w->above || c->total_ns > w->above) {
			kept++;
			continue;
		}
		rest->self_ns = rest->total_ns += c->total_ns;
		rest->self_samples = rest->total_samples += c->total_samples;
	}
	return kept;
}

static void walk_preorder(struct walk *w)
{
	struct todo { uint32_t node, parent; bool rest; struct flame_node sum; } *stack = NULL;
	size_t n = 0, cap = 0;

	mem_grow(stack, n, cap);
	stack[n++] = (struct todo){0};
	while (n) {
		struct todo at = stack[--n];
		struct flame_node rest;
		size_t kept;
		uint32_t me;

		if (at.rest) {
			w->m->rest[at.node] = emit(w, at.sum, at.parent);
			continue;
		}
		me = w->m->emitted[at.node] = emit(w, w->m->nodes[at.node], at.parent);
		kept = kept_children(w, at.node, &rest);
		if (rest.total_ns || rest.total_samples) {
			mem_grow(stack, n, cap);
			stack[n++] = (struct todo){.node = at.node, .parent = me, .rest = true, .sum = rest};
		}
		for (size_t k = kept; k-- > 0;) {
			mem_grow(stack, n, cap);
			stack[n++] = (struct todo){.node = w->m->children[w->m->first[at.node] + k], .parent = me};
		}
	}
	free(stack);
}

static size_t count_elided(const struct merged *m, uint64_t above)
{
	size_t n = 0;

	for (size_t i = 1; above && i < m->n; i++)
		n += m->nodes[i].total_ns <= above;
	return n;
}

/* What is left out stands in the "(smaller frames)" of its nearest caller that is shown. Callers come first. */
static void shown_map(struct flame_tree *t, const struct merged *m, const struct fold *f)
{
	for (size_t i = 1; i < m->n; i++) {
		uint32_t parent = m->nodes[i].parent;

		if (!m->emitted[i])
			m->emitted[i] = m->rest[parent] ? m->rest[parent] : m->emitted[parent];
	}
	t->node_of = mem_array(f->n_nodes + 1, sizeof(*t->node_of));
	for (size_t i = 0; i < f->n_nodes; i++)
		t->node_of[i] = m->emitted[m->of[i]];
}

void flame_tree_init(struct flame_tree *t, const struct fold *f, size_t max_nodes, bool by_line)
{
	struct looks looks = {.tree = t, .by_line = by_line};
	struct merged m = {0};
	struct walk w = {.t = t, .m = &m};

	*t = (struct flame_tree){0};
	merged_make(&m, &looks, f);
	w.above = keep_above(&m, max_nodes);
	t->elided = count_elided(&m, w.above);
	if (t->elided)
		w.smaller = frame_new(&looks, &SMALLER);
	m.emitted = mem_array(m.n, sizeof(*m.emitted));
	m.rest = mem_array(m.n, sizeof(*m.rest));
	sort_children(&w);
	walk_preorder(&w);
	shown_map(t, &m, f);
	free(m.of);
	free(m.emitted);
	free(m.rest);
	free(m.children);
	free(m.nodes);
	free(m.first);
	free(m.n_children);
	idmap_release(&looks.of);
}

void flame_tree_release(struct flame_tree *t)
{
	free(t->frames);
	free(t->nodes);
	free(t->node_of);
	*t = (struct flame_tree){0};
}
