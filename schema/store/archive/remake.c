/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/archive/remake.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/module.h"

/* The file being made: by the descriptors of its folder and of itself, since the folder's owner may
 * put something else at its name at any moment, a link for example. */
struct making {
	const char *to;      /* as the caller names it, for messages */
	const char *name;    /* in the folder */
	int at, fd;          /* -1: not open */
	char real[PATH_MAX]; /* its path without links, for SQLite, which takes no descriptor */
};

static void making_release(struct making *m)
{
	if (m->fd >= 0)
		close(m->fd);
	if (m->at >= 0)
		close(m->at);
}

static int say(const struct making *m, int code, const char *why, struct err *e)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.*s", (int)(m->name - m->to), m->to);
	if (code == -ENOSPC || code == -EDQUOT)
		return folder_full(dir, e);
	err_set(e, code,
		code == -EACCES || code == -EPERM || code == -EROFS ? EXIT_PERMISSION : EXIT_STORE,
		"cannot write %s: %s", m->to, why);
	if (code == -EEXIST || code == -ESTALE)
		err_fix(e, "remove it: it is not sonde's");
	else
		err_fix(e, "run it with sudo, or as the user who owns the store");
	return code;
}

/* Is what is at its name still the file that was made? */
static int still_ours(const struct making *m, struct err *e)
{
	struct stat made, now;

	if (fstat(m->fd, &made) < 0 || fstatat(m->at, m->name, &now, AT_SYMLINK_NOFOLLOW) < 0)
		return say(m, -errno, strerror(errno), e);
	if (made.st_dev != now.st_dev || made.st_ino != now.st_ino || made.st_nlink != 1)
		return say(m, -ESTALE, "another file is at its name now", e);
	return 0;
}

/* What an earlier one left, or a stranger put there, is removed with what belongs to it. */
static int make_empty(struct making *m)
{
	static const char *const ends[] = {"", "-journal", "-wal", "-shm"};
	char dir[PATH_MAX], name[NAME_MAX + 16], link[64];
	ssize_t n;

	snprintf(dir, sizeof(dir), "%.*s", (int)(m->name - m->to), m->to);
	m->at = folder_open(m->name > m->to ? dir : ".");
	if (m->at < 0)
		return m->at;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(name, sizeof(name), "%.200s%s", m->name, ends[i]);
		(void)unlinkat(m->at, name, 0);
	}
	m->fd = openat(m->at, m->name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0640);
	if (m->fd < 0)
		return -errno;
	folder_own_at(m->at, m->fd, m->name, 0640);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", m->fd);
	n = readlink(link, m->real, sizeof(m->real) - 1);
	if (n < 0)
		return -errno;
	m->real[n] = '\0';
	return 0;
}

static int copy(const char *path, struct making *m, struct err *e)
{
	int rc = make_empty(m);

	if (!rc)
		rc = folder_copy(path, m->fd);
	return rc ? say(m, rc, strerror(-rc), e) : 0;
}

/* Without a journal: the file means nothing until it has its name. */
static int begin(sqlite3 *db)
{
	int rc = sql_exec(
		db,
		"PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=0; PRAGMA cache_size=-65536;"
		"PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY");

	return rc == SQLITE_OK ? packed_register(db) : rc;
}

static int change(sqlite3 *db, const struct remake *how)
{
	int rc = begin(db);

	if (rc == SQLITE_OK)
		rc = sql_exec(db, "BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = how->change(db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, how->shrink);
	return rc;
}

static int compare(const char *path, const struct making *m, const struct remake *how,
		   struct err *e)
{
	sqlite3 *from, *made;
	int rc = readonly_open(path, &from, e);

	if (rc)
		return rc;
	rc = readonly_open(m->real, &made, e);
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

/* A stranger's archive keeps statements that would be run. */
static int check(sqlite3 *db, const char *path, struct err *e)
{
	int rc = packed_register(db);

	if (rc == SQLITE_OK)
		rc = migrate_open_check(db, path, e);
	return rc == SQLITE_OK ? migrate_packed_check(db, path, e) : rc;
}

/* Its tables are changed where it is; nothing is left open. */
static int change_file(const char *path, const struct making *m, const struct remake *how,
		       struct err *e)
{
	struct err why = {0};
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(m->real, &db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
				 NULL);

	if (rc == SQLITE_OK)
		rc = check(db, path, &why);
	if (rc == SQLITE_AUTH && why.code) {
		*e = why;
		sqlite3_close(db);
		return why.code;
	}
	if (rc == SQLITE_OK && still_ours(m, &why)) {
		*e = why;
		sqlite3_close(db);
		return why.code;
	}
	if (rc == SQLITE_OK)
		rc = change(db, how);
	if (rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB)
		rc = err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: it is damaged", path);
	else if (rc != SQLITE_OK)
		rc = say(m, segment_errno(db, rc), sqlite3_errmsg(db), e);
	sqlite3_close(db);
	return rc;
}

int remake_file(const char *path, const char *to, const struct remake *how, struct err *e)
{
	const char *slash = strrchr(to, '/');
	struct making m = {.to = to, .name = slash ? slash + 1 : to, .at = -1, .fd = -1};
	struct err unsaid = {0};
	int rc;

	e = e ?: &unsaid;
	rc = copy(path, &m, e);
	if (!rc)
		rc = change_file(path, &m, how, e);
	if (!rc)
		rc = compare(path, &m, how, e);
	if (!rc && fsync(m.fd) < 0)
		rc = say(&m, -errno, strerror(errno), e);
	if (!rc)
		rc = still_ours(&m, e);
	making_release(&m);
	return rc;
}

int remake_new(const char *to, int (*fill)(void *ctx, sqlite3 *db), void *ctx, struct err *e)
{
	const char *slash = strrchr(to, '/');
	struct making m = {.to = to, .name = slash ? slash + 1 : to, .at = -1, .fd = -1};
	struct err unsaid = {0};
	sqlite3 *db = NULL;
	int rc = make_empty(&m);

	e = e ?: &unsaid;
	if (rc) {
		rc = say(&m, rc, strerror(-rc), e);
		making_release(&m);
		return rc;
	}
	rc = sqlite3_open_v2(m.real, &db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
			     NULL);
	if (rc == SQLITE_OK)
		rc = begin(db);
	if (rc == SQLITE_OK)
		rc = fill(ctx, db);
	if (rc != SQLITE_OK)
		rc = say(&m, segment_errno(db, rc), sqlite3_errmsg(db), e);
	sqlite3_close(db);
	if (!rc && fsync(m.fd) < 0)
		rc = say(&m, -errno, strerror(errno), e);
	if (!rc)
		rc = still_ours(&m, e);
	making_release(&m);
	return rc;
}
