/* SPDX-License-Identifier: Apache-2.0 */
/* leb: reads LEB128 numbers (DWARF 5, 7.6) from a cursor. Bits above 64 are dropped; more than ten
 * bytes are an error. */
#ifndef SONDE_INDEX_LEB_H
#define SONDE_INDEX_LEB_H

#include <stdint.h>

#include "schema/base/cursor.h"

#define LEB_BYTES_MAX 10u

/* The value's bits, and in *bits how many of them the bytes carried. */
static inline uint64_t leb_bits(struct cursor *c, unsigned *bits, uint8_t *last)
{
	uint64_t v = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = cursor_u8(c);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
		if (shift > 7 * LEB_BYTES_MAX)
			c->bad = true;
	} while ((byte & 0x80) && !c->bad);
	*bits = shift;
	*last = byte;
	return v;
}

static inline uint64_t leb_unsigned(struct cursor *c)
{
	unsigned bits;
	uint8_t last;

	return leb_bits(c, &bits, &last);
}

static inline int64_t leb_signed(struct cursor *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = leb_bits(c, &bits, &last);

	if (bits < 64 && (last & 0x40))
		v |= ~0ull << bits;
	return (int64_t)v;
}

#endif
