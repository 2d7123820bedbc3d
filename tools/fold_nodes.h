/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_nodes: a segment's stacks as nodes of the fold's tree. Private to fold, whose state at work this is.
 */
#ifndef SONDE_TOOLS_FOLD_NODES_H
#define SONDE_TOOLS_FOLD_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/reader.h"
#include "tools/fold.h"
#include "tools/fold_build.h"
#include "tools/fold_slices.h"
#include "tools/select.h"

#define FOLD_PATHS 256

struct folding {
	struct fold_build *b;
	struct fold *pub;                  /* of b */
	const struct selection *sel;
	struct fold_opts opts;
	uint64_t found_self_ns;

	/* of the segment at hand */
	struct store_segment *seg;
	const struct store_dict *dict;
	int64_t seg_run;                   /* the run at hand, or 0: all */
	bool is_with;                      /* the second kind is being told */
	size_t n_told;                     /* processes that later segments have told of */
	struct fold_spans spans;           /* when something recorded, if there are slices */
	struct fold_spans heard;           /* when the runs did that have some of it */
	const struct store_run_row *heard_run; /* the one noted last, of the segment at hand */
	uint32_t *seg_frame, *seg_process; /* + 1, 0: not met yet */
	struct seg_task {
		bool known;
		uint32_t group;            /* its node */
		const char *thread;        /* the fold's */
	} *seg_task;
	struct seg_series {                /* its sums over the range: a series comes once in each slice */
		bool known, self, out;
		uint32_t node, process;
		uint64_t n, ns;
	} *seg_series;
	bool late;                         /* one group: nodes are made when all stacks that have something are known */
	uint32_t *seg_plain;               /* stack -> node below the root or its last group, 0: not met yet; late: 1 until then */
	uint32_t *seg_group;               /* stack -> that group's node */
	struct store_image_row *seg_image; /* names are the fold's; no name: not met yet */
	struct seg_function {              /* a function's frames are many */
		const char *name, *file;   /* NULL: not met yet */
	} *seg_function;
	struct seg_path {                  /* by a part of its address: a file's functions are many */
		const char *raw, *text;
	} seg_path[FOLD_PATHS];
	struct idmap seg_node;             /* (group's node, stack) -> node of some, where there are groups */
};

/* The frame of the fold that one of the segment's is. */
uint32_t fold_frame_of(struct folding *f, uint32_t id);
/* The node of a stack whose caller's node is known. */
uint32_t fold_child_of(struct folding *f, uint32_t parent, uint32_t stack);
/* The node of a stack below a group's node. */
uint32_t fold_node_of_stack(struct folding *f, uint32_t group, uint32_t stack);
/* Where nodes are made late: what the leaves and cells from these on, and the series, say of stacks becomes nodes. */
void fold_place_stacks(struct folding *f, size_t first_leaf, size_t first_cell);

#endif
