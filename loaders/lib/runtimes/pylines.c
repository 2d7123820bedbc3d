/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/runtimes/pylines.h"

#include "probes/runtimes/python_layout.h"

#define NO_LINE_310 (-128)
#define NO_LINE_311 15u
#define FIRST_BYTE  0x80u

static uint32_t shown(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t by_lnotab(const uint8_t *table, size_t len, int64_t line, int64_t at, int is_signed)
{
	int64_t addr = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		addr += table[i];
		if (addr > at)
			break;
		line += is_signed ? (int8_t)table[i + 1] : table[i + 1];
	}
	return shown(line);
}

static uint32_t by_linetable(const uint8_t *table, size_t len, int64_t line, int64_t at)
{
	int64_t end = 0;

	for (size_t i = 0; i + 1 < len; i += 2) {
		int8_t lines = (int8_t)table[i + 1];

		end += table[i];
		if (lines != NO_LINE_310)
			line += lines;
		if (at < end)
			return lines == NO_LINE_310 ? 0 : shown(line);
	}
	return 0;
}

/* The number at *i, which goes behind it. */
static int64_t number(const uint8_t *table, size_t len, size_t *i)
{
	uint64_t n = 0;
	unsigned shift = 0, more = 1;

	while (more && *i < len && !(table[*i] & FIRST_BYTE)) {
		n |= shift < 64 ? (uint64_t)(table[*i] & 0x3f) << shift : 0;
		more = table[*i] & 0x40;
		shift += 6;
		(*i)++;
	}
	n &= UINT32_MAX;
	return n & 1 ? -(int64_t)(n >> 1) : (int64_t)(n >> 1);
}

static uint32_t by_locations(const uint8_t *table, size_t len, int64_t line, int64_t at)
{
	int64_t end = 0;

	for (size_t i = 0; i < len;) {
		unsigned kind = table[i] >> 3 & 0xf, count = (table[i] & 7) + 1u;

		i++;
		if (kind >= 10 && kind <= 12)
			line += kind - 10;
		else if (kind == 13 || kind == 14)
			line += number(table, len, &i);
		end += 2 * (int64_t)count;
		if (at < end)
			return kind == NO_LINE_311 ? 0 : shown(line);
		while (i < len && !(table[i] & FIRST_BYTE))
			i++;
	}
	return 0;
}

uint32_t pylines_find(unsigned kind, const uint8_t *table, size_t len, int32_t first_line,
		      int64_t at)
{
	if (at < 0)
		return shown(first_line);
	switch (kind) {
	case PYTHON_LINES_27:
	case PYTHON_LINES_36:
		return by_lnotab(table, len, first_line, at, kind == PYTHON_LINES_36);
	case PYTHON_LINES_310:
		return by_linetable(table, len, first_line, at);
	case PYTHON_LINES_311:
		return by_locations(table, len, first_line, at);
	default:
		return 0;
	}
}
