/* SPDX-License-Identifier: Apache-2.0 */
/*
 * covers: schema/store/packed/column.c
 *
 * Any bytes are a column of the given length, or are refused; what was read is read again from what
 * is written of it. Without the frame's own sums in the way: the bytes are what a column inflates
 * to.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "schema/store/packed/column.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* As rule 1 of the header has it. */
static size_t wrap(uint8_t form, const uint8_t *raw, size_t size, uint8_t *out, size_t room)
{
	size_t n = 0, left = size, len;

	out[n++] = form;
	for (; left > 127; left >>= 7)
		out[n++] = (uint8_t)(left | 128);
	out[n++] = (uint8_t)left;
	len = ZSTD_compress(out + n, room - n, raw, size, 1);
	return ZSTD_isError(len) ? 0 : n + len;
}

static void again(const struct column *c)
{
	struct column other = {0};
	uint8_t *data;
	size_t len;

	if (column_encode(c, &data, &len) || column_decode(data, len, c->n, &other))
		abort();
	if (!c->numbers != !other.numbers ||
	    (c->numbers ? memcmp(c->numbers, other.numbers, c->n * sizeof(*c->numbers)) :
			  memcmp(c->text, other.text, c->at[c->n])))
		abort();
	column_release(&other);
	free(data);
}

/* Number by number it is the same. */
static void by_cursor(const uint8_t *data, size_t len, size_t n, const struct column *decoded)
{
	struct column_cursor c;
	int64_t v;
	size_t i = 0;

	if (column_cursor_open(data, len, n, &c)) {
		if (decoded && decoded->numbers)
			abort();
		return;
	}
	for (; column_cursor_next(&c, &v); i++)
		if (decoded && decoded->numbers[i] != v)
			abort();
	if (!column_cursor_close(&c) != (decoded != NULL))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t wrapped[1 << 17];
	struct column c = {0};
	size_t n, len;

	if (size < 3 || size > 1 << 16)
		return 0;
	n = data[1] | (size_t)data[2] << 8;
	if (column_decode(data + 3, size - 3, n, &c) == 0)
		column_release(&c);
	len = wrap(data[0], data + 3, size - 3, wrapped, sizeof(wrapped));
	if (len && n && column_decode(wrapped, len, n, &c) == 0) {
		by_cursor(wrapped, len, n, &c);
		again(&c);
		column_release(&c);
	} else if (len && n) {
		by_cursor(wrapped, len, n, NULL);
	}
	return 0;
}
