/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/explain/explain_inner.h"

#include <stdlib.h>

#include "schema/base/mem.h"

uint64_t *explain_inner_sums(const struct diff *d, uint32_t self, bool of_group, bool whole)
{
	uint64_t *sums = mem_array(2 * d->n_functions, sizeof(*sums));
	uint32_t *top = mem_array(d->n_nodes + 1, sizeof(*top)); /* of each node: its group's */

	for (uint32_t i = 1; i < d->n_nodes; i++) {
		uint32_t group, function = d->nodes[i].function;

		top[i] = d->nodes[i].parent ? top[d->nodes[i].parent] : i;
		group = d->nodes[top[i]].function;
		if ((of_group ? group : function) != self || function == group)
			continue;
		for (int side = 0; side < 2; side++)
			sums[2 * (of_group ? function : group) + (uint32_t)side] +=
				whole ? d->nodes[i].total_ns[side] : d->nodes[i].self_ns[side];
	}
	free(top);
	return sums;
}
