/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/top.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/flame/flame_merge.h"

#define NO_ROW UINT32_MAX

/* The row of a frame's function; a new one at the end where it has none. */
static uint32_t row_of(struct top *top, struct idmap *known, size_t *cap,
		       const struct flame_tree *t, uint32_t frame)
{
	const struct fold_frame *fr = &t->frames[frame];
	uint64_t h = hash_str(hash_str(HASH_SEED, fr->name), fr->module), i;

	for (; idmap_get(known, h, &i); h = hash_u64(h, 1)) {
		const struct fold_frame *seen = &t->frames[top->rows[i].frame];

		if (!strcmp(seen->name, fr->name) && !strcmp(seen->module, fr->module))
			return (uint32_t)i;
	}
	idmap_set(known, h, top->n_rows);
	mem_grow(top->rows, top->n_rows, *cap);
	top->rows[top->n_rows] = (struct top_row){.frame = frame, .inlined = true};
	return (uint32_t)top->n_rows++;
}

static void rows_make(struct top *top, const struct flame_tree *t, struct idmap *known, size_t *cap)
{
	for (uint32_t i = 0; i < t->n_frames; i++) {
		top->row_of[i] = NO_ROW;
		if (t->frames[i].origin == FOLD_GROUP)
			continue;
		top->row_of[i] = row_of(top, known, cap, t, i);
		top->rows[top->row_of[i]].inlined &= t->frames[i].inlined;
	}
}

/* In preorder the subtree of i is [i, end[i]). */
static uint32_t *ends_of(const struct flame_tree *t)
{
	uint32_t *end = mem_array(t->n_nodes + 1, sizeof(*end));

	for (size_t i = t->n_nodes; i-- > 0;) {
		uint32_t parent = t->nodes[i].parent;

		if (end[i] < i + 1)
			end[i] = (uint32_t)i + 1;
		if (end[parent] < end[i])
			end[parent] = end[i];
	}
	return end;
}

static void rows_sum(struct top *top, const struct flame_tree *t)
{
	cleanup_free uint32_t *end = ends_of(t);
	cleanup_free uint32_t *counted =
		mem_array(top->n_rows + 1, sizeof(*counted)); /* up to this node */

	for (size_t i = 0; i < t->n_nodes; i++) {
		const struct flame_node *n = &t->nodes[i];
		uint32_t row = top->row_of[n->frame];
		struct top_row *r;

		if (row == NO_ROW)
			continue;
		r = &top->rows[row];
		r->self_ns += n->self_ns;
		r->self_samples += n->self_samples;
		if (i < counted[row])
			continue;
		counted[row] = end[i];
		r->total_ns += n->total_ns;
		r->total_samples += n->total_samples;
	}
}

static int hottest_first(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = a, *y = b;
	const struct fold_frame *frames = ctx;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(frames[x->frame].name, frames[y->frame].name);
}

/* Rows by their numbers; row_of follows them. */
static void rows_sort(struct top *top, const struct flame_tree *t)
{
	cleanup_free uint32_t *old =
		mem_array(t->n_frames + 1,
			  sizeof(*old)); /* by representative frame: the row before sorting */
	cleanup_free uint32_t *moved = mem_array(top->n_rows + 1, sizeof(*moved));

	for (size_t i = 0; i < top->n_rows; i++)
		old[top->rows[i].frame] = (uint32_t)i;
	if (top->n_rows)
		qsort_r(top->rows, top->n_rows, sizeof(*top->rows), hottest_first, t->frames);
	for (size_t i = 0; i < top->n_rows; i++)
		moved[old[top->rows[i].frame]] = (uint32_t)i;
	for (size_t i = 0; i < t->n_frames; i++)
		if (top->row_of[i] != NO_ROW)
			top->row_of[i] = moved[top->row_of[i]];
}

void top_init(struct top *top, const struct flame_tree *t)
{
	struct idmap known = {0};
	size_t cap = 0;

	*top = (struct top){.row_of = mem_array(t->n_frames + 1, sizeof(uint32_t))};
	rows_make(top, t, &known, &cap);
	idmap_release(&known);
	rows_sum(top, t);
	rows_sort(top, t);
}

/* ---- of sums of functions ---- */

void top_of_flat(struct top *top, struct flame_tree *t, const struct fold *f)
{
	struct flame_looks looks = {.tree = t};
	struct idmap known = {0};
	const struct fold_flat none = {0};
	size_t cap = 0;

	for (size_t i = 0; i < f->n_frames; i++)
		flame_looks_new(&looks, &f->frames[i]);
	if (f->flat && f->flat[0].total_samples + f->flat[0].total_ns)
		flame_looks_new(&looks, &FLAME_NO_STACK);
	*top = (struct top){.row_of = mem_array(t->n_frames + 1, sizeof(uint32_t))};
	rows_make(top, t, &known, &cap);
	idmap_release(&known);
	for (size_t i = 1; i < t->n_frames; i++) {
		const struct fold_flat *x = !f->flat ? &none : &f->flat[i < f->n_frames ? i : 0];
		struct top_row *r;

		if (top->row_of[i] == NO_ROW)
			continue;
		r = &top->rows[top->row_of[i]];
		r->self_ns += x->self_ns;
		r->self_samples += x->self_samples;
		r->total_ns += x->total_ns;
		r->total_samples += x->total_samples;
	}
	rows_sort(top, t);
}

void top_release(struct top *top)
{
	free(top->rows);
	free(top->row_of);
	*top = (struct top){0};
}
