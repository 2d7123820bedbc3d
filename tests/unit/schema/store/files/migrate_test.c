/* SPDX-License-Identifier: Apache-2.0 */
/* migrate: a new file, made in one step, equals one that went through every migration. */
#include <stdlib.h>
#include <string.h>

#include <sqlite3.h>

#include "schema/base/array.h"
#include "schema/base/strbuf.h"
#include "schema/sql/migrations.h"
#include "schema/store/files/migrate.h"
#include "tests/unit/test.h"

static sqlite3 *empty(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	return db;
}

/* Each cell of the answer, a line a row. */
static void tell(sqlite3 *db, const char *sql, struct strbuf *out)
{
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(st); i++)
			strbuf_addf(out, "%s|",
				    sqlite3_column_text(st, i) ?
					    (const char *)sqlite3_column_text(st, i) :
					    "NULL");
		strbuf_addch(out, '\n');
	}
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
}

/* The schema of a file, and all its rows. */
static void tell_all(sqlite3 *db, struct strbuf *out)
{
	sqlite3_stmt *st;

	tell(db,
	     "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name NOT LIKE 'sqlite_%' ORDER BY type, name",
	     out);
	assert_int_equal(
		sqlite3_prepare_v2(
			db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name", -1,
			&st, NULL),
		SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		struct strbuf sql cleanup_strbuf = STRBUF_INIT;

		strbuf_addf(&sql, "SELECT * FROM pragma_table_xinfo('%s')",
			    (const char *)sqlite3_column_text(st, 0));
		tell(db, strbuf_str(&sql), out);
		strbuf_reset(&sql);
		strbuf_addf(&sql, "SELECT * FROM \"%s\"", (const char *)sqlite3_column_text(st, 0));
		tell(db, strbuf_str(&sql), out);
	}
	sqlite3_finalize(st);
}

TEST(a_new_file_has_what_all_migrations_make_in_their_turn)
{
	struct strbuf one cleanup_strbuf = STRBUF_INIT, other cleanup_strbuf = STRBUF_INIT;
	sqlite3 *whole = empty(), *steps = empty();
	size_t n = ARRAY_SIZE(MIGRATIONS);

	assert_int_equal(migrate_apply(whole, 0), SQLITE_OK);
	for (size_t i = 0; i < n && MIGRATIONS[i].version <= MIGRATE_OLDEST; i++)
		assert_int_equal(sqlite3_exec(steps, MIGRATIONS[i].sql, NULL, NULL, NULL),
				 SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(steps,
			     "INSERT OR REPLACE INTO meta(key, value) VALUES('schema_version', 28)",
			     NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(migrate_version(steps), MIGRATE_OLDEST);
	assert_int_equal(migrate_apply(steps, MIGRATE_OLDEST), SQLITE_OK);
	assert_int_equal(migrate_version(whole), MIGRATIONS[n - 1].version);
	assert_int_equal(migrate_version(steps), MIGRATIONS[n - 1].version);
	tell_all(whole, &one);
	tell_all(steps, &other);
	assert_true(one.len > 10000);
	assert_string_equal(strbuf_str(&one), strbuf_str(&other));
	sqlite3_close(whole);
	sqlite3_close(steps);
}
