/* SPDX-License-Identifier: Apache-2.0 */
/* zstream: zlib itself reads what was made, of one part or of two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "schema/base/mem.h"
#include "tools/zstream.h"

/* Every fourth byte says something. */
static uint8_t *data_make(size_t len)
{
	uint8_t *data = mem_alloc(len + 1);
	uint64_t state = 88172645463325252ull;

	for (size_t i = 0; i < len; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		data[i] = i % 4 ? 'a' : (uint8_t)state;
	}
	return data;
}

static void round_trip(size_t len, int level)
{
	uint8_t *data = data_make(len), *packed = NULL, *back = mem_alloc(len + 1), *whole = mem_alloc(compressBound((uLong)len));
	uLongf n = len + 1, n_whole = compressBound((uLong)len);
	size_t packed_len = 0;

	assert_int_equal(zstream_make(data, len, level, &packed, &packed_len), 0);
	assert_int_equal(uncompress(back, &n, packed, packed_len), Z_OK);
	assert_int_equal(n, len);
	assert_memory_equal(back, data, len);
	assert_int_equal(compress2(whole, &n_whole, data, (uLong)len, level), Z_OK);
	assert_true(packed_len <= n_whole + n_whole / 100 + 64); /* the seam costs next to nothing */
	free(data);
	free(packed);
	free(back);
	free(whole);
}

static void zlib_reads_it(void **state)
{
	static const size_t sizes[] = {0, 1, 1000, 65536, 262143, 262144, 262145, 1000003, 5000000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
		for (int level = 1; level <= 9; level += 4)
			round_trip(sizes[i], level);
}

/* The last byte of the data, and each of the checksum, count. */
static void damage_is_seen(void **state)
{
	const size_t len = 300000;
	uint8_t *data = data_make(len), *packed = NULL, *back = mem_alloc(len);
	size_t packed_len = 0;

	(void)state;
	assert_int_equal(zstream_make(data, len, 1, &packed, &packed_len), 0);
	for (size_t i = 1; i <= 4; i++) {
		uLongf n = len;

		packed[packed_len - i] ^= 1;
		assert_int_equal(uncompress(back, &n, packed, packed_len), Z_DATA_ERROR);
		packed[packed_len - i] ^= 1;
	}
	free(data);
	free(packed);
	free(back);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(zlib_reads_it), cmocka_unit_test(damage_is_seen)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
