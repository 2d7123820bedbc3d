/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fold_build: a fold in the making: from a store (fold.c), or from a profile of another program.
 * Frames, nodes and processes are handed out once each, by content. What is handed in must hold
 * only strings of fold_text, which are one copy each: equal ones are the same pointer.
 */
#ifndef SONDE_TOOLS_FOLD_BUILD_H
#define SONDE_TOOLS_FOLD_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "tools/fold/childmap.h"
#include "tools/fold/fold.h"

struct fold_build {
	struct fold pub; /* first: fold_free finds the rest by it */
	size_t cap_frames, cap_nodes, cap_processes, cap_leaves, cap_with, cap_cells, cap_losses,
		cap_shed;
	struct idmap frame_of, process_of, text_of; /* content hash -> index */
	struct childmap children;                   /* of nodes, by frame */
	size_t n_told;                              /* nodes that are there */
	struct idmap leaf_of;                       /* only where two kinds share leaves */
	bool borrows;                               /* its frames are another fold's */
	char **texts;                               /* owned strings */
	size_t n_texts, cap_texts;
};

/* With the root. Never NULL. */
struct fold_build *fold_begin(void);
/* Sums go up the tree, Go's modules are marked; the fold is the caller's (fold_free, also of a fold
 * that never came to its end). */
struct fold *fold_end(struct fold_build *b);

const char *fold_text(struct fold_build *b, const char *raw); /* valid UTF-8 */
uint32_t fold_add_frame(struct fold_build *b, const struct fold_frame *f);
/* The frame of its function: inlined where all that were added are. Not in one fold with
 * fold_add_frame, but for the root. */
uint32_t fold_add_function(struct fold_build *b, const struct fold_frame *f);
/* The same by name and module alone. */
uint32_t fold_add_named(struct fold_build *b, const struct fold_frame *f);
/* At most `n` follow: makes room for them once. */
void fold_expect_nodes(struct fold_build *b, size_t n);
void fold_expect_frames(struct fold_build *b, size_t n);
/* The node of a frame below a node; its own sums are the caller's to add to. */
uint32_t fold_child(struct fold_build *b, uint32_t parent, uint32_t frame);
/* The same for one that is known to be new. */
uint32_t fold_add_child(struct fold_build *b, uint32_t parent, uint32_t frame);
/* Frames and nodes of `of`, which lives as long, instead of the root alone. No frames are added
 * from here on. */
void fold_take_tree(struct fold_build *b, const struct fold_build *of);
/* false: it has no such child. */
bool fold_known_child(struct fold_build *b, uint32_t parent, uint32_t frame, uint32_t *node);
/* The same frame in this fold, of another one. */
struct fold_frame fold_frame_from(struct fold_build *b, const struct fold_frame *other);
bool fold_known_process(const struct fold_build *b, uint64_t identity, uint32_t *process);
uint32_t fold_add_process(struct fold_build *b, uint64_t identity, const struct fold_process *p);
/* Of a store's row: told apart by (pid, start, exec). */
uint64_t fold_store_identity(const struct store_process_row *row);
uint32_t fold_store_process(struct fold_build *b, const struct store_process_row *row);
/* The node that is the root of a thread's stacks: its group, or 0, the root, without groups. */
uint32_t fold_group_node(struct fold_build *b, enum fold_group group, uint32_t process,
			 const char *thread, uint32_t tid);
void fold_add_leaf(struct fold_build *b, const struct fold_leaf *leaf);
void fold_add_leaf_with(struct fold_build *b, const struct fold_leaf *leaf,
			const struct fold_with *with);
/* The same for two kinds: leaves that differ only in their numbers are one. */
void fold_merge_leaf(struct fold_build *b, const struct fold_leaf *leaf,
		     const struct fold_with *with);
void fold_add_cell(struct fold_build *b, const struct fold_cell *cell);
/* Sums by reason; `l->reason` is copied. */
void fold_add_loss(struct fold_build *b, const struct fold_loss *l);
void fold_add_shed(struct fold_build *b, const struct shedlog_span *s);

#endif
