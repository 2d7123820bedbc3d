/* SPDX-License-Identifier: Apache-2.0 */
/* segment: opening, joining, beginning, leaving one file of the store. */
#include "schema/store/files/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/span.h"
#include "schema/store/model/hist.h"
#include "schema/store/packed/module.h"

#define LOG_PAGES 2000
#define LOG_FOLDS 4

/* Debian compiles secure_delete on, which writes every freed page. */
static const char pragmas[] =
	"PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA secure_delete=0;"
	"PRAGMA cache_size=-4096; PRAGMA temp_store=MEMORY; PRAGMA journal_size_limit=16777216;"
	"PRAGMA foreign_keys=0;";

int segment_errno(sqlite3 *db, int rc)
{
	int sys = db ? sqlite3_system_errno(db) : 0;

	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EAGAIN;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EBADMSG;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	case SQLITE_CANTOPEN:
		return sys ? -sys : -ENOENT;
	default: /* SQLITE_IOERR: the log or its index could not grow, too */
		return sys == ENOSPC || sys == EDQUOT ? -ENOSPC : -EIO;
	}
}

/* The machine's boot, so that a segment never spans two boot clocks. */
static void segment_boot_id(char out[40])
{
	cleanup_file FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");

	out[0] = '\0';
	if (f && fgets(out, 40, f))
		out[strcspn(out, "\n")] = '\0';
}

static int segment_meta_text(sqlite3 *db, const char *key, char *out, size_t size)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = ?1", -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
		rc = sqlite3_step(st);
	}
	out[0] = '\0';
	if (rc == SQLITE_ROW && sqlite3_column_text(st, 0))
		snprintf(out, size, "%s", (const char *)sqlite3_column_text(st, 0));
	sqlite3_finalize(st);
	return rc == SQLITE_ROW ? SQLITE_OK : rc == SQLITE_DONE ? SQLITE_CORRUPT : rc;
}

static int segment_meta_set(sqlite3 *db, const char *key, const char *text, int64_t number)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, "INSERT INTO meta(key, value) VALUES(?1, ?2)", -1, &st,
				    NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_text(st, 1, key, -1, SQLITE_STATIC);
		if (text)
			sqlite3_bind_text(st, 2, text, -1, SQLITE_STATIC);
		else
			sqlite3_bind_int64(st, 2, number);
		rc = sqlite3_step(st);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int segment_describe(sqlite3 *db)
{
	struct utsname un = {0};
	char boot_id[40];
	int64_t now = clock_utc_ns();
	int rc;

	uname(&un);
	segment_boot_id(boot_id);
	rc = segment_meta_set(db, "t0", NULL, now / NSEC_PER_SEC);
	if (rc == SQLITE_OK)
		rc = segment_meta_set(db, "created_ns", NULL, now);
	if (rc == SQLITE_OK)
		rc = segment_meta_set(db, "host", un.nodename, 0);
	if (rc == SQLITE_OK)
		rc = segment_meta_set(db, "kernel", un.release, 0);
	if (rc == SQLITE_OK)
		rc = segment_meta_set(db, "boot_id", boot_id, 0);
	if (rc == SQLITE_OK)
		rc = segment_meta_set(db, "cpus", NULL, sysconf(_SC_NPROCESSORS_ONLN));
	return rc;
}

/* Bring the file to this program's schema; a new file gets everything. One transaction. */
static int segment_migrate(sqlite3 *db, int version)
{
	int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = migrate_apply(db, version);
	if (rc == SQLITE_OK && version == 0)
		rc = segment_describe(db);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	if (rc != SQLITE_OK && !sqlite3_get_autocommit(db)) {
		log_error(
			"store: cannot bring the segment from version %d to this program's schema: %s",
			version, sqlite3_errmsg(db));
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	}
	return rc;
}

/* Touch the right edge of every table: a file cut short or scribbled over shows here, before we add
 * to it. */
static int segment_probe(sqlite3 *db)
{
	return sqlite3_exec(
		db,
		"SELECT max(id) FROM run; SELECT max(id) FROM process; SELECT max(id) FROM function;"
		"SELECT max(id) FROM frame; SELECT max(id) FROM stack; SELECT max(id) FROM series;"
		"SELECT max(id) FROM task; SELECT max(id) FROM image; SELECT max(ts) FROM sample;"
		"SELECT max(hash) FROM function; SELECT max(pid) FROM process; SELECT max(hash) FROM image;",
		NULL, NULL, NULL);
}

static int segment_say(const char *path, sqlite3 *db, int code, struct err *e)
{
	char dir[PATH_MAX];

	if (code == -ENOSPC) {
		snprintf(dir, sizeof(dir), "%s", path);
		*strrchr(dir, '/') = '\0';
		return folder_full(dir, e);
	}
	err_set(e, code, code == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
		"cannot open the store's segment %s: %s", path,
		db && sqlite3_errcode(db) != SQLITE_OK ? sqlite3_errmsg(db) : strerror(-code));
	err_fix(e, code == -EACCES ? "run it with sudo" :
				     "look at the file, or use another folder: --store DIR");
	return code;
}

static int segment_load(struct segment *s)
{
	char v[32];
	int rc = segment_meta_text(s->db, "t0", v, sizeof(v));

	s->t0 = strtoll(v, NULL, 10);
	if (rc == SQLITE_OK)
		rc = segment_meta_text(s->db, "created_ns", v, sizeof(v));
	s->created_s = strtoll(v, NULL, 10) / NSEC_PER_SEC;
	return rc;
}

static void segment_free(struct segment *s)
{
	if (!s)
		return;
	for (int i = 0; i < SEGMENT_STMTS; i++)
		sqlite3_finalize(s->stmt[i]);
	sqlite3_close(s->db);
	free(s);
}

/* A damaged file is kept as it is, its log too. */
static void segment_keep_log(struct segment *s)
{
	if (s->db)
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
}

/* A refused file stays as it is: nothing is written before this. */
static int segment_check(struct segment *s, const char *path, struct err *e)
{
	int rc = sqlite3_exec(s->db, "PRAGMA busy_timeout=5000", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = hist_register(s->db);
	if (rc == SQLITE_OK)
		rc = packed_register(s->db);
	if (rc == SQLITE_OK)
		rc = migrate_open_check(s->db, path, e);
	return rc == SQLITE_OK ? migrate_packed_check(s->db, path, e) : rc;
}

/* Its path without links, with which SQLite refuses to follow one. */
static int segment_connect(const char *path, sqlite3 **db)
{
	const char *name = strrchr(path, '/');
	char dir[PATH_MAX], real[PATH_MAX], full[PATH_MAX + SEGMENT_NAME_MAX + 1];

	snprintf(dir, sizeof(dir), "%.*s", name ? (int)(name - path) : 1, name ? path : ".");
	if (!realpath(name == path ? "/" : dir, real))
		return SQLITE_CANTOPEN;
	if ((size_t)snprintf(full, sizeof(full), "%s/%s", real, name ? name + 1 : path) >=
	    sizeof(full))
		return SQLITE_CANTOPEN;
	return sqlite3_open_v2(
		full, db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
}

static int segment_refuse(struct segment *s, int code)
{
	segment_keep_log(s);
	segment_free(s);
	return code;
}

/* Where its log cannot be made SQLite only says that it cannot open a file. */
static int segment_code(const char *path, sqlite3 *db, int rc)
{
	int code = segment_errno(db, rc);

	return (rc & 0xff) == SQLITE_CANTOPEN && folder_has_no_inode(path) ? -ENOSPC : code;
}

int segment_open(const char *path, struct segment **out, struct err *e)
{
	static uint64_t serial;
	struct segment *s;
	struct err why = {0};
	struct stat st = {0};
	int rc, version;

	if (readonly_check_file(path, &why)) {
		if (e)
			*e = why;
		return why.code;
	}
	s = mem_alloc(sizeof(*s));
	snprintf(s->path, sizeof(s->path), "%s", path);
	rc = segment_connect(path, &s->db);
	if (rc == SQLITE_OK)
		rc = segment_check(s, path, &why);
	if (rc == SQLITE_AUTH && why.code) {
		if (e)
			*e = why;
		return segment_refuse(s, why.code);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(s->db, pragmas, NULL, NULL, NULL);
	if (rc == SQLITE_OK) {
		version = migrate_version(s->db);
		rc = version < 0               ? -version :
		     version < migrate_known() ? segment_migrate(s->db, version) :
						 SQLITE_OK;
	}
	if (rc == SQLITE_OK)
		rc = segment_probe(s->db);
	if (rc == SQLITE_OK)
		rc = segment_load(s);
	if (rc != SQLITE_OK || stat(path, &st) < 0) {
		int code = rc != SQLITE_OK ? segment_code(path, s->db, rc) : -errno;

		segment_say(path, s->db, code, e);
		return segment_refuse(s, code);
	}
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	s->serial = __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
	*out = s;
	return 0;
}

static bool segment_of_this_boot(const struct segment *s)
{
	char ours[40], theirs[40];

	segment_boot_id(ours);
	return segment_meta_text(s->db, "boot_id", theirs, sizeof(theirs)) == SQLITE_OK &&
	       !strcmp(ours, theirs);
}

static void segment_warn_set_aside(const char *path)
{
	char aside[PATH_MAX];
	int rc = folder_set_aside(path, aside);

	if (rc)
		log_error("store: %s is damaged and cannot be set aside: %s", path, strerror(-rc));
	else
		log_warn("store: %s is damaged: set aside as %s", path, aside);
}

/* The newest segment, if it may be joined. -ENOENT: begin one. */
static int segment_join(const char *dir, const struct segment_limits *l, const char *but_path,
			struct segment **out, struct err *e)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX];
	struct segment *s;
	size_t n = 0;
	int rc = folder_segments(dir, &names, &n);

	if (rc || !n) {
		free(names);
		return rc ? err_set(e, rc, EXIT_STORE, "cannot read the store's folder %s: %s", dir,
				    strerror(-rc)) :
			    -ENOENT;
	}
	snprintf(path, sizeof(path), "%s/%s", dir, names[n - 1]);
	free(names);
	if (but_path && !strcmp(path, but_path))
		return -ENOENT;
	rc = segment_open(path, &s, e);
	if (rc == -EBADMSG) {
		segment_warn_set_aside(path);
		return -ENOENT;
	}
	if (rc)
		return rc;
	if (segment_of_this_boot(s) && !segment_is_due(s, l)) {
		*out = s;
		return 0;
	}
	segment_leave(s);
	return -ENOENT;
}

/* Pages of the log that this connection has written since it was last asked. */
static uint32_t segment_written(sqlite3 *db)
{
	int n = 0, highest = 0;

	if (sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_WRITE, &n, &highest, 1) != SQLITE_OK)
		return 0;
	return (uint32_t)n;
}

/* As far as readers let it; it syncs the file. */
static void segment_checkpoint(struct segment *s, const char *name)
{
	int log = 0, done = -1;

	if (sqlite3_wal_checkpoint_v2(s->db, name, SQLITE_CHECKPOINT_PASSIVE, &log, &done) ==
	    SQLITE_OK)
		s->folded |= log == done;
}

/*
 * Called by SQLite at the end of a commit, folder's lock held, with the pages that the log has now.
 * The writer whose commit passes a multiple of fold_pages checkpoints the log after releasing the
 * lock, because a checkpoint waits for the disk, and so would everybody else. But a log that others
 * keep writing does not restart; past LOG_FOLDS multiples it is checkpointed here, at once.
 */
static int segment_committed(void *arg, sqlite3 *db, const char *name, int pages)
{
	struct segment *s = arg;
	uint32_t now = (uint32_t)pages, wrote = segment_written(db),
		 before = now > wrote ? now - wrote : 0;

	if (now >= LOG_FOLDS * s->fold_pages)
		segment_checkpoint(s, name);
	else if (now / s->fold_pages != before / s->fold_pages)
		s->fold_is_due = true;
	return SQLITE_OK;
}

void segment_fold(struct segment *s)
{
	if (s->fold_is_due)
		segment_checkpoint(s, NULL);
	s->fold_is_due = false;
}

bool segment_folded(struct segment *s)
{
	bool folded = s->folded;

	s->folded = false;
	return folded;
}

/* The log takes at most a quarter of what the file may, or LOG_PAGES. */
static void segment_fold_at(struct segment *s, const struct segment_limits *l)
{
	uint64_t pages = l->bytes / 4 / 4096;

	if (pages > LOG_PAGES)
		pages = LOG_PAGES;
	s->fold_pages = pages / LOG_FOLDS < 8 ? 8 : (uint32_t)(pages / LOG_FOLDS);
	(void)segment_written(s->db);
	sqlite3_wal_hook(s->db, segment_committed, s);
}

int segment_acquire(const char *dir, const struct segment_limits *l, const char *but_path,
		    struct segment **out, struct err *e)
{
	char path[PATH_MAX];
	int rc = segment_join(dir, l, but_path, out, e);

	if (rc == -ENOENT) {
		rc = folder_new_segment(dir, path, e);
		if (rc)
			return rc;
		rc = segment_open(path, out, e);
		if (rc)
			(void)unlink(path); /* nothing is in it */
	}
	if (!rc)
		segment_fold_at(*out, l);
	return rc;
}

void segment_leave(struct segment *s)
{
	if (!s)
		return;
	for (int i = 0; i < SEGMENT_STMTS; i++) {
		sqlite3_finalize(s->stmt[i]);
		s->stmt[i] = NULL;
	}
	if (segment_is_there(s)) {
		/* refused (busy) while another writer or a reader has it: then they, or the next
		 * who comes, do it */
		sqlite3_busy_timeout(s->db, 100);
		sqlite3_exec(s->db, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
	} else {
		segment_keep_log(s); /* another process set it aside or removed it: not ours to
					change any more */
	}
	segment_free(s);
}

void segment_leave_damaged(struct segment *s)
{
	bool there = segment_is_there(s);
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", s->path);
	segment_keep_log(s);
	segment_free(s);
	if (there) /* else another process has set it aside */
		segment_warn_set_aside(path);
}

void segment_tidy(const char *dir, const char *but_path)
{
	char(*names)[SEGMENT_NAME_MAX] = NULL;
	char path[PATH_MAX], wal[PATH_MAX + 8];
	struct segment *s;
	size_t n = 0;

	if (folder_segments(dir, &names, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		snprintf(wal, sizeof(wal), "%s-wal", path);
		if (!strcmp(path, but_path) || access(wal, F_OK) < 0)
			continue;
		if (segment_open(path, &s, NULL) == 0)
			segment_leave(s);
	}
	free(names);
}

bool segment_is_there(const struct segment *s)
{
	struct stat st;

	return stat(s->path, &st) == 0 && st.st_dev == s->dev && st.st_ino == s->ino;
}

static bool segment_is_turned(const struct segment *s)
{
	const char *name = strrchr(s->path, '/') + 1;
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - s->path), s->path);
	return folder_is_turned(dir, name);
}

bool segment_is_due(const struct segment *s, const struct segment_limits *l)
{
	int64_t age = clock_utc_ns() / NSEC_PER_SEC - s->created_s;

	return age > l->age_s || age < -(int64_t)l->age_s || segment_bytes(s->path) >= l->bytes ||
	       segment_is_turned(s);
}

uint64_t segment_bytes(const char *path)
{
	char wal[PATH_MAX + 8];
	struct stat st;
	uint64_t n = 0;

	snprintf(wal, sizeof(wal), "%s-wal", path);
	if (stat(path, &st) == 0)
		n += (uint64_t)st.st_size;
	if (stat(wal, &st) == 0)
		n += (uint64_t)st.st_size;
	return n;
}

sqlite3_stmt *segment_stmt(struct segment *s, int index, const char *sql)
{
	if (!s->stmt[index] && sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
						  &s->stmt[index], NULL) != SQLITE_OK)
		return NULL;
	return s->stmt[index];
}

int segment_mark_archived(sqlite3 *db)
{
	char *sql = sqlite3_mprintf(
		"INSERT OR REPLACE INTO meta(key, value) VALUES('archived_ns', %lld); PRAGMA application_id = " FOLDER_ARCHIVED_TEXT,
		(long long)clock_utc_ns());
	int rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc == SQLITE_OK ? span_note(db) : rc;
}
