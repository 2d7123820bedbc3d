/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pack: counts of CPU samples as they stand in a sealed day: blocks of bytes in table sample_pack instead of rows.
 *
 * A row is (ts, series, n). A block holds the rows of whole buckets, in order of (ts, series), each pair once:
 *   1. byte 0 is 1, the form that is told here. What begins otherwise is no block.
 *   2. Then bucket after bucket, to the end of the bytes: how many seconds it is behind the one before (the first one:
 *      behind sample_pack.ts, which makes 0), at least 1 from the second on; how many rows it has, at least 1; its rows.
 *   3. A row is 2 * (series - previous - 1) + (n > 1), the previous of the first row of a bucket being 0; where n > 1,
 *      n - 2 follows. Series ids are dense and those that come often have small ones, so that most rows are one byte.
 *   4. All numbers are LEB128 (7 bits a byte, the lowest first, at most 10 bytes, at most 2^63 - 1).
 *   5. 1 <= series < 2^32, 1 <= n < 2^63, |ts| < 2^40.
 * A reader takes what is before the first broken rule, and says that there is one.
 */
#ifndef SONDE_STORE_PACK_H
#define SONDE_STORE_PACK_H

#include <stddef.h>
#include <stdint.h>

#include "schema/base/strbuf.h"

#define PACK_TS_MAX (1ll << 40)

struct sample_row {
	int64_t ts;      /* start of the bucket, seconds since the segment's t0 */
	uint64_t n;
	uint32_t series;
};

/* Appends one block of these rows (n > 0, ordered, in range: rules above) to `out`; its ts is rows[0].ts. -EINVAL, and
 * nothing appended, if they are not. */
int pack_encode(const struct sample_row *rows, size_t n, struct strbuf *out);

struct pack_reader {
	const uint8_t *data; /* borrowed */
	size_t len, pos;
	int64_t ts;
	uint64_t left;       /* rows of this bucket still to come */
	uint32_t series;
	int bad;             /* 0, or -EBADMSG from here on */
};
/* Begins to read a block; `ts` is sample_pack.ts. */
void pack_open(struct pack_reader *r, const void *data, size_t len, int64_t ts);
/* The next rows, at most `max`; 0 at the end, or where r->bad says that the block is damaged. */
size_t pack_next(struct pack_reader *r, struct sample_row *rows, size_t max);

#endif
