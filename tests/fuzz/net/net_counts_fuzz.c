/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net_counts_fuzz: the kernel's counts of a network namespace, of any bytes: within their bounds,
 * no number negative.
 *
 * covers: loaders/net/counts.c
 */
#include <stdint.h>
#include <stdlib.h>

#include "loaders/net/counts.h"
#include "schema/facts/net.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fact_row row = {0};

	counts_parse((const char *)data, len, &row);
	for (int i = 0; i < NETNS_N; i++)
		if (fact_has(&row, i) &&
		    (row.v[i].number < 0 || i < NETNS_ACTIVE || i >= NETNS_SEEN_ATTEMPTS))
			abort();
	return 0;
}
