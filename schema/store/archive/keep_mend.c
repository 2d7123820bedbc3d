/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/archive/keep_mend.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/model/stored.h"

#define TEXT_OF(n) TEXT_(n)
#define TEXT_(n)   #n
#define COVERS     "state = " TEXT_OF(STORE_RUN_ELSEWHERE) " AND recording = "

void keep_made_name(size_t i, char out[24])
{
	snprintf(out, 24, "keeping-%zu.db", i);
}

static bool is_made(int at, size_t i, char name[24])
{
	keep_made_name(i, name);
	return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

void keep_made_remove(int at)
{
	char name[24];

	for (size_t i = 0; i < KEEP_MADE_MAX; i++) {
		keep_made_name(i, name);
		(void)unlinkat(at, name, 0);
	}
}

/* ---- names ---- */

/* A free name of the second before `newest`, the segment in use, was begun. */
static bool name_for(int at, const char *newest, char out[SEGMENT_NAME_MAX])
{
	time_t s = folder_begun_ns(newest) / NSEC_PER_SEC - 1;
	struct tm tm;
	char stamp[20];

	gmtime_r(&s, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);
	for (int i = FOLDER_KEPT; i < 10000; i++) {
		snprintf(out, SEGMENT_NAME_MAX, "%s-%04d.db", stamp, i);
		if (faccessat(at, out, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return true;
	}
	return false;
}

static int cannot(const char *dir, const char *name, int error, struct err *e)
{
	return err_set(e, -error, EXIT_STORE, "cannot rename %s/%s: %s", dir, name,
		       strerror(error));
}

int keep_made_place(const struct keep_opts *o, int at, struct keep_report *out, struct err *e)
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	char made[24], name[SEGMENT_NAME_MAX];
	struct stat st;
	size_t n = 0;
	int rc = folder_segments(o->dir, &names, &n);

	if (rc || !n)
		return err_set(e, rc ? rc : -ENOENT, EXIT_STORE, "cannot read %s: %s", o->dir,
			       strerror(rc ? -rc : ENOENT));
	for (size_t i = 0; i < KEEP_MADE_MAX; i++) {
		if (!is_made(at, i, made))
			continue;
		if (!name_for(at, names[n - 1], name))
			return cannot(o->dir, made, EEXIST, e);
		if (renameat(at, made, at, name) < 0)
			return cannot(o->dir, made, errno, e);
		out->segments++;
		out->bytes += fstatat(at, name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
		if (o->each)
			o->each(o->ctx, KEEP_STEP_NAMED);
	}
	rc = folder_sync(o->dir);
	return rc ? err_set(e, rc, EXIT_STORE, "cannot sync %s: %s", o->dir, strerror(-rc)) : 0;
}

/* ---- rule 2 ---- */

static int64_t ask(const char *dir, const char *name, const char *sql)
{
	struct err unsaid = {0};
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	int64_t n = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!readonly_open(path, &db, &unsaid))
		n = sql_number(db, sql, 0);
	sqlite3_close(db);
	return n;
}

/* *number: of the window that was kept, 0: no file is left. */
static bool find_left(const char *dir, int at, int64_t *number)
{
	char name[24];
	bool any = false;

	*number = 0;
	for (size_t i = 0; i < KEEP_MADE_MAX; i++) {
		if (!is_made(at, i, name))
			continue;
		any = true;
		if (!*number)
			*number = ask(dir, name, "SELECT max(recording) FROM run");
	}
	return any;
}

static bool one_is_named(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, int64_t number)
{
	char path[PATH_MAX], sql[96];

	snprintf(sql, sizeof(sql), "SELECT EXISTS (SELECT 1 FROM run WHERE recording = %lld)",
		 (long long)number);
	for (size_t i = n; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		if (folder_is_archived(path) && ask(dir, names[i], sql))
			return true;
	}
	return false;
}

/* One that cannot be read has no answer either. */
static int take_back(const char *dir, const char *name, int64_t number, struct err *e)
{
	char path[PATH_MAX], sql[400];
	struct segment *s;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM run WHERE " COVERS "%lld",
		 (long long)number);
	if (folder_is_archived(path) || !ask(dir, name, sql))
		return 0;
	rc = segment_open(path, &s, e);
	if (rc)
		return rc;
	snprintf(sql, sizeof(sql),
		 "PRAGMA synchronous=FULL; BEGIN IMMEDIATE;"
		 "DELETE FROM run_period WHERE run IN (SELECT id FROM run WHERE " COVERS "%lld);"
		 "DELETE FROM run WHERE " COVERS "%lld; COMMIT",
		 (long long)number, (long long)number);
	rc = sql_exec(s->db, sql);
	if (rc != SQLITE_OK)
		rc = err_set(e, segment_errno(s->db, rc), EXIT_STORE, "cannot write %s: %s", path,
			     sqlite3_errmsg(s->db));
	segment_leave(s);
	return rc;
}

int keep_mend_locked(const char *dir, int at, struct err *e)
{
	const struct keep_opts o = {.dir = dir};
	struct keep_report named = {0};
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	int64_t number;
	size_t n = 0;
	int rc;

	if (!find_left(dir, at, &number))
		return 0;
	rc = folder_segments(dir, &names, &n);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot read %s: %s", dir, strerror(-rc));
	if (number && one_is_named(dir, names, n, number)) {
		rc = keep_made_place(&o, at, &named, e);
		log_warn("store: of a window of the flight ring %u file%s had no name yet",
			 named.segments, named.segments == 1 ? "" : "s");
		return rc;
	}
	for (size_t i = 0; !rc && number && i < n; i++)
		rc = take_back(dir, names[i], number, e);
	if (!rc)
		keep_made_remove(at);
	return rc;
}

int keep_mend(const char *dir, int at, struct err *e)
{
	cleanup_fd int lock = -1;
	int64_t number;

	if (!find_left(dir, at, &number))
		return 0;
	lock = folder_lock(dir);
	return lock < 0 ? folder_lock_refuse(dir, lock, e) : keep_mend_locked(dir, at, e);
}
