/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_leaves: fewer leaves of a long range: what a page shows of a day has few slots of time, and
 * a leaf for each of many would take more memory than all else. Slices are joined in pairs as soon
 * as leaves are too many; later segments are read by the wider slices.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_parts.h"

#define NONE UINT32_MAX

/* Names of threads are one copy each: equal ones are the same pointer. */
static bool same_place(const struct fold_leaf *x, const struct fold_leaf *y)
{
	return x->node == y->node && x->process == y->process && x->slice == y->slice &&
	       x->tid == y->tid && x->thread == y->thread && x->label == y->label &&
	       x->labels == y->labels;
}

static uint64_t place_hash(const struct fold_leaf *x)
{
	const uint64_t h = hash_u64(HASH_SEED, (uint64_t)x->node << 32 | x->process);

	return hash_u64(hash_u64(h, (uint64_t)x->tid << 32 | x->slice),
			(uintptr_t)x->thread ^ (uintptr_t)x->labels << 1 ^ x->label);
}

/* The first of those that are alike has them all. */
static void leaves_join(struct fold *f)
{
	size_t cap = 1024, n = 0;
	uint32_t *at;

	while (cap < 2 * f->n_leaves)
		cap *= 2;
	at = mem_array(cap, sizeof(*at));
	memset(at, 0xff, cap * sizeof(*at)); /* NONE */
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *x = &f->leaves[i];
		size_t k = place_hash(x) & (cap - 1);

		while (at[k] != NONE && !same_place(&f->leaves[at[k]], x))
			k = (k + 1) & (cap - 1);
		if (at[k] != NONE) {
			f->leaves[at[k]].samples += x->samples;
			f->leaves[at[k]].ns += x->ns;
			continue;
		}
		at[k] = (uint32_t)n;
		f->leaves[n++] = *x;
	}
	f->n_leaves = n;
	free(at);
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

void fold_join_leaves(struct folding *f)
{
	if (!f->opts.most_leaves || f->opts.cells || f->opts.with)
		return;
	while (f->pub->n_leaves > f->opts.most_leaves && f->pub->n_slices > 1) {
		slices_join(f->pub);
		leaves_join(f->pub);
	}
}
