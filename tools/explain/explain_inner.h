/* SPDX-License-Identifier: Apache-2.0 */
/* explain_inner: of a diff whose first level are groups, what each function has below one group, or
 * what each group has of one function. */
#ifndef SONDE_TOOLS_EXPLAIN_INNER_H
#define SONDE_TOOLS_EXPLAIN_INNER_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/diff/diff.h"

/* Of function i: [2 * i] before, [2 * i + 1] in the window. `self` is the group (of_group), or the
 * function. `whole`: with what is called from there; else its own part. The caller's (free). */
uint64_t *explain_inner_sums(const struct diff *d, uint32_t self, bool of_group, bool whole);

#endif
