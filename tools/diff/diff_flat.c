/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_flat: two folds that have sums of functions instead of a tree (fold_opts.flat, with slices
 * and calls). They say the same of functions and callers as two trees do, and need no memory for
 * stacks; there are no nodes.
 */
#include <stdlib.h>

#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"

bool diff_is_flat(const struct diffing *d)
{
	return d->pub.side[0].f->flat && d->pub.side[1].f->flat;
}

/* --- functions --- */

static void add(struct diff_value *v, int side, uint64_t ns, uint64_t samples)
{
	v->ns[side] += ns;
	v->samples[side] += samples;
}

/* [0] is of stacks without a frame: a function here. */
static uint32_t function_of(struct diffing *d, const struct fold *f, uint32_t frame)
{
	return diff_function_of(d, frame ? &f->frames[frame] : &DIFF_NO_STACK);
}

static void take_functions(struct diffing *d, int side)
{
	const struct fold *f = d->pub.side[side].f;

	d->function[side] = mem_array(f->n_frames, sizeof(*d->function[side]));
	for (uint32_t i = 0; i < f->n_frames; i++) {
		const struct fold_flat *x = &f->flat[i];
		uint32_t function;

		if (!x->total_ns && !x->total_samples)
			continue;
		function = function_of(d, f, i);
		d->function[side][i] = function;
		add(&d->pub.functions[function].self, side, x->self_ns, x->self_samples);
		add(&d->pub.functions[function].total, side, x->total_ns, x->total_samples);
	}
	add(&d->pub.functions[0].total, side, f->nodes[0].total_ns, f->nodes[0].total_samples);
}

/* --- callers --- */

struct pairs { /* a table: free where samples are 0 on both sides */
	struct diff_edge *v;
	size_t cap;
};

static struct diff_edge *pair_at(const struct pairs *p, uint32_t caller, uint32_t function)
{
	size_t k = hash_u64(HASH_SEED, (uint64_t)caller << 32 | function) & (p->cap - 1);

	while ((p->v[k].samples[0] || p->v[k].samples[1]) &&
	       (p->v[k].caller != caller || p->v[k].function != function))
		k = (k + 1) & (p->cap - 1);
	return &p->v[k];
}

static void take_pairs(struct diffing *d, struct pairs *p, int side)
{
	const struct fold *f = d->pub.side[side].f;

	for (size_t i = 0; i < f->calls.cap; i++) {
		const struct fold_call *c = &f->calls.v[i];
		const uint32_t caller = d->function[side][c->key >> 32],
			       function = d->function[side][(uint32_t)c->key];
		struct diff_edge *x;

		if (!c->key || !c->samples)
			continue;
		x = pair_at(p, caller, function);
		x->caller = caller;
		x->function = function;
		x->samples[side] += c->samples;
		x->slices |= c->slices;
	}
}

static int most_first(const void *a, const void *b)
{
	const struct diff_edge *x = a, *y = b;
	const uint64_t n = x->samples[0] + x->samples[1], m = y->samples[0] + y->samples[1];

	if (n != m)
		return n > m ? -1 : 1;
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->caller > y->caller) - (x->caller < y->caller);
}

static void take_edges(struct diffing *d)
{
	struct pairs p = {.cap = 1024};

	while (p.cap / 4 * 3 < d->pub.side[0].f->calls.n + d->pub.side[1].f->calls.n)
		p.cap *= 2;
	p.v = mem_array(p.cap, sizeof(*p.v));
	for (int side = 0; side < 2; side++)
		take_pairs(d, &p, side);
	for (size_t i = 0; i < p.cap; i++) {
		const struct diff_edge *x = &p.v[i];

		if ((!x->samples[0] == !x->samples[1]) ||
		    x->samples[0] + x->samples[1] < DIFF_LEAST)
			continue;
		mem_grow(d->edges, d->n_edges, d->cap_edges);
		d->edges[d->n_edges++] = *x;
	}
	free(p.v);
	if (d->n_edges)
		qsort(d->edges, d->n_edges, sizeof(*d->edges), most_first);
	d->n_edges = d->n_edges < DIFF_EDGES_MAX ? d->n_edges : DIFF_EDGES_MAX;
}

void diff_flat_make(struct diffing *d)
{
	diff_function_of(d, &d->pub.side[0].f->frames[0]);
	for (int side = 0; side < 2; side++)
		take_functions(d, side);
	take_edges(d);
}
