/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_scan: the rows of table `sample` of an archive, straight from its columns: in order of
 * time, and only the blocks that lie in the range are decoded, one after the other. Pure, so that
 * the extension has it too.
 */
#ifndef SONDE_STORE_PACKED_SAMPLE_SCAN_H
#define SONDE_STORE_PACKED_SAMPLE_SCAN_H

#include "schema/store/packed/table.h"

#define SAMPLE_TS_MAX (1ll << 40)

struct sample_row {
	int64_t ts; /* start of the bucket, seconds since the segment's t0 */
	uint64_t n;
	uint32_t series;
};

struct sample_scan {
	struct packedtable *t; /* borrowed */
	int64_t first, last;   /* wanted */
	size_t block, at,
		n; /* at: of the block's n rows the next one; n 0: it is not decoded yet */
	const int64_t *ts, *series, *count;
};

/* Its columns are ts, series, n, all of them numbers, and no time is beyond SAMPLE_TS_MAX: else
 * -EBADMSG. Rows with first <= ts <= last. */
int sample_scan_begin(struct sample_scan *s, struct packedtable *t, int64_t first, int64_t last);
/* The next rows, at most `max`: how many, 0 at the end, or, where *rc is not 0, as
 * packedtable_column failed. Rows that cannot be (series or n below 1) are left out. */
size_t sample_scan_next(struct sample_scan *s, struct sample_row *rows, size_t max, int *rc);

#endif
