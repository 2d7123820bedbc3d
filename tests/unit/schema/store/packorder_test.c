/* SPDX-License-Identifier: Apache-2.0 */
/* packorder: a file packed by new numbers says what it did; its frames, stacks and series are in the order that packorder.h tells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "schema/store/packed.h"
#include "schema/store/packing.h"
#include "schema/store/packorder.h"
#include "tests/unit/schema/store/fixture.h"

#define PERIOD 10000000

static void exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
}

/* The first column of all rows, a line each; to be freed. */
static char *ask(sqlite3 *db, const char *sql)
{
	sqlite3_str *out = sqlite3_str_new(NULL);
	sqlite3_stmt *st;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while (sqlite3_step(st) == SQLITE_ROW)
		sqlite3_str_appendf(out, "%s\n", sqlite3_column_text(st, 0));
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	return sqlite3_str_finish(out);
}

static void assert_says(sqlite3 *db, const char *sql, const char *wanted)
{
	char *said = ask(db, sql);

	assert_string_equal(said ? said : "", wanted);
	sqlite3_free(said);
}

/* By a dictionary of its own: frames backwards, a stack that others go on from behind them, one twice, and an inlined frame. */
static const char ROWS[] =
	"DELETE FROM sample; DELETE FROM series; DELETE FROM stack; DELETE FROM frame; DELETE FROM function;"
	"INSERT INTO function(id, hash, image, line, name, file, source) VALUES(2, 0, 1, 0, 'unused', '', 0), (4, 0, 1, 0, 'leaf', '', 0),"
	" (5, 0, 1, 0, 'main', '', 0), (9, 0, 1, 0, 'inlined', '', 0);"
	"INSERT INTO frame(id, image, offset, function, line, flags, outer) VALUES(1, 1, 900, 4, 1, 0, 0), (2, 1, 500, 9, 2, 1, 7), (5, 1, 100, 5, 3, 0, 0),"
	" (7, 1, 500, 4, 4, 0, 0), (8, 0, 77, 0, 0, 0, 0);"
	"INSERT INTO stack(id, base, keep, leaf, tail) VALUES(1, 0, 0, 1, '5,2'), (2, 1, 1, 8, ''), (3, 0, 0, 5, ''), (4, 1, 2, 8, '8,1'), (5, 1, 2, 1, ''),"
	" (6, 1, 1, 2, '');"
	"INSERT INTO series(id, task, stack, label) VALUES(1, 1, 1, 0), (2, 1, 2, 0), (3, 1, 3, 0), (4, 1, 4, 0), (5, 1, 5, 0), (6, 1, 6, 0), (7, 1, 0, 0);"
	"INSERT INTO sample(ts, series, n) VALUES(0, 1, 1), (0, 2, 2), (0, 3, 4), (0, 4, 8), (1, 5, 16), (1, 6, 32), (1, 7, 64)";
static const char CONTENT[] =
	"SELECT x.ts || ' ' || x.n || ' ' || coalesce(k.depth || ' ' || k.folded, '-') FROM sample x JOIN series e ON e.id = x.series LEFT JOIN stacks k ON k.id = e.stack"
	" UNION ALL SELECT 'f ' || r.image || ' ' || r.offset || ' ' || coalesce(f.name, '') || ' ' || r.line || ' ' || coalesce(o.line, '') FROM frame r"
	" LEFT JOIN function f ON f.id = r.function LEFT JOIN frame o ON o.id = r.outer ORDER BY 1";

static sqlite3 *make_file(const struct fixture *f)
{
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	sqlite3 *db;

	fixture_add(w, run, 1, 1, T0_S * NS, 1);
	fixture_close(w);
	assert_int_equal(sqlite3_open(fixture_segment(f, 0), &db), SQLITE_OK);
	assert_int_equal(packed_register(db), SQLITE_OK);
	exec(db, ROWS);
	return db;
}

static void pack(sqlite3 *db)
{
	struct packorder o;

	exec(db, "BEGIN");
	assert_int_equal(packorder_load(db, &o), SQLITE_OK);
	assert_int_equal(packing_pack(db, &o), SQLITE_OK);
	exec(db, "COMMIT");
	packorder_release(&o);
}

static void what_is_packed_by_new_numbers_says_what_it_did(void **state)
{
	sqlite3 *db = make_file(*state);
	char *before = ask(db, CONTENT);

	pack(db);
	assert_says(db, CONTENT, before);
	exec(db, "BEGIN");
	assert_int_equal(packing_unpack(db, NULL), SQLITE_OK);
	exec(db, "COMMIT");
	assert_says(db, CONTENT, before);
	pack(db);
	assert_says(db, CONTENT, before);
	assert_true(strlen(before) > 100);
	sqlite3_free(before);
	sqlite3_close(db);
}

static void numbers_are_as_the_header_tells(void **state)
{
	sqlite3 *db = make_file(*state);

	pack(db);
	assert_says(db, "SELECT id || ' ' || image || ' ' || offset || ' ' || line || ' ' || outer FROM frame", "1 0 77 0 0\n2 1 100 3 0\n3 1 500 4 0\n4 1 500 2 3\n"
		    "5 1 900 1 0\n");
	assert_says(db, "SELECT id || name FROM function", "1main\n2leaf\n3inlined\n4unused\n");
	assert_says(db, "SELECT id || ' ' || base || ' ' || keep || ' ' || leaf || ' ' || tail FROM stack", "1 0 0 2 \n2 1 1 1 \n3 1 1 4 \n4 3 2 1 1,5\n5 3 2 5 \n6 3 2 5 \n");
	assert_says(db, "SELECT id || ' ' || stack FROM series", "1 0\n2 1\n3 2\n4 3\n5 4\n6 5\n7 6\n");
	assert_says(db, "SELECT n FROM sample", "4\n2\n8\n1\n64\n32\n16\n");
	assert_says(db, "SELECT hex(substr(data, 1, 1)) FROM packed_column WHERE \"table\" = 'stack' AND name IN ('base', 'tail') ORDER BY number", "09\n08\n");
	sqlite3_close(db);
}

static void ids_that_nothing_has_become_0(void **state)
{
	sqlite3 *db = make_file(*state);
	struct packorder o;

	exec(db, "UPDATE frame SET outer = 6, function = 3 WHERE id = 7; UPDATE frame SET function = 1000 WHERE id = 1");
	assert_int_equal(packorder_load(db, &o), SQLITE_OK);
	assert_int_equal(packorder_number(&o, PACKORDER_FRAME, 6), 0);
	assert_int_equal(packorder_number(&o, PACKORDER_FRAME, 1ll << 40), 0);
	assert_int_equal(packorder_number(&o, PACKORDER_FUNCTION, 3), 0);
	assert_int_equal(packorder_number(&o, PACKORDER_FUNCTION, 9), 2);
	assert_int_equal(packorder_number(&o, PACKORDER_FUNCTION, -1), 0);
	packorder_release(&o);
	sqlite3_close(db);
}

static void stacks_that_no_writer_wrote_are_refused(void **state)
{
	sqlite3 *db = make_file(*state);
	struct packorder o;

	exec(db, "UPDATE stack SET base = 6 WHERE id = 2");
	assert_int_equal(packorder_load(db, &o), SQLITE_CORRUPT);
	sqlite3_close(db);
}

#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(what_is_packed_by_new_numbers_says_what_it_did),
		T(numbers_are_as_the_header_tells),
		T(ids_that_nothing_has_become_0),
		T(stacks_that_no_writer_wrote_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
