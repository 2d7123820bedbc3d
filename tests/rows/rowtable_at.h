/* SPDX-License-Identifier: Apache-2.0 */
/* rowtable_at: the rule at an address; 0 (ROW_NONE) before the first row. */
#ifndef SONDE_TEST_ROWTABLE_AT_H
#define SONDE_TEST_ROWTABLE_AT_H

#include "loaders/index/unwind/rowtable.h"

static inline uint64_t rowtable_at(const struct rowtable *t, uint64_t addr)
{
	size_t lo = 0, hi = t->count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->rows[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? t->rows[lo - 1].rule : 0;
}

#endif
