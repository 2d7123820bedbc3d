/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_series: each function's self and total by slice, on both sides. The cells of a fold are put in order of their
 * slice; then, slice after slice, they are added to their nodes, and the nodes swept from the leaves to the root.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff_parts.h"

#define SERIES_LEAST 5      /* slices a side, for a test that knows a variance */
#define EDGES_MAX 20000     /* that get a series */
#define LANES 4

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
	size_t *begin;          /* by slice: its first cell in `order`, n_slices + 1 of them */
	uint32_t *order;        /* cells by slice */
};

static void columns_release(struct columns *c)
{
	free(c->of);
	free(c->scale);
	free(c->begin);
	free(c->order);
}

static void columns_order(struct columns *c, const struct fold *f)
{
	cleanup_free size_t *next = mem_array(f->n_slices + 1, sizeof(*next));

	c->begin = mem_array(f->n_slices + 1, sizeof(*c->begin));
	c->order = mem_array(f->n_cells + 1, sizeof(*c->order));
	for (size_t i = 0; i < f->n_cells; i++)
		c->begin[f->cells[i].slice + 1]++;
	for (size_t i = 0; i < f->n_slices; i++)
		next[i + 1] = c->begin[i + 1] += c->begin[i];
	next[0] = 0;
	for (size_t i = 0; i < f->n_cells; i++)
		c->order[next[f->cells[i].slice]++] = (uint32_t)i;
}

static double slice_whole(const struct diffing *d, const struct columns *c, const struct fold *f, size_t slice)
{
	double ns = 0;

	if (d->pub.per == DIFF_PER_SECOND && f->kind->class == STORE_GAUGE)
		return 1;
	if (d->pub.per == DIFF_PER_SECOND)
		return (double)f->slices[slice].covered_ns / (f->unit == STORE_TIME ? 1 : 1e9);
	for (size_t i = c->begin[slice]; i < c->begin[slice + 1]; i++)
		ns += (double)f->cells[c->order[i]].ns;
	return ns;
}

static void columns_init(const struct diffing *d, struct columns *c, const struct fold *f)
{
	c->of = mem_array(f->n_slices + 1, sizeof(*c->of));
	c->scale = mem_array(f->n_slices + 1, sizeof(*c->scale));
	columns_order(c, f);
	for (size_t i = 0; i < f->n_slices; i++) {
		double whole = slice_whole(d, c, f, i);

		c->of[i] = DIFF_NONE;
		if ((double)f->slices[i].covered_ns < (double)f->slice_ns / 2 || whole <= 0)
			continue;
		c->of[i] = (uint32_t)(c->first + c->n++);
		c->scale[i] = 1 / whole;
	}
}

/* --- sums --- */

struct lanes {                  /* slices of one side that are swept together, a line of the cache for each node */
	size_t n, column[LANES];
	double scale[LANES];
	uint64_t (*self)[LANES], (*total)[LANES]; /* by node */
};

static void add_lane(const struct lanes *l, float *series, const uint64_t *ns)
{
	for (size_t k = 0; k < l->n; k++)
		series[l->column[k]] += (float)((double)ns[k] * l->scale[k]);
}

static bool is_zero(const uint64_t *v)
{
	uint64_t any = 0;

	for (size_t k = 0; k < LANES; k++)
		any |= v[k];
	return !any;
}

static void sweep(struct diffing *d, const struct lanes *l)
{
	for (size_t i = d->pub.n_nodes; i-- > 0;) {
		const struct diff_node *n = &d->pub.nodes[i];

		if (is_zero(l->total[i]))
			continue;
		if (!is_zero(l->self[i]))
			add_lane(l, d->self_series + n->function * d->columns, l->self[i]);
		if (d->outer[i])
			add_lane(l, d->total_series + n->function * d->columns, l->total[i]);
		if (d->edge[i] != DIFF_NONE && d->edges[d->edge[i]].row != DIFF_NONE)
			add_lane(l, d->edge_series + d->edges[d->edge[i]].row * d->columns, l->total[i]);
		for (size_t k = 0; i && k < LANES; k++)
			l->total[n->parent][k] += l->total[i][k];
		memset(l->self[i], 0, sizeof(l->self[i]));
		memset(l->total[i], 0, sizeof(l->total[i]));
	}
}

/* A slice into the next lane. */
static void fill_lane(struct diffing *d, int side, struct lanes *l, const struct columns *c, size_t slice)
{
	const struct fold *f = d->pub.side[side].f;
	size_t lane = l->n++;

	l->column[lane] = c->of[slice];
	l->scale[lane] = c->scale[slice];
	d->column_from[c->of[slice]] = f->slices[slice].from_ns;
	for (size_t k = c->begin[slice]; k < c->begin[slice + 1]; k++) {
		const struct fold_cell *cell = &f->cells[c->order[k]];
		uint32_t node = cell->node ? d->node[side][cell->node] : d->no_stack;

		l->self[node][lane] += cell->ns;
		l->total[node][lane] += cell->ns;
	}
}

static void sum_side(struct diffing *d, int side, const struct columns *c)
{
	struct lanes l = {.self = mem_array(d->pub.n_nodes, sizeof(*l.self)), .total = mem_array(d->pub.n_nodes, sizeof(*l.total))};

	for (size_t i = 0; i < d->pub.side[side].f->n_slices; i++) {
		if (c->of[i] == DIFF_NONE)
			continue;
		if (l.n == LANES) {
			sweep(d, &l);
			l.n = 0;
		}
		fill_lane(d, side, &l, c, i);
	}
	sweep(d, &l);
	free(l.self);
	free(l.total);
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
		d->columns = c[0].n + c[1].n;
		d->column_from = mem_array(d->columns, sizeof(*d->column_from));
		d->self_series = mem_array(d->pub.n_functions * d->columns, sizeof(float));
		d->total_series = mem_array(d->pub.n_functions * d->columns, sizeof(float));
		d->edge_series = mem_array(d->n_edge_rows * d->columns + 1, sizeof(float));
	}
	for (int s = 0; s < 2; s++) {
		const struct fold *f = d->pub.side[s].f;

		if (enough)
			sum_side(d, s, &c[s]);
		d->pub.side[s].n_slices = enough ? c[s].n : 0;
		d->pub.side[s].slice_s = (double)f->slice_ns / 1e9;
		columns_release(&c[s]);
	}
	return enough;
}
