/* SPDX-License-Identifier: Apache-2.0 */
/* packing: rows into columns and back; a packed table reads as its rows did, and a writer finds
 * rows. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "schema/base/array.h"
#include "schema/store/archive/archive.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/segment.h"
#include "schema/store/packed/column.h"
#include "schema/store/packed/module.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/read.h"
#include "schema/store/write/symbolizer.h"
#include "tests/unit/schema/store/fixture.h"
#include "tests/unit/test.h"

#define PERIOD 10000000
#define BLOCK  7 /* rows: several blocks of each table */

static sqlite3 *open_file(const char *path)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(packed_register(db), SQLITE_OK);
	assert_int_equal(packed_views(db, NULL), SQLITE_OK);
	return db;
}

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

static const char ALL[] =
	"SELECT 'f ' || id || image || offset || function || line || flags || outer FROM frame UNION ALL SELECT 's ' || id || base || keep || leaf || tail FROM stack"
	" UNION ALL SELECT 'e ' || id || task || stack || label FROM series UNION ALL SELECT 'n ' || ts || ' ' || series || ' ' || n FROM sample"
	" UNION ALL SELECT 'p ' || id || pid || comm || args || start_ns || exe FROM process UNION ALL SELECT 't ' || id || value FROM text"
	" UNION ALL SELECT 'k ' || id || run || process || tid || thread FROM task"
	" UNION ALL SELECT 'u ' || id || hash || image || line || name || source FROM function ORDER BY 1";
static const char SCHEMA[] =
	"SELECT type || name || tbl_name || coalesce(sql, '') FROM sqlite_master ORDER BY 1";

/* A segment of some stacks, three of which are of one process. */
static const char *make_segment(const struct fixture *f)
{
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);

	for (uint32_t i = 0; i < 60; i++)
		fixture_add(w, run, 1 + i % 20, i % 7, (T0_S + i) * NS, 1 + i);
	fixture_close(w);
	return fixture_segment(f, 0);
}

static void pack(sqlite3 *db)
{
	exec(db, "BEGIN");
	assert_int_equal(packing_pack(db, 1, BLOCK), SQLITE_OK);
	assert_int_equal(segment_mark_archived(db), SQLITE_OK);
	exec(db, "COMMIT");
}

static sqlite3 *make_packed(const struct fixture *f)
{
	sqlite3 *db = open_file(make_segment(f));

	pack(db);
	assert_true(packing_is_packed(db));
	return db;
}

STORE_TEST(rows_that_were_packed_and_unpacked_are_as_they_were)
{
	sqlite3 *db = open_file(make_segment(*state));
	char *rows = ask(db, ALL), *schema = ask(db, SCHEMA),
	     *top = ask(db, "SELECT function || self || total FROM functions_top");
	bool any = false;

	pack(db);
	assert_says(db, ALL, rows);
	assert_says(db, "SELECT count(*) FROM packed_column WHERE \"table\" = 'frame'", "7\n");
	exec(db, "BEGIN");
	assert_int_equal(packing_unpack(db, &any), SQLITE_OK);
	exec(db, "COMMIT");
	assert_true(any);
	assert_says(db, ALL, rows);
	assert_says(db, SCHEMA, schema);
	assert_says(db, "SELECT function || self || total FROM functions_top", top);
	assert_says(db, "PRAGMA integrity_check", "ok\n");
	sqlite3_free(rows);
	sqlite3_free(schema);
	sqlite3_free(top);
	sqlite3_close(db);
}

STORE_TEST(views_of_columns_answer_as_those_of_rows)
{
	const struct fixture *f = *state;
	sqlite3 *db = open_file(make_segment(f));
	char *top = ask(
		db,
		"SELECT function || ' ' || self || ' ' || total || ' ' || total_ns FROM functions_top ORDER BY 1");

	pack(db);
	assert_int_equal(packed_views(db, NULL), SQLITE_OK);
	assert_says(
		db,
		"SELECT function || ' ' || self || ' ' || total || ' ' || total_ns FROM functions_top ORDER BY 1",
		top);
	assert_says(db, "SELECT sum(samples) || ' ' || sum(cpu_ns) FROM cpu_samples",
		    "1830 18300000000\n");
	sqlite3_free(top);
	sqlite3_close(db);
}

STORE_TEST(a_reader_does_not_tell_columns_from_rows)
{
	const struct fixture *f = *state;
	struct fixture_sums rows = {.pid = 3}, columns = {.pid = 3};
	const char *path = make_segment(f);
	sqlite3 *db;

	assert_int_equal(fixture_totals(f->dir, 0, INT64_MAX, &rows, NULL), 0);
	db = open_file(path);
	pack(db);
	sqlite3_close(db);
	assert_int_equal(fixture_totals(f->dir, 0, INT64_MAX, &columns, NULL), 0);
	assert_true(rows.samples > 0);
	assert_memory_equal(&rows, &columns, sizeof(rows));
}

static int say_ending(void *ctx, const struct store_ending_row *r)
{
	sqlite3_str_appendf(ctx, "%s|%s|%s|%d|%llu;", r->executable, r->module, r->reason,
			    r->complete, (unsigned long long)r->n);
	return 0;
}

static char *endings_of(const char *path)
{
	sqlite3_str *out = sqlite3_str_new(NULL);
	struct store_segment *s;

	assert_int_equal(store_segment_open(path, &s, NULL), 0);
	assert_int_equal(store_endings(s, 0, INT64_MAX, 1, say_ending, out, NULL), 0);
	store_segment_close(s);
	return sqlite3_str_finish(out);
}

STORE_TEST(how_stacks_ended_is_said_without_the_names_that_are_packed)
{
	const struct fixture *f = *state;
	struct store_writer *w = fixture_writer(f, 0);
	uint32_t run = fixture_run(w, STORE_SCOPE_HOST, 1, PERIOD, T0_S * NS);
	const char *path;
	char *said;
	sqlite3 *db;

	for (uint32_t i = 0; i < 30; i++) {
		fixture_add(w, run, 1 + i % 20, i % 7, (T0_S + i) * NS, 1 + i);
		store_unwound(w, run, (T0_S + i) * NS, i % 3 ? "/bin/app" : "", 0, 1 + i % 2, 2);
	}
	fixture_close(w);
	path = fixture_segment(f, 0);
	db = open_file(path);
	pack(db);
	exec(db,
	     "DELETE FROM packed_block WHERE id >> 20 IN (SELECT id FROM packed_column WHERE \"table\" = 'text')");
	sqlite3_close(db);
	said = endings_of(path);
	assert_string_equal(
		said, "||complete|1|10;||its mappings were not known|0|10;/bin/app||complete|1|20;"
		      "/bin/app||its mappings were not known|0|20;");
	sqlite3_free(said);
}

STORE_TEST(a_schema_that_is_to_change_finds_rows)
{
	sqlite3 *db = make_packed(*state);

	exec(db, "BEGIN");
	assert_int_equal(migrate_apply(db, migrate_known()), SQLITE_OK);
	exec(db, "ALTER TABLE process ADD COLUMN of_tomorrow INTEGER; COMMIT");
	assert_false(packing_is_packed(db));
	sqlite3_close(db);
}

/* Every value of a packed table: read by SQLite, and read in one go. */
static void compare_values(sqlite3 *db, const char *table, const char *columns, size_t *n)
{
	char *sql = sqlite3_mprintf("SELECT %s FROM \"%w\"", columns, table);
	struct packedread r;
	sqlite3_stmt *st;
	size_t row = 0, block = 0;

	assert_true(packedread_open(&r, db, table, columns));
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	for (; sqlite3_step(st) == SQLITE_ROW; row++) {
		size_t at = row % r.t.block_rows;

		assert_true(row < r.t.n_rows);
		if (!at)
			assert_int_equal(packedread_block(&r, block++), 0);
		for (int i = 0; i < sqlite3_column_count(st); i++, (*n)++) {
			bool number = sqlite3_column_type(st, i) == SQLITE_INTEGER;

			assert_int_equal(packedread_number(&r, i, at),
					 number ? sqlite3_column_int64(st, i) : 0);
			assert_string_equal(packedread_text(&r, i, at),
					    number || sqlite3_column_type(st, i) == SQLITE_NULL ?
						    "" :
						    (const char *)sqlite3_column_text(st, i));
		}
	}
	assert_int_equal(row, r.t.n_rows);
	assert_int_equal(block, r.t.n_blocks);
	sqlite3_finalize(st);
	sqlite3_free(sql);
	packedread_release(&r);
}

/* What SQLite finds by a value, or in a range of the first column, is what it finds among rows. */
STORE_TEST(what_is_looked_up_is_found_in_every_block)
{
	static const char *const questions[] = {
		"SELECT ts || ' ' || series || ' ' || n FROM sample WHERE ts BETWEEN (SELECT min(ts) FROM sample) + %d AND (SELECT min(ts) FROM sample) + %d + 9",
		"SELECT ts || ' ' || series || ' ' || n FROM sample WHERE ts = (SELECT min(ts) FROM sample) + %d AND n > %d - 1000",
		"SELECT ts || ' ' || series || ' ' || n FROM sample WHERE series = %d + 1 AND %d >= 0 ORDER BY ts DESC",
		"SELECT value FROM text WHERE id = %d + 1 AND %d >= 0",
		"SELECT pid FROM process WHERE id = %d - 1 OR pid = %d",
		"SELECT offset FROM frame WHERE id >= %d AND %d >= 0 LIMIT 5",
		"SELECT id FROM frame WHERE id <= %d AND %d >= 0 ORDER BY id DESC LIMIT 5",
	};
	const size_t n = ARRAY_SIZE(questions);
	sqlite3 *db = open_file(make_segment(*state));
	char *rows[64][ARRAY_SIZE(questions)];

	for (int packed = 0; packed < 2; packed++) {
		for (int k = 0; k < 64; k++)
			for (size_t i = 0; i < n; i++) {
				char *sql = sqlite3_mprintf(questions[i], k, k);

				if (packed)
					assert_says(db, sql, rows[k][i] ? rows[k][i] : "");
				else
					rows[k][i] = ask(db, sql);
				sqlite3_free(sql);
			}
		if (!packed)
			pack(db);
	}
	for (int k = 0; k < 64; k++)
		for (size_t i = 0; i < n; i++)
			sqlite3_free(rows[k][i]);
	sqlite3_close(db);
}

STORE_TEST(what_is_read_at_once_is_what_sqlite_reads)
{
	sqlite3 *db = make_packed(*state);
	sqlite3_stmt *st;
	size_t n = 0;

	assert_int_equal(
		sqlite3_prepare_v2(
			db,
			"SELECT t.name, (SELECT group_concat(name, ', ') FROM (SELECT name FROM packed_column"
			" WHERE \"table\" = t.name ORDER BY number DESC)) FROM packed_table t",
			-1, &st, NULL),
		SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		compare_values(db, (const char *)sqlite3_column_text(st, 0),
			       (const char *)sqlite3_column_text(st, 1), &n);
	sqlite3_finalize(st);
	assert_true(n > 500);
	sqlite3_close(db);
}

#define OF_COLUMN(table, name) \
	"(SELECT id << 20 FROM packed_column WHERE \"table\" = '" table "' AND name = '" name "')"

/* SQLite is asked then, and says what is wrong. */
STORE_TEST(what_cannot_be_read_at_once_is_left_to_sqlite)
{
	sqlite3 *db = make_packed(*state), *other;
	struct packedread r;

	assert_true(packedread_open(&r, db, "frame", "id,offset"));
	packedread_release(&r);
	assert_false(packedread_open(&r, db, "frame", "id, none"));
	assert_false(packedread_open(&r, db, "frame", "id, 0"));
	assert_false(packedread_open(&r, db, "frame", ""));
	assert_false(packedread_open(&r, db, "meta", "key"));
	assert_false(packedread_open(&r, db, "run_period ORDER BY run", "run"));
	exec(db,
	     "UPDATE packed_block SET data = (SELECT data FROM packed_block WHERE id = " OF_COLUMN(
		     "process", "comm") ") WHERE id = " OF_COLUMN("process",
								  "pid")); /* texts, where numbers
									      are declared */
	assert_true(packedread_open(&r, db, "process", "id, pid"));
	assert_int_equal(packedread_block(&r, 0), -EBADMSG);
	assert_int_equal(packedread_block(&r, 1), 0);
	packedread_release(&r);
	assert_int_not_equal(sqlite3_exec(db, "SELECT sum(pid) FROM process", NULL, NULL, NULL),
			     SQLITE_OK);
	exec(db, "UPDATE packed_block SET data = x'01ff' WHERE id = " OF_COLUMN("frame", "offset"));
	assert_true(packedread_open(&r, db, "frame", "id, offset"));
	assert_int_equal(packedread_block(&r, 0), -EBADMSG);
	packedread_release(&r);
	exec(db,
	     "UPDATE packed_table SET rows = rows + 100 WHERE name = 'text'"); /* blocks that are
										  not there */
	assert_false(packedread_open(&r, db, "text", "id, value"));
	exec(db,
	     "UPDATE packed_table SET rows = -1 WHERE name = 'series'; DELETE FROM packed_column WHERE \"table\" = 'process' AND number = 3");
	assert_false(packedread_open(&r, db, "series", "id"));
	assert_false(packedread_open(&r, db, "process", "id, self"));
	exec(db, "UPDATE packed_block SET first = first + 1 WHERE id = " OF_COLUMN(
			 "sample", "ts"));             /* not what the block has */
	other = open_file(fixture_segment(*state, 0)); /* which has not read that yet */
	assert_int_not_equal(sqlite3_exec(other, "SELECT sum(ts) FROM sample", NULL, NULL, NULL),
			     SQLITE_OK);
	sqlite3_close(other);
	sqlite3_close(db);
}

STORE_TEST(a_packed_table_cannot_be_written)
{
	sqlite3 *db = make_packed(*state);

	assert_int_not_equal(sqlite3_exec(db, "UPDATE frame SET line = 1", NULL, NULL, NULL),
			     SQLITE_OK);
	assert_int_not_equal(
		sqlite3_exec(db, "INSERT INTO text(value) VALUES('x')", NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
}

static size_t know(void *ctx, const struct symbolizer_frame *f,
		   struct symbolizer_name out[SYMBOLIZER_MAX])
{
	(void)ctx;
	(void)f;
	out[0] = (struct symbolizer_name){"found_later", "a.c", 21, 20};
	return 1;
}

static int first_image(void *ctx, const struct symbolizer_want *w)
{
	*(uint32_t *)ctx = w->image;
	return 1;
}

STORE_TEST(names_that_come_later_come_into_an_archive_which_is_none_meanwhile)
{
	const struct fixture *f = *state;
	const char *path = make_segment(f);
	struct symbolizer_gain gain = {0};
	struct symbolizer *r = NULL;
	uint32_t image = 0;
	char to[128];
	sqlite3 *db;

	snprintf(to, sizeof(to), "%s/sealing.db", f->dir);
	fixture_exec(
		path,
		"PRAGMA journal_mode = DELETE; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)"
		" INSERT INTO text(value) SELECT 't' || i FROM n");
	assert_int_equal(archive_make(path, to, NULL), 0);
	assert_int_equal(rename(to, path), 0);
	assert_true(folder_is_archived(path));
	assert_int_equal(symbolizer_open(f->dir, path, &r, NULL), 0);
	symbolizer_wants(r, first_image, &image, NULL);
	assert_int_equal(symbolizer_image(r, image, know, NULL, &gain, NULL), 0);
	assert_true(gain.lines > 0);
	db = open_file(path); /* a process killed here leaves rows, and a header that says so */
	assert_false(packing_is_packed(db));
	assert_says(db, "PRAGMA application_id", "0\n");
	sqlite3_close(db);
	symbolizer_close(r);
	assert_true(folder_is_archived(path));
	db = open_file(path);
	assert_true(packing_is_packed(db));
	assert_says(db, "SELECT count(*) FROM text WHERE value LIKE 't%'", "300\n");
	assert_says(db, "SELECT count(*) > 0 FROM frame WHERE line = 21", "1\n");
	assert_says(db, "SELECT sum(samples) FROM cpu_samples", "1830\n");
	assert_says(db, "SELECT count(*) > 0 FROM lines_top WHERE line = 21", "1\n");
	assert_says(db, "PRAGMA freelist_count", "0\n");
	sqlite3_close(db);
}
