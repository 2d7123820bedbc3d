/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_json: a fold as one JSON object, schema sonde.flame/1: the envelope of tools/print/json.h
 * with
 *   host, kernel, cpus, period_ns, samples, cpu_ns, unnamed_ns, losses: [{reason, n}],
 *   rows: the tree, one object a node, callers before callees (preorder, hottest first):
 *     id (its place in rows), parent (an id, null for the root), name, module, file, line (null:
 *     not known), origin (native, kernel, go, jit, group, unknown, off), named, inlined,
 *     self_ns, total_ns, self_samples, total_samples
 * Flat and not nested, because stacks are deeper than many JSON readers allow.
 */
#ifndef SONDE_TOOLS_FLAME_JSON_H
#define SONDE_TOOLS_FLAME_JSON_H

#include <stddef.h>
#include <stdio.h>

#include "tools/fold/fold.h"

/* max_nodes 0: all (flame_tree.h). 0 or -EIO. */
int flame_json_write(const struct fold *f, size_t max_nodes, FILE *out);
const char *flame_json_origin(enum fold_origin origin); /* "native", "kernel", ... */

#endif
