/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_parts: a fold at work, segment by segment: what fold.c and fold_pair.c (the steps),
 * fold_rows.c (what the rows say), fold_place.c and fold_nodes.c (a segment's stacks as nodes of
 * the fold's tree) share. Private to them.
 */
#ifndef SONDE_TOOLS_FOLD_PARTS_H
#define SONDE_TOOLS_FOLD_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/read/reader.h"
#include "tools/fold/fold.h"
#include "tools/fold/fold_build.h"
#include "tools/fold/fold_slices.h"
#include "tools/select/select.h"

#define FOLD_PATHS 256

struct folding {
	struct fold_build *b;
	struct fold *pub; /* of b */
	const struct selection *sel;
	struct fold_opts opts;
	uint64_t found_self_n;
	bool by_files;       /* slices have whole files: */
	uint32_t file_slice; /* that of the file at hand */
	bool always; /* something of it is of a recording without an end, which sonded may slow */

	/* of the segment at hand */
	struct store_segment *seg;
	const struct store_dict *dict;
	size_t first_leaf, first_cell;   /* its own among those of the fold */
	size_t n_joined, n_joined_cells; /* leaves and cells, when those alike were joined last */
	int64_t seg_run;                 /* the run at hand, or 0: all */
	bool is_with;                    /* the second kind is being told */
	size_t n_told;                   /* processes that later segments have */
	struct fold_spans spans;         /* when something recorded, if there are slices */
	struct fold_spans heard;         /* when the runs did that have some of it */
	const struct store_run_row *heard_run; /* the one noted last, of the segment at hand */
	uint32_t *seg_frame, *seg_process;     /* + 1, 0: not met yet */
	struct seg_task {
		bool known, self, out;
		uint32_t process;
		uint32_t group;     /* its node */
		const char *thread; /* the fold's */
		const char *labels;
	} * seg_task;
	struct seg_series { /* its sums over the range: a series comes once in each slice */
		bool known, self, out;
		uint32_t node, process; /* node: sparse: its group's, until all are placed */
		uint32_t stack;
		uint64_t n, ns;
		double variance; /* of ns */
	} * seg_series;          /* NULL: sums are by thread and stack */
	bool by_stack; /* no group, nor what a wait was for: sums are by stack, or by less */
	struct seg_stack {
		uint32_t stack;
		uint32_t node; /* sparse: its own, when it is there */
		uint64_t n, ns;
		double variance; /* of ns */
	} * seg_stacks;          /* late: sums over the range, of the stacks that have something */
	size_t n_seg_stacks, cap_seg_stacks;
	bool late;   /* one group: nodes are made when all stacks that have something are known */
	bool sparse; /* the segment has millions of nodes: seg_place instead of seg_plain, an array
			of them */
	struct idmap seg_place; /* stack -> its place in seg_stacks */
	uint32_t *seen;         /* flat: by frame of the fold, the stack that it was met in last */
	uint32_t *path;         /* flat: the frames of the stack at hand */
	size_t cap_path;
	uint32_t n_seen;      /* stacks so far */
	size_t cap_flat;      /* of seen, and of the sums of functions */
	uint32_t *seg_plain;  /* stack -> node below the root or its last group, 0: not met yet;
				 late: until then its place in seg_stacks + 1 */
	uint32_t *seg_group;  /* stack -> that group's node */
	uint32_t *seg_script; /* leaf_frames: stack -> the innermost of it that is a script's, 0:
				 not met yet, UINT32_MAX: none is. NULL: no stack of the segment has
				 one */
	uint8_t *seg_hidden;  /* by stack: its last frame is an interpreter's own (fold_scripts.c);
				 NULL: none is */
	uint32_t *seg_named;  /* with reasons, of waits: waitstack_named; else NULL */
	struct store_image_row *seg_image; /* names are the fold's; no name: not met yet */
	struct seg_function {              /* a function's frames are many */
		const char *name, *file;   /* NULL: not met yet */
	} * seg_function;
	struct seg_path { /* by a part of its address: a file's functions are many */
		const char *raw, *text;
	} seg_path[FOLD_PATHS];
	struct idmap seg_node; /* (group's node, stack) -> node of some, where there are groups */
	struct idmap seg_leaf; /* the same of the stacks of series, which come in each thread */
};

/* The frame of the fold that one of the segment's is. */
uint32_t fold_frame_of(struct folding *f, uint32_t id);
/* Is the stack's last frame left out? Then it is what its caller is. */
bool fold_leaves_out(const struct folding *f, uint32_t stack);
/* Which frames of the segment are an interpreter's own. NULL: none is. */
uint8_t *fold_hide_interpreters(const struct store_dict *d);
/* Room for seg_script, zeroed; NULL: no image is a script's or made by a JIT. */
uint32_t *fold_script_stacks(const struct store_dict *d);
/* The node of a stack whose caller's node is known. */
uint32_t fold_child_of(struct folding *f, uint32_t parent, uint32_t stack);
/* With leaf_frames: the node of the innermost frame that is a script's (memsite_script()), or of
 * the innermost one. */
uint32_t fold_leaf_of_stack(struct folding *f, uint32_t stack);
/* These are the node's own. */
void fold_add_to_node(struct folding *f, uint32_t node, uint64_t n, uint64_t ns, double variance);
/* The node of a stack below a group's node. */
uint32_t fold_node_of_stack(struct folding *f, uint32_t group, uint32_t stack);
/* With innermost: the node of its innermost frame, as a callee of the group's node. */
uint32_t fold_innermost(struct folding *f, uint32_t group, uint32_t stack);
/* Where nodes are made late, when all rows are read: the stacks that have something become nodes.
 */
void fold_place_stacks(struct folding *f);
/* The same of opts.flat: they become sums of functions. fold_flat.c */
void fold_sum_functions(struct folding *f);
/* The same of a sparse segment: opts.most_nodes of them, the largest. fold_large.c */
void fold_place_largest(struct folding *f);
/* The same of a sparse segment whose sums are by series, group by group. fold_large.c */
void fold_place_series(struct folding *f);
/* Fewer leaves, where there are more than opts.most_leaves. fold_leaves.c */
void fold_join_leaves(struct folding *f);
/* Then those that came since. */
void fold_join_last(struct folding *f);
/* One cell for each node and slice of the segment at hand, and of all, when they are many. After
 * fold_point_at_nodes. fold_leaves.c */
void fold_join_cells(struct folding *f);
/* Is the segment sparse: has its dictionary millions of nodes, or would the fold, each group its
 * own? */
bool fold_is_large(const struct folding *f);
bool fold_is_grouped(const struct folding *f, const struct store_dict *d);
/* What stacks, leaves and cells of the segment say becomes what nodes have. */
void fold_point_at_nodes(struct folding *f);

/* --- the steps (fold.c) --- */

/* Without nodes, its slices planned. What was started is finished, or freed with fold_free(f->pub).
 */
int fold_start(struct folding *f, const struct selection *sel, const struct fold_opts *o,
	       struct err *e);
/* The segment's dictionary is there; an end for each that began. */
int fold_segment_begin(struct folding *f, const char *path, struct err *e);
int fold_rows_read(struct folding *f, const char *path, struct err *e);
/* Has the file of a day what its archives say to this fold? */
bool fold_takes_day(const struct folding *f, struct store_segment *day);
void fold_segment_end(struct folding *f);
/* false: there is nothing in it. */
bool fold_finish(struct folding *f);

#endif
