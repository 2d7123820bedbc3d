/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms: what they hold, and their stored form. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/store/model/hist.h"

static bool reads(const char *text, uint64_t counts[HIST_SLOTS])
{
	memset(counts, 0, HIST_SLOTS * sizeof(*counts));
	return hist_add(counts, text, strlen(text));
}

static void a_value_lies_in_the_slot_of_its_power_of_two(void **state)
{
	(void)state;
	assert_int_equal(hist_slot(0), 0);
	assert_int_equal(hist_slot(1), 0);
	assert_int_equal(hist_slot(2), 1);
	assert_int_equal(hist_slot(3), 1);
	assert_int_equal(hist_slot(4), 2);
	assert_int_equal(hist_slot(1023), 9);
	assert_int_equal(hist_slot(1024), 10);
	assert_int_equal(hist_slot(UINT64_MAX), 63);
}

static void a_list_of_more_steps_is_added_up_as_well(void **state)
{
	uint64_t counts[HIST_WIDE] = {[300] = 2, [511] = 1};
	struct strbuf s = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;

	(void)state;
	assert_true(hist_encode_wide(counts, &s));
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(hist_register(db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT hist_sum(?1, '[299,5,1]') = replace(replace(?1, '[300,2,', '[299,5,3,'), ' ', '')", -1, &st, NULL), SQLITE_OK);
	sqlite3_bind_text(st, 1, strbuf_str(&s), -1, SQLITE_STATIC);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(st, 0), 1);
	sqlite3_finalize(st);
	sqlite3_close(db);
	strbuf_release(&s);
}

static void what_is_written_is_read_back(void **state)
{
	uint64_t counts[HIST_SLOTS] = {0}, back[HIST_SLOTS];
	struct strbuf s = STRBUF_INIT;

	(void)state;
	assert_false(hist_encode(counts, &s));
	assert_string_equal(strbuf_str(&s), "");
	counts[3] = 7;
	counts[5] = 1;
	assert_true(hist_encode(counts, &s));
	assert_string_equal(strbuf_str(&s), "[3,7,0,1]");
	assert_true(reads(s.buf, back));
	assert_memory_equal(counts, back, sizeof(back));
	strbuf_reset(&s);
	counts[0] = 1;
	counts[63] = INT64_MAX;
	assert_true(hist_encode(counts, &s));
	assert_true(reads(s.buf, back));
	assert_memory_equal(counts, back, sizeof(back));
	strbuf_release(&s);
}

static void what_is_no_histogram_is_refused(void **state)
{
	static const char *const wrong[] = {"", "[", "]", "[]", "[1,", "[1,2", "[64]", "[64,1]", "[63,1,1]", "[-1,2]", "[1,-2]",
					    "[1.5,2]", "[1,2]x", "x", "{\"1\":2}", "[1,9223372036854775808]", "[1 2]",
					    "[1,,2]", "[99999999999999999999,1]", "null"};
	uint64_t counts[HIST_SLOTS];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(reads(wrong[i], counts));
	assert_false(hist_add(counts, "[1,\0002]", 6));
	assert_true(reads(" [ 1 , 2 ]\n", counts));
	assert_int_equal(counts[1], 2);
	assert_true(reads("[63,1]", counts));
	assert_true(reads("[5]", counts));
}

static void a_sum_stops_at_the_largest_number(void **state)
{
	uint64_t counts[HIST_SLOTS] = {0};

	(void)state;
	assert_true(hist_add(counts, "[1,9223372036854775807]", 23));
	assert_true(hist_add(counts, "[1,9223372036854775807]", 23));
	assert_int_equal(counts[1], INT64_MAX);
}

/* By the definition: a share q of all lies below it; within one slot the error is at most its width. */
static void a_quantile_lies_within_a_factor_of_two_of_the_truth(void **state)
{
	uint64_t counts[HIST_SLOTS] = {0};

	(void)state;
	assert_true(hist_quantile(counts, 0.5) == 0);
	for (uint64_t v = 1; v <= 100000; v++)
		counts[hist_slot(v)]++;
	for (int q = 1; q <= 99; q++) {
		double got = hist_quantile(counts, q / 100.0), truth = 1000.0 * q;

		assert_true(got >= truth / 2 && got <= truth * 2);
	}
	assert_true(fabs(hist_quantile(counts, 0.5) - 50000) < 5000); /* uniform within its slot, too */
	assert_true(hist_quantile(counts, 0) <= 1 && hist_quantile(counts, 2) >= 100000);
}

static void sqlite_adds_two_and_reads_them_by_itself(void **state)
{
	static const char *const asked[] = {"SELECT hist_sum('[3,7]', '[2,1,1]') = '[2,1,8]'",
					    "SELECT hist_sum(NULL, '[2,1]') = '[2,1]'", "SELECT hist_sum(NULL, NULL) IS NULL",
					    "SELECT sum(value) = 9 FROM json_each(hist_sum('[3,7]', '[2,1,1]')) WHERE key > 0"};
	sqlite3_stmt *st;
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(hist_register(db), SQLITE_OK);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		assert_int_equal(sqlite3_prepare_v2(db, asked[i], -1, &st, NULL), SQLITE_OK);
		assert_int_equal(sqlite3_step(st), SQLITE_ROW);
		assert_int_equal(sqlite3_column_int(st, 0), 1);
		sqlite3_finalize(st);
	}
	sqlite3_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_lies_in_the_slot_of_its_power_of_two),
		cmocka_unit_test(a_list_of_more_steps_is_added_up_as_well),
		cmocka_unit_test(what_is_written_is_read_back),
		cmocka_unit_test(what_is_no_histogram_is_refused),
		cmocka_unit_test(a_sum_stops_at_the_largest_number),
		cmocka_unit_test(a_quantile_lies_within_a_factor_of_two_of_the_truth),
		cmocka_unit_test(sqlite_adds_two_and_reads_them_by_itself),
	};

	return cmocka_run_group_tests_name("hist", tests, NULL, NULL);
}
