/* SPDX-License-Identifier: Apache-2.0 */
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/test.h"

#include "tools/checks/checksql.h"

static sqlite3 *opened(void)
{
	sqlite3 *db = NULL;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(checksql_register(db), SQLITE_OK);
	return db;
}

/* The only value of a query as text; "" for NULL. */
static void asked(sqlite3 *db, const char *sql, char out[64])
{
	sqlite3_stmt *st = NULL;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	snprintf(out, 64, "%s",
		 sqlite3_column_text(st, 0) ? (const char *)sqlite3_column_text(st, 0) : "");
	sqlite3_finalize(st);
}

TEST(slope_is_that_of_the_line_of_least_squares)
{
	static const struct {
		const char *rows, *slope;
	} cases[] = {
		{"(0, 1), (1, 3), (2, 5)", "2.0"},
		/* 20, 21 and 22 hours on top of a large number, which sums of squares would lose */
		{"(1e9 + 20, 7e15), (1e9 + 21, 7e15 + 64), (1e9 + 22, 7e15 + 128)", "64.0"},
		/* by hand: means 1 and 2; sum of dx * dy = 3, of dx * dx = 2 */
		{"(0, 0), (1, 3), (2, 3)", "1.5"},
		{"(0, 1), (NULL, 100), (1, NULL), (2, 5)", "2.0"},
		{"(4, 1), (4, 2)", ""},
		{"(4, 1)", ""},
	};
	sqlite3 *db = opened();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char sql[256], got[64];

		snprintf(
			sql, sizeof(sql),
			"SELECT printf('%%.1f', s) FROM (SELECT slope(column1, column2) AS s FROM (VALUES %s)) WHERE s IS NOT NULL"
			" UNION ALL SELECT '' LIMIT 1",
			cases[i].rows);
		asked(db, sql, got);
		assert_string_equal(got, cases[i].slope);
	}
	sqlite3_close(db);
}

TEST(a_stream_is_known_by_what_was_asked_or_how_it_was_answered)
{
	static const struct {
		const char *call;
		const char *is;
	} cases[] = {
		{"is_stream('http', '10.0.0.1:80', 'GET /x', '200', '', NULL, 60000000)", "0"},
		{"is_stream('http', '10.0.0.1:80', 'GET /x', '101', '', NULL, NULL)", "1"},
		{"is_stream('http', '/run/docker.sock', 'GET /events', '200', '', NULL, NULL)",
		 "1"},
		{"is_stream('http2', '/run/containerd/containerd.sock', '?\?', '', '', NULL, NULL)",
		 "1"},
		{"is_stream('http2', '10.0.0.1:80', '?\?', '', '', NULL, NULL)", "0"},
		{"is_stream('redis', '10.0.0.1:6379', 'BLPOP q', '', '', NULL, NULL)", "1"},
		{"is_stream('http', 'a', 'GET /x', '200', '', 1000000, 10000000)", "1"},
		{"is_stream('http', 'a', 'GET /x', '200', '', 1000001, 10000000)", "0"},
		{"is_stream('http', 'a', 'GET /x', '200', '', 900000, 9999999)", "0"},
		{"is_stream('postgres', 'a', 'SELECT 1', '', 'opened', NULL, NULL)", "1"},
		{"is_stream(NULL, NULL, NULL, NULL, NULL, NULL, NULL)", "0"},
	};
	sqlite3 *db = opened();

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char sql[256], got[64];

		snprintf(sql, sizeof(sql), "SELECT %s", cases[i].call);
		asked(db, sql, got);
		assert_string_equal(got, cases[i].is);
	}
	sqlite3_close(db);
}
