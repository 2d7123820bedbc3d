/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/related.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/ranking/match.h"

/* --- which frames --- */

static int by_name(const void *a, const void *b, void *ctx)
{
	const struct fold_frame *frames = ctx, *x = &frames[*(const uint32_t *)a],
				*y = &frames[*(const uint32_t *)b];
	int names = strcmp(x->name, y->name);

	return names ? names : strcmp(x->module, y->module);
}

static void functions_list(struct related *r, const struct flame_tree *t, const uint8_t *hit)
{
	size_t cap = 0, kept = 0;

	for (size_t i = 0; i < t->n_frames; i++) {
		if (!hit[i])
			continue;
		mem_grow(r->functions, r->n_functions, cap);
		r->functions[r->n_functions++] = (uint32_t)i;
	}
	qsort_r(r->functions, r->n_functions, sizeof(*r->functions), by_name, t->frames);
	for (size_t i = 0; i < r->n_functions; i++) /* inlined or not is the same function */
		if (!kept || by_name(&r->functions[kept - 1], &r->functions[i], t->frames))
			r->functions[kept++] = r->functions[i];
	r->n_functions = kept;
}

/* --- paths --- */

static void path_add(struct related *r, size_t *cap, uint32_t *frames, size_t n, uint64_t ns,
		     uint64_t samples)
{
	mem_grow(r->paths, r->n_paths, *cap);
	r->paths[r->n_paths++] = (struct related_path){frames, n, ns, samples};
}

static uint32_t *path_of(const struct flame_node *nodes, uint32_t node, size_t n)
{
	uint32_t *frames = mem_array(n + 1, sizeof(*frames));

	for (size_t i = n; i-- > 0; node = nodes[node].parent)
		frames[i] = nodes[node].frame;
	return frames;
}

static int most_time_first(const void *a, const void *b)
{
	const struct related_path *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return x->samples < y->samples ? 1 : x->samples > y->samples ? -1 : 0;
}

/* By node: the outermost matching node at or above it, plus 1; 0: none. */
static uint32_t *outermost(const struct flame_tree *t, const uint8_t *hit)
{
	uint32_t *outer = mem_array(t->n_nodes + 1, sizeof(*outer));

	for (size_t i = 1; i < t->n_nodes; i++) {
		const struct flame_node *n = &t->nodes[i];

		outer[i] = outer[n->parent] ? outer[n->parent] :
			   hit[n->frame]    ? (uint32_t)i + 1 :
					      0;
	}
	return outer;
}

static void callers_make(struct related *r, const struct flame_tree *t, const uint32_t *outer)
{
	size_t cap = 0;

	for (size_t i = 1; i < t->n_nodes; i++) {
		const struct flame_node *n = &t->nodes[i];

		if (outer[i] == i + 1)
			path_add(r, &cap, path_of(t->nodes, (uint32_t)i, n->depth), n->depth,
				 n->total_ns, n->total_samples);
	}
}

/* The subtrees of all outermost calls laid over each other, by frame. */
static void callees_make(struct related *r, const struct flame_tree *t, const uint32_t *outer)
{
	struct flame_node *merged = NULL;
	struct idmap children = {0};
	cleanup_free uint32_t *at = mem_array(t->n_nodes + 1, sizeof(*at));
	size_t n = 0, cap = 0, paths = 0;

	mem_grow(merged, n, cap);
	merged[n++] = (struct flame_node){0};
	for (size_t i = 1; i < t->n_nodes; i++) {
		const struct flame_node *from = &t->nodes[i];
		uint32_t parent = outer[i] == i + 1 ? 0 : at[from->parent];
		uint64_t key = (uint64_t)parent << 32 | from->frame, found;

		if (!outer[i])
			continue;
		if (!idmap_get(&children, key, &found)) {
			found = n;
			idmap_set(&children, key, found);
			mem_grow(merged, n, cap);
			merged[n++] = (struct flame_node){.frame = from->frame,
							  .parent = parent,
							  .depth = merged[parent].depth + 1};
		}
		at[i] = (uint32_t)found;
		merged[found].self_ns += from->self_ns;
		merged[found].self_samples += from->self_samples;
	}
	for (size_t i = 1; i < n; i++)
		if (merged[i].self_samples)
			path_add(r, &paths, path_of(merged, (uint32_t)i, merged[i].depth),
				 merged[i].depth, merged[i].self_ns, merged[i].self_samples);
	idmap_release(&children);
	free(merged);
}

int related_init(struct related *r, const struct flame_tree *t, const char *text,
		 enum related_side side, struct err *e)
{
	cleanup_free uint8_t *hit = mem_array(t->n_frames + 1, 1);
	cleanup_free uint32_t *outer = NULL;
	int ret = match_functions(t->frames, t->n_frames, text, hit, e);

	if (ret)
		return ret;
	*r = (struct related){0};
	functions_list(r, t, hit);
	outer = outermost(t, hit);
	for (size_t i = 1; i < t->n_nodes; i++)
		if (outer[i] == i + 1) {
			r->ns += t->nodes[i].total_ns;
			r->samples += t->nodes[i].total_samples;
		}
	if (side == RELATED_CALLERS)
		callers_make(r, t, outer);
	else
		callees_make(r, t, outer);
	if (r->n_paths)
		qsort(r->paths, r->n_paths, sizeof(*r->paths), most_time_first);
	return 0;
}

void related_release(struct related *r)
{
	for (size_t i = 0; i < r->n_paths; i++)
		free(r->paths[i].frames);
	free(r->paths);
	free(r->functions);
	*r = (struct related){0};
}
