/* SPDX-License-Identifier: Apache-2.0 */
/*
 * childmap: which child of a tree's node has a key. Most nodes have one child or a few: those are a
 * list, newest first, that is walked, and lies where its parent was just looked at. Only the
 * children of nodes with many are hashed.
 *
 * Nodes are numbers, 0 is the root; each is added once, after its parent. A zeroed struct is a
 * valid empty map.
 */
#ifndef SONDE_TOOLS_CHILDMAP_H
#define SONDE_TOOLS_CHILDMAP_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"

struct childmap {
	struct childmap_node {
		uint32_t key;         /* below its parent */
		uint32_t first, next; /* its newest child; the child of its parent that came before
					 it; 0: none */
		uint32_t n;           /* children */
	} * nodes;
	size_t cap;
	struct idmap wide; /* (parent, key) -> child, of parents with many */
};

void childmap_release(struct childmap *m);
/* Makes room for nodes below n at once, if their number is known. */
void childmap_expect(struct childmap *m, size_t n);
/* The child, or 0. */
uint32_t childmap_find(const struct childmap *m, uint32_t parent, uint32_t key);
/* A child that was not there. */
void childmap_add(struct childmap *m, uint32_t parent, uint32_t key, uint32_t child);

#endif
