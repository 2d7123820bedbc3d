/* SPDX-License-Identifier: Apache-2.0 */
/*
 * segment: one file of the store, open for writing. Beginning, joining, leaving and setting aside
 * happen with the folder's lock held, so that no two programs do them at once.
 *
 * A writer joins the newest segment if it is of this boot and this schema (an older schema is
 * migrated), young and small enough; else it begins one. Who leaves last (SQLite knows: no other
 * connection) folds the write-ahead log in and sets journal_mode=DELETE, after which a reader of
 * the group needs no write access at all.
 */
#ifndef SONDE_STORE_FILES_SEGMENT_H
#define SONDE_STORE_FILES_SEGMENT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "schema/base/err.h"

struct sqlite3;
struct sqlite3_stmt;

#define SEGMENT_STMTS 128

struct segment {
	struct sqlite3 *db;
	char path[PATH_MAX];
	dev_t dev;
	ino_t ino;
	int64_t t0; /* origin of ts, seconds since 1970 */
	int64_t created_s;
	uint64_t serial;          /* differs for each one opened by this process */
	uint32_t fold_pages;      /* its log is folded in each time it has grown so far */
	bool fold_is_due, folded; /* folded: since segment_folded was last called */
	struct sqlite3_stmt
		*stmt[SEGMENT_STMTS]; /* prepared at first use by the code that owns the SQL */
};

struct segment_limits {
	uint64_t bytes;
	uint32_t age_s;
};

/* Lock held. Never the one at `but_path` (NULL: none), which the caller has just left. */
int segment_acquire(const char *dir, const struct segment_limits *l, const char *but_path,
		    struct segment **out, struct err *e);
/* Lock held. Opens an existing file as it is. `e` may be NULL. */
int segment_open(const char *path, struct segment **out, struct err *e);
/* After a commit, best without any lock: checkpoints the log if that is due. Other writers go on
 * meanwhile. */
void segment_fold(struct segment *s);
/* Since the last call: is all that was committed on the disk? */
bool segment_folded(struct segment *s);
/* Lock held. Checkpoint the log if no other process has it open, then close. */
void segment_leave(struct segment *s);
/* Lock held. Close, rename to NAME.bad. */
void segment_leave_damaged(struct segment *s);
/* Lock held. Fold in the logs of segments that no program writes any more. */
void segment_tidy(const char *dir, const char *but_path);
/* Is its file still the one of that name (not unlinked, not set aside)? */
bool segment_is_there(const struct segment *s);
/* Past its age or size, or ended on demand (folder_turn)? */
bool segment_is_due(const struct segment *s, const struct segment_limits *l);
/* File and log. */
uint64_t segment_bytes(const char *path);
/* Marks the file as an archive (folder_is_archived), with the time. SQLite's code. */
int segment_mark_archived(struct sqlite3 *db);
/* Borrowed; NULL on error (ask sqlite3_errcode). */
struct sqlite3_stmt *segment_stmt(struct segment *s, int index, const char *sql);
/* -errno for SQLite's last error: -ENOSPC, -EAGAIN (busy), -EBADMSG (damaged), -EIO, ... */
int segment_errno(struct sqlite3 *db, int sqlite_rc);

#endif
