/* SPDX-License-Identifier: Apache-2.0 */
/* zstream: zlib itself reads the output, made from one part or several. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "tests/unit/test.h"
#include "tools/print/zstream.h"

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

/* Of `n` parts, every other one columns. */
static void make(const uint8_t *data, size_t len, size_t n, uint8_t **packed, size_t *packed_len)
{
	struct zstream_part parts[4] = {{0}};

	for (size_t i = 0; i < n; i++) {
		parts[i] = (struct zstream_part){.data = data + len * i / n,
						 .len = len * (i + 1) / n - len * i / n,
						 .like = i % 2 ? ZSTREAM_COLUMNS : ZSTREAM_TEXT,
						 .last = i + 1 == n};
		zstream_deflate(&parts[i]);
	}
	assert_int_equal(zstream_join(parts, n, packed, packed_len), 0);
}

static void round_trip(size_t len, size_t n_parts)
{
	uint8_t *data = data_make(len), *packed = NULL, *back = mem_alloc(len + 1),
		*whole = mem_alloc(compressBound((uLong)len));
	uLongf n = len + 1, n_whole = compressBound((uLong)len);
	size_t packed_len = 0;

	make(data, len, n_parts, &packed, &packed_len);
	assert_int_equal(uncompress(back, &n, packed, packed_len), Z_OK);
	assert_int_equal(n, len);
	assert_memory_equal(back, data, len);
	assert_int_equal(compress2(whole, &n_whole, data, (uLong)len, 1), Z_OK);
	assert_true(n_parts > 1 || packed_len <= n_whole + 64);
	assert_true(packed_len <= n_whole + n_whole / 4 + 64 * n_parts);
	free(data);
	free(packed);
	free(back);
	free(whole);
}

TEST(zlib_reads_it)
{
	static const size_t sizes[] = {0,      1,      3,      1000,    65536,
				       262143, 262144, 262145, 1000003, 5000000};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		for (size_t parts = 1; parts <= 4; parts++)
			round_trip(sizes[i], parts);
}

/* The last byte of the data, and each of the checksum, count. */
TEST(damage_is_seen)
{
	const size_t len = 300000;
	uint8_t *data = data_make(len), *packed = NULL, *back = mem_alloc(len);
	size_t packed_len = 0;

	make(data, len, 2, &packed, &packed_len);
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

/* One part fails, and there is no output. */
TEST(a_part_that_failed_is_said)
{
	struct zstream_part parts[2] = {{.data = "x", .len = 1},
					{.len = (size_t)UINT32_MAX, .last = true}};
	uint8_t *packed = NULL;
	size_t len = 0;

	zstream_deflate(&parts[0]);
	zstream_deflate(&parts[1]);
	assert_int_equal(zstream_join(parts, 2, &packed, &len), -EFBIG);
	assert_null(packed);
	assert_null(parts[0].out);
}
