/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_series: each function's self and total by slice, on both sides: a row of columns each. The tree is walked depth
 * first; what the cells of a node say of its slices goes up to its callers with what its callees brought, a row for each
 * caller that is not done yet. Sums are of whole numbers, exact below 2^53: their order does not matter.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff_parts.h"

#define SERIES_LEAST 5      /* slices a side, for a test that knows a variance */
#define EDGES_MAX 20000     /* that get a series */
#define LANES 8              /* rows are so many columns, times something */

/* --- callers --- */

static uint32_t edge_of(struct diffing *d, uint32_t caller, uint32_t function)
{
	bool fresh;
	uint64_t *edge = idmap_ref(&d->edge_of, (uint64_t)caller << 32 | function, &fresh);

	if (!fresh)
		return (uint32_t)*edge;
	mem_grow(d->edges, d->n_edges, d->cap_edges);
	*edge = d->n_edges;
	d->edges[d->n_edges] = (struct diff_edge){.caller = caller, .function = function, .row = DIFF_NONE};
	return (uint32_t)d->n_edges++;
}

/* Calls from the root (a thread's first function) say nothing, nor do those of a function by itself. */
void diff_edges_make(struct diffing *d)
{
	d->edge = mem_array(d->pub.n_nodes, sizeof(*d->edge));
	idmap_reserve(&d->edge_of, d->pub.n_nodes); /* mostly a new one each */
	for (uint32_t i = 0; i < d->pub.n_nodes; i++) {
		const struct diff_node *n = &d->pub.nodes[i];

		d->edge[i] = DIFF_NONE;
		if (!i || !n->parent || !d->outer[i])
			continue;
		d->edge[i] = edge_of(d, d->pub.nodes[n->parent].function, n->function);
		for (int s = 0; s < 2; s++)
			d->edges[d->edge[i]].samples[s] += n->total_samples[s];
	}
	for (size_t i = 0; i < d->n_edges && d->n_edge_rows < EDGES_MAX; i++) {
		struct diff_edge *x = &d->edges[i];

		if ((x->samples[0] && x->samples[1]) || x->samples[0] + x->samples[1] < DIFF_LEAST)
			continue;
		x->row = (uint32_t)d->n_edge_rows++;
	}
}

/* --- columns --- */

struct columns {                /* of one side */
	size_t first, n;
	uint32_t *of;           /* by slice: the column, DIFF_NONE: not compared */
	double *scale;          /* by slice: from ns to the unit of the diff */
};

static void columns_release(struct columns *c)
{
	free(c->of);
	free(c->scale);
}

/* By slice: what its values are divided by. */
static double *wholes_of(const struct diffing *d, const struct fold *f)
{
	double *whole = mem_array(f->n_slices + 1, sizeof(*whole));

	for (size_t i = 0; d->pub.per == DIFF_PER_SECOND && i < f->n_slices; i++)
		whole[i] = f->kind->class == STORE_GAUGE ? 1 : (double)f->slices[i].covered_ns / (f->unit == STORE_TIME ? 1 : 1e9);
	for (size_t i = 0; d->pub.per != DIFF_PER_SECOND && i < f->n_cells; i++)
		whole[f->cells[i].slice] += (double)f->cells[i].ns;
	return whole;
}

static void columns_init(const struct diffing *d, struct columns *c, const struct fold *f)
{
	cleanup_free double *whole = wholes_of(d, f);

	c->of = mem_array(f->n_slices + 1, sizeof(*c->of));
	c->scale = mem_array(f->n_slices + 1, sizeof(*c->scale));
	for (size_t i = 0; i < f->n_slices; i++) {
		c->of[i] = DIFF_NONE;
		if ((double)f->slices[i].covered_ns < (double)f->slice_ns / 2 || whole[i] <= 0)
			continue;
		c->of[i] = (uint32_t)(c->first + c->n++);
		c->scale[i] = 1 / whole[i];
	}
}

/* --- sums --- */

struct own {                    /* of a node itself */
	uint32_t column;
	uint64_t ns;
};

struct summing {
	struct diffing *d;
	size_t *begin;          /* by node: its first in `own`, n_nodes + 1 of them */
	struct own *own;
	double *row;            /* of the node at hand, behind those of its callers */
};

static uint32_t node_of(const struct diffing *d, int side, const struct fold_cell *cell)
{
	return cell->node ? d->node[side][cell->node] : d->no_stack;
}

/* Cells of both sides by node: counted, then put in their places. */
static void own_init(struct summing *s, const struct columns c[2])
{
	const struct diffing *d = s->d;
	const struct fold *const f[2] = {d->pub.side[0].f, d->pub.side[1].f};
	cleanup_free size_t *next = mem_array(d->pub.n_nodes + 1, sizeof(*next));

	s->begin = mem_array(d->pub.n_nodes + 1, sizeof(*s->begin));
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < f[side]->n_cells; i++)
			s->begin[node_of(d, side, &f[side]->cells[i]) + 1] += c[side].of[f[side]->cells[i].slice] != DIFF_NONE;
	for (size_t i = 0; i < d->pub.n_nodes; i++)
		next[i + 1] = s->begin[i + 1] += s->begin[i];
	s->own = mem_array(s->begin[d->pub.n_nodes] + 1, sizeof(*s->own));
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < f[side]->n_cells; i++) {
			const struct fold_cell *cell = &f[side]->cells[i];
			uint32_t column = c[side].of[cell->slice];

			if (column != DIFF_NONE)
				s->own[next[node_of(d, side, cell)]++] = (struct own){column, cell->ns};
		}
}

static void add_row(double *restrict to, const double *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			to[i + k] += from[i + k];
}

/* It has nothing of its own, and one callee: their rows are the same one. */
static bool shares_row(const struct summing *s, uint32_t node)
{
	return s->d->children.nodes[node].n == 1 && s->begin[node] == s->begin[node + 1];
}

static void enter(struct summing *s, uint32_t node)
{
	struct diffing *d = s->d;
	double *self = d->self_series + d->pub.nodes[node].function * d->stride;

	if (node && !shares_row(s, d->pub.nodes[node].parent)) {
		s->row += d->stride;
		memset(s->row, 0, d->stride * sizeof(*s->row));
	}
	for (size_t i = s->begin[node]; i < s->begin[node + 1]; i++) {
		s->row[s->own[i].column] += (double)s->own[i].ns;
		self[s->own[i].column] += (double)s->own[i].ns;
	}
}

static void leave(struct summing *s, uint32_t node)
{
	struct diffing *d = s->d;
	const struct diff_node *n = &d->pub.nodes[node];
	uint32_t edge = d->edge[node] == DIFF_NONE ? DIFF_NONE : d->edges[d->edge[node]].row;

	if (d->outer[node])
		add_row(d->total_series + n->function * d->stride, s->row, d->stride);
	if (edge != DIFF_NONE)
		add_row(d->edge_series + edge * d->stride, s->row, d->stride);
	if (!node || shares_row(s, n->parent))
		return;
	add_row(s->row - d->stride, s->row, d->stride);
	s->row -= d->stride;
}

static void walk(struct summing *s)
{
	const struct childmap_node *tree = s->d->children.nodes;
	uint32_t at = 0;

	enter(s, at);
	for (;;) {
		if (tree[at].first) {
			at = tree[at].first;
			enter(s, at);
			continue;
		}
		for (leave(s, at); at && !tree[at].next; leave(s, at))
			at = s->d->pub.nodes[at].parent;
		if (!at)
			return;
		at = tree[at].next;
		enter(s, at);
	}
}

static void sum_up(struct diffing *d, const struct columns c[2])
{
	struct summing s = {.d = d};
	uint32_t depth = 0;
	double *rows;

	for (size_t i = 0; i < d->pub.n_nodes; i++)
		depth = d->pub.nodes[i].depth > depth ? d->pub.nodes[i].depth : depth;
	rows = s.row = mem_array((depth + 1) * d->stride, sizeof(*rows));
	own_init(&s, c);
	if (d->pub.n_nodes > 1)
		walk(&s);
	free(rows);
	free(s.begin);
	free(s.own);
}

static void series_init(struct diffing *d, const struct columns c[2])
{
	d->columns = c[0].n + c[1].n;
	d->stride = (d->columns + LANES - 1) / LANES * LANES;
	d->column_from = mem_array(d->columns, sizeof(*d->column_from));
	d->column_scale = mem_array(d->columns, sizeof(*d->column_scale));
	d->self_series = mem_array(d->pub.n_functions * d->stride, sizeof(double));
	d->total_series = mem_array(d->pub.n_functions * d->stride, sizeof(double));
	d->edge_series = mem_array(d->n_edge_rows * d->stride + 1, sizeof(double));
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < d->pub.side[side].f->n_slices; i++) {
			if (c[side].of[i] == DIFF_NONE)
				continue;
			d->column_from[c[side].of[i]] = d->pub.side[side].f->slices[i].from_ns;
			d->column_scale[c[side].of[i]] = c[side].scale[i];
		}
}

bool diff_series_make(struct diffing *d)
{
	struct columns c[2] = {{0}, {0}};
	bool enough;

	columns_init(d, &c[0], d->pub.side[0].f);
	c[1].first = c[0].n;
	columns_init(d, &c[1], d->pub.side[1].f);
	enough = c[0].n >= SERIES_LEAST && c[1].n >= SERIES_LEAST;
	if (enough) {
		series_init(d, c);
		sum_up(d, c);
	}
	for (int s = 0; s < 2; s++) {
		d->pub.side[s].n_slices = enough ? c[s].n : 0;
		d->pub.side[s].slice_s = (double)d->pub.side[s].f->slice_ns / 1e9;
		columns_release(&c[s]);
	}
	return enough;
}
