/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_flat: sums of functions, which need no nodes: of stacks that have something, one after the
 * other, each walked once. Where slices are asked for, each function's in each of them; where calls
 * are, how often each function was the caller of another. So what is held of many files is as large
 * as the number of functions and of pairs that call each other, whatever the number of stacks.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_parts.h"

static struct fold_flat *flat_of(struct folding *f, uint32_t frame)
{
	size_t cap = f->cap_flat;

	while (frame >= cap)
		cap = cap ? 2 * cap : 1024;
	if (cap > f->cap_flat) {
		f->pub->flat = mem_realloc(f->pub->flat, cap * sizeof(*f->pub->flat));
		f->seen = mem_realloc(f->seen, cap * sizeof(*f->seen));
		for (size_t i = f->cap_flat; i < cap; i++) {
			f->pub->flat[i] = (struct fold_flat){0};
			f->seen[i] = 0;
		}
		f->cap_flat = cap;
	}
	return &f->pub->flat[frame];
}

/* --- by slice --- */

static struct fold_flat_part *part_of(struct folding *f, uint32_t slice, uint32_t frame)
{
	struct fold_flat_slice *x = &f->pub->flat_slices[slice];
	size_t n = x->n;

	if (frame < n)
		return &x->v[frame];
	n = f->pub->n_frames + f->pub->n_frames / 8;
	n = n > frame ? n : frame + 1;
	x->v = mem_realloc(x->v, n * sizeof(*x->v));
	memset(x->v + x->n, 0, (n - x->n) * sizeof(*x->v));
	x->n = n;
	return &x->v[frame];
}

struct walked { /* a stack */
	const struct seg_stack *s;
	const struct fold_cell *cells; /* what it has by slice */
	size_t n_cells;
	uint64_t slices; /* bit by bit: it has something in them */
};

/* --- calls --- */

/* The place of a pair; free where its key is 0. */
static struct fold_call *call_at(const struct fold_calls *c, uint64_t key)
{
	size_t k = hash_u64(HASH_SEED, key) & (c->cap - 1);

	while (c->v[k].key && c->v[k].key != key)
		k = (k + 1) & (c->cap - 1);
	return &c->v[k];
}

static void calls_grow(struct fold_calls *c)
{
	struct fold_calls more = {.n = c->n, .cap = c->cap ? 2 * c->cap : 4096};

	more.v = mem_array(more.cap, sizeof(*more.v));
	for (size_t i = 0; i < c->cap; i++)
		if (c->v[i].key)
			*call_at(&more, c->v[i].key) = c->v[i];
	free(c->v);
	*c = more;
}

static void call_add(struct fold_calls *c, uint32_t caller, uint32_t frame, const struct walked *w)
{
	const uint64_t key = (uint64_t)caller << 32 | frame;
	struct fold_call *x;

	if (c->n >= c->cap / 4 * 3)
		calls_grow(c);
	x = call_at(c, key);
	c->n += !x->key;
	x->key = key;
	x->samples += w->s->n;
	x->slices |= w->slices;
}

/* --- stacks --- */

/* A function that a stack has several times is counted once in total. */
static void add_total(struct folding *f, const struct walked *w, uint32_t frame)
{
	struct fold_flat *x = flat_of(f, frame);

	x->total_ns += w->s->ns;
	x->total_samples += w->s->n;
	for (size_t i = 0; i < w->n_cells; i++)
		part_of(f, w->cells[i].slice, frame)->total += w->cells[i].ns;
}

static void add_self(struct folding *f, const struct walked *w, uint32_t frame)
{
	struct fold_flat *x = flat_of(f, frame);

	x->self_ns += w->s->ns;
	x->self_samples += w->s->n;
	for (size_t i = 0; i < w->n_cells; i++)
		part_of(f, w->cells[i].slice, frame)->self += w->cells[i].ns;
}

/* Its frames, the innermost first; those that are left out are not among them. */
static size_t path_of(struct folding *f, uint32_t stack)
{
	const struct store_dict *d = f->dict;
	size_t n = 0;

	for (uint32_t at = stack; at; at = d->stack_parent[at]) {
		if (fold_leaves_out(f, at))
			continue;
		mem_grow(f->path, n, f->cap_path);
		f->path[n++] = fold_frame_of(f, d->stack_frame[at]);
	}
	return n;
}

/* From the root on: what counts of a recursion is its outermost call. */
static void sum_stack(struct folding *f, const struct walked *w)
{
	const size_t n = path_of(f, w->s->stack);
	const uint32_t last = n ? f->path[0] : 0;

	f->n_seen++;
	for (size_t i = n; i-- > 0;) {
		const uint32_t frame = f->path[i];

		flat_of(f, frame); /* and room in f->seen */
		if (f->seen[frame] == f->n_seen)
			continue;
		f->seen[frame] = f->n_seen;
		add_total(f, w, frame);
		if (f->opts.calls && i + 1 < n)
			call_add(&f->pub->calls, f->path[i + 1], frame, w);
	}
	if (!n)
		add_total(f, w, 0);
	add_self(f, w, last);
	f->pub->frames_unnamed_ns += f->pub->frames[last].named ? 0 : w->s->ns;
	fold_add_to_node(f, 0, w->s->n, w->s->ns, w->s->variance);
}

/* --- by slice, where a file has several --- */

static int by_stack(const void *a, const void *b)
{
	const struct fold_cell *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return (x->slice > y->slice) - (x->slice < y->slice);
}

static int by_id(const void *a, const void *b)
{
	const struct seg_stack *x = a, *y = b;

	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* The cells of the segment are of stacks here, and are dropped. */
static void sum_in_slices(struct folding *f)
{
	struct fold_cell *cells = f->pub->cells + f->first_cell;
	size_t n, at = 0;

	fold_join_cells(f);
	n = f->pub->n_cells - f->first_cell;
	if (n)
		qsort(cells, n, sizeof(*cells), by_stack);
	if (f->n_seg_stacks)
		qsort(f->seg_stacks, f->n_seg_stacks, sizeof(*f->seg_stacks), by_id);
	for (size_t i = 0; i < f->n_seg_stacks; i++) {
		struct walked w = {.s = &f->seg_stacks[i]};

		while (at < n && cells[at].node < w.s->stack)
			at++;
		w.cells = cells + at;
		for (; at < n && cells[at].node == w.s->stack; at++, w.n_cells++)
			w.slices |= 1ull << cells[at].slice % 64;
		sum_stack(f, &w);
	}
	f->pub->n_cells = f->first_cell;
}

void fold_sum_functions(struct folding *f)
{
	flat_of(f, 0);
	if (f->pub->n_slices && !f->pub->flat_slices)
		f->pub->flat_slices = mem_array(f->pub->n_slices, sizeof(*f->pub->flat_slices));
	if (f->pub->n_slices && !f->by_files) {
		sum_in_slices(f);
	} else {
		for (size_t i = 0; i < f->n_seg_stacks; i++) {
			const struct seg_stack *s = &f->seg_stacks[i];
			const struct fold_cell cell = {.slice = f->file_slice, .ns = s->ns};

			sum_stack(f, &(struct walked){.s = s,
						      .cells = &cell,
						      .n_cells = f->by_files,
						      .slices = 1ull << f->file_slice % 64});
		}
	}
	flat_of(f, (uint32_t)f->pub->n_frames);
}
