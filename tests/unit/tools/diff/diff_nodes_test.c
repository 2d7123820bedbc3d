/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_nodes: the tree of both sides has each path of functions once, with what the nodes of that
 * path have on each side. diff_edges: the pairs that are on one side only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tests/unit/test.h"
#include "tools/diff/diff_parts.h"

#define FRAMES 30
#define NAMES  12 /* several frames are of one function */
#define NODES  (getenv("SONDE_SOAK") ? 300u : 150u)

static char names[NAMES][8];

static uint32_t below(uint32_t n)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

static void fold_make_up(struct fold *f, bool root_has_own)
{
	*f = (struct fold){.n_frames = FRAMES, .n_nodes = NODES};
	f->frames = mem_array(FRAMES, sizeof(*f->frames));
	f->nodes = mem_array(NODES, sizeof(*f->nodes));
	for (uint32_t i = 0; i < FRAMES; i++)
		f->frames[i] = (struct fold_frame){
			.name = i ? names[below(NAMES - 3) + (root_has_own ? 3 : 0)] : "all",
			.module = i ? "m" : "",
			.named = true};
	for (uint32_t i = 0; i < NODES; i++) {
		uint64_t n = i || root_has_own ? below(3) : 0;

		n += !i && root_has_own;
		f->nodes[i] = (struct fold_node){.frame = i ? 1 + below(FRAMES - 1) : 0,
						 .parent = i ? below(3) ? i - 1 : below(i) : 0,
						 .self_samples = n,
						 .self_ns = 10 * n};
	}
}

/* "m0;m3;", from the root on */
static void path_of_fold(const struct fold *f, uint32_t node, struct strbuf *s)
{
	if (!node)
		return;
	path_of_fold(f, f->nodes[node].parent, s);
	strbuf_addf(s, "%s;", f->frames[f->nodes[node].frame].name);
}

static void path_of_diff(const struct diff *d, uint32_t node, struct strbuf *s)
{
	if (!node)
		return;
	path_of_diff(d, d->nodes[node].parent, s);
	strbuf_addf(s, "%s;", d->functions[d->nodes[node].function].frame->name);
}

/* What the fold has of this path: of itself, and with all below it. */
static void sums_of(const struct fold *f, const char *path, uint64_t *self, uint64_t *total)
{
	*self = *total = 0;
	for (uint32_t i = 0; i < f->n_nodes; i++) {
		struct strbuf s = STRBUF_INIT;

		path_of_fold(f, i, &s);
		if (!i && f->nodes[0].self_samples)
			strbuf_addstr(&s, "[no stack];");
		*self += strcmp(strbuf_str(&s), path) ? 0 : f->nodes[i].self_samples;
		*total +=
			strncmp(strbuf_str(&s), path, strlen(path)) ? 0 : f->nodes[i].self_samples;
		strbuf_release(&s);
	}
}

static void check_node(const struct diffing *d, uint32_t i)
{
	const struct diff_node *n = &d->pub.nodes[i];
	struct strbuf path = STRBUF_INIT;

	path_of_diff(&d->pub, i, &path);
	for (int side = 0; side < 2; side++) {
		uint64_t self, total;

		sums_of(d->pub.side[side].f, strbuf_str(&path), &self, &total);
		assert_int_equal(n->self_samples[side], self);
		assert_int_equal(n->total_samples[side], total);
		assert_int_equal(n->self_ns[side], 10 * self);
		assert_int_equal(n->total_ns[side], 10 * total);
	}
	for (uint32_t k = 1; k < i; k++) /* each path once */
		assert_false(d->pub.nodes[k].parent == n->parent &&
			     d->pub.nodes[k].function == n->function);
	strbuf_release(&path);
}

static void check_place(const struct diffing *d, uint32_t i)
{
	const struct diff_node *n = &d->pub.nodes[i];
	uint32_t up = n->parent;

	assert_true(n->parent < i && n->depth == d->pub.nodes[n->parent].depth + 1);
	assert_true(d->end[i] <= d->end[n->parent]);
	for (uint32_t k = i + 1; k < d->end[i]; k++) {
		uint32_t at = k;

		while (at && at != i)
			at = d->pub.nodes[at].parent;
		assert_int_equal(at, i); /* all between are below it */
	}
	assert_true(d->end[i] == d->pub.n_nodes ||
		    d->pub.nodes[d->end[i]].parent < i); /* and none behind them */
	while (up && d->pub.nodes[up].function != n->function)
		up = d->pub.nodes[up].parent;
	assert_int_equal(d->outer[i], !up);
}

static void check_nodes_of_folds(const struct diffing *d)
{
	for (int side = 0; side < 2; side++)
		for (uint32_t i = 1; i < NODES; i++) {
			const struct fold_node *n = &d->pub.side[side].f->nodes[i];
			const struct diff_node *to = &d->pub.nodes[d->node[side][i]];

			assert_int_equal(to->parent, d->node[side][n->parent]);
			assert_string_equal(d->pub.functions[to->function].frame->name,
					    d->pub.side[side].f->frames[n->frame].name);
		}
}

/* What is called by `caller` in all, where it is not below itself; which edge those nodes have. */
static void calls_of(const struct diffing *d, uint32_t caller, uint32_t function,
		     uint64_t samples[2], uint32_t *edge)
{
	bool first = true;

	samples[0] = samples[1] = *edge = 0;
	for (uint32_t i = 1; i < d->pub.n_nodes; i++) {
		const struct diff_node *n = &d->pub.nodes[i];

		if (n->function != function || !n->parent || !d->outer[i] ||
		    d->pub.nodes[n->parent].function != caller)
			continue;
		assert_true(first || *edge == d->edge[i]);
		*edge = d->edge[i];
		first = false;
		samples[0] += n->total_samples[0];
		samples[1] += n->total_samples[1];
	}
}

static void check_edges(const struct diffing *d)
{
	size_t found = 0;

	for (uint32_t caller = 1; caller < d->pub.n_functions; caller++)
		for (uint32_t function = 1; function < d->pub.n_functions; function++) {
			uint64_t samples[2];
			uint32_t edge;

			calls_of(d, caller, function, samples, &edge);
			assert_int_equal(edge != 0, !(samples[0] && samples[1]) &&
							    samples[0] + samples[1] >= DIFF_LEAST);
			if (!edge)
				continue;
			found++;
			assert_int_equal(d->edges[edge - 1].caller, caller);
			assert_int_equal(d->edges[edge - 1].function, function);
			assert_memory_equal(d->edges[edge - 1].samples, samples, sizeof(samples));
		}
	assert_int_equal(found, d->n_edges);
	for (uint32_t i = 0; i < d->pub.n_nodes; i++)
		assert_true(!d->edge[i] || (d->pub.nodes[i].parent && d->outer[i]));
}

static bool has_callee(const struct fold *f, uint32_t n, uint32_t parent, uint32_t frame)
{
	for (uint32_t i = 1; i < n; i++)
		if (f->nodes[i].parent == parent && f->nodes[i].frame == frame)
			return true;
	return false;
}

/* Both of one tree, as of two windows of a day: depth first, each callee once; by function, frames
 * are that many. */
static void folds_make_up(struct fold f[2], bool by_function, bool before_has_own,
			  bool after_has_own)
{
	fold_make_up(&f[0], before_has_own);
	for (uint32_t i = 1; i < NODES; i++) {
		struct fold_node *n = &f[0].nodes[i];

		n->parent = i - 1;
		for (uint32_t up = below(3) ? 0 : below(12); n->parent && up; up--)
			n->parent = f[0].nodes[n->parent].parent;
		do
			n->frame = 1 + below(by_function ? NAMES - 1 : FRAMES - 1);
		while (has_callee(&f[0], i, n->parent, n->frame) && (n->parent = i - 1, true));
	}
	for (uint32_t i = 1; by_function && i < FRAMES; i++)
		f[0].frames[i].name = names[i % NAMES];
	f[0].functions = by_function;
	f[1] = f[0];
	f[1].nodes = mem_array(NODES, sizeof(*f[1].nodes));
	for (uint32_t i = 0; i < NODES; i++) {
		uint64_t samples = i || after_has_own ? below(3) + !i : 0;

		f[1].nodes[i] = (struct fold_node){.frame = f[0].nodes[i].frame,
						   .parent = f[0].nodes[i].parent,
						   .self_samples = samples,
						   .self_ns = 10 * samples};
	}
	f[0].n_frames = f[1].n_frames = by_function ? NAMES : FRAMES;
}

enum trees { TWO_TREES, ONE_TREE, ONE_BY_FUNCTION };

static void compare(enum trees trees, bool before_has_own, bool after_has_own, size_t *n_edges)
{
	struct diffing d = {.pub.side = {{.means = 1}, {.means = 1}}};
	struct fold f[2];

	if (trees != TWO_TREES) {
		folds_make_up(f, trees == ONE_BY_FUNCTION, before_has_own, after_has_own);
	} else {
		fold_make_up(&f[0], before_has_own);
		fold_make_up(&f[1], after_has_own);
	}
	d.pub.side[0].f = &f[0];
	d.pub.side[1].f = &f[1];
	diff_nodes_make(&d);
	diff_nodes_sum(&d);
	diff_outer_find(&d);
	diff_edges_make(&d);
	assert_int_equal(d.no_stack != 0, before_has_own || after_has_own);
	check_nodes_of_folds(&d);
	for (uint32_t i = 1; i < d.pub.n_nodes; i++) {
		check_node(&d, i);
		check_place(&d, i);
	}
	check_edges(&d);
	*n_edges += d.n_edges;
	for (int side = 0; side < 2; side++) {
		free(side && trees != TWO_TREES ? NULL : f[side].frames);
		free(f[side].nodes);
		free(side && trees != TWO_TREES ? NULL : d.node[side]);
	}
	idmap_release(&d.function_of);
	free(d.pub.functions);
	free(d.pub.nodes);
	free(d.end);
	free(d.outer);
	free(d.edge);
	free(d.edges);
}

TEST(each_path_is_one_node)
{
	size_t n_edges = 0;

	for (int i = 0; i < NAMES; i++)
		snprintf(names[i], sizeof(names[i]), "m%d", i);
	for (enum trees trees = TWO_TREES; trees <= ONE_BY_FUNCTION; trees++)
		for (int own = 0; own < 4; own++)
			compare(trees, own & 1, own & 2, &n_edges);
	assert_true(n_edges > 0);
}
