/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's steps. */
#include "schema/store/archive/archive.h"

#include <sqlite3.h>
#include <string.h>

#include "schema/store/archive/remake.h"
#include "schema/store/files/segment.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/sums.h"

/* --- step 1 --- */

static int pack(sqlite3 *db)
{
	int rc = packing_pack(db, PACKING_LEAST, PACKING_BLOCK_ROWS);

	return rc == SQLITE_OK ? segment_mark_archived(db) : rc;
}

/* --- step 2 --- */

static bool same_value(sqlite3_stmt *a, sqlite3_stmt *b, int i)
{
	int type = sqlite3_column_type(a, i);

	if (type != sqlite3_column_type(b, i))
		return false;
	if (type == SQLITE_NULL)
		return true;
	if (type == SQLITE_INTEGER)
		return sqlite3_column_int64(a, i) == sqlite3_column_int64(b, i);
	return sqlite3_column_bytes(a, i) == sqlite3_column_bytes(b, i) &&
	       !memcmp(sqlite3_column_blob(a, i), sqlite3_column_blob(b, i),
		       (size_t)sqlite3_column_bytes(a, i));
}

/* Are the rows of both the same? SQLITE_MISMATCH: they are not. The words are freed. */
static int compare_rows(sqlite3 *from, char *rows_from, sqlite3 *to, char *rows_to)
{
	sqlite3_stmt *a = NULL, *b = NULL;
	int rc = rows_from && rows_to ? sqlite3_prepare_v2(from, rows_from, -1, &a, NULL) :
					SQLITE_NOMEM,
	    other;
	bool same;

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(to, rows_to, -1, &b, NULL);
	same = rc == SQLITE_OK && sqlite3_column_count(a) == sqlite3_column_count(b);
	while (rc == SQLITE_OK && same) {
		rc = sqlite3_step(a);
		other = sqlite3_step(b);
		same = rc == other;
		for (int i = 0; same && rc == SQLITE_ROW && i < sqlite3_column_count(a); i++)
			same = same_value(a, b, i);
		if (rc == SQLITE_ROW)
			rc = SQLITE_OK;
	}
	sqlite3_finalize(a);
	sqlite3_finalize(b);
	sqlite3_free(rows_from);
	sqlite3_free(rows_to);
	return rc == SQLITE_DONE && same            ? SQLITE_OK :
	       rc == SQLITE_OK || rc == SQLITE_DONE ? SQLITE_MISMATCH :
						      rc;
}

/* Columns are in the order of the table's key, which the rows have, or are put into. */
static int compare_table(sqlite3 *from, sqlite3 *to, const char *table)
{
	char order[PACKING_NAME_MAX];
	int rc = packing_order(from, table, order);

	return rc != SQLITE_OK ? rc :
				 compare_rows(from,
					      sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s",
							      table, order),
					      to, sqlite3_mprintf("SELECT * FROM \"%w\"", table));
}

static int compare(sqlite3 *from, sqlite3 *to)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(to, "SELECT name FROM packed_table WHERE name <> 'packed_view'",
				    -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = sums_has((const char *)sqlite3_column_text(st, 0)) ?
			     SQLITE_OK :
			     compare_table(from, to, (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return rc != SQLITE_DONE ?
		       rc :
		       compare_rows(
			       from,
			       sqlite3_mprintf(
				       "SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid"),
			       to,
			       sqlite3_mprintf(
				       "SELECT name, sql FROM packed_view WHERE sql LIKE 'CREATE VIEW%%' ORDER BY id"));
}

int archive_make(const char *path, const char *to, struct err *e)
{
	static const struct remake how = {
		"the archive", pack,
		"COMMIT; PRAGMA page_size = 1024; VACUUM; PRAGMA journal_mode=DELETE", compare};

	return remake_file(path, to, &how, e);
}
