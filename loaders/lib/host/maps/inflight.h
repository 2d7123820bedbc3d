/* SPDX-License-Identifier: Apache-2.0 */
/* inflight: amounts of a thread while it served a request are also stored with the request's tag
 * (probes/lib/inflight.bpf.h). */
#ifndef SONDE_HOST_INFLIGHT_H
#define SONDE_HOST_INFLIGHT_H

#include <stdint.h>

struct store_writer;

/* Call it after the store_add or store_amount of the same. Tag 0: it served no request, and nothing
 * is stored. Ids are of the present epoch. 0, or as store_fact. */
int inflight_store(struct store_writer *w, uint32_t run, int64_t utc_ns, uint64_t tag,
		   uint32_t series, uint64_t n, uint64_t value);

#endif
