/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: their values, and their stored form. */
#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/store/model/hist.h"
#include "tests/unit/test.h"

static bool reads(struct hist *h, const char *text)
{
	hist_release(h);
	return hist_read(h, text, strlen(text), 0);
}

static uint64_t at(const struct hist *h, unsigned slot)
{
	return slot >= h->first && slot - h->first < h->n ? h->count[slot - h->first] : 0;
}

static void put(struct hist *h, unsigned slot, uint32_t n)
{
	hist_add(h, slot, &n, 1);
}

TEST(steps_follow_one_another_and_hold_each_number)
{
	unsigned last = 0;

	for (uint64_t v = 0; v < 100000; v++) {
		unsigned s = hist_step(v);

		assert_true(v < 16 ? s == v : s == last || s == last + 1);
		last = s;
	}
	assert_int_equal(hist_step(UINT64_MAX), 495);
	assert_true(hist_slot(UINT64_MAX) < HIST_SLOTS);
}

/* The bar: of one value, told by its step alone. */
TEST(what_a_step_says_of_its_value_is_wrong_by_6_percent_at_most)
{
	for (uint64_t v = 1; v < 1ull << 62; v += v / 97 + 1) {
		struct hist h = {0};
		double got;

		put(&h, hist_slot(v), 1);
		got = hist_quantile(&h, 0.5);
		assert_true(v < 16 ? got >= (double)v && got < (double)v + 1 :
				     fabs(got - (double)v) <= 0.0626 * (double)v);
		hist_release(&h);
	}
}

TEST(what_is_written_is_read_back)
{
	struct hist h = {0}, back = {0};
	struct strbuf s = STRBUF_INIT;

	assert_false(hist_encode(&h, 0, &s));
	put(&h, 70, 0);
	assert_false(hist_encode(&h, 0, &s));
	assert_string_equal(strbuf_str(&s), "");
	put(&h, 103, 7);
	put(&h, 105, 1);
	assert_true(hist_encode(&h, 0, &s));
	assert_string_equal(strbuf_str(&s), "[103,7,0,1]");
	assert_true(reads(&back, s.buf));
	assert_true(back.first == 103 && back.n == 3 && at(&back, 103) == 7 && at(&back, 105) == 1);
	strbuf_reset(&s);
	assert_true(hist_encode(&h, HIST_FINE, &s));
	assert_string_equal(strbuf_str(&s), "[39,7,0,1]");
	hist_release(&back);
	assert_true(hist_read(&back, s.buf, s.len, HIST_FINE));
	assert_true(back.first == 103 && back.n == 3);
	hist_release(&h);
	hist_release(&back);
	strbuf_release(&s);
}

TEST(counts_outside_of_what_there_is_grow_it_on_either_side)
{
	const uint32_t counts[6] = {0, 0, 5, 0, 6, 0};
	struct hist h = {0}, more = {0};

	put(&h, 200, 1);
	hist_add(&h, 298, counts, 6);
	put(&h, 0, 2);
	hist_add(&h, HIST_SLOTS - 2, counts + 2, 3); /* the last one is past the end */
	hist_add(&h, HIST_SLOTS, counts, 6);
	hist_add(&h, 100, counts, 2);
	assert_true(h.first == 0 && h.n == HIST_SLOTS - 1);
	assert_true(at(&h, 0) == 2 && at(&h, 200) == 1 && at(&h, 300) == 5 && at(&h, 302) == 6 &&
		    at(&h, HIST_SLOTS - 2) == 5);
	put(&more, 200, 3);
	hist_merge(&more, &h);
	assert_true(at(&more, 200) == 4 && at(&more, 302) == 6);
	hist_merge(&h, &(struct hist){0});
	assert_int_equal(hist_bytes(&h), (HIST_SLOTS - 1) * 8);
	hist_release(&h);
	hist_release(&more);
	assert_int_equal(h.n, 0);
	hist_free(NULL);
}

TEST(what_is_no_histogram_is_refused)
{
	static const char *const wrong[] = {"",
					    "[",
					    "]",
					    "[]",
					    "[1,",
					    "[1,2",
					    "[576]",
					    "[576,1]",
					    "[575,1,1]",
					    "[-1,2]",
					    "[1,-2]",
					    "[1.5,2]",
					    "[1,2]x",
					    "x",
					    "{\"1\":2}",
					    "[1,9223372036854775808]",
					    "[1 2]",
					    "[1,,2]",
					    "[99999999999999999999,1]",
					    "null"};
	struct hist h = {0};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		assert_false(reads(&h, wrong[i]));
	assert_false(hist_read(&h, "[1,\0002]", 6, 0));
	assert_false(hist_read(&h, "[512,1]", 7, HIST_FINE));
	assert_true(reads(&h, " [ 1 , 2 ]\n"));
	assert_int_equal(at(&h, 1), 2);
	assert_true(reads(&h, "[575,1]"));
	assert_true(reads(&h, "[5]"));
	hist_release(&h);
}

TEST(a_sum_stops_at_the_largest_number)
{
	struct hist h = {0};

	for (int i = 0; i < 2; i++)
		assert_true(hist_read(&h, "[1,9223372036854775807]", 23, 0));
	put(&h, 1, 5);
	assert_int_equal(at(&h, 1), INT64_MAX);
	hist_release(&h);
}

/* By the definition: a share q of all lies below it. */
TEST(a_quantile_lies_within_6_percent_of_the_truth)
{
	struct hist h = {0};

	assert_true(hist_quantile(&h, 0.5) == 0);
	for (uint64_t v = 1; v <= 100000; v++)
		put(&h, hist_slot(v), 1);
	for (int q = 1; q <= 99; q++)
		assert_true(fabs(hist_quantile(&h, q / 100.0) - 1000.0 * q) <= 0.0626 * 1000.0 * q);
	assert_true(hist_quantile(&h, 0) <= 1.5 && hist_quantile(&h, 2) >= 100000 * 0.94);
	hist_release(&h);
}

/* What older programs stored: uniform within a power of two, as before; together with steps, each
 * counts where it lies. */
TEST(powers_of_two_are_read_as_what_they_are)
{
	struct hist h = {0};

	for (uint64_t v = 1; v <= 100000; v++)
		put(&h, v < 2 ? 0 : 63u - (unsigned)__builtin_clzll(v), 1);
	for (int q = 1; q <= 99; q++) {
		double got = hist_quantile(&h, q / 100.0), truth = 1000.0 * q;

		assert_true(got >= truth / 2 && got <= truth * 2);
	}
	assert_true(fabs(hist_quantile(&h, 0.5) - 50000) < 5000);
	assert_true(reads(&h, "[10,4]")); /* 1024 to 2048 */
	assert_true(fabs(hist_quantile(&h, 0.25) - 1280) < 1e-6 &&
		    fabs(hist_quantile(&h, 1) - 2048) < 1e-6);
	assert_true(reads(&h, "[0,2]")); /* 0 and 1 */
	assert_true(fabs(hist_quantile(&h, 0.5) - 1) < 1e-6);
	assert_true(reads(&h, "[10,4]"));
	put(&h, hist_slot(1000000), 4);
	assert_true(hist_quantile(&h, 0.4) < 2048 &&
		    fabs(hist_quantile(&h, 0.9) - 1000000) < 62600);
	hist_release(&h);
}

TEST(sqlite_adds_two_and_reads_them_by_itself)
{
	static const char *const asked[] = {
		"SELECT hist_sum('[3,7]', '[2,1,1]') = '[2,1,8]'",
		"SELECT hist_sum(NULL, '[2,1]') = '[2,1]'",
		"SELECT hist_sum(NULL, NULL) IS NULL",
		"SELECT sum(value) = 9 FROM json_each(hist_sum('[3,7]', '[2,1,1]')) WHERE key > 0",
		"SELECT hist_sum('[300,2,0,1]', '[299,5,1]') = '[299,5,3,0,1]'",
		"SELECT hist_sum('[62,1]', '[65,2]') = '[62,1,0,0,2]'"};
	sqlite3_stmt *st;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(hist_register(db), SQLITE_OK);
	for (size_t i = 0; i < ARRAY_SIZE(asked); i++) {
		assert_int_equal(sqlite3_prepare_v2(db, asked[i], -1, &st, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(st), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int(st, 0), 1);
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}
