/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/host/maps/inflight.h"

#include "schema/facts/l7.h"
#include "schema/store/write/facts.h"

int inflight_store(struct store_writer *w, uint32_t run, int64_t utc_ns, uint64_t tag,
		   uint32_t series, uint64_t n, uint64_t value)
{
	struct fact_row row = {0};

	if (!tag)
		return 0;
	fact_put(&row, REQUEST_SAMPLE_TAG, tag);
	fact_put(&row, REQUEST_SAMPLE_SERIES, series);
	fact_put(&row, REQUEST_SAMPLE_N, n);
	fact_put(&row, REQUEST_SAMPLE_VALUE, value);
	return store_fact(w, run, utc_ns, &REQUEST_SAMPLE_FACT, &row);
}
