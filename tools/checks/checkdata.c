/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/checks/checkdata.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"
#include "tools/checks/checksql.h"
#include "tools/sql/sqlview.h"

#define COLUMNS_MAX 128
#define SLACK_S     130 /* a reading is valid for 70 s; local checks end at a whole minute */
#define ALONE       4   /* most views of an archive that are made one by one */
#define STEPS       100000
#define SERVERS     "side <> 'client'"
#define PATIENCE_NS (20 * NSEC_PER_SEC) /* of CPU time: a host in trouble is asked about, too */

/* A view's table, and which of its columns the checks read: the others stay NULL, since the text of
 * a time or a histogram takes longer to make than all else of a row. */
struct copied {
	const char *view;
	int minutes; /* of it to read; 0: none */
	bool made, read[COLUMNS_MAX];
	bool servers; /* of requests: only rows that servers saw are read, which are half of them */
	bool now;     /* the check that is being prepared reads it */
	bool whole;   /* a check that names it cannot be prepared: it may read any column */
	char *columns[COLUMNS_MAX];
	size_t n;
	sqlite3 *db; /* of the segment that is read, which has something of it; else NULL */
};

struct filling {
	const struct checkfiles *checks;
	sqlite3 *db;
	int64_t to_s, earlier_s;
	struct copied *views;
	size_t n_views;
	struct err *e;
};

/* --- which views --- */

static bool names(const char *sql, const char *view)
{
	const size_t len = strlen(view);

	for (const char *at = strstr(sql, view); at; at = strstr(at + 1, view))
		if ((at == sql || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    !isalnum((unsigned char)at[len]) && at[len] != '_')
			return true;
	return false;
}

/* How often `part` is in `sql`. */
static size_t times(const char *sql, const char *part)
{
	size_t n = 0;

	for (const char *at = strstr(sql, part); at; at = strstr(at + 1, part))
		n++;
	return n;
}

/* Does the check leave out what clients saw, wherever it reads the view? */
static bool is_of_servers(const char *sql, const char *view)
{
	static const char *const before[] = {"FROM ", "JOIN ", ", "}, *const after[] = {" ", "\n"};
	char read[64];
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(before) * ARRAY_SIZE(after); i++) {
		snprintf(read, sizeof(read), "%s%s%s", before[i / 2], view, after[i % 2]);
		n += times(sql, read);
	}
	return n && times(sql, SERVERS) >= n;
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

/* --- which columns --- */

static int table_make(struct filling *f, struct copied *c, sqlite3_stmt *from)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&sql, "CREATE TABLE \"%s\"(", c->view);
	for (int i = 0; i < sqlite3_column_count(from) && i < COLUMNS_MAX; i++) {
		c->columns[c->n++] = mem_strdup(sqlite3_column_name(from, i));
		strbuf_addf(&sql, "%s\"%s\"", i ? ", " : "", sqlite3_column_name(from, i));
	}
	strbuf_addstr(&sql, ")");
	c->made = true;
	return sqlite3_exec(f->db, strbuf_str(&sql), NULL, NULL, NULL) == SQLITE_OK ?
		       0 :
		       failed(f, f->db, c->view);
}

static int may_read(int action)
{
	return action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION ||
			       action == SQLITE_RECURSIVE ?
		       SQLITE_OK :
		       SQLITE_DENY;
}

/* An authorizer: SQLite names each column that a statement reads. */
static int note_read(void *ctx, int action, const char *table, const char *column, const char *db,
		     const char *trigger)
{
	struct filling *f = ctx;

	(void)db;
	(void)trigger;
	for (size_t v = 0; action == SQLITE_READ && v < f->n_views; v++) {
		struct copied *c = &f->views[v];

		if (strcmp(c->view, table) != 0)
			continue;
		c->now = true;
		for (size_t i = 0; i < c->n; i++)
			if (!strcmp(c->columns[i], column))
				c->read[i] = true;
	}
	return may_read(action);
}

/* Of the tables that are there. */
static void columns_find(struct filling *f)
{
	sqlite3_set_authorizer(f->db, note_read, f);
	for (size_t i = 0; i < f->checks->n; i++) {
		const char *sql = f->checks->rows[i].sql;
		int rc = SQLITE_OK;

		for (size_t v = 0; v < f->n_views; v++)
			f->views[v].now = false;
		for (int part = 0; part < 2 && rc == SQLITE_OK && *sql; part++) {
			sqlite3_stmt *st = NULL;

			rc = sqlite3_prepare_v2(f->db, sql, -1, &st, &sql);
			sqlite3_finalize(st);
		}
		for (size_t v = 0; rc != SQLITE_OK && v < f->n_views; v++)
			f->views[v].whole = f->views[v].whole ||
					    names(f->checks->rows[i].sql, f->views[v].view);
		for (size_t v = 0; v < f->n_views; v++)
			if ((f->views[v].now || f->views[v].whole) &&
			    !is_of_servers(f->checks->rows[i].sql, f->views[v].view))
				f->views[v].servers = false;
	}
	sqlite3_set_authorizer(f->db, NULL, NULL);
}

/* --- one view of one segment --- */

struct target {
	int parameter; /* of the INSERT; 0: the table does not have the column */
	bool id;
};

static bool is_id(const char *name)
{
	const size_t n = strlen(name);

	return !strcmp(name, "id") ||
	       (n > 3 && !strcmp(name + n - 3, "_id") && strcmp(name, "container_id") != 0 &&
		strcmp(name, "build_id") != 0);
}

/* Columns that both have, by name. */
static sqlite3_stmt *insert_make(struct filling *f, const struct copied *c, sqlite3_stmt *from,
				 struct target to[COLUMNS_MAX])
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, values cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *put = NULL;
	int n = 0;

	strbuf_addf(&sql, "INSERT INTO \"%s\"(", c->view);
	for (int i = 0; i < sqlite3_column_count(from) && i < COLUMNS_MAX; i++) {
		const char *name = sqlite3_column_name(from, i);

		to[i] = (struct target){.id = is_id(name)};
		for (size_t k = 0; k < c->n && !to[i].parameter; k++)
			if (!strcmp(name, c->columns[k]))
				to[i].parameter = ++n;
		if (!to[i].parameter)
			continue;
		strbuf_addf(&sql, "%s\"%s\"", n > 1 ? ", " : "", name);
		strbuf_addstr(&values, n > 1 ? ", ?" : "?");
	}
	strbuf_addf(&sql, ") VALUES(%s)", strbuf_str(&values));
	if (sqlite3_prepare_v2(f->db, strbuf_str(&sql), -1, &put, NULL) != SQLITE_OK)
		return NULL;
	return put;
}

static int rows_copy(struct filling *f, sqlite3_stmt *from, const struct copied *c, size_t segment)
{
	struct target to[COLUMNS_MAX];
	sqlite3_stmt *put = insert_make(f, c, from, to);
	const int n =
		sqlite3_column_count(from) < COLUMNS_MAX ? sqlite3_column_count(from) : COLUMNS_MAX;
	int rc;

	if (!put)
		return failed(f, f->db, c->view);
	while ((rc = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i < n; i++) {
			if (!to[i].parameter)
				continue;
			if (to[i].id && sqlite3_column_type(from, i) == SQLITE_INTEGER)
				sqlite3_bind_int64(put, to[i].parameter,
						   sqlite3_column_int64(from, i) +
							   ((int64_t)segment << 40));
			else
				sqlite3_bind_value(put, to[i].parameter,
						   sqlite3_column_value(from, i));
		}
		sqlite3_step(put);
		if (sqlite3_reset(put) != SQLITE_OK)
			break;
	}
	sqlite3_finalize(put);
	return rc == SQLITE_DONE ?
		       0 :
		       failed(f, rc == SQLITE_ROW ? f->db : sqlite3_db_handle(from), c->view);
}

/* The columns that are read; at least one, so that rows count. */
static void columns_add(const struct copied *c, struct strbuf *sql)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n && !c->whole; i++)
		if (c->read[i])
			/* in quotes a name that is unknown would be a text */
			strbuf_addf(sql, "%s[%s]", n++ ? ", " : "", c->columns[i]);
	if (!n)
		strbuf_addstr(sql, "*");
}

/* The seconds of `minutes` before `to_s`, and before the time `earlier_s` ago: not what lies
 * between. */
struct spans {
	int64_t from[2], to[2];
};

static struct spans spans_of(const struct filling *f, int minutes)
{
	const int64_t length = 60ll * minutes + SLACK_S;
	struct spans s = {{f->to_s - f->earlier_s - length, f->to_s - length},
			  {f->to_s - f->earlier_s, f->to_s}};

	if (s.to[0] >= s.from[1])
		s.from[1] = s.from[0];
	return s;
}

#define WITHIN " WHERE ts BETWEEN ?1 AND ?4 AND (ts <= ?2 OR ts >= ?3)"

/* NULL with SQLITE_ERROR: the segment's schema is older than the view, or than a column. */
static int from_make(const struct copied *c, sqlite3_stmt **st)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	int rc;

	strbuf_addstr(&sql, "SELECT ");
	columns_add(c, &sql);
	strbuf_addf(&sql, " FROM %s" WITHIN "%s", c->view, c->servers ? " AND " SERVERS : "");
	rc = sqlite3_prepare_v2(c->db, strbuf_str(&sql), -1, st, NULL);
	if (rc == SQLITE_ERROR) {
		strbuf_reset(&sql);
		strbuf_addf(&sql, "SELECT * FROM %s" WITHIN, c->view);
		rc = sqlite3_prepare_v2(c->db, strbuf_str(&sql), -1, st, NULL);
	}
	if (rc == SQLITE_ERROR) { /* views without a time: runs and containers */
		strbuf_reset(&sql);
		strbuf_addf(&sql, "SELECT * FROM %s", c->view);
		rc = sqlite3_prepare_v2(c->db, strbuf_str(&sql), -1, st, NULL);
	}
	return rc;
}

/* Creates its table, if the segment has the view. */
static int view_make(struct filling *f, struct copied *c)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc;

	strbuf_addf(&sql, "SELECT * FROM %s", c->view);
	rc = sqlite3_prepare_v2(c->db, strbuf_str(&sql), -1, &st, NULL);
	if (rc == SQLITE_ERROR)
		return 0;
	rc = rc == SQLITE_OK ? table_make(f, c, st) : failed(f, c->db, c->view);
	sqlite3_finalize(st);
	return rc;
}

static int view_copy(struct filling *f, const struct copied *c, size_t segment)
{
	const struct spans s = spans_of(f, c->minutes);
	sqlite3_stmt *st = NULL;
	int rc = from_make(c, &st);

	if (rc == SQLITE_ERROR)
		return 0;
	if (rc != SQLITE_OK)
		return failed(f, c->db, c->view);
	for (int i = 0; i < 2; i++) {
		sqlite3_bind_int64(st, i ? 3 : 1, s.from[i]);
		sqlite3_bind_int64(st, i ? 4 : 2, s.to[i]);
	}
	rc = rows_copy(f, st, c, segment);
	sqlite3_finalize(st);
	return rc;
}

static int last_copy(struct filling *f, struct store_segment *seg)
{
	sqlite3 *db = store_segment_tables(seg);
	sqlite3_stmt *st = NULL, *put = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"SELECT family, max(to_ns) / 1000000000 FROM run WHERE from_ns / 1000000000 <= ?1 GROUP BY family",
		-1, &st, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(f->db, "INSERT INTO check_last VALUES(?1, ?2)", -1, &put,
					NULL);
	if (rc == SQLITE_OK)
		sqlite3_bind_int64(st, 1, f->to_s);
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

/* Most views are read for minutes, one or two for a day: of a segment that has none of them they
 * are not even prepared, which takes longer than to read the few rows of the others. */
static bool reaches(const struct filling *f, const struct store_segment_info *info,
		    const struct copied *c)
{
	const struct spans s = spans_of(f, c->minutes);
	const int64_t from = info->from_ns / NSEC_PER_SEC, to = info->to_ns / NSEC_PER_SEC;

	return c->minutes && (is_timeless(c->view) || (from <= s.to[1] && to >= s.from[1]) ||
			      (from <= s.to[0] && to >= s.from[0]));
}

/* Which views of the segment have something to copy; each has its table then. */
static int views_make(struct filling *f, const struct store_segment_info *info,
		      struct store_segment *seg)
{
	size_t n = 0;
	bool fresh = false;
	int rc = 0;

	for (size_t i = 0; i < f->n_views; i++)
		n += reaches(f, info, &f->views[i]);
	for (size_t i = 0; !rc && i < f->n_views; i++) {
		struct copied *c = &f->views[i];

		c->db = NULL;
		if (!reaches(f, info, c))
			continue;
		c->db = n <= ALONE ? store_segment_view(seg, c->view) : store_segment_db(seg);
		fresh = fresh || !c->made;
		if (!c->made)
			rc = view_make(f, c);
	}
	if (!rc && fresh)
		columns_find(f);
	return rc;
}

static int segment_copy(struct filling *f, const struct store_segment_info *info, size_t segment)
{
	struct store_segment *seg;
	int rc = store_segment_open(info->path, &seg, f->e);

	if (rc == -ENOENT) { /* retention deleted it meanwhile */
		*f->e = (struct err){0};
		return 0;
	}
	if (rc)
		return rc;
	rc = last_copy(f, seg);
	if (!rc)
		rc = views_make(f, info, seg);
	for (size_t i = 0; !rc && i < f->n_views; i++)
		if (f->views[i].made && f->views[i].db)
			rc = view_copy(f, &f->views[i], segment);
	store_segment_close(seg);
	return rc;
}

static int only_read(void *ctx, int action, const char *a, const char *b, const char *c,
		     const char *d)
{
	(void)ctx;
	(void)a;
	(void)b;
	(void)c;
	(void)d;
	return may_read(action);
}

static int is_over(void *ctx)
{
	(void)ctx;
	return clock_cpu_ns() > *(int64_t *)ctx;
}

static void views_init(struct filling *f)
{
	const char *const *names = sqlview_views(&f->n_views);

	f->views = mem_array(f->n_views, sizeof(*f->views));
	for (size_t i = 0; i < f->n_views; i++)
		f->views[i] = (struct copied){.view = names[i],
					      .minutes = minutes_of(f->checks, names[i]),
					      .servers = !strcmp(names[i], "requests")};
}

static void views_release(struct filling *f)
{
	for (size_t v = 0; v < f->n_views; v++)
		for (size_t i = 0; i < f->views[v].n; i++)
			free(f->views[v].columns[i]);
	free(f->views);
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
	views_init(&f);
	if (sqlite3_open(":memory:", &f.db) != SQLITE_OK ||
	    /* json_each is created at its first use, which may_read would mistake for creating a
	     * table */
	    sqlite3_exec(
		    f.db,
		    "SELECT 1 FROM json_each('[]'); CREATE TABLE check_last(family, ts); BEGIN",
		    NULL, NULL, NULL) != SQLITE_OK)
		rc = failed(&f, f.db, ":memory:");
	if (!rc && checksql_register(f.db))
		rc = failed(&f, f.db, ":memory:");
	/* newest segment first: it has all columns */
	for (size_t i = n; !rc && i-- > 0;)
		rc = segment_copy(&f, &segments[i], n - 1 - i);
	if (!rc && sqlite3_exec(f.db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
		rc = failed(&f, f.db, ":memory:");
	store_segments_close(segments, n);
	views_release(&f);
	if (rc) {
		sqlite3_close(f.db);
		return rc;
	}
	deadline_ns = clock_cpu_ns() + PATIENCE_NS;
	sqlite3_set_authorizer(f.db, only_read, NULL);
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
