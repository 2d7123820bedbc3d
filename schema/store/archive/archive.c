/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's steps. */
#include "schema/store/archive/archive.h"

#include <sqlite3.h>
#include <string.h>

#include "schema/store/archive/remake.h"
#include "schema/store/files/segment.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/read.h"
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

/* Is value i of a row what the column has in that row of a block? */
static bool same_as_packed(sqlite3_stmt *a, int i, const struct column *c, size_t row)
{
	const int type = sqlite3_column_type(a, i);

	if (c->null && c->null[row])
		return type == SQLITE_NULL;
	if (type == SQLITE_INTEGER)
		return c->numbers && sqlite3_column_int64(a, i) == c->numbers[row];
	return type == SQLITE_TEXT && c->text &&
	       (uint32_t)sqlite3_column_bytes(a, i) + 1 == c->at[row + 1] - c->at[row] &&
	       !memcmp(sqlite3_column_text(a, i), c->text + c->at[row],
		       (size_t)sqlite3_column_bytes(a, i));
}

/* The next row of `a` for each of a block. SQLITE_OK, SQLITE_MISMATCH, or what went wrong. */
static int compare_block(sqlite3_stmt *a, const struct packedread *p)
{
	bool same = true;
	int rc = SQLITE_ROW;

	for (size_t row = 0; same && row < p->c[0]->n; row++) {
		rc = sqlite3_step(a);
		same = rc == SQLITE_ROW;
		for (int i = 0; same && i < p->n; i++)
			same = same_as_packed(a, i, p->c[i], row);
	}
	return same ? SQLITE_OK : rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_MISMATCH : rc;
}

/* The words are freed. */
static int compare_packed(sqlite3 *from, char *rows_from, struct packedread *p)
{
	sqlite3_stmt *a = NULL;
	int rc = rows_from ? sqlite3_prepare_v2(from, rows_from, -1, &a, NULL) : SQLITE_NOMEM;

	if (rc == SQLITE_OK && sqlite3_column_count(a) != p->t.n)
		rc = SQLITE_MISMATCH;
	for (size_t k = 0; rc == SQLITE_OK && k < p->t.n_blocks; k++) {
		rc = packedread_block(p, k) ? SQLITE_CORRUPT : compare_block(a, p);
		packedtable_release(&p->t, k);
	}
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(a);
		rc = rc == SQLITE_DONE ? SQLITE_OK : rc == SQLITE_ROW ? SQLITE_MISMATCH : rc;
	}
	sqlite3_finalize(a);
	sqlite3_free(rows_from);
	return rc;
}

/* "id, task, stack"; to be freed (sqlite3_free). */
static char *columns_of(sqlite3 *db, const char *table)
{
	sqlite3_stmt *st = NULL;
	char *sql = sqlite3_mprintf("SELECT group_concat(name, ', ') FROM (SELECT name FROM "
				    "pragma_table_info(%Q) ORDER BY cid)",
				    table),
	     *out = NULL;

	if (sql && sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW && sqlite3_column_text(st, 0))
		out = sqlite3_mprintf("%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	sqlite3_free(sql);
	return out;
}

/* Columns are in the order of the table's key, which the rows have, or are put into. Each is read
 * as it is: through SQLite it would take as long again as to read the rows. */
static int compare_table(sqlite3 *from, sqlite3 *to, const char *table)
{
	char order[PACKING_NAME_MAX], *columns, *rows;
	struct packedread p;
	int rc = packing_order(from, table, order);

	if (rc != SQLITE_OK)
		return rc;
	rows = sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s", table, order);
	columns = columns_of(from, table);
	if (columns && packedread_open(&p, to, table, columns)) {
		rc = compare_packed(from, rows, &p);
		packedread_release(&p);
	} else {
		rc = compare_rows(from, rows, to, sqlite3_mprintf("SELECT * FROM \"%w\"", table));
	}
	sqlite3_free(columns);
	return rc;
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
