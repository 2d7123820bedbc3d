/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: rows of one bucket with the same names add up, with their latencies; an impossible row
 * is dropped alone. */
#include <errno.h>

#include "schema/base/clock.h"
#include "schema/store/archive/seal.h"
#include "schema/store/model/hist.h"
#include "schema/store/write/requests.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

static uint32_t begin(struct store_writer *w)
{
	struct store_run r = {.family = "replay",
			      .options = "x.pcap",
			      .scope = STORE_SCOPE_PARTIAL,
			      .bucket_s = 1,
			      .from_ns = T0_S * NS,
			      .boot_offset_ns = clock_boot_offset_ns()};

	return store_run_begin(w, &r);
}

static int put(struct store_writer *w, uint32_t run, int second, const char *status, uint64_t n,
	       uint64_t ns)
{
	uint32_t steps[HIST_STEPS] = {0};
	struct store_request r = {.protocol = "http",
				  .service = "127.0.0.1:80",
				  .operation = "GET /",
				  .status = status,
				  .n = n,
				  .total_ns = n * ns,
				  .max_ns = ns,
				  .request_bytes = 10 * n,
				  .response_bytes = 20 * n,
				  .steps = steps,
				  .n_steps = HIST_STEPS,
				  .result = *status == '5' ? STORE_RESULT_ERROR : STORE_RESULT_OK};

	steps[hist_step(ns)] = (uint32_t)n;
	return store_request(w, run, (T0_S + second) * NS, &r);
}

TEST(a_step_holds_what_lies_within_six_percent_of_its_middle)
{
	for (uint64_t v = 1; v < UINT64_MAX / 3; v += v / 7 + 1) {
		unsigned k = hist_step(v);
		uint64_t low = k < 8 ? k : (uint64_t)(8 + k % 8) << (k / 8 - 1),
			 high = low + (1ull << (k < 8 ? 0 : k / 8 - 1));
		double middle = 2.0 * (double)low * (double)high / ((double)low + (double)high);

		assert_true(k < HIST_STEPS && low <= v && v < high);
		assert_true(v < 8 || (middle / (double)v < 1.06 && middle / (double)v > 0.94));
	}
	assert_int_equal(hist_step(0), 0);
	assert_true(hist_step(UINT64_MAX) < HIST_STEPS);
}

STORE_TEST(what_is_alike_adds_up_and_what_is_not_stays_apart)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = begin(w);

	assert_int_equal(put(w, run, 0, "200", 3, 1000), 0);
	store_flush(w);
	assert_int_equal(put(w, run, 0, "200", 2, 5000), 0);
	assert_int_equal(put(w, run, 0, "500", 1, 100), 0);
	assert_int_equal(put(w, run, 1, "200", 4, 1000), 0);
	assert_int_equal(
		store_request(w, run + 1, T0_S * NS, &(struct store_request){.protocol = ""}),
		-EINVAL);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT count(*) FROM request_row"), 3);
	assert_int_equal(
		fixture_sql_all(
			f, "SELECT requests FROM requests WHERE status = '200' AND ts % 10 = 0"),
		5);
	assert_int_equal(
		fixture_sql_all(
			f, "SELECT total_ns FROM requests WHERE status = '200' AND ts % 10 = 0"),
		13000);
	assert_int_equal(
		fixture_sql_all(f,
				"SELECT max_ns FROM requests WHERE status = '200' AND ts % 10 = 0"),
		5000);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(errors) FROM requests"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(response_bytes) FROM requests"), 200);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT sum(n) FROM request_spread WHERE low_ns <= 1000 AND high_ns > 1000"),
		7);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT sum(n) FROM request_spread WHERE low_ns <= 5000 AND high_ns > 5000"),
		2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM request_spread"), 10);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 10);
	assert_int_equal(fixture_sql_all(f, "SELECT n FROM run_count WHERE kind = 0"), 10);
}

STORE_TEST(parts_of_how_long_they_took_add_up_beside_them_and_are_no_events)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = begin(w), steps[HIST_STEPS] = {0};
	struct store_request r = {.part = STORE_PART_QUEUE,
				  .side = STORE_SIDE_SERVER,
				  .protocol = "http",
				  .service = "s",
				  .operation = "o",
				  .status = "",
				  .n = 2,
				  .total_ns = 300,
				  .max_ns = 200,
				  .steps = steps,
				  .n_steps = HIST_STEPS};

	steps[hist_step(150)] = 2;
	assert_int_equal(put(w, run, 0, "200", 3, 1000), 0);
	assert_int_equal(store_request(w, run, T0_S * NS, &r), 0);
	store_flush(w);
	assert_int_equal(store_request(w, run, T0_S * NS, &r), 0);
	r.part = STORE_PART_FIRST;
	assert_int_equal(store_request(w, run, T0_S * NS, &r), 0);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM request_row"), 3);
	assert_int_equal(
		fixture_sql_all(f, "SELECT requests FROM request_phases WHERE phase = 'queue'"), 4);
	assert_int_equal(
		fixture_sql_all(f, "SELECT total_ns FROM request_phases WHERE phase = 'queue'"),
		600);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT json_extract(hist, '$[1]') FROM request_phases WHERE phase = 'queue'"),
		4);
	assert_int_equal(
		fixture_sql_all(f,
				"SELECT requests FROM request_phases WHERE phase = 'first-byte'"),
		2);
	assert_int_equal(fixture_sql_all(f, "SELECT accounted FROM run"), 3);
}

STORE_TEST(a_number_that_cannot_be_is_one_lost)
{
	struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = begin(w);
	struct store_request r = {.protocol = "http",
				  .service = "s",
				  .operation = "o",
				  .status = "",
				  .n = 1,
				  .total_ns = UINT64_MAX};

	assert_int_equal(store_request(w, run, T0_S * NS, &r), 0);
	assert_int_equal(put(w, run, 0, "200", 1, 5), 0);
	fixture_close(w);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM request_row"), 1);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(n) FROM loss_row WHERE reason = 'range'"),
			 1);
}

STORE_TEST(an_archive_has_them_too)
{
	struct fixture *f = *state;
	struct seal_opts o = {.dir = f->dir};
	struct seal_report r;
	struct err e = {0};

	for (int i = 0; i < 3; i++) {
		struct store_writer *w = fixture_writer(f, 0);
		uint32_t run = begin(w);

		assert_int_equal(put(w, run, i, "200", 3, 1000), 0);
		assert_int_equal(put(w, run, i, "500", 1, 9000), 0);
		fixture_close(w);
		fixture_exec(
			fixture_segment(f, (size_t)i),
			"UPDATE meta SET value = 'another' WHERE key = 'boot_id'"); /* the next is
										       another file
										     */
	}
	assert_int_equal(seal_run(&o, &r, &e), 0);
	assert_int_equal(r.segments, 2);
	assert_int_equal(fixture_sql_all(f, "SELECT sum(requests) FROM requests"), 12);
	assert_int_equal(
		fixture_sql_all(
			f,
			"SELECT sum(n) FROM request_spread WHERE operation = 'GET /' AND result = 'error'"),
		3);
}
