/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader: finding and opening segments for reading.
 *
 * A segment in use is in WAL mode: SQLite reads it beside the writer, also for a member of the group who may write
 * neither -wal nor -shm. After a clean end it is in journal_mode=DELETE and needs nothing but the file. What is left
 * is a WAL file without its -wal: a copy of the .db alone, or a segment in the instant of its beginning. SQLite would
 * create -wal and -shm beside it; we wait for a moment if this is a live folder, and then read the file as it is
 * (immutable=1).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/files/folder.h"
#include "schema/store/read/hosts.h"
#include "schema/store/files/migrate.h"
#include "schema/store/packed/module.h"
#include "schema/store/read/reading.h"
#include "schema/store/files/segment.h"

#define WAIT_TRIES 10
#define WAIT_US    20000

/* Byte 18 of the header: 2 says write-ahead log. false also for what is too short. */
bool reading_is_wal(const char *path)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
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

/* WAL by its header, but no log beside it, and none comes. */
static bool is_lone_wal_file(const char *path)
{
	int tries = in_live_folder(path) ? WAIT_TRIES : 1;

	for (int i = 0; i < tries; i++) {
		if (!reading_is_wal(path) || beside(path, "-wal"))
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

static int open_refused(const char *path, sqlite3 *db, int rc, struct err *e)
{
	int code = segment_errno(db, rc);
	bool denied = access(path, R_OK) < 0 && errno == EACCES;

	if (denied) {
		err_set(e, -EACCES, EXIT_PERMISSION, "cannot read the store's segment %s: permission denied", path);
		store_rights_fix(path, e);
		return -EACCES;
	}
	err_set(e, code, EXIT_STORE, "cannot read the store's segment %s: %s", path, db ? sqlite3_errmsg(db) :
		"out of memory");
	err_fix(e, code == -EBADMSG ? "it is damaged: sqlite3 FILE .recover may save a part" :
		"copy the file to a folder of your own and read it there");
	return code;
}

int reading_open(const char *path, sqlite3 **out, struct err *e)
{
	cleanup_free char *uri = is_lone_wal_file(path) ? immutable_uri(path) : NULL;
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(uri ? uri : path, &db,
				 SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | (uri ? SQLITE_OPEN_URI : 0), NULL);

	if (rc == SQLITE_OK)
		rc = packed_register(db);
	if (rc == SQLITE_OK) {
		sqlite3_busy_timeout(db, 5000);
		sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
		sqlite3_db_config(db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
		rc = sqlite3_exec(db, "PRAGMA query_only=1; PRAGMA cache_size=-65536; PRAGMA temp_store=MEMORY;"
				      "SELECT count(*) FROM sqlite_master", NULL, NULL, NULL);
	}
	if (rc != SQLITE_OK) {
		rc = open_refused(path, db, rc, e);
		sqlite3_close(db);
		return rc;
	}
	*out = db;
	return 0;
}

int64_t reading_number(sqlite3 *db, const char *sql, int64_t fallback)
{
	sqlite3_stmt *st = NULL;
	int64_t v = fallback;

	if (sqlite3_prepare_v2(db, sql, -1, &st, NULL) == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW &&
	    sqlite3_column_type(st, 0) != SQLITE_NULL)
		v = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return v;
}

int64_t reading_archived_ns(sqlite3 *db)
{
	return reading_number(db, "SELECT value FROM meta WHERE key = 'archived_ns'", 0);
}

sqlite3_stmt *reading_prepare(struct store_segment *s, const char *sql, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(s->db, sql, -1, &st, NULL);

	if (rc != SQLITE_OK)
		open_refused(s->path, s->db, rc, e);
	return st;
}

int reading_finish(struct store_segment *s, sqlite3_stmt *st, int rc, struct err *e)
{
	int code = rc == SQLITE_DONE ? 0 : open_refused(s->path, s->db, rc, e);

	sqlite3_finalize(st);
	return code ? code : 0;
}

/* --- one segment --- */

/* 0; -EPROTO: of a schema that is not read; -ENODATA: nothing in it (its writer was killed before it began). */
static int check_version(const char *path, sqlite3 *db, struct err *e)
{
	int v = migrate_version(db);

	if (v < 0)
		return open_refused(path, db, -v, e);
	if (!v) {
		err_set(e, -ENODATA, EXIT_STORE, "%s is not a segment of a store: it has no tables of sonde's", path);
		return -ENODATA;
	}
	return migrate_check(path, v, e);
}

int store_segment_open(const char *path, struct store_segment **out, struct err *e)
{
	struct store_segment *s;
	sqlite3 *db;
	int rc = reading_open(path, &db, e);

	if (rc)
		return rc;
	rc = check_version(path, db, e);
	if (rc) {
		sqlite3_close(db);
		return rc;
	}
	s = mem_alloc(sizeof(*s));
	s->db = db;
	s->path = mem_strdup(path);
	s->t0 = reading_number(db, "SELECT value FROM meta WHERE key = 't0'", 0);
	s->archived = reading_archived_ns(db) != 0;
	s->host = hosts_of(db);
	rc = s->host ? hosts_name(db, s->host) : SQLITE_OK;
	if (rc != SQLITE_OK) {
		rc = open_refused(path, db, rc, e);
		store_segment_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void store_segment_close(struct store_segment *s)
{
	if (!s)
		return;
	reading_unload(s);
	sqlite3_close(s->db);
	free(s->path);
	free(s->host);
	free(s);
}

int reading_views(struct store_segment *s, const char *name, struct err *e)
{
	int rc;

	if (!s->archived || s->has_views)
		return 0;
	sqlite3_exec(s->db, "PRAGMA query_only=0", NULL, NULL, NULL);
	rc = packed_views(s->db, name);
	if (rc != SQLITE_OK)
		rc = open_refused(s->path, s->db, rc, e);
	else
		s->has_views = !name;
	sqlite3_exec(s->db, "PRAGMA query_only=1", NULL, NULL, NULL);
	return rc;
}

struct sqlite3 *store_segment_tables(struct store_segment *s)
{
	return s->db;
}

struct sqlite3 *store_segment_db(struct store_segment *s)
{
	reading_views(s, NULL, NULL); /* who asks then hears of it */
	return s->db;
}

bool store_segment_archived(const struct store_segment *s)
{
	return s->archived;
}

int store_segment_dict(struct store_segment *s, const struct store_dict **out, struct err *e)
{
	int rc = s->loaded ? 0 : reading_load(s, e);

	if (!rc)
		*out = &s->dict;
	return rc;
}
