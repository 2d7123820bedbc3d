/* SPDX-License-Identifier: Apache-2.0 */
/* inflight: what was counted of a thread while it served a request is told beside, with the
 * request's tag (probes/lib/inflight.bpf.h). */
#ifndef SONDE_HOST_INFLIGHT_H
#define SONDE_HOST_INFLIGHT_H

#include <stdint.h>

struct store_writer;

/* Behind the store_add or store_amount of the same. A tag of 0: it served none, and nothing is
 * told. Ids are of the present epoch. 0, or as store_fact. */
int inflight_store(struct store_writer *w, uint32_t run, int64_t utc_ns, uint64_t tag,
		   uint32_t series, uint64_t n, uint64_t value);

#endif
