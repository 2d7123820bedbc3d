/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column: one column of a table as bytes, for what stands in packed_column (schema/sql/0018-packed.sql).
 *
 *   1. Byte 0 is the form of its values, then comes the length of what follows when it is inflated, then that, as a zlib stream.
 *   2. Form 1: numbers, each as the distance to the one before (the first: to 0). Form 2: numbers as they are. Both in zigzag:
 *      2 * v where v >= 0, else -2 * v - 1.
 *   3. Form 3: texts that are lists of numbers below 2^32 with commas, '12,7,9': how many, then each as the distance to the
 *      one before, which may be of an earlier text (the first: to 0), in zigzag. None: ''.
 *   4. Form 4: texts of any kind, a NUL behind each.
 *   5. Lengths and numbers are LEB128 (7 bits a byte, the lowest first, at most 10 bytes); sums wrap around at 2^64.
 *   6. It inflates to at most COLUMN_MAX bytes, all of which belong to its values.
 *
 * Pure functions over bytes; nothing aborts.
 */
#ifndef SONDE_STORE_COLUMN_H
#define SONDE_STORE_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#define COLUMN_MAX (1u << 28) /* inflated; of texts, written out, four times as much */

struct column {
	size_t n;
	int64_t *numbers; /* NULL: it is texts */
	char *text;       /* text i is from text + at[i] on, a NUL behind it */
	uint32_t *at;     /* n + 1 of them */
};

/* The smallest form of these values: *out is the caller's (free). -EINVAL: a text holds a NUL, or it is too large; -ENOMEM. */
int column_encode(const struct column *c, uint8_t **out, size_t *len);
/* Exactly n values; *out to be released. -EBADMSG: they are not; -ENOMEM. */
int column_decode(const void *data, size_t len, size_t n, struct column *out);
void column_release(struct column *c);

#endif
