/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three steps: frames that look the same get one number (shown_frames); siblings with the same number become one node
 * (merged), still parents before children; then the children are sorted and the tree is written in preorder.
 */
#include "tools/flame_tree.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

static const struct fold_frame ALL = {.name = "all", .module = "", .module_path = "", .build_id = "", .file = "",
				      .named = true, .origin = FOLD_GROUP};
static const struct fold_frame NO_STACK = {.name = "[no stack]", .module = "", .module_path = "", .build_id = "",
					   .file = "", .origin = FOLD_UNKNOWN};
static const struct fold_frame SMALLER = {.name = "(smaller frames)", .module = "", .module_path = "", .build_id = "",
					  .file = "", .named = true, .origin = FOLD_UNKNOWN};

struct look {                   /* what a person sees of a frame -> its number */
	char *key;
	uint32_t frame;
	UT_hash_handle hh;
};

struct looks {
	struct look *table;
	struct flame_tree *tree;
	size_t cap;
	bool by_line;
};

static char *look_key(const struct looks *l, const struct fold_frame *fr, size_t *len)
{
	size_t name = strlen(fr->name) + 1, module = strlen(fr->module) + 1;
	size_t file = l->by_line ? strlen(fr->file) + 1 : 0;
	char *key = mem_alloc(name + module + file + 2 + sizeof(fr->line));
	char *at = key + name + module;

	memcpy(key, fr->name, name);
	memcpy(key + name, fr->module, module);
	*at++ = (char)fr->origin;
	*at++ = (char)fr->inlined;
	if (l->by_line) {
		memcpy(at, fr->file, file);
		memcpy(at + file, &fr->line, sizeof(fr->line));
		at += file + sizeof(fr->line);
	}
	*len = (size_t)(at - key);
	return key;
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
	struct look *found;
	size_t len;
	char *key = look_key(l, fr, &len);

	HASH_FIND(hh, l->table, key, len, found);
	if (found) {
		struct fold_frame *seen = &l->tree->frames[found->frame];

		if (!*seen->file)
			seen->file = fr->file;
		if (seen->line != fr->line || strcmp(seen->file, fr->file))
			seen->line = 0;
		free(key);
		return found->frame;
	}
	found = mem_alloc(sizeof(*found));
	found->key = key;
	found->frame = frame_new(l, fr);
	HASH_ADD_KEYPTR(hh, l->table, found->key, len, found);
	return found->frame;
}

static void looks_release(struct looks *l)
{
	struct look *k, *tmp;

	HASH_ITER(hh, l->table, k, tmp) {
		HASH_DEL(l->table, k);
		free(k->key);
		free(k);
	}
}

struct merged {
	struct flame_node *nodes;
	size_t n, cap;
	struct idmap children;  /* parent << 32 | frame -> node */
	uint32_t *of;           /* by node of the fold */
	uint32_t *emitted;      /* by merged node: where it stands in the tree; 0: not there (the root is never asked for) */
	uint32_t *rest;         /* by merged node: its "(smaller frames)", 0: none */
};

static uint32_t merged_child(struct merged *m, uint32_t parent, uint32_t frame)
{
	uint64_t key = (uint64_t)parent << 32 | frame, at;

	if (idmap_get(&m->children, key, &at))
		return (uint32_t)at;
	mem_grow(m->nodes, m->n, m->cap);
	m->nodes[m->n] = (struct flame_node){.frame = frame, .parent = parent};
	idmap_set(&m->children, key, m->n);
	return (uint32_t)m->n++;
}

/* Only self values are taken over; totals are summed up afterwards, so that they always fit. */
static void merged_make(struct merged *m, struct looks *l, const struct fold *f)
{
	cleanup_free uint32_t *shown = mem_array(f->n_frames + 1, sizeof(*shown)); /* 0: not seen yet */
	uint32_t *node = m->of = mem_array(f->n_nodes + 1, sizeof(*node));

	merged_child(m, UINT32_MAX, frame_new(l, &ALL));
	m->nodes[0].parent = 0;
	for (size_t i = 0; i < f->n_nodes; i++) {
		const struct fold_node *from = &f->nodes[i];

		if (!i) {
			if (from->self_samples || from->self_ns)
				node[0] = merged_child(m, 0, look_get(l, &NO_STACK));
		} else {
			if (!shown[from->frame])
				shown[from->frame] = look_get(l, &f->frames[from->frame]);
			node[i] = merged_child(m, from->parent ? node[from->parent] : 0, shown[from->frame]);
		}
		m->nodes[node[i]].self_ns += from->self_ns;
		m->nodes[node[i]].self_samples += from->self_samples;
	}
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

static int larger_first(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? 1 : x > y ? -1 : 0;
}

/* Nodes are kept if their total is above this. A caller's total is never below its callee's: what is kept is a tree. */
static uint64_t keep_above(const struct merged *m, size_t max_nodes)
{
	cleanup_free uint64_t *totals = NULL;

	if (!max_nodes || m->n <= max_nodes)
		return 0;
	totals = mem_array(m->n, sizeof(*totals));
	for (size_t i = 0; i < m->n; i++)
		totals[i] = m->nodes[i].total_ns;
	qsort(totals, m->n, sizeof(*totals), larger_first);
	return totals[max_nodes];
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
	uint32_t *children;     /* of node i: [first[i], first[i + 1]) */
	size_t *first;
	uint64_t above;
	uint32_t smaller;       /* frame of what is left out */
	size_t cap;
};

static void walk_children(struct walk *w)
{
	const struct merged *m = w->m;
	struct order o = {m, w->t->frames};

	w->children = mem_array(m->n + 1, sizeof(*w->children));
	w->first = mem_array(m->n + 2, sizeof(*w->first));
	for (size_t i = 1; i < m->n; i++)
		w->first[m->nodes[i].parent + 2]++;
	for (size_t i = 2; i < m->n + 2; i++)
		w->first[i] += w->first[i - 1];
	for (size_t i = 1; i < m->n; i++)
		w->children[w->first[m->nodes[i].parent + 1]++] = (uint32_t)i;
	for (size_t i = 0; i < m->n; i++)
		qsort_r(w->children + w->first[i], w->first[i + 1] - w->first[i], sizeof(uint32_t), hottest_first, &o);
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
	for (size_t k = w->first[node]; k < w->first[node + 1]; k++) {
		const struct flame_node *c = &w->m->nodes[w->children[k]];

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
			stack[n++] = (struct todo){.node = w->children[w->first[at.node] + k], .parent = me};
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
	walk_children(&w);
	walk_preorder(&w);
	shown_map(t, &m, f);
	free(m.of);
	free(m.emitted);
	free(m.rest);
	free(w.children);
	free(w.first);
	free(m.nodes);
	idmap_release(&m.children);
	looks_release(&looks);
}

void flame_tree_release(struct flame_tree *t)
{
	free(t->frames);
	free(t->nodes);
	free(t->node_of);
	*t = (struct flame_tree){0};
}
