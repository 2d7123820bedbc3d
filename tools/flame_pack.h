/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flame_pack: a flame tree in few bytes, for the page's script to unpack (tools/page/data.js).
 *
 * Packed text = base64 of a zlib stream of:
 *  1. u32, little endian: the length of the header; the header, a JSON object: v (1), frames, nodes (how many), strings
 *     (each string once), from_ns, to_ns, period_ns.
 *  2. For each frame a varint: name; then for each frame: module; file (indices of strings); line; flags (bits 0-2
 *     enum fold_origin, 8 named, 16 inlined). Frames are numbered as the nodes first use them.
 *  3. For each node, in the tree's order, root included: depth minus the depth of the node
 *     before, zigzag; then for each: frame, as 0 for the next frame not used before, else how far back from the newest one
 *     plus 1; then self samples; then self_ns minus samples x period_ns, zigzag.
 * A varint is little endian, seven bits a byte; zigzag is (v << 1) ^ (v >> 63). Totals are sums: they are not stored.
 */
#ifndef SONDE_TOOLS_FLAME_PACK_H
#define SONDE_TOOLS_FLAME_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"
#include "tools/flame_tree.h"

struct flame_pack_head {
	int64_t from_ns, to_ns;
	uint64_t period_ns;
};

/* Add the packed text. 0, or -ENOMEM / -EFBIG from zlib. */
int flame_pack(const struct flame_tree *t, const struct flame_pack_head *head, struct strbuf *out);

#endif
