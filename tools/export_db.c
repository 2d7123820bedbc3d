/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/export_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/reader.h"
#include "tools/outfile.h"

static int say_copy(struct err *e, int rc, const char *from, const char *to)
{
	int full = rc == SQLITE_FULL;

	err_set(e, full ? -ENOSPC : -EIO, full ? EXIT_RUNTIME : EXIT_STORE, "cannot copy %s to %s: %s", from, to,
		full ? "no space left on device" : sqlite3_errstr(rc));
	if (full)
		err_fix(e, "free some space, or write elsewhere: -o /path/on/another/disk");
	return full ? -ENOSPC : -EIO;
}

/* The copy is one file: whatever the journal mode of the segment, the copy's is DELETE. */
static int backup_into(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", from, "main");
	int rc;

	if (!b)
		return sqlite3_errcode(to);
	do {
		rc = sqlite3_backup_step(b, -1);
		if (rc == SQLITE_BUSY || rc == SQLITE_LOCKED)
			sqlite3_sleep(20);
	} while (rc == SQLITE_BUSY || rc == SQLITE_LOCKED);
	sqlite3_backup_finish(b);
	if (rc != SQLITE_DONE)
		return rc;
	return sqlite3_exec(to, "PRAGMA journal_mode=DELETE", NULL, NULL, NULL);
}

static int same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int copy_segment(const char *from, const char *to, uint64_t *bytes, struct err *e)
{
	cleanup_free char *temp = outfile_temp_name(to);
	struct store_segment *segment = NULL;
	sqlite3 *db = NULL;
	struct stat st = {0};
	int rc, ret;

	if (same_file(from, to))
		return err_set(e, -EINVAL, EXIT_USAGE, "cannot copy %s onto itself", from);
	ret = store_segment_open(from, &segment, e);
	if (ret)
		return ret;
	rc = sqlite3_open_v2(temp, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE, NULL);
	if (rc == SQLITE_OK)
		rc = backup_into(store_segment_db(segment), db);
	if (sqlite3_close(db) != SQLITE_OK && rc == SQLITE_OK)
		rc = SQLITE_IOERR;
	store_segment_close(segment);
	if (rc != SQLITE_OK) {
		ret = say_copy(e, rc, from, to);
	} else if (rename(temp, to)) {
		ret = err_set(e, -errno, EXIT_RUNTIME, "cannot write %s: %s", to, strerror(errno));
	} else if (!stat(to, &st)) {
		*bytes += (uint64_t)st.st_size;
	}
	if (ret)
		unlink(temp);
	return ret;
}

static int is_folder(const char *path)
{
	struct stat st;
	size_t len = strlen(path);

	return (len && path[len - 1] == '/') || (!stat(path, &st) && S_ISDIR(st.st_mode));
}

static int copy_all(const struct selection *sel, const char *folder, uint64_t *bytes, struct err *e)
{
	if (mkdir(folder, 0777) && errno != EEXIST)
		return err_set(e, -errno, errno == EACCES ? EXIT_PERMISSION : EXIT_RUNTIME, "cannot make the folder %s: %s",
			       folder, strerror(errno));
	for (size_t i = 0; i < sel->n_segments; i++) {
		cleanup_strbuf struct strbuf to = STRBUF_INIT;
		const char *slash = strrchr(sel->segments[i].path, '/');
		int ret;

		strbuf_addf(&to, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
			    slash ? slash + 1 : sel->segments[i].path);
		ret = copy_segment(sel->segments[i].path, strbuf_str(&to), bytes, e);
		if (ret)
			return ret;
	}
	return 0;
}

static int send_file(const char *path, struct err *e)
{
	cleanup_file FILE *f = fopen(path, "re");
	char buf[1 << 16];
	size_t n;

	if (!f)
		return err_set(e, -errno, EXIT_RUNTIME, "cannot read %s: %s", path, strerror(errno));
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		if (fwrite(buf, 1, n, stdout) != n)
			break;
	if (fflush(stdout) || ferror(stdout))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot write standard output: %s", strerror(errno));
	return 0;
}

static int copy_to_stdout(const char *from, uint64_t *bytes, struct err *e)
{
	cleanup_strbuf struct strbuf to = STRBUF_INIT;
	const char *dir = getenv("TMPDIR");
	int ret;

	strbuf_addf(&to, "%s/sonde-export-XXXXXX", dir && *dir ? dir : "/tmp");
	if (!mkdtemp(to.buf))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a folder in %s: %s", dir && *dir ? dir : "/tmp",
			       strerror(errno));
	strbuf_addstr(&to, "/copy.db");
	ret = copy_segment(from, to.buf, bytes, e);
	if (!ret)
		ret = send_file(to.buf, e);
	unlink(to.buf);
	*strrchr(to.buf, '/') = '\0';
	rmdir(to.buf);
	return ret;
}

int export_db(const struct selection *sel, const char *path, uint64_t *bytes, struct err *e)
{
	if (!sel->n_segments)
		return err_set(e, -ENOENT, EXIT_NOTHING, "no part of the store touches this range");
	if (path && !*path)
		return err_set(e, -EINVAL, EXIT_USAGE, "-o needs the name of a file or a folder");
	if (!path && sel->n_segments > 1) {
		err_set(e, -EINVAL, EXIT_USAGE, "%zu files touch this range: they need a folder", sel->n_segments);
		err_fix(e, "sonde export db -o copy/");
		return -EINVAL;
	}
	if (!path)
		return copy_to_stdout(sel->segments[0].path, bytes, e);
	if (sel->n_segments > 1 || is_folder(path))
		return copy_all(sel, path, bytes, e);
	return copy_segment(sel->segments[0].path, path, bytes, e);
}
