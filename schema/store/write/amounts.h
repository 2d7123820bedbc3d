/* SPDX-License-Identifier: Apache-2.0 */
/* amounts: sums of amounts in memory, by (bucket, series): what a batch has in addition to counts.
 */
#ifndef SONDE_STORE_WRITE_AMOUNTS_H
#define SONDE_STORE_WRITE_AMOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/base/idmap.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/writer.h"

struct amount_row {
	int64_t ts; /* start of the bucket, seconds since 1970 */
	uint64_t n, value, max;
	uint64_t n_variance, value_variance; /* as in store_amount */
	uint64_t events;                     /* what this row accounts for */
	struct hist hist;                    /* its own */
	uint32_t series;                     /* DICT_SERIES */
	uint32_t run;
	bool gauge; /* the last one holds */
};

struct amounts {
	struct amount_row *rows;
	uint32_t n, cap;
	size_t hist_bytes;
	struct idmap at; /* hash of (ts, series) -> index in `rows` */
};

void amounts_release(struct amounts *a);
size_t amounts_bytes(const struct amounts *a);
/* `x` is one amount of its series; returns the events that it accounts for. */
uint64_t amounts_add(struct amounts *a, const struct amount_row *key, const struct store_amount *x);
/* Events of one run; 0: of all. */
uint64_t amounts_events(const struct amounts *a, uint32_t run);

#endif
