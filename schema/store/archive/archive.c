/* SPDX-License-Identifier: Apache-2.0 */
/* archive: see the header; the numbers are its steps. */
#include "schema/store/archive/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/module.h"
#include "schema/store/packed/packing.h"

int archive_say(const char *path, int code, const char *why, struct err *e)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	if (code == -ENOSPC || code == -EDQUOT)
		return folder_full(dir, e);
	err_set(e, code, code == -EACCES || code == -EPERM || code == -EROFS ? EXIT_PERMISSION : EXIT_STORE, "cannot write %s: %s", path, why);
	err_fix(e, "run it with sudo, or as the user who owns the store");
	return code;
}

/* --- step 1 --- */

/* Without a journal: the file means nothing until it has its name. */
static int pack(sqlite3 *db)
{
	int rc = sql_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=0; PRAGMA cache_size=-65536;"
			  "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY");

	if (rc == SQLITE_OK)
		rc = packed_register(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = packing_pack(db, PACKING_LEAST, PACKING_BLOCK_ROWS);
	if (rc == SQLITE_OK)
		rc = segment_mark_archived(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, "COMMIT; PRAGMA page_size = 1024; VACUUM; PRAGMA journal_mode=DELETE");
	return rc;
}

int archive_copy(const char *path, const char *to, struct err *e)
{
	cleanup_fd int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	int rc = fd < 0 ? -errno : 0;

	if (!rc) {
		folder_own(fd, 0640);
		rc = folder_copy(path, fd);
	}
	return rc ? archive_say(to, rc, strerror(-rc), e) : 0;
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
	       !memcmp(sqlite3_column_blob(a, i), sqlite3_column_blob(b, i), (size_t)sqlite3_column_bytes(a, i));
}

/* Are the rows of both the same? SQLITE_MISMATCH: they are not. The words are freed. */
static int compare_rows(sqlite3 *from, char *rows_from, sqlite3 *to, char *rows_to)
{
	sqlite3_stmt *a = NULL, *b = NULL;
	int rc = rows_from && rows_to ? sqlite3_prepare_v2(from, rows_from, -1, &a, NULL) : SQLITE_NOMEM, other;
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
	return rc == SQLITE_DONE && same ? SQLITE_OK : rc == SQLITE_OK || rc == SQLITE_DONE ? SQLITE_MISMATCH : rc;
}

/* Columns are in the order of the table's key, which the rows have, or are put into. */
static int compare_table(sqlite3 *from, sqlite3 *to, const char *table)
{
	char order[PACKING_NAME_MAX];
	int rc = packing_order(from, table, order);

	return rc != SQLITE_OK ? rc : compare_rows(from, sqlite3_mprintf("SELECT * FROM \"%w\" ORDER BY %s", table, order), to,
						   sqlite3_mprintf("SELECT * FROM \"%w\"", table));
}

static int compare(sqlite3 *from, sqlite3 *to)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(to, "SELECT name FROM packed_table WHERE name <> 'packed_view'", -1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW)
		rc = compare_table(from, to, (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return rc != SQLITE_DONE ? rc : compare_rows(from, sqlite3_mprintf("SELECT name, sql FROM sqlite_master WHERE type = 'view' ORDER BY rowid"), to,
						     sqlite3_mprintf("SELECT name, sql FROM packed_view WHERE sql LIKE 'CREATE VIEW%%' ORDER BY id"));
}

static int check(const char *path, const char *to, struct err *e)
{
	cleanup_fd int fd = -1;
	sqlite3 *a, *b;
	int rc = readonly_open(path, &a, e);

	if (rc)
		return rc;
	rc = readonly_open(to, &b, e);
	if (rc) {
		sqlite3_close(a);
		return rc;
	}
	rc = compare(a, b);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		rc = err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: it is damaged", path);
	else if (rc != SQLITE_OK)
		rc = err_set(e, -EIO, EXIT_STORE, "%s is not what %s holds (%s): it is left as it is", to, path, sqlite3_errstr(rc));
	sqlite3_close(a);
	sqlite3_close(b);
	fd = rc ? -1 : open(to, O_RDWR | O_CLOEXEC);
	if (!rc && (fd < 0 || fsync(fd) < 0))
		rc = archive_say(to, -errno, strerror(errno), e);
	return rc;
}

int archive_make(const char *path, const char *to, struct err *e)
{
	sqlite3 *db = NULL;
	int rc = archive_copy(path, to, e);

	if (rc)
		return rc;
	rc = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = pack(db);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		rc = err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: it is damaged", path);
	else if (rc != SQLITE_OK)
		rc = archive_say(to, segment_errno(db, rc), sqlite3_errmsg(db), e);
	sqlite3_close(db);
	return rc ? rc : check(path, to, e);
}
