/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diff_print: the forms in which a difference leaves sonde.
 *
 * Text: what is compared, by how much all of it changed, and a table of the functions that moved
 * most. JSON, schema sonde.diff/1: the envelope (from, to: those of "after"), and
 *   type (the kind of value), unit ("cores", "bytes per second", ..., "share"), test ("welch" or
 *   "counts"), alpha, before, after: {what, from, to, seconds, samples, cpu_ns, slices, slice_s},
 *   all: a value as below, rows: functions, those that moved most first: {function, module, file,
 *   inlined, since, new_callers: [{function,
 *     samples, significant, p}], gone_callers, self: V, total: V}
 *   V: {before, after, change, change_percent (null: nothing before), before_ns, after_ns (amounts
 *   in the kind's unit), before_samples,
 *     after_samples, p, q, significant, tested, detectable}
 * JSON of the tree, schema sonde.diff.tree/1: the same head, and rows: nodes, callers before
 * callees: {id, parent, name,
 *   module, origin, inlined, before_self_ns, after_self_ns, before_total_ns, after_total_ns, and
 *   the same in samples, significant (of its function's total)}
 * Folded: `stack BEFORE AFTER`, in samples, as difffolded.pl and flamegraph.pl take it.
 */
#ifndef SONDE_TOOLS_DIFF_PRINT_H
#define SONDE_TOOLS_DIFF_PRINT_H

#include <stdio.h>

#include "tools/diff/diff.h"
#include "tools/diff/diff_sides.h"
#include "tools/net/netnew.h"

struct diff_view {
	const struct diff *d;
	const struct diff_sides *sides;
	size_t rows;
	bool wide, quiet;
	const struct netnew *talk; /* who talks to whom in B and not in A; NULL: not asked */
};

void diff_text(const struct diff_view *v, FILE *out);
int diff_json(const struct diff_view *v, FILE *out);      /* 0 or -EIO */
int diff_tree_json(const struct diff_view *v, FILE *out); /* 0 or -EIO */
void diff_folded(const struct diff_view *v, FILE *out);

#endif
