/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checkdata.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"
#include "tools/sql/sqlview.h"

#define COLUMNS_MAX 128
#define SLACK_S     130 /* a reading is valid for 70 s; local checks end at a whole minute */
#define ALONE       4   /* most views of an archive that are made one by one */
#define STEPS       100000
#define PATIENCE_NS (20 * NSEC_PER_SEC)

struct filling {
	const struct checkfiles *checks;
	sqlite3 *db;
	int64_t to_s, earlier_s;
	struct err *e;
};

/* --- which views and columns --- */

static bool names(const char *sql, const char *view)
{
	const size_t len = strlen(view);

	for (const char *at = strstr(sql, view); at; at = strstr(at + 1, view))
		if ((at == sql || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    !isalnum((unsigned char)at[len]) && at[len] != '_')
			return true;
	return false;
}

/* How many minutes of the view to read; 0: none. */
static int minutes_of(const struct checkfiles *all, const char *view)
{
	int most = 0;

	for (size_t i = 0; i < all->n; i++)
		if (names(all->rows[i].sql, view) && all->rows[i].window_min > most)
			most = all->rows[i].window_min;
	return most;
}

static int failed(struct filling *f, sqlite3 *db, const char *path)
{
	return err_set(f->e, -EIO, EXIT_STORE, "cannot read %.300s: %s", path, sqlite3_errmsg(db));
}

/* --- one view of one segment --- */

static int table_make(struct filling *f, const char *view, sqlite3_stmt *from)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&sql, "CREATE TABLE IF NOT EXISTS \"%s\"(", view);
	for (int i = 0; i < sqlite3_column_count(from); i++)
		strbuf_addf(&sql, "%s\"%s\"", i ? ", " : "", sqlite3_column_name(from, i));
	strbuf_addstr(&sql, ")");
	return sqlite3_exec(f->db, strbuf_str(&sql), NULL, NULL, NULL) == SQLITE_OK ?
		       0 :
		       failed(f, f->db, view);
}

/* Columns that both have, by name. */
static sqlite3_stmt *insert_make(struct filling *f, const char *view, sqlite3_stmt *from,
				 int column[COLUMNS_MAX])
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, values cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *to = NULL, *put = NULL;
	int n = 0;

	strbuf_addf(&sql, "SELECT * FROM \"%s\"", view);
	if (sqlite3_prepare_v2(f->db, strbuf_str(&sql), -1, &to, NULL) != SQLITE_OK)
		return NULL;
	strbuf_reset(&sql);
	strbuf_addf(&sql, "INSERT INTO \"%s\"(", view);
	for (int i = 0; i < sqlite3_column_count(from) && i < COLUMNS_MAX; i++) {
		column[i] = 0;
		for (int k = 0; k < sqlite3_column_count(to) && !column[i]; k++)
			if (!strcmp(sqlite3_column_name(from, i), sqlite3_column_name(to, k)))
				column[i] = ++n;
		if (!column[i])
			continue;
		strbuf_addf(&sql, "%s\"%s\"", n > 1 ? ", " : "", sqlite3_column_name(from, i));
		strbuf_addstr(&values, n > 1 ? ", ?" : "?");
	}
	strbuf_addf(&sql, ") VALUES(%s)", strbuf_str(&values));
	sqlite3_finalize(to);
	if (sqlite3_prepare_v2(f->db, strbuf_str(&sql), -1, &put, NULL) != SQLITE_OK)
		return NULL;
	return put;
}

static bool is_id(const char *name)
{
	const size_t n = strlen(name);

	return !strcmp(name, "id") ||
	       (n > 3 && !strcmp(name + n - 3, "_id") && strcmp(name, "container_id") != 0 &&
		strcmp(name, "build_id") != 0);
}

static int rows_copy(struct filling *f, sqlite3_stmt *from, const char *view, size_t segment)
{
	int column[COLUMNS_MAX], rc;
	sqlite3_stmt *put = insert_make(f, view, from, column);

	if (!put)
		return failed(f, f->db, view);
	while ((rc = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(from) && i < COLUMNS_MAX; i++) {
			if (!column[i])
				continue;
			if (sqlite3_column_type(from, i) == SQLITE_INTEGER &&
			    is_id(sqlite3_column_name(from, i)))
				sqlite3_bind_int64(put, column[i],
						   sqlite3_column_int64(from, i) +
							   ((int64_t)segment << 40));
			else
				sqlite3_bind_value(put, column[i], sqlite3_column_value(from, i));
		}
		sqlite3_step(put);
		if (sqlite3_reset(put) != SQLITE_OK)
			break;
	}
	sqlite3_finalize(put);
	return rc == SQLITE_DONE ?
		       0 :
		       failed(f, rc == SQLITE_ROW ? f->db : sqlite3_db_handle(from), view);
}

static int view_copy(struct filling *f, struct store_segment *seg, size_t segment, const char *view,
		     int minutes, bool alone)
{
	sqlite3 *db = alone ? store_segment_view(seg, view) : store_segment_db(seg);
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc;

	strbuf_addf(&sql, "SELECT * FROM %s WHERE ts BETWEEN ?1 AND ?2", view);
	rc = sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	if (rc == SQLITE_ERROR) { /* views without a time: runs and containers */
		strbuf_reset(&sql);
		strbuf_addf(&sql, "SELECT * FROM %s", view);
		rc = sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	}
	if (rc == SQLITE_ERROR) /* the segment's schema is older than the view */
		return 0;
	if (rc != SQLITE_OK)
		return failed(f, db, view);
	sqlite3_bind_int64(st, 1, f->to_s - f->earlier_s - 60ll * minutes - SLACK_S);
	sqlite3_bind_int64(st, 2, f->to_s);
	rc = table_make(f, view, st);
	if (!rc)
		rc = rows_copy(f, st, view, segment);
	sqlite3_finalize(st);
	return rc;
}

static int last_copy(struct filling *f, struct store_segment *seg)
{
	sqlite3 *db = store_segment_tables(seg);
	sqlite3_stmt *st = NULL, *put = NULL;
	int rc = sqlite3_prepare_v2(
		db, "SELECT family, max(to_ns) / 1000000000 FROM run GROUP BY family", -1, &st,
		NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(f->db, "INSERT INTO check_last VALUES(?1, ?2)", -1, &put,
					NULL);
	while (rc == SQLITE_OK && sqlite3_step(st) == SQLITE_ROW) {
		sqlite3_bind_value(put, 1, sqlite3_column_value(st, 0));
		sqlite3_bind_value(put, 2, sqlite3_column_value(st, 1));
		sqlite3_step(put);
		rc = sqlite3_reset(put);
	}
	sqlite3_finalize(st);
	sqlite3_finalize(put);
	return rc == SQLITE_OK ? 0 : failed(f, db, "run");
}

/* --- all of it --- */

/* Views without a time have rows of any. */
static bool is_timeless(const char *view)
{
	return !strcmp(view, "runs") || !strcmp(view, "containers");
}

/* Most views are read for minutes, one or two for a day: of a segment that ended before, they are
 * not even prepared, which takes longer than to read the few rows of the others. */
static bool reaches(const struct filling *f, const struct store_segment_info *info,
		    const char *view, int minutes)
{
	return minutes &&
	       (is_timeless(view) ||
		info->to_ns / NSEC_PER_SEC >= f->to_s - f->earlier_s - 60ll * minutes - SLACK_S);
}

static int segment_copy(struct filling *f, const struct store_segment_info *info, size_t segment)
{
	struct store_segment *seg;
	const char *const *views;
	size_t n, reached = 0;
	int rc = store_segment_open(info->path, &seg, f->e);

	if (rc == -ENOENT) { /* retention deleted it meanwhile */
		*f->e = (struct err){0};
		return 0;
	}
	if (rc)
		return rc;
	views = sqlview_views(&n);
	rc = last_copy(f, seg);
	for (size_t i = 0; i < n; i++)
		reached += reaches(f, info, views[i], minutes_of(f->checks, views[i]));
	for (size_t i = 0; !rc && i < n; i++) {
		int minutes = minutes_of(f->checks, views[i]);

		if (reaches(f, info, views[i], minutes))
			rc = view_copy(f, seg, segment, views[i], minutes, reached <= ALONE);
	}
	store_segment_close(seg);
	return rc;
}

static int may_read(void *ctx, int action, const char *a, const char *b, const char *c,
		    const char *d)
{
	(void)ctx;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
			       action == SQLITE_RECURSIVE ?
		       SQLITE_OK :
		       SQLITE_DENY;
}

static int is_over(void *ctx)
{
	(void)ctx;
	return clock_mono_ns() > *(int64_t *)ctx;
}

int checkdata_open(const char *store, const struct checkfiles *checks, int64_t to_s,
		   int64_t earlier_s, struct sqlite3 **out, struct err *e)
{
	static int64_t deadline_ns;
	struct filling f = {.checks = checks, .to_s = to_s, .earlier_s = earlier_s, .e = e};
	struct store_segment_info *segments = NULL;
	int64_t most = 0;
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < checks->n; i++)
		most = checks->rows[i].window_min > most ? checks->rows[i].window_min : most;
	rc = store_segments(store, (to_s - earlier_s - 60 * most - SLACK_S) * NSEC_PER_SEC,
			    INT64_MAX, &segments, &n, e);
	if (rc)
		return rc;
	if (sqlite3_open(":memory:", &f.db) != SQLITE_OK ||
	    /* json_each is created at its first use, which may_read would mistake for creating a
	     * table */
	    sqlite3_exec(
		    f.db,
		    "SELECT 1 FROM json_each('[]'); CREATE TABLE check_last(family, ts); BEGIN",
		    NULL, NULL, NULL) != SQLITE_OK)
		rc = failed(&f, f.db, ":memory:");
	/* newest segment first: it has all columns */
	for (size_t i = n; !rc && i-- > 0;)
		rc = segment_copy(&f, &segments[i], n - 1 - i);
	if (!rc && sqlite3_exec(f.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		rc = failed(&f, f.db, ":memory:");
	store_segments_close(segments, n);
	if (rc) {
		sqlite3_close(f.db);
		return rc;
	}
	deadline_ns = clock_mono_ns() + PATIENCE_NS;
	sqlite3_set_authorizer(f.db, may_read, NULL);
	sqlite3_progress_handler(f.db, STEPS, is_over, &deadline_ns);
	*out = f.db;
	return 0;
}

void checkdata_close(struct sqlite3 *db)
{
	sqlite3_close(db);
}

int64_t checkdata_last(struct sqlite3 *db, const char *family)
{
	sqlite3_stmt *st = NULL;
	int64_t last = 0;

	if (sqlite3_prepare_v2(db, "SELECT max(ts) FROM check_last WHERE ?1 IS NULL OR family = ?1",
			       -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, family, -1, SQLITE_STATIC);
		if (sqlite3_step(st) == SQLITE_ROW)
			last = sqlite3_column_int64(st, 0);
	}
	sqlite3_finalize(st);
	return last;
}
