/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/wallparts.h"

#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"

void wallparts_release(struct wallparts *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->v[i].slices);
		free(p->v[i].stacks);
	}
	free(p->v);
	idmap_release(&p->of);
}

static bool same(const struct wallkey *a, const struct wallkey *b)
{
	return a->process == b->process && a->tid == b->tid && a->thread == b->thread &&
	       a->class == b->class && a->partial == b->partial;
}

/* NULL: not found; `hash` is where it would be. */
static struct wallpart *part_find(const struct wallparts *p, const struct wallkey *k,
				  uint64_t *hash)
{
	uint64_t i;

	*hash = hash_u64(hash_u64(hash_u64(HASH_SEED, (uint64_t)k->process << 32 | k->tid),
				  (uintptr_t)k->thread),
			 (uint64_t)k->class << 1 | k->partial);
	for (; idmap_get(&p->of, *hash, &i); *hash = hash_u64(*hash, 1))
		if (same(&p->v[i].key, k))
			return &p->v[i];
	return NULL;
}

void wallparts_add(struct wallparts *p, const struct wallkey *key, uint32_t slice, uint64_t n,
		   uint64_t ns)
{
	uint64_t hash;
	struct wallpart *part = part_find(p, key, &hash);
	struct wallslice *last;

	if (!part) {
		mem_grow(p->v, p->n, p->cap);
		idmap_set(&p->of, hash, p->n);
		part = &p->v[p->n++];
		*part = (struct wallpart){.key = *key};
	}
	last = part->n_slices ? &part->slices[part->n_slices - 1] : NULL;
	if (!last || last->slice != slice) {
		mem_grow(part->slices, part->n_slices, part->cap_slices);
		last = &part->slices[part->n_slices++];
		*last = (struct wallslice){.slice = slice};
	}
	last->n += n;
	last->ns += ns;
}

void wallparts_shape(struct wallparts *p, const struct wallkey *key, const struct wallstack *s)
{
	uint64_t hash;
	struct wallpart *part = part_find(p, key, &hash);

	if (!part || !s->weight)
		return;
	mem_grow(part->stacks, part->n_stacks, part->cap_stacks);
	part->stacks[part->n_stacks++] = *s;
}

static uint64_t weight_in(const struct wallpart *part, uint32_t slice, bool all)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < part->n_stacks; i++)
		if (all || part->stacks[i].slice == slice)
			sum += part->stacks[i].weight;
	return sum;
}

/* How much of `whole` belongs to the first `part` of `sum`: differences of it add up to the whole.
 */
static uint64_t upto(uint64_t whole, uint64_t part, uint64_t sum)
{
	return (uint64_t)((unsigned __int128)whole * part / sum);
}

static void slice_share(const struct wallpart *part, const struct wallslice *s, wallparts_fn fn,
			void *ctx)
{
	uint64_t sum = weight_in(part, s->slice, false), passed = 0;
	bool all = !sum;

	sum = all ? weight_in(part, s->slice, true) : sum;
	if (!sum) {
		fn(ctx, &part->key, UINT32_MAX, s);
		return;
	}
	for (size_t i = 0; i < part->n_stacks; i++) {
		const struct wallstack *x = &part->stacks[i];
		struct wallslice share = {.slice = s->slice};

		if (!all && x->slice != s->slice)
			continue;
		share.n = upto(s->n, passed + x->weight, sum) - upto(s->n, passed, sum);
		share.ns = upto(s->ns, passed + x->weight, sum) - upto(s->ns, passed, sum);
		passed += x->weight;
		if (share.n || share.ns)
			fn(ctx, &part->key, x->stack, &share);
	}
}

void wallparts_share(const struct wallpart *part, wallparts_fn fn, void *ctx)
{
	for (size_t i = 0; i < part->n_slices; i++)
		slice_share(part, &part->slices[i], fn, ctx);
}
