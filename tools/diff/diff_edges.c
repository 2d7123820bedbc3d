/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_edges: pairs of caller and function that are on one side only, often enough to be tested.
 * Function by function: a mark at the caller distinguishes its pairs, and most are dropped again.
 */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"

struct pair {
	uint32_t caller, edge; /* + 1, 0: not worth a test */
	uint64_t samples[2];
};

struct pairing {
	struct diffing *d;
	uint32_t *list;  /* nodes in the order of their functions */
	uint32_t *begin; /* by function: its first in `list`, n_functions + 1 of them */
	struct mark {
		uint32_t by, pair;
	} * mark; /* by caller: the function that was last asked of (+ 1), and their pair */
	struct pair *pairs; /* of the function at hand */
	size_t n, cap;
};

static void list_make(struct pairing *p)
{
	const struct diff *pub = &p->d->pub;
	cleanup_free uint32_t *next = mem_array(pub->n_functions + 1, sizeof(*next));

	p->list = mem_array(pub->n_nodes, sizeof(*p->list));
	p->begin = mem_array(pub->n_functions + 1, sizeof(*p->begin));
	for (size_t i = 0; i < pub->n_nodes; i++)
		p->begin[pub->nodes[i].function + 1]++;
	for (size_t i = 1; i <= pub->n_functions; i++)
		next[i] = p->begin[i] += p->begin[i - 1];
	for (size_t i = 0; i < pub->n_nodes; i++)
		p->list[next[pub->nodes[i].function]++] = (uint32_t)i;
}

/* Calls from the root (a thread's first function) say nothing, nor do those of a function by
 * itself. */
static bool is_call(const struct diffing *d, uint32_t node)
{
	return d->pub.nodes[node].parent && d->outer[node];
}

static uint32_t caller_of(const struct diffing *d, uint32_t node)
{
	return d->pub.nodes[d->pub.nodes[node].parent].function;
}

static void take_call(struct pairing *p, uint32_t function, uint32_t node)
{
	const struct diff_node *n = &p->d->pub.nodes[node];
	uint32_t caller = caller_of(p->d, node);
	struct mark *m = &p->mark[caller];

	if (m->by != function + 1) {
		mem_grow(p->pairs, p->n, p->cap);
		*m = (struct mark){function + 1, (uint32_t)p->n};
		p->pairs[p->n++] = (struct pair){.caller = caller};
	}
	for (int s = 0; s < 2; s++)
		p->pairs[m->pair].samples[s] += n->total_samples[s];
}

/* Those of one side get an edge. How many. */
static size_t choose(struct pairing *p, uint32_t function)
{
	struct diffing *d = p->d;
	size_t before = d->n_edges;

	for (size_t i = 0; i < p->n && d->n_edges < DIFF_EDGES_MAX; i++) {
		struct pair *x = &p->pairs[i];

		if ((x->samples[0] && x->samples[1]) || x->samples[0] + x->samples[1] < DIFF_LEAST)
			continue;
		mem_grow(d->edges, d->n_edges, d->cap_edges);
		d->edges[d->n_edges] =
			(struct diff_edge){x->caller, function, {x->samples[0], x->samples[1]}, 0};
		x->edge = (uint32_t)++d->n_edges;
	}
	return d->n_edges - before;
}

static void pair_function(struct pairing *p, uint32_t function)
{
	struct diffing *d = p->d;
	const uint32_t *from = p->list + p->begin[function], *to = p->list + p->begin[function + 1];

	p->n = 0;
	for (const uint32_t *at = from; at < to; at++)
		if (is_call(d, *at))
			take_call(p, function, *at);
	if (!choose(p, function))
		return;
	for (const uint32_t *at = from; at < to; at++)
		if (is_call(d, *at))
			d->edge[*at] = p->pairs[p->mark[caller_of(d, *at)].pair].edge;
}

void diff_edges_make(struct diffing *d)
{
	struct pairing p = {.d = d, .mark = mem_array(d->pub.n_functions, sizeof(*p.mark))};

	d->edge = mem_array(d->pub.n_nodes, sizeof(*d->edge));
	list_make(&p);
	for (uint32_t i = 0; i < d->pub.n_functions; i++)
		pair_function(&p, i);
	free(p.list);
	free(p.begin);
	free(p.mark);
	free(p.pairs);
}
