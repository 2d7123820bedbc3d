/* SPDX-License-Identifier: Apache-2.0 */
/* diff_series: the sums equal those of adding each cell along its path to the root. */
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tests/unit/test.h"
#include "tools/diff/diff_parts.h"

#define NODES     600
#define FUNCTIONS 40
#define CELLS     3000
#define SLICES    7
#define PERIOD    7 /* of the side after: amounts are times that */
#define LEFT_OUT  3 /* this slice of the side after was hardly recorded */

static uint32_t below(uint32_t n)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)((state >> 32) * n >> 32);
}

/* Long rows of single callees, and some places where many branch off. */
static void tree_make(struct diffing *d)
{
	d->pub.nodes = mem_array(NODES, sizeof(*d->pub.nodes));
	d->outer = mem_array(NODES, sizeof(*d->outer));
	d->edge = mem_array(NODES, sizeof(*d->edge));
	d->edges = mem_array(FUNCTIONS, sizeof(*d->edges));
	d->pub.n_nodes = NODES;
	d->pub.n_functions = FUNCTIONS;
	d->n_edges = FUNCTIONS;
	d->outer[0] = true;
	for (uint32_t i = 1; i < NODES; i++) {
		uint32_t parent = i - 1; /* or one of its callers: they come depth first */

		for (uint32_t up = below(4) ? 0 : below(2) ? below(20) : NODES; parent && up; up--)
			parent = d->pub.nodes[parent].parent;

		d->pub.nodes[i] = (struct diff_node){.parent = parent,
						     .function = 1 + below(FUNCTIONS - 1),
						     .depth = d->pub.nodes[parent].depth + 1};
		d->outer[i] = below(3) != 0;
		d->edge[i] = below(2) ? 1 + below(FUNCTIONS) : 0;
	}
	d->no_stack = NODES - 1;
	diff_nodes_sum(d);
}

static void fold_make_up(struct fold *f, uint32_t **node, bool after)
{
	static const struct store_kind_info kind = {.kind = STORE_KIND_CPU};

	*f = (struct fold){.kind = &kind,
			   .unit = STORE_TIME,
			   .slice_ns = 1000,
			   .n_slices = SLICES,
			   .n_cells = CELLS,
			   .n_nodes = NODES,
			   .period_ns = after ? PERIOD : 0};
	f->slices = mem_array(SLICES, sizeof(*f->slices));
	f->cells = mem_array(CELLS, sizeof(*f->cells));
	*node = mem_array(NODES, sizeof(**node));
	for (uint32_t i = 0; i < SLICES; i++)
		f->slices[i] = (struct fold_slice){
			.from_ns = 1000 * i,
			.to_ns = 1000 * (i + 1),
			.covered_ns = after && i == LEFT_OUT ? 10 : 1000 - 10 * i};
	for (uint32_t i = 1; i < NODES; i++)
		(*node)[i] = after ? NODES - i : i;
	for (uint32_t i = 0; i < CELLS; i++)
		f->cells[i] = (struct fold_cell){.node = below(4) ? below(NODES) : below(5),
						 .slice = below(SLICES),
						 .ns = (1 + below(1000)) * (after ? PERIOD : 1)};
}

static void take_up(const struct diffing *d, uint32_t node, size_t column, float ns, float *self,
		    float *total, float *edge)
{
	self[d->pub.nodes[node].function * d->stride + column] += ns;
	for (uint32_t at = node;; at = d->pub.nodes[at].parent) {
		if (d->outer[at])
			total[d->pub.nodes[at].function * d->stride + column] += ns;
		if (d->edge[at])
			edge[(d->edge[at] - 1) * d->stride + column] += ns;
		if (!at)
			return;
	}
}

TEST(sums_agree_with_each_cell_by_itself)
{
	struct diffing d = {.pub.per = DIFF_PER_SECOND};
	struct fold f[2];
	struct diff_series *series;
	float *sum[3];

	tree_make(&d);
	for (int side = 0; side < 2; side++) {
		fold_make_up(&f[side], &d.node[side], side);
		d.pub.side[side].f = &f[side];
	}
	series = diff_series_new(&d);
	diff_series_sort(series);
	assert_true(diff_series_make(&d, series));
	assert_true(d.second >= SLICES && d.stride >= d.second + SLICES - 1);
	for (int i = 0; i < 3; i++)
		sum[i] = mem_array(FUNCTIONS * d.stride, sizeof(float));
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < CELLS; i++) {
			const struct fold_cell *c = &f[side].cells[i];
			size_t column =
				(side ? d.second : 0) + c->slice - (side && c->slice > LEFT_OUT);

			if (!side || c->slice != LEFT_OUT)
				take_up(&d, c->node ? d.node[side][c->node] : d.no_stack, column,
					(float)(c->ns / (side ? PERIOD : 1)), sum[0], sum[1],
					sum[2]);
		}
	assert_memory_equal(d.self_series, sum[0], FUNCTIONS * d.stride * sizeof(float));
	assert_memory_equal(d.total_series, sum[1], FUNCTIONS * d.stride * sizeof(float));
	assert_memory_equal(d.edge_series, sum[2], FUNCTIONS * d.stride * sizeof(float));
	for (size_t i = 0; i < 2 * SLICES - 1; i++) {
		size_t slice = i < SLICES ? i : i - SLICES + (i - SLICES >= LEFT_OUT),
		       column = i < SLICES ? i : d.second + i - SLICES;

		assert_int_equal(d.column_from[column], 1000 * slice);
		assert_true(d.column_scale[column] ==
			    (i < SLICES ? 1 : PERIOD) / (double)(1000 - 10 * slice));
	}
	for (int i = 0; i < 3; i++)
		free(sum[i]);
	for (int side = 0; side < 2; side++) {
		free(f[side].slices);
		free(f[side].cells);
		free(d.node[side]);
	}
	free(d.end);
	free(d.pub.nodes);
	free(d.outer);
	free(d.edge);
	free(d.edges);
	free(d.column_from);
	free(d.column_scale);
	free(d.self_series);
	free(d.total_series);
	free(d.edge_series);
}
