/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/archive/remake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/module.h"

static int say(const char *path, int code, const char *why, struct err *e)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = '\0';
	if (code == -ENOSPC || code == -EDQUOT)
		return folder_full(dir, e);
	err_set(e, code,
		code == -EACCES || code == -EPERM || code == -EROFS ? EXIT_PERMISSION : EXIT_STORE,
		"cannot write %s: %s", path, why);
	err_fix(e, "run it with sudo, or as the user who owns the store");
	return code;
}

static int copy(const char *path, const char *to, struct err *e)
{
	cleanup_fd int fd = open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);
	int rc = fd < 0 ? -errno : 0;

	if (!rc) {
		folder_own(fd, to, 0640);
		rc = folder_copy(path, fd);
	}
	return rc ? say(to, rc, strerror(-rc), e) : 0;
}

/* Without a journal: the file means nothing until it has its name. */
static int change(sqlite3 *db, const struct remake *how)
{
	int rc = sql_exec(
		db,
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=0; PRAGMA cache_size=-65536;"
		"PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY");

	if (rc == SQLITE_OK)
		rc = packed_register(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = how->change(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, how->shrink);
	return rc;
}

static int compare(const char *path, const char *to, const struct remake *how, struct err *e)
{
	sqlite3 *from, *made;
	int rc = readonly_open(path, &from, e);

	if (rc)
		return rc;
	rc = readonly_open(to, &made, e);
	if (rc) {
		sqlite3_close(from);
		return rc;
	}
	rc = how->compare(from, made);
	sqlite3_close(from);
	sqlite3_close(made);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		return err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: it is damaged", path);
	if (rc != SQLITE_OK)
		return err_set(e, -EIO, EXIT_STORE,
			       "%s made of %s differs from it (%s): that file stays as it is",
			       how->what, path, sqlite3_errstr(rc));
	return 0;
}

static int sync_file(const char *to, struct err *e)
{
	cleanup_fd int fd = open(to, O_RDWR | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? say(to, -errno, strerror(errno), e) : 0;
}

/* A stranger's archive keeps statements that would be run. */
static int check(sqlite3 *db, const char *path, struct err *e)
{
	int rc = packed_register(db);

	if (rc == SQLITE_OK)
		rc = migrate_open_check(db, path, e);
	return rc == SQLITE_OK ? migrate_packed_check(db, path, e) : rc;
}

int remake_file(const char *path, const char *to, const struct remake *how, struct err *e)
{
	struct err why = {0};
	sqlite3 *db = NULL;
	int rc = copy(path, to, e);

	if (rc)
		return rc;
	rc = sqlite3_open_v2(to, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
	if (rc == SQLITE_OK)
		rc = check(db, path, &why);
	if (rc == SQLITE_AUTH && why.code) {
		*e = why;
		sqlite3_close(db);
		return why.code;
	}
	if (rc == SQLITE_OK)
		rc = change(db, how);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		rc = err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: it is damaged", path);
	else if (rc != SQLITE_OK)
		rc = say(to, segment_errno(db, rc), sqlite3_errmsg(db), e);
	sqlite3_close(db);
	if (!rc)
		rc = compare(path, to, how, e);
	return rc ? rc : sync_file(to, e);
}
