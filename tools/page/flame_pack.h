/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_pack: packs a report's data into few bytes, which the page's script unpacks
 * (tools/page/script/data.js).
 *
 * Packed text = base64 of a zlib stream of:
 *
 *  1. u32, little endian: the length of the header; the header, a JSON object:
 *     v (2),
 *     strings (each string once),
 *     host,
 *     group: initial grouping, "nested" (container, then process), "none", "container",
 *       "process" or "thread",
 *     source_url (a template, "": none),
 *     profiles: one object per kind of value:
 *       type (as in --type), title, counted (what the counts are of: "samples"),
 *       value_unit ("ns", "bytes"; otherwise it is a count),
 *       cumulative (false: a gauge, with its value at the end: no slots, no rate),
 *       period (value = n x period unless stored otherwise; 0: none),
 *       cpus, from_ns, to_ns, frames, nodes (how many),
 *       owners: [[pid, tid, comm, thread, container]...] (names as indices of strings),
 *       slots (how many, 0: not separated by time), slots_from_ns, slot_ns,
 *       sides: one object per side: label, rows (how many). One side: a profile; two: a
 *         difference, before and after. Then each side has slots, slots_from_ns, slot_ns,
 *         from_ns, to_ns, and covered_ns: how long of each slot was recorded (the profile has no
 *         slots then),
 *       diff, with two sides: the statistics of both whole sides (tools/page/diff/diff_pack.h).
 *
 *  2. For each profile:
 *     a. for each frame a varint: name; then for each frame: module; file (indices of strings);
 *        line; flags (bits 0-2 enum fold_origin, 8 named, 16 inlined). Frames are numbered in the
 *        order in which the nodes first use them.
 *     b. for each node, in the tree's order, root included: depth minus the depth of the node
 *        before, zigzag; then for each: frame, as 0 for the next frame not used before, otherwise
 *        the distance back from the newest one plus 1.
 *     c. for each side, for each row, in order of node, owner, slot: node minus the node of the
 *        row before; then for each: owner; then for each: slot minus the slot of the row before,
 *        zigzag; then for each: n; then for each: value minus n x period, zigzag.
 *
 * A varint is little endian, seven bits per byte; zigzag is (v << 1) ^ (v >> 63). Frames differ by
 * line, so that the page can show the lines of a function; it joins what looks the same. Self
 * values and totals are sums of rows.
 */
#ifndef SONDE_TOOLS_FLAME_PACK_H
#define SONDE_TOOLS_FLAME_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "tools/diff/diff.h"
#include "tools/fold/flame/flame_rows.h"
#include "tools/fold/flame/flame_tree.h"

struct flame_pack_profile {
	const struct fold *f;
	const struct flame_tree *t;     /* by line */
	const struct flame_rows *sides; /* n_sides of them */
	const char *const *labels;      /* of the sides */
	size_t n_sides;                 /* 1 or 2 */
	const struct diff *diff;        /* of two sides; else NULL */
};

struct flame_pack_head {
	const char *group, *source_url;
};

/* Adds the packed text. 0, or -ENOMEM / -EFBIG from zlib. */
int flame_pack(const struct flame_pack_head *head, const struct flame_pack_profile *p, size_t n,
	       struct strbuf *out);

#endif
