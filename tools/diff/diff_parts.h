/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_parts: what diff.c (the steps), diff_nodes.c (two trees into one), diff_edges.c (callers),
 * diff_flat.c (folds without trees), diff_series.c (sums by slice) and diff_test.c (the statistics)
 * share.
 */
#ifndef SONDE_TOOLS_DIFF_PARTS_H
#define SONDE_TOOLS_DIFF_PARTS_H

#include "schema/base/idmap.h"
#include "tools/diff/diff.h"

#define DIFF_NONE UINT32_MAX

struct diffing {
	struct diff pub; /* first: diff_free finds the rest by it */
	size_t cap_functions, cap_callers;
	struct idmap function_of; /* strings of two folds are equal by content, not by pointer */
	uint32_t *node[2]; /* of each node of a fold: the node here; the same array where the folds
			      have one tree */
	uint32_t no_stack; /* the node of stacks without frames, if there are any */
	uint32_t *end;     /* of each node: behind the last one below it */
	bool *outer;       /* of each node: no ancestor is the same function */
	uint32_t *edge;    /* of each node: its edge, + 1; 0: none */
	struct diff_edge {
		uint32_t caller, function;
		uint64_t samples[2];
		uint64_t slices; /* flat: those of the side that has it, bit by bit */
	} * edges;               /* pairs worth a test; a row each in `edge_series` */
	size_t n_edges, cap_edges;
	uint32_t *function[2]; /* flat: by frame of a fold; else NULL */
	/* by row and slice (those of before from 0 on, those of after from `second` on): as summed,
	 * times the column's scale in the unit of the diff */
	size_t second, stride; /* a row takes `stride` */
	int64_t *column_from;  /* when each begins */
	double *column_scale;
	float *self_series, *total_series, *edge_series;
};

/* Nodes of both, depth first, their own sums and those of the root's stack; then totals and `end`;
 * `outer`. */
void diff_nodes_make(struct diffing *d);
void diff_nodes_sum(struct diffing *d);
void diff_outer_find(struct diffing *d);
/* The function of a frame; what stacks without a frame are in. */
extern const struct fold_frame DIFF_NO_STACK;
uint32_t diff_function_of(struct diffing *d, const struct fold_frame *fr);
/* Of folds that have sums of functions instead of a tree (fold_opts.flat): functions, sums, and
 * pairs worth a test. diff_flat.c */
bool diff_is_flat(const struct diffing *d);
void diff_flat_make(struct diffing *d);
/* At most so many pairs are tested. */
#define DIFF_EDGES_MAX 20000
/* Pairs worth a test. */
void diff_edges_make(struct diffing *d);
/* Cells in the order of nodes: it touches nothing that is made from the nodes, so another thread
 * may do it meanwhile. */
struct diff_series;
struct diff_series *diff_series_new(struct diffing *d);
void diff_series_sort(void *series);
/* Then: fill in columns and series; false where a side has too few slices for them. It frees `x`.
 */
bool diff_series_make(struct diffing *d, struct diff_series *x);
void diff_test(struct diffing *d);

#endif
