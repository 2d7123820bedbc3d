/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/export_db.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/cli/options.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/store/read/reader.h"
#include "tools/print/outfile.h"

static int say_copy(struct err *e, int rc, const char *from, const char *to)
{
	int full = rc == SQLITE_FULL;

	err_set(e, full ? -ENOSPC : -EIO, full ? EXIT_RUNTIME : EXIT_STORE,
		"cannot copy %s to %s: %s", from, to,
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

/* --- cut to the range --- */

static int change(sqlite3 *db, const struct selection *sel, const char *sql)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, sel->from_ns);
		sqlite3_bind_int64(st, 2, sel->to_ns);
		rc = sqlite3_step(st) == SQLITE_DONE ? SQLITE_OK : sqlite3_errcode(db);
	}
	sqlite3_finalize(st);
	return rc;
}

/* Rows of each table that has times. Earlier rows of gauges stay, since they are the values at the
 * start, and so do sampling rates, which remain valid. */
static int cut_rows(sqlite3 *db, const struct selection *sel)
{
	sqlite3_stmt *tables = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"SELECT m.name FROM sqlite_master m WHERE m.type = 'table' AND m.name NOT IN ('rate_row', 'amount') AND "
		"EXISTS (SELECT 1 FROM pragma_table_info(m.name) WHERE name = 'ts')",
		-1, &tables, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(tables)) == SQLITE_ROW) {
		struct strbuf sql cleanup_strbuf = STRBUF_INIT;

		strbuf_addf(
			&sql,
			"DELETE FROM \"%s\" WHERE (ts + (SELECT value FROM meta WHERE key = 't0')) * 1000000000 NOT BETWEEN ?1 AND ?2 - 1",
			(const char *)sqlite3_column_text(tables, 0));
		rc = change(db, sel, strbuf_str(&sql));
	}
	sqlite3_finalize(tables);
	rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	if (rc == SQLITE_OK)
		rc = change(
			db, sel,
			"DELETE FROM amount WHERE (ts + (SELECT value FROM meta WHERE key = 't0')) * 1000000000 >= ?2 OR "
			"((ts + (SELECT value FROM meta WHERE key = 't0')) * 1000000000 < ?1 AND series NOT IN (SELECT e.id FROM series e "
			"JOIN task t ON t.id = e.task JOIN kind k ON k.id = t.kind WHERE k.class = 'gauge'))");
	return rc;
}

/* Rows of facts count as kind 0. An older schema has fewer tables. */
static int count_facts(sqlite3 *db, const struct selection *sel, const char *table)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	if (sqlite3_table_column_metadata(db, NULL, table, "run", NULL, NULL, NULL, NULL, NULL) !=
	    SQLITE_OK)
		return SQLITE_OK;
	strbuf_addf(
		&sql,
		"INSERT INTO run_count SELECT run, 0, count(*) FROM %s WHERE true GROUP BY run ON CONFLICT DO UPDATE SET n = n + excluded.n",
		table);
	return change(db, sel, strbuf_str(&sql));
}

/* What each run is said to have, and when it was. One that has no part in the range is gone. */
static int cut_runs(sqlite3 *db, const struct selection *sel)
{
	/* clang-format off */
	static const char *const sql[] = {
		"DELETE FROM run WHERE from_ns >= ?2 OR (to_ns > 0 AND to_ns <= ?1)",
		"UPDATE run SET from_ns = max(from_ns, ?1), to_ns = iif(to_ns > 0, min(to_ns, ?2), to_ns)",
		"DELETE FROM run_count", "INSERT INTO run_count SELECT run, kind, n FROM run_counted WHERE run IN (SELECT id FROM run)",
		"INSERT INTO run_count SELECT run, 0, sum(n) FROM request_row GROUP BY run",
		"DELETE FROM run_loss", "INSERT INTO run_loss SELECT run, reason, sum(n) FROM loss_row GROUP BY 1, 2",
		"DELETE FROM run_cost", "INSERT INTO run_cost SELECT run, program, sum(cpu_ns), max(private_bytes), max(map_bytes) FROM cost_row GROUP BY 1, 2",
		"DELETE FROM run_unwound", "INSERT INTO run_unwound SELECT run, exe, image, reason, sum(n) FROM unwound_row GROUP BY 1, 2, 3, 4",
	};
	/* clang-format on */
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(sql); i++)
		rc = change(db, sel, sql[i]);
	for (size_t i = 0; rc == SQLITE_OK && FACTS[i]; i++)
		rc = count_facts(db, sel, FACTS[i]->table);
	return rc == SQLITE_OK ? change(db, sel, "VACUUM") : rc;
}

static int cut(sqlite3 *db, const struct selection *sel)
{
	int rc;

	if (!sel->range_given)
		return SQLITE_OK;
	rc = cut_rows(db, sel);
	return rc == SQLITE_OK ? cut_runs(db, sel) : rc;
}

static int same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int copy_segment(const struct selection *sel, const char *from, const char *to,
			uint64_t *bytes, struct err *e)
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
	rc = sqlite3_open_v2(temp, &db,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXCLUSIVE,
			     NULL);
	if (rc == SQLITE_OK)
		rc = backup_into(store_segment_tables(segment), db);
	if (rc == SQLITE_OK)
		rc = store_copy_plain(db); /* for people who have an sqlite3 and no sonde.so */
	if (rc == SQLITE_OK)
		rc = cut(db, sel);
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
		return err_set(e, -errno, errno == EACCES ? EXIT_PERMISSION : EXIT_RUNTIME,
			       "cannot make the folder %s: %s", folder, strerror(errno));
	for (size_t i = 0; i < sel->n_segments; i++) {
		cleanup_strbuf struct strbuf to = STRBUF_INIT;
		const char *slash = strrchr(sel->segments[i].path, '/');
		int ret;

		strbuf_addf(&to, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/",
			    slash ? slash + 1 : sel->segments[i].path);
		ret = copy_segment(sel, sel->segments[i].path, strbuf_str(&to), bytes, e);
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
		return err_set(e, -errno, EXIT_RUNTIME, "cannot read %s: %s", path,
			       strerror(errno));
	while ((n = fread(buf, 1, sizeof(buf), f)) > 0)
		if (fwrite(buf, 1, n, stdout) != n)
			break;
	return program_flush(false, e);
}

static int copy_to_stdout(const struct selection *sel, const char *from, uint64_t *bytes,
			  struct err *e)
{
	cleanup_strbuf struct strbuf to = STRBUF_INIT;
	const char *dir = getenv("TMPDIR");
	int ret;

	strbuf_addf(&to, "%s/sonde-export-XXXXXX", dir && *dir ? dir : "/tmp");
	if (!mkdtemp(to.buf))
		return err_set(e, -errno, EXIT_RUNTIME, "cannot make a folder in %s: %s",
			       dir && *dir ? dir : "/tmp", strerror(errno));
	strbuf_addstr(&to, "/copy.db");
	ret = copy_segment(sel, from, to.buf, bytes, e);
	if (!ret)
		ret = send_file(to.buf, e);
	unlink(to.buf);
	*strrchr(to.buf, '/') = '\0';
	rmdir(to.buf);
	return ret;
}

int export_db(const struct selection *sel, const char *path, uint64_t *bytes, struct err *e)
{
	if (store_names_hosts()) {
		err_set(e, -EINVAL, EXIT_USAGE, "only one store can be copied at a time");
		err_fix(e, "sonde export db --store DIR -o copy/");
		return -EINVAL;
	}
	if (!sel->n_segments)
		return err_set(e, -ENOENT, EXIT_NOTHING,
			       "no segment of the store is in this range");
	if (path && !*path)
		return err_set(e, -EINVAL, EXIT_USAGE, "-o needs a file or a folder");
	if (!path && sel->n_segments > 1) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"%zu files are in this range: name a folder for them", sel->n_segments);
		err_fix(e, "sonde export db -o copy/");
		return -EINVAL;
	}
	if (!path)
		return copy_to_stdout(sel, sel->segments[0].path, bytes, e);
	if (sel->n_segments > 1 || is_folder(path))
		return copy_all(sel, path, bytes, e);
	return copy_segment(sel, sel->segments[0].path, path, bytes, e);
}
