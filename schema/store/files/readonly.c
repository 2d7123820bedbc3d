/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/files/readonly.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/files/location.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/module.h"

#define WAIT_TRIES 10
#define WAIT_US    20000
#define PATIENCE_S 30
#define OVER_STEPS 20000

/* Byte 18 of the header: 2 says write-ahead log. false also for what is too short. */
bool readonly_is_wal(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	unsigned char h[20];

	return fd >= 0 && pread(fd, h, sizeof(h), 0) == sizeof(h) && h[18] == 2;
}

static bool beside(const char *path, const char *suffix)
{
	char name[PATH_MAX + 8];

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	return access(name, F_OK) == 0;
}

static bool in_live_folder(const char *path)
{
	char name[PATH_MAX + 8];
	char *slash;

	snprintf(name, sizeof(name), "%s", path);
	slash = strrchr(name, '/');
	snprintf(slash ? slash + 1 : name, 8, "lock");
	return access(name, F_OK) == 0;
}

/* The header says WAL, but there is no log, and none appears. */
static bool is_lone_wal_file(const char *path)
{
	int tries = in_live_folder(path) ? WAIT_TRIES : 1;

	for (int i = 0; i < tries; i++) {
		if (!readonly_is_wal(path) || beside(path, "-wal"))
			return false;
		if (i + 1 < tries)
			usleep(WAIT_US);
	}
	return true;
}

static char *immutable_uri(const char *path)
{
	struct strbuf s = STRBUF_INIT;

	strbuf_addstr(&s, *path == '/' ? "file://" : "file:");
	for (; *path; path++) {
		if (strchr("%?#", *path))
			strbuf_addf(&s, "%%%02x", (unsigned char)*path);
		else
			strbuf_addch(&s, *path);
	}
	strbuf_addstr(&s, "?immutable=1");
	return strbuf_take(&s);
}

int readonly_refused(const char *path, sqlite3 *db, int rc, struct err *e)
{
	int code = segment_errno(db, rc);
	bool denied = access(path, R_OK) < 0 && errno == EACCES;

	if (denied) {
		err_set(e, -EACCES, EXIT_PERMISSION,
			"cannot read the store's segment %s: permission denied", path);
		store_rights_fix(path, e);
		return -EACCES;
	}
	if ((rc & 0xff) == SQLITE_INTERRUPT) {
		err_set(e, -ETIMEDOUT, EXIT_STORE,
			"cannot read the store's segment %s: no row of it came within %d s", path,
			PATIENCE_S);
		err_fix(e, "move the file elsewhere");
		return -ETIMEDOUT;
	}
	err_set(e, code, EXIT_STORE, "cannot read the store's segment %s: %s", path,
		db ? sqlite3_errmsg(db) : "out of memory");
	err_fix(e,
		(rc & 0xff) == SQLITE_NOTADB ?
			"name a store's folder, or one of its .db files: sonde --store DIR (a file of a store whose beginning is damaged cannot be read)" :
		code == -EBADMSG ? "it is damaged: sqlite3 FILE .recover may save a part" :
				   "copy the file to a folder of your own and read it there");
	return code;
}

/* --- a limit of time --- */

/* Of one connection; freed with it. */
struct patience {
	int64_t last_ns; /* the last row, or the statement's beginning */
};

static int saw_row(unsigned int what, void *ctx, void *statement, void *more)
{
	struct patience *p = ctx;

	(void)what;
	(void)statement;
	(void)more;
	p->last_ns = 0; /* to ask for the time at each row would cost more than the row */
	return 0;
}

static int is_over(void *ctx)
{
	struct patience *p = ctx;
	int64_t now = clock_boot_ns();

	if (!p->last_ns)
		p->last_ns = now;
	return now - p->last_ns > PATIENCE_S * NSEC_PER_SEC;
}

static void never_called(sqlite3_context *c, int n, sqlite3_value **v)
{
	(void)n;
	(void)v;
	sqlite3_result_null(c);
}

/* A file may be made so that reading it never ends. */
static int limit_time(sqlite3 *db)
{
	struct patience *p = mem_alloc(sizeof(*p));
	/* SQLite 3.40 has no other place for what is freed with the connection */
	int rc =
		sqlite3_create_function_v2(db, "sonde_patience", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY,
					   p, never_called, NULL, NULL, free);

	if (rc != SQLITE_OK)
		return rc; /* it is freed already */
	sqlite3_trace_v2(db, SQLITE_TRACE_ROW | SQLITE_TRACE_STMT, saw_row, p);
	sqlite3_progress_handler(db, OVER_STEPS, is_over, p);
	return SQLITE_OK;
}

/* --- what SQLite may open --- */

/* A file that is no regular one may block who opens it, or have no end. */
int readonly_check_file(const char *path, struct err *e)
{
	static const char *const ends[] = {"", "-wal", "-journal", "-shm"};
	char name[PATH_MAX + 16];
	struct stat st;

	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		snprintf(name, sizeof(name), "%s%s", path, ends[i]);
		if ((i ? lstat : stat)(name, &st) < 0 || S_ISREG(st.st_mode))
			continue; /* what is not there: SQLite says it */
		err_set(e, -EBADMSG, EXIT_STORE,
			"cannot read the store's segment %s: %s is not a regular file", path,
			i ? name : "it");
		err_fix(e, "remove it: it is not sonde's");
		return -EBADMSG;
	}
	return 0;
}

int readonly_open(const char *path, sqlite3 **out, struct err *e)
{
	cleanup_free char *uri = NULL;
	sqlite3 *db = NULL;
	int rc = readonly_check_file(path, e);

	if (rc)
		return rc;
	uri = is_lone_wal_file(path) ? immutable_uri(path) : NULL;
	rc = sqlite3_open_v2(
		uri ? uri : path, &db,
		SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | (uri ? SQLITE_OPEN_URI : 0), NULL);
	if (rc == SQLITE_OK)
		rc = packed_register(db);
	if (rc == SQLITE_OK)
		rc = limit_time(db);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(db, 5000);
		sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		rc = sqlite3_exec(
			db,
			"PRAGMA query_only=1; PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY",
			NULL, NULL, NULL);
	}
	if (rc == SQLITE_OK) {
		struct err why = {0};

		rc = migrate_open_check(db, path, &why);
		if (rc == SQLITE_AUTH && why.code) {
			if (e)
				*e = why;
			sqlite3_close(db);
			return why.code;
		}
	}
	if (rc != SQLITE_OK) {
		rc = readonly_refused(path, db, rc, e);
		sqlite3_close(db);
		return rc;
	}
	*out = db;
	return 0;
}

int64_t readonly_archived_ns(sqlite3 *db)
{
	return sql_number(db, "SELECT value FROM meta WHERE key = 'archived_ns'", 0);
}
