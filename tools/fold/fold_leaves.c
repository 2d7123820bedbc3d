/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_leaves: fewer leaves of a long range: what a page shows of a day has few slots of time, and
 * a leaf for each of many would take more memory than all else. Slices are joined in pairs as soon
 * as leaves are too many; later segments are read by the wider slices. Cells, which say less, are
 * always joined.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_parts.h"

#define NONE UINT32_MAX

/* Names of threads are one copy each: equal ones are the same pointer. */
static bool same_place(const struct fold_leaf *x, const struct fold_leaf *y, bool slices)
{
	return x->node == y->node && x->process == y->process &&
	       (!slices || x->slice == y->slice) && x->tid == y->tid && x->thread == y->thread &&
	       x->label == y->label && x->labels == y->labels;
}

static uint64_t place_hash(const struct fold_leaf *x, bool slices)
{
	const uint64_t h = hash_u64(HASH_SEED, (uint64_t)x->node << 32 | x->process);

	return hash_u64(hash_u64(h, (uint64_t)x->tid << 32 | (slices ? x->slice : 0)),
			(uintptr_t)x->thread ^ (uintptr_t)x->labels << 1 ^ x->label);
}

/* A table with room for all leaves: the first of those that are alike is there. */
struct places {
	uint32_t *at;
	size_t cap;
	bool slices; /* a place in each */
};

static void places_init(struct places *p, const struct fold *f, bool slices)
{
	p->slices = slices;
	for (p->cap = 1024; p->cap < 2 * f->n_leaves;)
		p->cap *= 2;
	p->at = mem_array(p->cap, sizeof(*p->at));
	memset(p->at, 0xff, p->cap * sizeof(*p->at)); /* NONE */
}

static uint32_t *place_of(struct places *p, const struct fold *f, const struct fold_leaf *x)
{
	size_t k = place_hash(x, p->slices) & (p->cap - 1);

	while (p->at[k] != NONE && !same_place(&f->leaves[p->at[k]], x, p->slices))
		k = (k + 1) & (p->cap - 1);
	return &p->at[k];
}

/* The first of those that are alike has them all. */
static void leaves_join(struct fold *f)
{
	struct places p;
	size_t n = 0;

	places_init(&p, f, true);
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *x = &f->leaves[i];
		uint32_t *at = place_of(&p, f, x);

		if (*at != NONE) {
			f->leaves[*at].samples += x->samples;
			f->leaves[*at].ns += x->ns;
			continue;
		}
		*at = (uint32_t)n;
		f->leaves[n++] = *x;
	}
	f->n_leaves = n;
	free(p.at);
}

static void slices_join(struct fold *f)
{
	for (size_t i = 0; i < f->n_slices; i += 2) {
		f->slices[i / 2].from_ns = f->slices[i].from_ns;
		f->slices[i / 2].to_ns = f->slices[i + 1 < f->n_slices ? i + 1 : i].to_ns;
	}
	f->n_slices = (f->n_slices + 1) / 2;
	f->slice_ns *= 2;
	for (size_t i = 0; i < f->n_leaves; i++)
		f->leaves[i].slice /= 2;
}

/* Are there more stacks of threads than that? Then each slice has some of most of them, and to join
 * a few slices gains nothing. */
static bool has_more_places(const struct fold *f, size_t most)
{
	struct places p;
	size_t n = 0;

	places_init(&p, f, false);
	for (size_t i = 0; i < f->n_leaves && n <= most; i++) {
		uint32_t *at = place_of(&p, f, &f->leaves[i]);

		n += *at == NONE;
		*at = (uint32_t)i;
	}
	free(p.at);
	return n > most;
}

/* Of one slice those of several segments are joined, when they are twice as many as the last time.
 */
void fold_join_leaves(struct folding *f)
{
	struct fold *pub = f->pub;
	bool to_one;

	if (!f->opts.most_leaves || f->opts.cells || f->opts.with ||
	    pub->n_leaves <= f->opts.most_leaves)
		return;
	to_one = pub->n_slices > 1 && has_more_places(pub, f->opts.most_leaves / 2);
	while (pub->n_leaves > f->opts.most_leaves && pub->n_slices > 1) {
		slices_join(pub);
		if (!to_one || pub->n_slices == 1)
			leaves_join(pub);
		f->n_joined = pub->n_leaves;
	}
	if (pub->n_leaves > 2 * f->n_joined) {
		leaves_join(pub);
		f->n_joined = pub->n_leaves;
	}
}

void fold_join_last(struct folding *f)
{
	if (f->opts.most_leaves && !f->opts.cells && !f->opts.with &&
	    f->pub->n_leaves > f->opts.most_leaves && f->pub->n_leaves > f->n_joined)
		leaves_join(f->pub);
}

/* --- cells --- */

#define MANY_CELLS (1u << 20)

/* Of the cells from `first` on those of one node and slice become one. */
static void cells_join(struct fold *f, size_t first)
{
	struct fold_cell *v = f->cells + first;
	const size_t n = f->n_cells - first;
	size_t cap = 1024, kept = 0;
	uint32_t *at;

	while (cap < 2 * n)
		cap *= 2;
	at = mem_array(cap, sizeof(*at)); /* place in v + 1; 0: free */
	for (size_t i = 0; i < n; i++) {
		const uint64_t key = (uint64_t)v[i].node << 32 | v[i].slice;
		size_t k = hash_u64(HASH_SEED, key) & (cap - 1);

		while (at[k] && ((uint64_t)v[at[k] - 1].node << 32 | v[at[k] - 1].slice) != key)
			k = (k + 1) & (cap - 1);
		if (at[k]) {
			v[at[k] - 1].ns += v[i].ns;
			continue;
		}
		v[kept++] = v[i];
		at[k] = (uint32_t)kept;
	}
	f->n_cells = first + kept;
	free(at);
}

void fold_join_cells(struct folding *f)
{
	struct fold *pub = f->pub;

	if (pub->n_cells > f->first_cell)
		cells_join(pub, f->first_cell);
	if (pub->n_cells <= MANY_CELLS || pub->n_cells <= 2 * f->n_joined_cells)
		return;
	cells_join(pub, 0);
	f->n_joined_cells = pub->n_cells;
}
