/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/flame/flame_merge.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"

static const struct fold_frame ALL = {.name = "all",
				      .module = "",
				      .module_path = "",
				      .build_id = "",
				      .file = "",
				      .named = true,
				      .origin = FOLD_GROUP};
const struct fold_frame FLAME_NO_STACK = {.name = "[no stack]",
					  .module = "",
					  .module_path = "",
					  .build_id = "",
					  .file = "",
					  .origin = FOLD_UNKNOWN};

/* --- looks --- */

static uint64_t look_hash(const struct flame_looks *l, const struct fold_frame *fr)
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

static bool same_look(const struct flame_looks *l, const struct fold_frame *a,
		      const struct fold_frame *b)
{
	return a->origin == b->origin && a->inlined == b->inlined && same_text(a->name, b->name) &&
	       same_text(a->module, b->module) &&
	       (a->origin != FOLD_SCRIPT || same_text(a->module_path, b->module_path)) &&
	       (!l->by_line || (a->line == b->line && same_text(a->file, b->file)));
}

uint32_t flame_looks_new(struct flame_looks *l, const struct fold_frame *fr)
{
	struct flame_tree *t = l->tree;

	mem_grow(t->frames, t->n_frames, l->cap);
	t->frames[t->n_frames] = *fr;
	return (uint32_t)t->n_frames++;
}

/* Frames that look the same share a number; a line stays only where all agree on it. */
static uint32_t look_get(struct flame_looks *l, const struct fold_frame *fr)
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
	i = flame_looks_new(l, fr);
	idmap_set(&l->of, h, i);
	return (uint32_t)i;
}

/* By frame of the fold: its look, 0 for what no node has. False: two of them share one. */
static bool looks_make(struct flame_looks *l, const struct fold *f, uint32_t *look)
{
	size_t before = l->tree->n_frames, frames = 0;

	for (size_t i = 1; i < f->n_nodes; i++)
		if (!look[f->nodes[i].frame]) {
			look[f->nodes[i].frame] = look_get(l, &f->frames[f->nodes[i].frame]);
			frames++;
		}
	return l->tree->n_frames - before == frames;
}

/* --- siblings --- */

/* Nodes of the fold that become one are a list; a child is found by what it looks like, among the
 * children at hand. */
struct merging {
	struct flame_merged *m;
	const struct fold *f;
	uint32_t *first, *kids; /* of node i of the fold: kids[first[i]] to kids[first[i + 1]] */
	uint32_t *head,
		*next; /* by merged node: its first node of the fold; by that: the next, 0: none */
	uint32_t *stamp,
		*child; /* by look: whose child it was seen as last (+ 1), and which node that is */
};

static void merging_init(struct merging *g, size_t n_looks)
{
	const struct fold *f = g->f;

	g->stamp = mem_array(n_looks + 1, sizeof(*g->stamp));
	g->child = mem_array(n_looks + 1, sizeof(*g->child));
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

static void merging_release(struct merging *g)
{
	free(g->first);
	free(g->kids);
	free(g->head);
	free(g->next);
	free(g->stamp);
	free(g->child);
}

static uint32_t merged_child(struct merging *g, uint32_t parent, uint32_t look)
{
	struct flame_merged *m = g->m;

	if (g->stamp[look] == parent + 1)
		return g->child[look];
	g->stamp[look] = parent + 1;
	g->child[look] = (uint32_t)m->n;
	m->made[m->n] = (struct fold_node){.frame = look, .parent = parent};
	return (uint32_t)m->n++;
}

static void take_self(struct merging *g, uint32_t to, uint32_t from)
{
	const struct fold_node *n = &g->f->nodes[from];

	g->m->of[from] = to;
	g->m->made[to].self_ns += n->self_ns;
	g->m->made[to].self_samples += n->self_samples;
	g->m->made[to].self_variance += n->self_variance;
}

static void merge_children(struct merging *g, uint32_t at)
{
	for (uint32_t x = g->head[at];; x = g->next[x]) {
		for (uint32_t k = g->first[x]; k < g->first[x + 1]; k++) {
			uint32_t kid = g->kids[k],
				 to = merged_child(g, at, g->m->look[g->f->nodes[kid].frame]);

			take_self(g, to, kid);
			g->next[kid] = g->head[to];
			g->head[to] = kid;
		}
		if (!g->next[x])
			return;
	}
}

/* Depth first, as the nodes of a fold mostly lie. */
static void merge_all(struct merging *g)
{
	struct flame_merged *m = g->m;
	cleanup_free uint32_t *todo = mem_array(g->f->n_nodes + 2, sizeof(*todo));
	size_t n = 1;

	m->made[m->n++] = (struct fold_node){0};
	if (m->no_stack)
		take_self(g, merged_child(g, 0, m->no_stack), 0);
	while (n) {
		uint32_t at = todo[--n];
		size_t first = at ? m->n : 1;

		if (at && !g->head[at])
			continue; /* what has no stack has no callees */
		merge_children(g, at);
		for (size_t k = m->n; k-- > first;)
			todo[n++] = (uint32_t)k;
	}
}

/* Only self values are taken over; totals are summed up afterwards, so that they always fit. */
static void sum_up(struct flame_merged *m)
{
	for (size_t i = m->n; i-- > 0;) {
		struct fold_node *at = &m->made[i];

		at->total_ns += at->self_ns;
		at->total_samples += at->self_samples;
		at->total_variance += at->self_variance;
		if (i) {
			m->made[at->parent].total_variance += at->total_variance;
			m->made[at->parent].total_ns += at->total_ns;
			m->made[at->parent].total_samples += at->total_samples;
		}
	}
}

static void merge(struct flame_merged *m, const struct fold *f, size_t n_looks)
{
	struct merging g = {.m = m, .f = f};

	merging_init(&g, n_looks);
	m->nodes = m->made = mem_array(f->n_nodes + 2, sizeof(*m->made));
	m->of = mem_array(f->n_nodes + 1, sizeof(*m->of));
	merge_all(&g);
	sum_up(m);
	merging_release(&g);
	m->look = mem_realloc(m->look, (n_looks + 1) * sizeof(*m->look));
	for (size_t i = 0; i < n_looks; i++)
		m->look[i] = (uint32_t)i;
}

bool flame_looks_all(struct flame_looks *l, const struct fold *f, uint32_t *look,
		     uint32_t *no_stack)
{
	flame_looks_new(l, &ALL);
	if (f->nodes[0].self_samples || f->nodes[0].self_ns)
		*no_stack = look_get(l, &FLAME_NO_STACK);
	return looks_make(l, f, look);
}

void flame_merge(struct flame_merged *m, struct flame_looks *l, const struct fold *f)
{
	bool apart;

	*m = (struct flame_merged){.nodes = f->nodes,
				   .look = mem_array(f->n_frames + 1, sizeof(*m->look))};
	apart = flame_looks_all(l, f, m->look, &m->no_stack);
	m->smaller = f->smaller ? m->look[f->smaller] : 0;
	if (apart)
		m->n = f->n_nodes;
	else
		merge(m, f, l->tree->n_frames);
}

void flame_merged_release(struct flame_merged *m)
{
	free(m->look);
	free(m->of);
	free(m->made);
	*m = (struct flame_merged){0};
}
