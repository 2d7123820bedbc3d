/* SPDX-License-Identifier: Apache-2.0 */
/*
 * folder: the store's folder and the names in it. Knows no SQL.
 *
 *   YYYYMMDDTHHMMSSZ-NNNN.db   a segment: the UTC instant it was begun, and a number for those of
 *                              one second. Names sort by age; a new one always sorts last, even if
 *                              the wall clock went back. An archive keeps the name of the segment
 *                              that it was made of (archive.h). Numbers from FOLDER_KEPT on are of
 *                              kept windows of the flight ring: their hour begins a second later
 *                              (archive/keep_mend.h).
 *   flight/                    the ring of seconds, a store in itself (write/commit/fine.h)
 *   sealing, sealing.db        the sealer holds the lock of the first, and writes the second, which
 *                              becomes an archive
 *   NAME.db.bad                a damaged segment, set aside
 *   lock                       flock: the queue of those who write
 *   writers/                   one tally file a living writer (tally.h)
 *   days/                      sums of whole days, for questions about several (archive/day.h)
 *   images/                    image indexes, and the kernel's symbols; not ours
 *   removed                    what retention took away, and since when the history is whole
 *                              (removed.h)
 *   shed                       what sonded made do less or stopped, and when (shedlog.h)
 *   ballast                    room that is given up when the disk is full (ballast.h)
 *   turn                       the name of a segment that was ended on demand: its writers leave
 *                              it with their next batch
 *
 * The folder is 0750, files are 0640, whatever the umask; their group is `sonde` where there is
 * one, else, under sudo, the group of the user who called it. What root makes in the folder belongs
 * to the folder's owner (owner.h).
 */
#ifndef SONDE_STORE_FILES_FOLDER_H
#define SONDE_STORE_FILES_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "schema/base/err.h"

#define SEGMENT_NAME_MAX 32 /* with NUL */

/* Makes the folder and writers/ in it if they are missing. */
int folder_prepare(const char *dir, struct err *e);
/* Opens the folder, for what is made, renamed and removed in it: what is done by its descriptor
 * stays in it, whatever becomes of its path meanwhile. The descriptor (O_PATH), or -errno. -EPERM:
 * root is led there by a link that belongs neither to root nor to the folder's owner. */
int folder_open(const char *dir);
/* Syncs its names to the disk. 0 or -errno. */
int folder_sync(const char *dir);
/* Gives an open file of ours, at `path` in the folder, its owner (owner.h), group and mode. */
void folder_own(int fd, const char *path, mode_t mode);
/* The same of `name` in an open folder. */
void folder_own_at(int dir, int fd, const char *name, mode_t mode);
/* Waits for the writers' lock. Returns the descriptor (close it to release the lock), or -errno. */
int folder_lock(const char *dir);
/* Says that folder_lock failed with `rc`, and how to mend that. Returns rc. */
int folder_lock_refuse(const char *dir, int rc, struct err *e);
bool folder_is_segment_name(const char *name);
#define FOLDER_KEPT 5000
bool folder_is_kept_name(const char *name);
/* Its start in UTC, from its name; INT64_MAX: the name does not say. */
int64_t folder_begun_ns(const char *name);
/* Is this segment an archive (archive.h)? By the application id in the header of SQLite's file
 * format, section 1.3. */
#define FOLDER_ARCHIVED      0x736e6461
#define FOLDER_ARCHIVED_TEXT "1936614497" /* the same, for a PRAGMA */
bool folder_is_archived(const char *path);
/* Copies the bytes of a file, which is no link, into an empty one. 0 or -errno. */
int folder_copy(const char *from, int to);
/* Names of all segments, oldest first: regular files only, of a file with two such names (hard
 * links) the first. The array is the caller's (free). 0 or
 * -errno. */
int folder_segments(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n);
/* The same for what has the name of a segment and is no regular file. */
int folder_strange(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n);
/* The same for damaged segments that were set aside: NAME.bad, NAME.bad.2. */
bool folder_is_aside_name(const char *name);
int folder_aside(const char *dir, char (**out)[SEGMENT_NAME_MAX], size_t *n);
/* Creates an empty segment file whose name sorts last; `path` gets it. Call with the lock held. */
int folder_new_segment(const char *dir, char path[PATH_MAX], struct err *e);
/* Makes the writers leave the newest segment, each with its next batch; `name` gets its name.
 * -ENOENT with EXIT_NOTHING: there is no segment in use. */
int folder_turn(const char *dir, char name[SEGMENT_NAME_MAX], struct err *e);
/* Was this segment, or a later one that still exists, ended on demand? */
bool folder_is_turned(const char *dir, const char *name);
/* Renames a damaged segment (and its -wal, -shm) to NAME.bad, NAME.bad.2, ... 0 or -errno. */
int folder_set_aside(const char *path, char aside[PATH_MAX]);
/* Its disk has room for no other file. */
bool folder_has_no_inode(const char *path);
/* "store full: ..." with what the file system says. Returns -ENOSPC. */
int folder_full(const char *dir, struct err *e);
/* What mends a folder on a file system that is mounted read-only (EROFS): no right does. */
#define FOLDER_READ_ONLY_FIX \
	"choose a folder on another file system: --store DIR; or make this one writable: sudo mount -o remount,rw MOUNT"

#endif
