/* SPDX-License-Identifier: Apache-2.0 */
/* pack: what is packed is read back; what is no block is refused, and nothing is read past its end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "schema/store/pack.h"

static uint64_t state = 42;

static uint32_t random_below(uint32_t n)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)((state >> 33) % n);
}

/* Buckets of any distance, series of any density, counts of any size. */
static size_t make_rows(struct sample_row *rows, size_t max)
{
	int64_t ts = (int64_t)random_below(100000) - 50000;
	size_t n = 0;

	while (n < max) {
		uint32_t in = 1 + random_below(40), series = 0;

		for (uint32_t i = 0; i < in && n < max; i++) {
			series += 1 + random_below(random_below(10) ? 3 : 1u << 24);
			rows[n++] = (struct sample_row){ts, 1 + (random_below(4) ? 0 : (uint64_t)random_below(1u << 30) << random_below(30)),
							series};
		}
		ts += 1 + (random_below(8) ? 9 : random_below(1u << 20));
	}
	return n;
}

static size_t read_all(const struct strbuf *b, int64_t ts, struct sample_row *out, size_t max, int *bad)
{
	struct pack_reader r;
	size_t n = 0, k;

	pack_open(&r, b->buf, b->len, ts);
	while ((k = pack_next(&r, out + n, max - n < 7 ? max - n : 7))) /* in odd pieces */
		n += k;
	*bad = r.bad;
	return n;
}

static void rows_that_were_packed_are_read_back(void **s)
{
	static struct sample_row in[1000], out[1001];
	int bad;

	(void)s;
	for (int turn = 0; turn < 300; turn++) {
		struct strbuf b = STRBUF_INIT;
		size_t n = make_rows(in, 1 + random_below(1000));

		assert_int_equal(pack_encode(in, n, &b), 0);
		assert_int_equal(read_all(&b, in[0].ts, out, 1001, &bad), n);
		assert_int_equal(bad, 0);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(out[i].ts, in[i].ts);
			assert_int_equal(out[i].series, in[i].series);
			assert_int_equal(out[i].n, in[i].n);
		}
		strbuf_release(&b);
	}
}

static void a_row_of_a_series_near_the_one_before_is_one_byte(void **s)
{
	struct sample_row rows[64];
	struct strbuf b = STRBUF_INIT;

	(void)s;
	for (uint32_t i = 0; i < 64; i++)
		rows[i] = (struct sample_row){100, 1, 1 + 64 * i};
	assert_int_equal(pack_encode(rows, 64, &b), 0);
	assert_int_equal(b.len, 1 + 2 + 64); /* form, bucket, rows */
	strbuf_release(&b);
}

static void rows_out_of_order_or_out_of_range_are_not_packed(void **s)
{
	static const struct sample_row wrong[][2] = {
		{{10, 1, 2}, {10, 1, 2}}, {{10, 1, 2}, {10, 1, 1}}, {{10, 1, 2}, {9, 1, 3}}, {{10, 0, 2}, {11, 1, 2}},
		{{10, 1, 0}, {11, 1, 1}}, {{10, 1ull << 63, 1}, {11, 1, 1}}, {{-PACK_TS_MAX, 1, 1}, {11, 1, 1}},
		{{10, 1, 1}, {PACK_TS_MAX, 1, 1}},
	};
	struct strbuf b = STRBUF_INIT;

	(void)s;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(pack_encode(wrong[i], 2, &b), -EINVAL);
	assert_int_equal(pack_encode(wrong[0], 0, &b), -EINVAL);
	assert_int_equal(b.len, 0);
	strbuf_release(&b);
}

static void a_block_cut_short_anywhere_gives_the_rows_before_and_says_so(void **s)
{
	static struct sample_row in[200], out[201];
	struct strbuf b = STRBUF_INIT;
	size_t n = make_rows(in, 200), before = 0;
	int bad;

	(void)s;
	assert_int_equal(pack_encode(in, n, &b), 0);
	for (size_t len = b.len; len-- > 0;) {
		struct strbuf cut = {.buf = malloc(len + 1), .len = len}; /* of that size: a sanitizer sees what is read beyond */
		size_t k;

		memcpy(cut.buf, b.buf, len);
		k = read_all(&cut, in[0].ts, out, 201, &bad);
		assert_true(k <= n && memcmp(out, in, k * sizeof(*in)) == 0);
		before += bad != 0;
		free(cut.buf);
	}
	assert_true(before > n / 2); /* only the ends of buckets look like ends */
	strbuf_release(&b);
}

static void what_breaks_a_rule_is_no_block(void **s)
{
	static const struct {
		const char *bytes;
		size_t len;
	} wrong[] = {
		{"", 0}, {"\0\0\1\0", 4}, {"\2\0\1\0", 4},        /* form */
		{"\1\1\1\0", 4},                                 /* the first bucket is the block's ts */
		{"\1\0\0", 3},                                   /* a bucket of none */
		{"\1\0\1\0\0\1\0", 7},                           /* two buckets of one time */
		{"\1\0\1\xfe\xff\xff\xff\x1f", 8},               /* series past 32 bits */
		{"\1\0\1\x01\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 13}, /* n past 63 bits */
		{"\1\0\1\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", 14}, /* a number of 11 bytes */
		{"\1\0\1\0\xff\xff\xff\xff\xff\xff\xff\x7f\1\0", 14}, /* a time past the range */
	};
	struct sample_row out[4];

	(void)s;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct pack_reader r;

		pack_open(&r, wrong[i].bytes, wrong[i].len, 5);
		while (pack_next(&r, out, 4))
			continue;
		if (r.bad != -EBADMSG)
			fail_msg("case %zu was taken", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_were_packed_are_read_back),
		cmocka_unit_test(a_row_of_a_series_near_the_one_before_is_one_byte),
		cmocka_unit_test(rows_out_of_order_or_out_of_range_are_not_packed),
		cmocka_unit_test(a_block_cut_short_anywhere_gives_the_rows_before_and_says_so),
		cmocka_unit_test(what_breaks_a_rule_is_no_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
