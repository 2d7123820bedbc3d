/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sealsamples: the samples of one segment into a day: as blocks (pack.h), and summed by the hour (migration 12). Not for
 * other rooms.
 */
#ifndef SONDE_STORE_SEALSAMPLES_H
#define SONDE_STORE_SEALSAMPLES_H

#include "schema/store/sealdict.h"
#include "schema/store/pass.h"

struct sealsamples {
	struct sample_row *rows; /* of the segment: in order of time, then with the day's ts and series */
	size_t n, cap;
	uint64_t *weight;        /* samples by series of the segment */
	uint64_t total;
	/* sums by the hour, in order of time */
	struct seal_hour {
		int64_t ts;      /* as the row is to have, seconds since the segment's t0 */
		uint64_t n;
		uint32_t series;
	} *hours;
	size_t n_hours, cap_hours;
};

/* Reads all that the segment has. */
int sealsamples_read(struct sealsamples *x, struct store_segment *s, struct err *e);
/* Into the day of this t0, whose dictionary has the segment's; ids and times become the day's. A SQLite code. */
int sealsamples_put(struct sealsamples *x, const struct sealdict *d, int64_t shift, int64_t t0);
/* The day's rows in blocks that begin within [first, last], behind those that are there. */
int sealsamples_load(struct sealsamples *x, struct sqlite3 *day, int64_t first, int64_t last);
/* These rows, in any order, instead of those blocks. */
int sealsamples_replace(struct sealsamples *x, struct sqlite3 *day, int64_t first, int64_t last, int64_t t0);
void sealsamples_release(struct sealsamples *x);

#endif
