/* SPDX-License-Identifier: Apache-2.0 */
/* sealday: see the header. Without a journal: the file means nothing until it is complete and synced. */
#include "schema/store/sealday.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/store/hist.h"
#include "schema/store/migrate.h"
#include "schema/store/packed.h"
#include "schema/store/packing.h"
#include "schema/store/reading.h"
#include "schema/store/sealorder.h"
#include "schema/store/sealparts.h"
#include "schema/store/sealsamples.h"
#include "schema/store/segment.h"

static int say(const struct sealday *d, int code, struct err *e)
{
	char dir[PATH_MAX];

	snprintf(dir, sizeof(dir), "%s", d->path);
	*strrchr(dir, '/') = '\0';
	if (code == -ENOSPC || code == -EDQUOT)
		return folder_full(dir, e);
	err_set(e, code, code == -EACCES || code == -EPERM || code == -EROFS ? EXIT_PERMISSION : EXIT_STORE,
		"cannot write %s: %s", d->path, d->db ? sqlite3_errmsg(d->db) : strerror(-code));
	err_fix(e, "run it with sudo, or as the user who owns the store");
	return code;
}

static int say_sql(const struct sealday *d, int rc, struct err *e)
{
	return say(d, segment_errno(d->db, rc), e);
}

/* --- beginning --- */

static int make_file(const struct sealday *d, const char *latest)
{
	cleanup_fd int fd = open(d->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0640);

	if (fd < 0)
		return -errno;
	folder_own(fd, 0640);
	return latest ? folder_copy(latest, fd) : 0;
}

static int exec(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static int describe(struct sealday *d)
{
	char sql[200];

	snprintf(sql, sizeof(sql), "INSERT OR REPLACE INTO meta(key, value) VALUES('t0', %lld), ('created_ns', %lld), ('sealed_ns', %lld)",
		 (long long)d->t0, (long long)clock_utc_ns(), (long long)clock_utc_ns());
	return exec(d->db, sql);
}

/* A make before this one: who finds both reads this one. */
static int list_latest(struct sealday *d, const char *latest)
{
	const char *slash = latest ? strrchr(latest, '/') : NULL;
	sqlite3_stmt *st = NULL;
	int rc;

	if (!slash)
		return SQLITE_OK;
	rc = sqlite3_prepare_v2(d->db, "INSERT INTO sealed(name, created_ns, at_ns, rows, n)"
				       " SELECT ?1, value, ?2, 0, 0 FROM meta WHERE key = 'created_ns'", -1, &st, NULL);
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_text(st, 1, slash + 1, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, clock_utc_ns());
	rc = sqlite3_step(st);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* By these a writer finds what is there already; sealing does so in memory, and questions go by id: nobody needs them in a day. */
#define FOR_WRITERS "DROP INDEX IF EXISTS function_by_hash; DROP INDEX IF EXISTS source_by_hash; DROP INDEX IF EXISTS image_by_hash;" \
		    "DROP INDEX IF EXISTS container_by_hash; DROP INDEX IF EXISTS process_by_pid"

static int prepare_db(struct sealday *d, const char *latest)
{
	int version, rc = sqlite3_open_v2(d->path, &d->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);

	if (rc == SQLITE_OK)
		rc = exec(d->db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA secure_delete=0; PRAGMA cache_size=-65536;"
				 "PRAGMA locking_mode=EXCLUSIVE; PRAGMA temp_store=MEMORY; BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = hist_register(d->db);
	if (rc == SQLITE_OK)
		rc = packed_register(d->db);
	version = rc == SQLITE_OK ? migrate_version(d->db) : 0;
	if (version < 0)
		return -version;
	if (rc == SQLITE_OK)
		rc = packing_unpack(d->db, NULL);
	if (rc == SQLITE_OK)
		rc = migrate_apply(d->db, version);
	if (rc == SQLITE_OK)
		rc = exec(d->db, FOR_WRITERS);
	if (rc == SQLITE_OK)
		rc = list_latest(d, latest);
	return rc == SQLITE_OK ? describe(d) : rc;
}

int sealday_open(struct sealday *d, const char *dir, const char *latest, int64_t t0, struct err *e)
{
	int rc;

	*d = (struct sealday){.t0 = t0};
	snprintf(d->path, sizeof(d->path), "%s/sealing.db", dir);
	rc = make_file(d, latest);
	if (rc)
		return say(d, rc, e);
	rc = prepare_db(d, latest);
	if (rc != SQLITE_OK) {
		rc = say_sql(d, rc, e);
		sqlite3_close(d->db);
		d->db = NULL;
		return rc;
	}
	sealdict_init(&d->dict, d->db);
	return 0;
}

/* --- taking in --- */

/* What each file tells of its own: host, kernel, ... of the latest. */
static int take_meta(struct sealday *d, sqlite3 *segment)
{
	sqlite3_stmt *from = NULL, *put = NULL;
	int rc = sqlite3_prepare_v2(segment, "SELECT key, value FROM meta WHERE key NOT IN ('t0', 'created_ns', 'schema_version')", -1,
				    &from, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(d->db, "INSERT OR REPLACE INTO meta(key, value) VALUES(?1, ?2)", -1, &put, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(from)) == SQLITE_ROW) {
		sqlite3_bind_value(put, 1, sqlite3_column_value(from, 0));
		sqlite3_bind_value(put, 2, sqlite3_column_value(from, 1));
		sqlite3_step(put);
		rc = sqlite3_reset(put);
	}
	sqlite3_finalize(from);
	sqlite3_finalize(put);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int list_segment(struct sealday *d, sqlite3 *segment, const char *path, const struct sealsamples *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->db, "INSERT INTO sealed(name, created_ns, at_ns, rows, n) VALUES(?1, ?2, ?3, ?4, ?5)", -1,
				    &st, NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_text(st, 1, strrchr(path, '/') + 1, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, reading_number(segment, "SELECT value FROM meta WHERE key = 'created_ns'", 0));
	sqlite3_bind_int64(st, 3, clock_utc_ns());
	sqlite3_bind_int64(st, 4, (int64_t)x->n);
	sqlite3_bind_int64(st, 5, (int64_t)x->total);
	rc = sqlite3_step(st);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int check_tables(struct store_segment *s, const char *path, struct err *e)
{
	char table[64];
	int rc = sealfacts_unknown(store_segment_db(s), table, sizeof(table));

	if (rc == SQLITE_DONE)
		return 0;
	if (rc != SQLITE_ROW)
		return err_set(e, -EBADMSG, EXIT_STORE, "cannot read %s: %s", path, sqlite3_errmsg(store_segment_db(s)));
	return err_set(e, -ENOTSUP, EXIT_STORE, "%s is not sealed: sealing does not know %s", path, table);
}

static int take_all(struct sealday *d, struct store_segment *s, struct sealsamples *x, const char *path)
{
	sqlite3 *segment = store_segment_db(s);
	int rc = sealdict_take(&d->dict, segment);

	if (rc == SQLITE_OK)
		rc = sealdict_take_series(&d->dict, segment, x->weight, s->n_series);
	if (rc == SQLITE_OK)
		rc = list_segment(d, segment, path, x);
	if (rc == SQLITE_OK)
		rc = sealfacts_take(&d->dict, segment, s->t0 - d->t0);
	if (rc == SQLITE_OK)
		rc = take_meta(d, segment);
	return rc == SQLITE_OK ? sealsamples_put(x, &d->dict, s->t0 - d->t0, d->t0) : rc;
}

int sealday_take(struct sealday *d, const char *path, struct seal_report *r, struct err *e)
{
	const struct store_dict *dict;
	struct sealsamples x = {0};
	struct store_segment *s;
	uint64_t rows;
	int rc = store_segment_open(path, &s, e);

	if (rc)
		return rc;
	rc = check_tables(s, path, e);
	if (!rc)
		rc = store_segment_dict(s, &dict, e);
	if (!rc)
		rc = sealsamples_read(&x, s, e);
	rows = x.n;
	if (!rc) {
		rc = take_all(d, s, &x, path);
		rc = rc == SQLITE_OK ? 0 : say_sql(d, rc, e) ? e->code : -EIO;
	}
	if (!rc) {
		r->segments++;
		r->rows += rows;
		r->samples += x.total;
		r->bytes_before += segment_bytes(path);
	}
	sealsamples_release(&x);
	store_segment_close(s);
	return rc;
}

/* --- ending --- */

static int sync_file(const char *path)
{
	cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int close_db(struct sealday *d)
{
	int rc;

	sealdict_release(&d->dict);
	rc = sqlite3_close(d->db);
	d->db = NULL;
	return rc;
}

/* What was freed goes back where it is more than an eighth of the file. A packed day is some thirty tables of a few rows, of
 * which each has a page, and blobs, which do not mind: small pages save 0.1 MB. */
static int give_back(sqlite3 *db)
{
	if (reading_number(db, "PRAGMA freelist_count", 0) * 8 <= reading_number(db, "PRAGMA page_count", 0))
		return SQLITE_OK;
	return exec(db, packing_is_packed(db) ? "PRAGMA page_size = 1024; VACUUM" : "VACUUM");
}

/* CPU samples and rows of facts are taken over as counted: `sample` has only those that count where two captures ran at once. Losses, costs and
 * endings the schema sums as they come in. */
static int count_amounts(sqlite3 *db)
{
	return exec(db, "DELETE FROM run_count WHERE kind > 1; INSERT INTO run_count SELECT run, kind, n FROM run_counted WHERE kind > 1");
}

int sealday_finish(struct sealday *d, struct err *e)
{
	int rc = count_amounts(d->db);

	if (rc == SQLITE_OK && packing_pays(d->db))
		rc = sealorder_pack(d->db, d->t0);
	if (rc == SQLITE_OK)
		rc = exec(d->db, "COMMIT");
	if (rc == SQLITE_OK)
		rc = give_back(d->db);
	if (rc == SQLITE_OK)
		rc = exec(d->db, "PRAGMA journal_mode=DELETE");
	if (rc != SQLITE_OK) {
		rc = say_sql(d, rc, e);
		close_db(d);
		return rc;
	}
	if (close_db(d) != SQLITE_OK)
		return say(d, -EIO, e);
	rc = sync_file(d->path);
	return rc ? say(d, rc, e) : 0;
}

void sealday_drop(struct sealday *d)
{
	close_db(d);
}
