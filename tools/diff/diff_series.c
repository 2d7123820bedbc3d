/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_series: each function's self and total by slice, on both sides: a row of columns each. What
 * the cells say is put in the order of nodes, which come depth first: that of all that a node calls
 * is one stretch. Of a node with few, each goes to its function; where there are many, a row is
 * summed up from what its callees brought: a first callee's row becomes that of its caller. Sums
 * are in periods, where samples are taken by time or by size: whole numbers, exact below 2^24 a
 * slice. Others are exact to a 16-millionth, which is far less than the error of any rate that is
 * counted.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/worker.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"

#define SERIES_LEAST 5 /* slices a side, for a test that knows a variance */
#define LANES        8 /* rows have this many columns, times something */
#define LARGE        4 /* with cells for this part of its columns a node has a row */

/* --- columns --- */

struct columns { /* of one side */
	size_t n;
	uint32_t *of;  /* by slice: the column, from 0 on, DIFF_NONE: not compared */
	double *scale; /* by slice: from what is summed to the unit of the diff */
	double unit;   /* ns in one of what is summed */
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
		whole[i] =
			f->kind->class == STORE_GAUGE ?
				1 :
				(double)f->slices[i].covered_ns / (f->unit == STORE_TIME ? 1 : 1e9);
	for (size_t i = 0; d->pub.per != DIFF_PER_SECOND && i < f->n_cells; i++)
		whole[f->cells[i].slice] += (double)f->cells[i].ns;
	for (size_t i = 0; d->pub.per != DIFF_PER_SECOND && f->flat_slices && i < f->n_slices; i++)
		for (size_t k = 0; k < f->flat_slices[i].n; k++)
			whole[i] += (double)f->flat_slices[i].v[k].self;
	return whole;
}

static void columns_init(const struct diffing *d, struct columns *c, const struct fold *f)
{
	cleanup_free double *whole = wholes_of(d, f);

	c->of = mem_array(f->n_slices + 1, sizeof(*c->of));
	c->scale = mem_array(f->n_slices + 1, sizeof(*c->scale));
	c->unit = f->period_ns ? (double)f->period_ns : 1;
	for (size_t i = 0; i < f->n_slices; i++) {
		c->of[i] = DIFF_NONE;
		if ((double)f->slices[i].covered_ns < (double)f->slice_ns / 2 || whole[i] <= 0)
			continue;
		c->of[i] = (uint32_t)c->n++;
		c->scale[i] = c->unit / whole[i];
	}
}

/* --- sums --- */

struct own { /* of a node itself */
	float n;
	uint32_t column;
};

struct row { /* of a node at hand, and its callers: one of each depth */
	float *x;
	bool begun; /* else all 0 */
};

struct summing { /* of one side */
	struct diffing *d;
	struct columns c;
	int side;
	size_t first, width; /* of a row of the diff: this side's part */
	uint32_t *begin;     /* by node: its first in `own`, n_nodes + 1 of them */
	struct own *own;
	struct row *rows; /* by depth, as far as it is summed up */
};

static uint32_t node_of(const struct summing *s, const struct fold_cell *cell)
{
	return cell->node ? s->d->node[s->side][cell->node] : s->d->no_stack;
}

/* Cells by node: counted, one node on, then put there, which moves each node's beginning to where
 * it is looked for. */
static void own_init(struct summing *s)
{
	const struct fold *f = s->d->pub.side[s->side].f;
	const size_t n = s->d->pub.n_nodes;
	const double per = 1 / s->c.unit;
	uint32_t *next = s->begin = mem_array(n + 2, sizeof(*s->begin));

	next++;
	for (size_t i = 0; i < f->n_cells; i++)
		next[node_of(s, &f->cells[i]) + 1] += s->c.of[f->cells[i].slice] != DIFF_NONE;
	for (size_t i = 0; i < n; i++)
		next[i + 1] += next[i];
	s->own = mem_array(next[n] + 1, sizeof(*s->own));
	for (size_t i = 0; i < f->n_cells; i++) {
		const struct fold_cell *cell = &f->cells[i];
		uint32_t column = s->c.of[cell->slice];

		if (column != DIFF_NONE)
			s->own[next[node_of(s, cell)]++] =
				(struct own){(float)((double)cell->ns * per), column};
	}
}

static void add_row(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			to[i + k] += from[i + k];
}

/* Of the nodes from .. to - 1. */
static void add_cells(const struct summing *s, float *to, uint32_t from_node, uint32_t to_node)
{
	for (size_t i = s->begin[from_node]; i < s->begin[to_node]; i++)
		to[s->own[i].column] += s->own[i].n;
}

/* Worth a separate row? */
static bool is_large(const struct summing *s, uint32_t node)
{
	return s->begin[s->d->end[node]] - s->begin[node] > s->width / LARGE;
}

/* All of it, from the row that has it if there is one. */
static void add_total(const struct summing *s, uint32_t node, const struct row *row, float *to)
{
	if (row)
		add_row(to, row->x, s->width);
	else
		add_cells(s, to, node, s->d->end[node]);
}

/* To its caller's row. Its own is the next one's of this depth then: empty. */
static void hand_up(const struct summing *s, uint32_t node, struct row *row, struct row *caller)
{
	if (row && !caller->begun) {
		float *empty = caller->x;

		*caller = (struct row){row->x, true};
		*row = (struct row){empty, false};
		return;
	}
	add_total(s, node, row, caller->x);
	caller->begun = true;
	if (row)
		memset(row->x, 0, s->width * sizeof(*row->x));
	if (row)
		row->begun = false;
}

static float *part_of(const struct summing *s, float *series, size_t row)
{
	return series + row * s->d->stride + s->first;
}

/* What it calls is done. */
static void sum_node(const struct summing *s, uint32_t node)
{
	const struct diffing *d = s->d;
	const struct diff_node *n = &d->pub.nodes[node];
	uint32_t edge = d->edge[node];
	struct row *row = is_large(s, node) ? &s->rows[n->depth] : NULL;

	if (row)
		add_cells(s, row->x, node, node + 1);
	add_cells(s, part_of(s, d->self_series, n->function), node, node + 1);
	if (d->outer[node])
		add_total(s, node, row, part_of(s, d->total_series, n->function));
	if (edge)
		add_total(s, node, row, part_of(s, d->edge_series, edge - 1));
	if (node && is_large(s, n->parent))
		hand_up(s, node, row, &s->rows[n->depth - 1]);
}

static uint32_t deepest(const struct diff *d)
{
	uint32_t depth = 0;

	for (size_t i = 0; i < d->n_nodes; i++)
		depth = d->nodes[i].depth > depth ? d->nodes[i].depth : depth;
	return depth;
}

/* Of folds without trees. All that a function has is all of its slices'; of a pair is known in
 * which it was. */
static void sum_flat(const struct summing *s)
{
	const struct diffing *d = s->d;
	const struct fold *f = d->pub.side[s->side].f;
	const double per = 1 / s->c.unit;

	for (size_t i = 0; i < f->n_slices; i++) {
		const size_t column = s->first + s->c.of[i];

		for (size_t k = 0; s->c.of[i] != DIFF_NONE && k < f->flat_slices[i].n; k++) {
			const struct fold_flat_part *x = &f->flat_slices[i].v[k];
			const size_t at = d->function[s->side][k] * d->stride + column;

			if (!x->total)
				continue;
			d->self_series[at] += (float)((double)x->self * per);
			d->total_series[at] += (float)((double)x->total * per);
			d->total_series[column] += (float)((double)x->self * per);
		}
		for (size_t k = 0; s->c.of[i] != DIFF_NONE && k < d->n_edges; k++)
			if (d->edges[k].samples[s->side] && d->edges[k].slices >> i & 1)
				d->edge_series[k * d->stride + column] = 1;
	}
}

static void sum_side(void *ctx)
{
	struct summing *s = ctx;
	const size_t n = deepest(&s->d->pub) + 1;
	cleanup_free float *rows = NULL;
	cleanup_free struct row *row = NULL;

	if (diff_is_flat(s->d)) {
		sum_flat(s);
		return;
	}
	rows = mem_array(n * s->width, sizeof(*rows));
	row = mem_array(n, sizeof(*row));
	for (size_t i = 0; i < n; i++)
		row[i].x = rows + i * s->width;
	s->rows = row;
	for (uint32_t i = (uint32_t)s->d->pub.n_nodes; i-- > 0;)
		sum_node(s, i);
}

static size_t in_lanes(size_t n)
{
	return (n + LANES - 1) / LANES * LANES;
}

static void series_init(struct diffing *d, const struct summing s[2])
{
	d->second = in_lanes(s[0].c.n);
	d->stride = d->second + in_lanes(s[1].c.n);
	d->column_from = mem_array(d->stride, sizeof(*d->column_from));
	d->column_scale = mem_array(d->stride, sizeof(*d->column_scale));
	d->self_series = mem_array(d->pub.n_functions * d->stride, sizeof(float));
	d->total_series = mem_array(d->pub.n_functions * d->stride, sizeof(float));
	d->edge_series = mem_array(d->n_edges * d->stride + 1, sizeof(float));
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < d->pub.side[side].f->n_slices; i++) {
			size_t column = s[side].c.of[i] + (side ? d->second : 0);

			if (s[side].c.of[i] == DIFF_NONE)
				continue;
			d->column_from[column] = d->pub.side[side].f->slices[i].from_ns;
			d->column_scale[column] = s[side].c.scale[i];
		}
}

/* Each side has its own columns: it is summed without the other. */
static void sum_up(struct diffing *d, struct summing s[2])
{
	struct worker other;

	series_init(d, s);
	s[0].width = s[1].first = d->second;
	s[1].width = d->stride - d->second;
	worker_start(&other, sum_side, &s[1]);
	sum_side(&s[0]);
	worker_join(&other);
}

struct diff_series {
	struct summing side[2];
};

static bool is_enough(const struct diff_series *x)
{
	return x->side[0].c.n >= SERIES_LEAST && x->side[1].c.n >= SERIES_LEAST;
}

struct diff_series *diff_series_new(struct diffing *d)
{
	struct diff_series *x = mem_alloc(sizeof(*x));

	for (int side = 0; side < 2; side++) {
		x->side[side].d = d;
		x->side[side].side = side;
		columns_init(d, &x->side[side].c, d->pub.side[side].f);
	}
	return x;
}

void diff_series_sort(void *series)
{
	struct diff_series *x = series;

	for (int side = 0; side < 2 && is_enough(x) && !diff_is_flat(x->side[0].d); side++)
		own_init(&x->side[side]);
}

bool diff_series_make(struct diffing *d, struct diff_series *x)
{
	const bool enough = is_enough(x);

	if (enough)
		sum_up(d, x->side);
	for (int s = 0; s < 2; s++) {
		d->pub.side[s].n_slices = enough ? x->side[s].c.n : 0;
		d->pub.side[s].slice_s = (double)d->pub.side[s].f->slice_ns / 1e9;
		columns_release(&x->side[s].c);
		free(x->side[s].begin);
		free(x->side[s].own);
	}
	free(x);
	return enough;
}
