/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's steps. */
#include "schema/store/archive/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/store/archive/archive.h"
#include "schema/store/archive/keep_mend.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/model/stored.h"

#define KEEP_SQL    "'" STORE_KEPT "'"
#define STEP_NS     ((int64_t)KEEP_STEP_S * NSEC_PER_SEC)
#define COPY_FILE   "keeping.db"
#define SEALED_FILE "sealing.db"
#define LOOKS       4

/* A time of one family that the ring has without a hole. */
struct stretch {
	char family[24];
	int64_t from_ns, to_ns, token, period_ns;
	int scope, cpus;
};

struct keeping {
	const struct keep_opts *o;
	struct keep_report *r;
	int at; /* the store's folder */
	int64_t number;
	struct stretch *stretches;
	size_t n, cap;
	char (*ring)[SEGMENT_NAME_MAX], (*store)[SEGMENT_NAME_MAX];
	size_t n_ring, n_store;
	struct span {
		int64_t from_ns, to_ns;
	} * spans;     /* of the ring's segments; 0, 0: it could not be read */
	size_t n_made; /* files that have no name of the store yet (keep_mend.h) */
	bool told;     /* one has the event */
};

static int64_t drawn(void)
{
	uint64_t x = 0;

	if (getrandom(&x, sizeof(x), 0) != sizeof(x))
		x = (uint64_t)clock_boot_ns() * 0x9e3779b97f4a7c15ull;
	return (int64_t)(x >> 2 | 1);
}

static int fail(const char *path, sqlite3 *db, int rc, struct err *e)
{
	int code = segment_errno(db, rc);

	return err_set(e, code ? code : -EIO, EXIT_STORE, "cannot keep %s: %s", path,
		       db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

/* --- 1: what --- */

static void add_run(struct keeping *k, sqlite3_stmt *st)
{
	const char *family = (const char *)sqlite3_column_text(st, 0) ?: "";
	int64_t from = sqlite3_column_int64(st, 1), to = sqlite3_column_int64(st, 2);
	struct stretch *s;

	for (size_t i = k->n; i-- > 0;) {
		s = &k->stretches[i];
		if (strcmp(s->family, family))
			continue;
		if (from > s->to_ns)
			break;
		s->to_ns = to > s->to_ns ? to : s->to_ns;
		return;
	}
	mem_grow(k->stretches, k->n, k->cap);
	s = &k->stretches[k->n++];
	*s = (struct stretch){.from_ns = from,
			      .to_ns = to,
			      .token = drawn(),
			      .scope = sqlite3_column_int(st, 3),
			      .cpus = sqlite3_column_int(st, 4),
			      .period_ns = sqlite3_column_int64(st, 5)};
	snprintf(s->family, sizeof(s->family), "%s", family);
}

static bool in_window(const struct keeping *k, size_t i)
{
	return k->spans[i].from_ns < k->r->to_ns && k->spans[i].to_ns > k->r->from_ns;
}

static int look_at(struct keeping *k, const char *path, struct span *span, struct err *e)
{
	static const char sql[] =
		"SELECT family, from_ns, to_ns, scope, cpus, (SELECT period_ns FROM run_period p "
		"WHERE p.run = r.id ORDER BY p.from_ns DESC LIMIT 1) FROM run r "
		"WHERE to_ns > from_ns AND scope = 0 ORDER BY from_ns";
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int rc = readonly_open(path, &db, e);

	if (rc == -EBADMSG)
		log_warn("%s; the rest of the flight ring is kept", e->what);
	if (rc == -ENOENT || rc == -ENODATA || rc == -EBADMSG) { /* removed meanwhile, or damaged */
		*e = (struct err){0};
		return 0; /* then it is a hole */
	}
	if (rc)
		return rc;
	rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	*span = (struct span){INT64_MAX, 0};
	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
		add_run(k, st);
		if (sqlite3_column_int64(st, 1) < span->from_ns)
			span->from_ns = sqlite3_column_int64(st, 1);
		if (sqlite3_column_int64(st, 2) > span->to_ns)
			span->to_ns = sqlite3_column_int64(st, 2);
	}
	sqlite3_finalize(st);
	rc = rc == SQLITE_OK ? 0 : fail(path, db, rc, e);
	sqlite3_close(db);
	return rc;
}

/* Of the store: since when its newest segments are rows, and up to when an earlier window was kept.
 */
struct limits {
	int64_t rows_ns, kept_ns;
};

/* The end of its runs that were kept of the ring, or of all others. */
static int64_t last_of(const char *path, bool kept)
{
	struct err none = {0};
	sqlite3 *db = NULL;
	int64_t at = 0;

	if (!readonly_open(path, &db, &none))
		at = sql_number(
			db,
			kept ? "SELECT max(to_ns) FROM run WHERE options GLOB '" STORE_KEPT "*'" :
			       "SELECT max(to_ns) FROM run WHERE options NOT GLOB '" STORE_KEPT
			       "*'",
			0);
	sqlite3_close(db);
	return at;
}

/* Recordings of that time are as fine, and stay: of a stretch the part behind them, or before one
 * that ends with it. */
static int spare_recordings(struct keeping *k, const char *path, struct err *e)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int rc = readonly_open(path, &db, e);

	if (rc)
		return rc == -ENOENT || rc == -ENODATA ? 0 : rc;
	rc = sqlite3_prepare_v2(
		db,
		"SELECT family, from_ns, to_ns FROM run WHERE bucket_s < ?1 AND options NOT GLOB '" STORE_KEPT
		"*' ORDER BY from_ns",
		-1, &st, NULL);
	if (rc == SQLITE_OK)
		sqlite3_bind_int(st, 1, KEEP_STEP_S);
	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW)
		for (size_t i = 0; i < k->n; i++) {
			struct stretch *s = &k->stretches[i];
			int64_t from = sqlite3_column_int64(st, 1),
				to = sqlite3_column_int64(st, 2);

			if (strcmp(s->family, (const char *)sqlite3_column_text(st, 0) ?: "") ||
			    from >= s->to_ns || to <= s->from_ns)
				continue;
			if (to + STEP_NS < s->to_ns)
				s->from_ns = to;
			else
				s->to_ns = from;
		}
	sqlite3_finalize(st);
	rc = rc == SQLITE_OK ? 0 : fail(path, db, rc, e);
	sqlite3_close(db);
	return rc;
}

static struct limits limits_of(const struct keeping *k)
{
	struct limits l = {.rows_ns = INT64_MAX};
	char path[PATH_MAX];

	for (size_t i = k->n_store; i-- > 0;) {
		snprintf(path, sizeof(path), "%s/%s", k->o->dir, k->store[i]);
		if (folder_is_archived(path)) {
			const int64_t end = last_of(path, false);

			if (!end) /* a window that was kept */
				continue;
			l.rows_ns = end > l.rows_ns || l.rows_ns == INT64_MAX ? end : l.rows_ns;
			break;
		}
		if (folder_begun_ns(k->store[i]) < l.rows_ns)
			l.rows_ns = folder_begun_ns(k->store[i]);
		if (last_of(path, true) > l.kept_ns)
			l.kept_ns = last_of(path, true);
	}
	return l;
}

static void cut(struct keeping *k)
{
	const struct limits l = limits_of(k);
	size_t n = 0;

	for (size_t i = 0; i < k->n; i++) {
		struct stretch *s = &k->stretches[i];
		int64_t from = s->from_ns > k->o->from_ns ? s->from_ns : k->o->from_ns,
			to = s->to_ns < k->o->to_ns ? s->to_ns : k->o->to_ns;

		from = from > l.rows_ns ? from : l.rows_ns;
		from = from > l.kept_ns ? from : l.kept_ns;
		s->from_ns = (from + STEP_NS - 1) / STEP_NS * STEP_NS;
		s->to_ns = to / STEP_NS * STEP_NS;
		if (s->from_ns >= s->to_ns)
			continue;
		if (!k->r->from_ns || s->from_ns < k->r->from_ns)
			k->r->from_ns = s->from_ns;
		if (s->to_ns > k->r->to_ns)
			k->r->to_ns = s->to_ns;
		k->stretches[n++] = *s;
	}
	k->n = n;
}

/* --- 2: archives --- */

/* The file's runs that are of a stretch, and their rows in it. */
static int mark_runs(const struct keeping *k, sqlite3 *db)
{
	int rc = sql_exec(
		db, "CREATE TEMP TABLE chosen(run INTEGER PRIMARY KEY, token, from_ns, to_ns)");

	for (size_t i = 0; rc == SQLITE_OK && i < k->n; i++) {
		const struct stretch *s = &k->stretches[i];
		char *sql = sqlite3_mprintf(
			"INSERT OR IGNORE INTO chosen SELECT id, %lld, %lld, %lld FROM run WHERE family = %Q "
			"AND scope = 0 AND from_ns < %lld AND to_ns > %lld",
			s->token, s->from_ns, s->to_ns, s->family, s->to_ns, s->from_ns);

		rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return rc;
}

/* The tables of what the ring has, and by what their rows are of a run. */
static const struct {
	const char *table, *by;
} KEPT[] = {
	{"sample", "series"},        {"amount", "series"},      {"amount_error_row", "series"},
	{"wait_row", "task"},        {"wake_row", "task"},      {"culprit_row", "task"},
	{"wait_on_row", "task"},     {"log_second_row", "run"}, {"request_log_row", "run"},
	{"request_span_row", "run"},
};

/* Families whose rows are in no sum: they hide nothing of the store's. */
static bool hides(const char *family)
{
	return strcmp(family, "logs") != 0 && strcmp(family, "l7") != 0;
}

static int cut_times(sqlite3 *db)
{
	int rc = sql_exec(
		db,
		"CREATE TEMP TABLE of_run(id INTEGER PRIMARY KEY, first, last);"
		"INSERT INTO of_run SELECT run, from_ns / 1000000000 - m.value, to_ns / 1000000000 - m.value "
		"FROM chosen, meta m WHERE m.key = 't0';"
		"CREATE TEMP TABLE of_task(id INTEGER PRIMARY KEY, first, last);"
		"INSERT INTO of_task SELECT t.id, o.first, o.last FROM task t JOIN of_run o ON o.id = t.run;"
		"CREATE TEMP TABLE of_series(id INTEGER PRIMARY KEY, first, last);"
		"INSERT INTO of_series SELECT e.id, k.first, k.last FROM series e JOIN of_task k ON k.id = e.task;");

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(KEPT); i++) {
		const char *by = KEPT[i].by;
		char *sql = sqlite3_mprintf(
			"DELETE FROM %s WHERE NOT EXISTS (SELECT 1 FROM of_%s o WHERE o.id = %s AND ts >= o.first "
			"AND ts < o.last)",
			KEPT[i].table, by, by);

		rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return rc;
}

static int cut_rows(const struct keeping *k, sqlite3 *db)
{
	char *sql = sqlite3_mprintf(
		"DELETE FROM run WHERE id NOT IN (SELECT run FROM chosen);"
		"UPDATE run SET from_ns = max(run.from_ns, o.from_ns), to_ns = min(run.to_ns, o.to_ns), "
		"token = o.token, state = 1, recording = %lld, options = " KEEP_SQL " || %Q "
		"FROM chosen o WHERE o.run = run.id;"
		"UPDATE run SET from_ns = min(from_ns, (SELECT (x.ts + m.value) * 1000000000 FROM request_log_row x, meta m "
		"WHERE m.key = 't0' AND x.run = run.id ORDER BY x.ts LIMIT 1)) WHERE family = 'l7' AND EXISTS "
		"(SELECT 1 FROM request_log_row x WHERE x.run = run.id);"
		"DELETE FROM run_period WHERE run NOT IN (SELECT run FROM chosen);"
		"DELETE FROM run_count;"
		"INSERT INTO run_count SELECT run, kind, n FROM run_counted;",
		k->number, k->o->why);
	int rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;

	sqlite3_free(sql);
	return rc;
}

/* Its time is that of what happened, within what is kept, and its place the last file that begins
 * before that; they come last first. */
static int put_event(struct keeping *k, sqlite3 *db)
{
	int64_t from = sql_number(db, "SELECT min(from_ns) FROM run", 0),
		to = sql_number(db, "SELECT max(to_ns) FROM run", 0),
		at = k->o->at_ns > k->r->from_ns ? k->o->at_ns : k->r->from_ns;
	char *sql;
	int rc;

	if (k->told || at < from)
		return SQLITE_OK;
	at = at < to ? at : to - 1;
	sql = sqlite3_mprintf(
		"INSERT INTO text(value) SELECT 'kept' UNION ALL SELECT 'host' UNION ALL SELECT 'flight ring' "
		"UNION ALL SELECT %Q;"
		"INSERT INTO event_row(ts, run, kind, subject, name, detail, which, process, caused_by, n, at_us) "
		"SELECT %lld - m.value, (SELECT min(id) FROM run), x.id - 3, x.id - 2, x.id - 1, x.id, 0, 0, 0, 1, "
		"%lld FROM (SELECT max(id) AS id FROM text) x, meta m WHERE m.key = 't0';",
		k->o->why, at / NSEC_PER_SEC, at / 1000);
	rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;
	sqlite3_free(sql);
	k->told = rc == SQLITE_OK;
	return rc;
}

/* *any: something of it is kept. */
static int shape(struct keeping *k, const char *path, bool *any, struct err *e)
{
	sqlite3 *db = NULL;
	int rc = sqlite3_open_v2(path, &db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW,
				 NULL);

	if (rc == SQLITE_OK)
		rc = sql_exec(db, "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; BEGIN");
	if (rc == SQLITE_OK)
		rc = mark_runs(k, db);
	if (rc == SQLITE_OK)
		rc = cut_times(db);
	if (rc == SQLITE_OK)
		rc = cut_rows(k, db);
	*any = rc == SQLITE_OK && sql_number(db, "SELECT count(*) FROM run", 0);
	if (*any)
		rc = put_event(k, db);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, "COMMIT");
	if (rc != SQLITE_OK)
		fail(path, db, rc, e);
	sqlite3_close(db);
	return rc == SQLITE_OK ? 0 : e->code;
}

/* Consistent, also while the file is written. */
static int copy(struct keeping *k, const char *path, const char *to, struct err *e)
{
	sqlite3 *db = NULL;
	char *sql;
	int rc = readonly_open(path, &db, e);

	if (rc)
		return rc;
	(void)unlinkat(k->at, COPY_FILE, 0);
	sql = sqlite3_mprintf("PRAGMA query_only=0; VACUUM INTO %Q", to);
	rc = sql ? sqlite3_exec(db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
	sqlite3_free(sql);
	rc = rc == SQLITE_OK ? 0 : fail(path, db, rc, e);
	sqlite3_close(db);
	return rc;
}

static int make_one(struct keeping *k, size_t i, struct err *e)
{
	char path[PATH_MAX], to[PATH_MAX], sealed[PATH_MAX];
	char made[24];
	bool any = false;
	int rc;

	snprintf(path, sizeof(path), "%s/%s", k->o->ring, k->ring[i]);
	snprintf(to, sizeof(to), "%s/" COPY_FILE, k->o->dir);
	snprintf(sealed, sizeof(sealed), "%s/" SEALED_FILE, k->o->dir);
	rc = copy(k, path, to, e);
	if (rc == -ENOENT || rc == -ENODATA) /* it was too old meanwhile */
		return err_set(e, -ESTALE, EXIT_STORE, "the ring no longer has %s", path);
	if (!rc)
		rc = shape(k, to, &any, e);
	if (rc || !any)
		return rc;
	if (k->n_made == KEEP_MADE_MAX)
		return err_set(e, -E2BIG, EXIT_STORE, "the ring %s has more than %d segments of it",
			       k->o->ring, KEEP_MADE_MAX);
	rc = archive_make(to, sealed, e);
	if (rc)
		return rc;
	keep_made_name(k->n_made, made);
	if (renameat(k->at, SEALED_FILE, k->at, made) < 0)
		return err_set(e, -errno, EXIT_STORE, "cannot rename %s: %s", sealed,
			       strerror(errno));
	k->n_made++;
	return 0;
}

static int make_all(struct keeping *k, struct err *e)
{
	int rc = 0;

	for (size_t i = k->n_ring; !rc && i-- > 0;)
		if (in_window(k, i))
			rc = make_one(k, i, e);
	(void)unlinkat(k->at, COPY_FILE, 0);
	return rc;
}

/* --- 3: names, and the runs in the store's own segments --- */

/* Has the segment rows of that time? */
#define ROWS_OF(table)                                                                     \
	"EXISTS (SELECT 1 FROM meta m CROSS JOIN " table " x WHERE m.key = 't0' AND x.ts " \
	">= %lld - m.value AND x.ts < %lld - m.value)"
#define HAS_ROWS "(" ROWS_OF("sample") " OR " ROWS_OF("amount") " OR " ROWS_OF("wait_row") ")"

/* `late`: the segment was begun after the window; what was handed over late may be in it. */
static int add_runs(struct keeping *k, sqlite3 *db, bool late)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < k->n; i++) {
		const struct stretch *s = &k->stretches[i];

		if (!hides(s->family))
			continue;
		const int64_t from_s = s->from_ns / NSEC_PER_SEC, to_s = s->to_ns / NSEC_PER_SEC;
		char *sql = sqlite3_mprintf(
			"INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, "
			"accounted, recording) SELECT %lld, %Q, " KEEP_SQL
			" || %Q, %d, 1, %d, %lld, %lld, %d, %d, 0, %lld "
			"WHERE EXISTS (SELECT 1 FROM run WHERE family = %Q AND to_ns > %lld AND from_ns < %lld)"
			" AND (NOT %d OR " HAS_ROWS ");"
			"INSERT OR IGNORE INTO run_period(run, from_ns, period_ns) SELECT id, 0, %lld FROM run WHERE token = %lld;",
			s->token, s->family, k->o->why, s->scope, s->cpus, s->from_ns, s->to_ns,
			STORE_RUN_ELSEWHERE, (int)getpid(), k->number, s->family, s->from_ns,
			s->to_ns, late, from_s, to_s, from_s, to_s, from_s, to_s, s->period_ns,
			s->token);

		rc = sql ? sql_exec(db, sql) : SQLITE_NOMEM;
		sqlite3_free(sql);
	}
	return rc;
}

static int cover(struct keeping *k, const char *name, struct err *e)
{
	struct segment *s;
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), "%s/%s", k->o->dir, name);
	if (folder_is_archived(path))
		return 0;
	rc = segment_open(path, &s, e);
	if (rc)
		return rc;
	rc = sql_exec(s->db, "PRAGMA synchronous=FULL; BEGIN IMMEDIATE");
	if (rc == SQLITE_OK)
		rc = add_runs(k, s->db, folder_begun_ns(name) >= k->r->to_ns);
	if (rc == SQLITE_OK)
		rc = sql_exec(s->db, "COMMIT");
	if (rc != SQLITE_OK)
		fail(path, s->db, rc, e);
	segment_leave(s);
	return rc == SQLITE_OK ? 0 : e->code;
}

static void tell(const struct keeping *k, enum keep_step step)
{
	if (k->o->each)
		k->o->each(k->o->ctx, step);
}

static int take_places(struct keeping *k, struct err *e)
{
	cleanup_fd int lock = folder_lock(k->o->dir);
	struct err unsaid = {0};
	int rc = 0;

	if (lock < 0)
		return folder_lock_refuse(k->o->dir, lock, e);
	rc = folder_sync(k->o->dir);
	if (rc)
		err_set(e, rc, EXIT_STORE, "cannot sync %s: %s", k->o->dir, strerror(-rc));
	for (size_t i = 0; !rc && i < k->n_store; i++) {
		rc = cover(k, k->store[i], e);
		tell(k, KEEP_STEP_COVERED);
	}
	if (!rc)
		rc = keep_made_place(k->o, k->at, k->r, e);
	if (rc)
		(void)keep_mend_locked(k->o->dir, k->at, &unsaid);
	return rc;
}

/* --- all --- */

/* Up to when the newest segment of the ring has been written. */
static int64_t written_ns(const char *ring)
{
	cleanup_free char(*names)[SEGMENT_NAME_MAX] = NULL;
	struct err none = {0};
	char path[PATH_MAX];
	sqlite3 *db = NULL;
	int64_t at = INT64_MAX;
	size_t n = 0;

	if (folder_segments(ring, &names, &n) || !n)
		return at;
	snprintf(path, sizeof(path), "%s/%s", ring, names[n - 1]);
	if (!readonly_open(path, &db, &none))
		at = sql_number(db, "SELECT max(to_ns) FROM run", 0);
	sqlite3_close(db);
	return at;
}

/* Loaders hand over every ten seconds, and a disk under pressure takes its time. */
static void await_ring(const struct keep_opts *o)
{
	for (int i = 0; i < o->patience_s && written_ns(o->ring) < o->to_ns / STEP_NS * STEP_NS;
	     i++)
		sleep(1);
}

static int look(struct keeping *k, struct err *e)
{
	char path[PATH_MAX];
	int rc = folder_segments(k->o->ring, &k->ring, &k->n_ring);

	if (rc == -ENOENT) {
		err_set(e, rc, EXIT_NOTHING, "there is no ring at %s", k->o->ring);
		return err_fix(e, "set flight = on in section [flight] of sonde.conf"), rc;
	}
	if (!rc)
		rc = folder_segments(k->o->dir, &k->store, &k->n_store);
	if (rc)
		return err_set(e, rc, EXIT_STORE, "cannot read %s or %s: %s", k->o->ring, k->o->dir,
			       strerror(-rc));
	k->spans = mem_array(k->n_ring + 1, sizeof(*k->spans));
	for (size_t i = 0; !rc && i < k->n_ring; i++) {
		snprintf(path, sizeof(path), "%s/%s", k->o->ring, k->ring[i]);
		rc = look_at(k, path, &k->spans[i], e);
	}
	for (size_t i = 0; !rc && i < k->n_store; i++) {
		snprintf(path, sizeof(path), "%s/%s", k->o->dir, k->store[i]);
		if (!folder_is_archived(path))
			rc = spare_recordings(k, path, e);
	}
	if (!rc && k->n_store)
		cut(k);
	else
		k->n = 0;
	return rc;
}

static void forget(struct keeping *k)
{
	free(k->stretches);
	free(k->ring);
	free(k->spans);
	free(k->store);
	*k = (struct keeping){.o = k->o, .r = k->r, .at = k->at, .number = k->number};
	*k->r = (struct keep_report){0};
}

/* Steps 1 and 2. What is in the ring goes away at its end: then it is read again. */
static int look_and_make(struct keeping *k, struct err *e)
{
	int rc = -ESTALE;

	for (int i = 0; rc == -ESTALE && i < LOOKS; i++) {
		forget(k);
		*e = (struct err){0};
		rc = look(k, e);
		if (!rc)
			tell(k, KEEP_STEP_LOOKED);
		if (!rc && k->n)
			rc = make_all(k, e);
		if (rc)
			keep_made_remove(k->at);
	}
	return rc;
}

static int lock_sealing(int at)
{
	cleanup_fd int fd = openat(at, "sealing", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640);

	if (fd < 0)
		return -errno;
	folder_own_at(at, fd, "sealing", 0640);
	return flock(fd, LOCK_EX | LOCK_NB) < 0 ? -EAGAIN : take_fd(&fd);
}

int keep_run(const struct keep_opts *o, struct keep_report *out, struct err *e)
{
	cleanup_fd int at = folder_open(o->dir), mine = -1;
	struct keeping k = {.o = o, .r = out, .at = at, .number = drawn()};
	struct keep_report done;
	int rc;

	*out = (struct keep_report){0};
	await_ring(o);
	mine = at < 0 ? at : lock_sealing(at);
	if (mine < 0)
		return err_set(e, mine, mine == -EACCES ? EXIT_PERMISSION : EXIT_STORE,
			       mine == -EAGAIN ? "another process is archiving" :
						 "cannot write to the store's folder %s: %s",
			       o->dir, strerror(-mine));
	rc = keep_mend(o->dir, at, e); /* of one that was killed */
	if (rc)
		return rc;
	rc = look_and_make(&k, e);
	if (!rc)
		tell(&k, KEEP_STEP_MADE);
	if (!rc && k.n_made)
		rc = take_places(&k, e);
	done = *out;
	forget(&k);
	*out = done;
	return rc;
}
