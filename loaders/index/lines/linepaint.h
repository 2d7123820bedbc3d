/* SPDX-License-Identifier: Apache-2.0 */
/* linepaint: of ranges that overlap, in the order told, which node counts at which address. */
#ifndef SONDE_INDEX_LINEPAINT_H
#define SONDE_INDEX_LINEPAINT_H

#include <stddef.h>
#include <stdint.h>

#include "loaders/index/lines/lineset.h"

/* Calls `row` with rising addresses: from `addr` on, `node` counts (0: none), until the next call.
 * Sorts `ranges`. Where `row` says other than 0, that comes back at once. -ENOMEM. */
int linepaint(struct lineset_range_record *ranges, size_t count,
	      int (*row)(void *ctx, uint32_t addr, uint32_t node), void *ctx);

#endif
