/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/archive/day_files.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/file/subdir.h"
#include "schema/base/log.h"
#include "schema/store/archive/day.h"
#include "schema/store/archive/minutes.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/stamp.h"

#define DAY_NAME   8 /* YYYYMMDD, as names of segments begin */
#define FIRST_HOUR "T00"

struct keeping {
	const char *dir, *making;
	int at, days; /* folders */
	char (*names)[SEGMENT_NAME_MAX];
	size_t n; /* of the day */
	bool oldest, minutes;
	const bool *unfinished; /* by name */
	struct day_files_report *out;
};

static void path_of(const struct keeping *k, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", k->dir, name);
}

static void file_of(const struct keeping *k, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.*s.db", DAY_NAME, k->names[0]);
}

/* ---- rules 1 to 3 ---- */

static bool some_have_minutes(const struct keeping *k)
{
	char path[PATH_MAX];
	size_t some = 0, archives = 0;

	for (size_t i = 0; k->minutes && i < k->n; i++) {
		path_of(k, k->names[i], path);
		if (!folder_is_archived(path))
			continue;
		archives++;
		some += minutes_are(path);
	}
	return some && some < archives;
}

static bool is_due(const struct keeping *k)
{
	for (size_t i = 0; i < k->n; i++)
		if (k->unfinished[i])
			return false;
	if (k->n < DAY_LEAST ||
	    (k->oldest && strncmp(k->names[0] + DAY_NAME, FIRST_HOUR, strlen(FIRST_HOUR)) != 0))
		return false;
	return !some_have_minutes(k);
}

static bool has_name(const struct keeping *k, const char *name)
{
	for (size_t i = 0; i < k->n; i++)
		if (!strcmp(k->names[i], name))
			return true;
	return false;
}

static bool names_archives(const struct keeping *k, sqlite3 *db)
{
	sqlite3_stmt *st = NULL;
	bool same = sqlite3_prepare_v2(db, "SELECT name, stamp FROM day_file", -1, &st, NULL) ==
		    SQLITE_OK;
	size_t n = 0;

	while (same && sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);
		char path[PATH_MAX];

		same = name && has_name(k, name);
		if (!same)
			break;
		path_of(k, name, path);
		same = stamp_of(path) == sqlite3_column_int64(st, 1);
		n++;
	}
	sqlite3_finalize(st);
	return same && n;
}

/* An empty one: is it newer than all archives (rule 4)? */
static bool is_newer(const struct keeping *k, const struct stat *file)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < k->n; i++) {
		path_of(k, k->names[i], path);
		if (stat(path, &st) < 0 || st.st_ctim.tv_sec >= file->st_mtim.tv_sec)
			return false;
	}
	return true;
}

static bool is_valid(const struct keeping *k)
{
	char name[PATH_MAX], path[PATH_MAX];
	struct err unsaid = {0};
	struct stat st;
	sqlite3 *db;
	bool valid;

	file_of(k, name);
	if (fstatat(k->days, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return false;
	if (!st.st_size)
		return is_newer(k, &st);
	if ((size_t)snprintf(path, sizeof(path), "%s/days/%s", k->dir, name) >= sizeof(path) ||
	    readonly_open(path, &db, &unsaid))
		return false;
	valid = names_archives(k, db);
	sqlite3_close(db);
	return valid;
}

/* ---- one day ---- */

/* Rule 4. */
static void mark(const struct keeping *k)
{
	char name[PATH_MAX];
	cleanup_fd int fd = -1;

	file_of(k, name);
	(void)unlinkat(k->days, name, 0);
	fd = openat(k->days, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (fd >= 0)
		folder_own_at(k->days, fd, name, 0640);
}

static int name_it(const struct keeping *k)
{
	char name[PATH_MAX];
	struct stat st;

	file_of(k, name);
	if (renameat(k->at, k->making, k->days, name) < 0 || fsync(k->days) < 0)
		return -errno;
	k->out->made++;
	k->out->bytes += fstatat(k->days, name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
	return 0;
}

static void make(const struct keeping *k)
{
	char to[PATH_MAX];
	struct err e = {0};
	size_t first = 0, n = day_members(k->dir, k->names, k->n, &first);
	int rc = 0;

	path_of(k, k->making, to);
	if (n)
		rc = day_make(k->dir, k->names + first, n, to, &e);
	if (n && !rc)
		rc = name_it(k);
	if (rc && rc != -E2BIG && rc != -EAGAIN)
		log_warn("seal: the sums of day %.*s cannot be stored: %s", DAY_NAME, k->names[0],
			 e.code ? e.what : strerror(-rc));
	if (rc)
		(void)unlinkat(k->at, k->making, 0);
	if (!n || (rc && rc != -EAGAIN && rc != -ENOSPC && rc != -EDQUOT && rc != -EFBIG))
		mark(k);
}

static void keep_one(const struct keeping *k)
{
	char name[PATH_MAX];

	file_of(k, name);
	if (is_valid(k))
		return;
	if (is_due(k))
		make(k);
	else
		(void)unlinkat(k->days, name, 0);
}

/* ---- all days ---- */

static int days_folder(const struct keeping *k)
{
	cleanup_fd int fd = -1;

	if (mkdirat(k->at, "days", 0750) < 0 && errno != EEXIST)
		return -errno;
	fd = subdir_open(k->dir, "days");
	if (fd >= 0)
		folder_own_at(k->at, fd, "days", 0750);
	return take_fd(&fd);
}

void day_files_keep(const char *dir, int at, const char *making, char (*names)[SEGMENT_NAME_MAX],
		    size_t n, const bool *unfinished, bool minutes, struct day_files_report *out)
{
	struct keeping k = {.dir = dir, .making = making, .at = at, .minutes = minutes, .out = out};
	cleanup_fd int days = -1;

	*out = (struct day_files_report){0};
	if (n < DAY_LEAST || !strncmp(names[0], names[n - 1], DAY_NAME))
		return; /* no day is over */
	days = k.days = days_folder(&k);
	for (size_t i = 0, end; days >= 0 && i < n; i = end) {
		for (end = i + 1; end < n && !strncmp(names[i], names[end], DAY_NAME); end++)
			;
		k.names = names + i;
		k.n = end - i;
		k.oldest = !i;
		k.unfinished = unfinished + i;
		if (end < n)
			keep_one(&k);
	}
}
