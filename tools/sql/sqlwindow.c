/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/sql/sqlwindow.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/reader.h"
#include "tools/select/filter.h"
#include "tools/select/select.h"
#include "tools/sql/sqlview.h"
#include "tools/waits/waitrules.h"

#define VIEWS_MAX 96

struct sqlwindow {
	sqlite3 *db;
	const struct selection *sel;
	double from, to;        /* s since 1970 */
	sqlite3_stmt *frames;   /* of one stack, leaf first */
	struct idmap idle;      /* stack and reason -> 0, 1 */
	char *views[VIEWS_MAX]; /* that have a win_ one */
	size_t n_views;
};

static int refused(const struct sqlwindow *w, struct err *e)
{
	return err_set(e, -EIO, EXIT_STORE, "cannot restrict the store's views: %s",
		       sqlite3_errmsg(w->db));
}

/* --- functions that the views ask --- */

static const char *text_of(sqlite3_value *v)
{
	const char *s = (const char *)sqlite3_value_text(v);

	return s ? s : "";
}

/* The rule of the first frame that has one; a strong one before a weak one. */
static bool idle_of(struct sqlwindow *w, const char *reason, int64_t stack)
{
	const struct waitrule *rule = NULL, *weak = NULL;

	if (!w->frames)
		sqlite3_prepare_v2(
			w->db,
			"SELECT function FROM stack_frames WHERE stack_id = ?1 ORDER BY depth DESC",
			-1, &w->frames, NULL);
	if (!w->frames)
		return waitrule_idle_by_class(reason);
	sqlite3_bind_int64(w->frames, 1, stack);
	while (!rule && sqlite3_step(w->frames) == SQLITE_ROW) {
		const char *function = (const char *)sqlite3_column_text(w->frames, 0);

		rule = function ? waitrule_of(reason, function) : NULL;
		weak = weak || !function ? weak : waitrule_weak_of(reason, function);
	}
	sqlite3_reset(w->frames);
	rule = rule ? rule : weak;
	return rule ? rule->idle : waitrule_idle_by_class(reason);
}

/* win_idle(reason, stack_id); without a stack by the class alone */
static void idle_call(sqlite3_context *c, int n, sqlite3_value **v)
{
	struct sqlwindow *w = sqlite3_user_data(c);
	const char *reason = text_of(v[0]);
	uint64_t key, idle = 0;

	if (n < 2) {
		sqlite3_result_int(c, waitrule_idle_by_class(reason));
		return;
	}
	key = hash_u64(hash_str(HASH_SEED, reason), (uint64_t)sqlite3_value_int64(v[1]));
	if (!idmap_get(&w->idle, key, &idle)) {
		idle = idle_of(w, reason, sqlite3_value_int64(v[1]));
		idmap_set(&w->idle, key, idle);
	}
	sqlite3_result_int(c, (int)idle);
}

/* win_thread(tid) */
static void thread_call(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct sqlwindow *w = sqlite3_user_data(c);

	(void)n;
	sqlite3_result_int(c, select_wants_thread(w->sel, (uint32_t)sqlite3_value_int64(v[0])));
}

/* win_named(container, comm): of what is no process on record */
static void named_call(sqlite3_context *c, int n, sqlite3_value **v)
{
	const struct sqlwindow *w = sqlite3_user_data(c);
	const struct store_process_row p = select_process_row(text_of(v[1]), text_of(v[0]), "");

	(void)n;
	sqlite3_result_int(c, select_wants_process(w->sel, &p));
}

/* --- the processes that are wanted --- */

static const char *column(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s ? s : "";
}

static bool wants(const struct sqlwindow *w, sqlite3_stmt *st)
{
	const struct store_process_row p = {.pid = (uint32_t)sqlite3_column_int64(st, 1),
					    .uid = (uint32_t)sqlite3_column_int64(st, 2),
					    .comm = column(st, 3),
					    .exe = column(st, 4),
					    .cgroup = column(st, 5),
					    .unit = column(st, 6),
					    .container = column(st, 7),
					    .container_id = column(st, 8),
					    .container_image = column(st, 9),
					    .lang = column(st, 10),
					    .lang_runtime = column(st, 11),
					    .self = sqlite3_column_int(st, 12),
					    .args = "",
					    .runtime = "",
					    .project = "",
					    .service = "",
					    .present = true};

	return select_wants_process(w->sel, &p);
}

static int fill_processes(const struct sqlwindow *w, struct err *e)
{
	static const char *const query =
		"SELECT p.id, p.pid, p.uid, p.comm, p.exe, p.cgroup, p.unit, p.container, p.container_id, coalesce(c.image, ''), p.lang, p.runtime, "
		"p.self FROM processes p LEFT JOIN (SELECT runtime_id, max(image) AS image FROM containers GROUP BY 1) c "
		"ON c.runtime_id = p.container_id AND p.container_id <> ''";
	sqlite3_stmt *read = NULL, *add = NULL;
	int rc = sqlite3_exec(w->db, "CREATE TEMP TABLE win_process(id INTEGER PRIMARY KEY)", NULL,
			      NULL, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(w->db, query, -1, &read, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(w->db,
					"INSERT OR IGNORE INTO temp.win_process(id) VALUES (?1)",
					-1, &add, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(read)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		if (!wants(w, read))
			continue;
		sqlite3_bind_int64(add, 1, sqlite3_column_int64(read, 0));
		rc = sqlite3_step(add) == SQLITE_DONE ? SQLITE_OK : SQLITE_ERROR;
		sqlite3_reset(add);
	}
	sqlite3_finalize(read);
	sqlite3_finalize(add);
	return rc == SQLITE_DONE ? 0 : refused(w, e);
}

/* --- the views --- */

static bool has_column(const struct sqlwindow *w, const char *view, const char *name)
{
	sqlite3_stmt *st = NULL;
	bool has = false;

	if (sqlite3_prepare_v2(w->db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", -1,
			       &st, NULL) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, view, -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 2, name, -1, SQLITE_STATIC);
		has = sqlite3_step(st) == SQLITE_ROW;
	}
	sqlite3_finalize(st);
	return has;
}

static void add_condition(struct strbuf *sql, const char *condition)
{
	strbuf_addf(sql, " %s %s", strstr(sql->buf, " WHERE ") ? "AND" : "WHERE", condition);
}

static void add_range(const struct sqlwindow *w, const char *after, const char *before, double unit,
		      struct strbuf *sql)
{
	char text[160];

	/* not rounded: a bucket that begins in the second in which the range ends belongs to it */
	snprintf(text, sizeof(text), "%s >= %.6f AND %s < %.6f", after, w->from * unit, before,
		 w->to * unit);
	add_condition(sql, text);
}

/* What has neither times nor processes in the same way as the others. */
static bool add_special(const struct sqlwindow *w, const char *view, struct strbuf *sql)
{
	char text[160];

	if (!strcmp(view, "processes")) {
		add_condition(sql, "+id IN (SELECT id FROM temp.win_process)");
		snprintf(text, sizeof(text), "start_ns < %.0f AND (end_ns = 0 OR end_ns >= %.0f)",
			 w->to * 1e9, w->from * 1e9);
		add_condition(sql, text);
	} else if (!strcmp(view, "containers")) {
		add_condition(sql, "runtime_id IN (SELECT container_id FROM temp.win_processes)");
	} else if (!strcmp(view, "runs")) {
		add_range(w, "to_ns", "from_ns", 1e9, sql);
	} else if (!strcmp(view, "process_ends")) {
		add_range(w, "ts", "ts", 1, sql);
		add_condition(sql, "win_named(container, comm)");
	} else if (!strcmp(view, "throttling")) {
		add_range(w, "ts", "ts", 1, sql);
		if (select_is_narrow(w->sel))
			add_condition(sql, "cgroup IN (SELECT cgroup FROM temp.win_processes)");
	} else {
		return false;
	}
	return true;
}

/* Some of its rows are about the host, and no process's. */
static bool is_of_host(const char *view)
{
	return !strcmp(view, "events") || !strcmp(view, "fill_stats");
}

/* Without a time or a process there is nothing to narrow: no view. */
static int make_view(struct sqlwindow *w, const char *view, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	const bool ts = has_column(w, view, "ts"), process = has_column(w, view, "process_id"),
		   stack = has_column(w, view, "stack_id"),
		   wait = !strcmp(view, "waits") || !strcmp(view, "wait_objects") ||
			  !strcmp(view, "wait_totals");

	strbuf_addf(&sql, "CREATE TEMP VIEW win_%s AS SELECT *%s FROM %s", view,
		    !wait ? "" :
		    stack ? ", win_idle(reason, stack_id) AS idle" :
			    ", state = 'blocked' AND win_idle(reason) AS idle",
		    view);
	if (!add_special(w, view, &sql)) {
		if (!ts && !process)
			return 0;
		if (ts)
			add_range(w, "ts", "ts", 1, &sql);
		if (process && !select_is_narrow(w->sel) && is_of_host(view))
			add_condition(
				&sql,
				"(process_id IS NULL OR +process_id IN (SELECT id FROM temp.win_process))");
		else if (process)
			add_condition(
				&sql,
				"+process_id IN (SELECT id FROM temp.win_process)"); /* +: rows are
											looked
											through
											once, not by
											process */
		else if (has_column(w, view, "container") && select_is_narrow(w->sel))
			add_condition(&sql,
				      "container IN (SELECT container FROM temp.win_processes)");
		if (has_column(w, view, "tid") && filters_have(w->sel->filters, FILTER_TID))
			add_condition(&sql, "win_thread(tid)");
	}
	if (sqlite3_exec(w->db, strbuf_str(&sql), NULL, NULL, NULL) != SQLITE_OK)
		return refused(w, e);
	w->views[w->n_views++] = mem_strdup(view);
	return 0;
}

static int make_all(sqlite3 *db, void *ctx, struct err *e)
{
	static const char *const first[] = {"processes", "containers"}; /* others ask them */
	const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
	struct sqlwindow *w = ctx;
	const char *const *views;
	size_t n;
	int rc;

	w->db = db;
	sqlite3_create_function(db, "win_idle", 1, flags, w, idle_call, NULL, NULL);
	sqlite3_create_function(db, "win_idle", 2, flags, w, idle_call, NULL, NULL);
	sqlite3_create_function(db, "win_thread", 1, flags, w, thread_call, NULL, NULL);
	sqlite3_create_function(db, "win_named", 2, flags, w, named_call, NULL, NULL);
	rc = fill_processes(w, e);
	for (size_t i = 0; !rc && i < ARRAY_SIZE(first); i++)
		rc = make_view(w, first[i], e);
	views = sqlview_views(&n);
	for (size_t i = 0; !rc && i < n && w->n_views < VIEWS_MAX; i++)
		if (strcmp(views[i], first[0]) && strcmp(views[i], first[1]))
			rc = make_view(w, views[i], e);
	return rc;
}

int sqlwindow_make(struct sqlview *view, const struct selection *sel, struct sqlwindow **out,
		   struct err *e)
{
	struct sqlwindow *w;
	int rc;

	if (filters_have(sel->filters, FILTER_LABEL)) {
		err_set(e, -EINVAL, EXIT_USAGE,
			"--label selects imported samples by stack, which this answer does not have");
		err_fix(e,
			"sonde stacks --label KEY=VALUE    sonde sql 'SELECT * FROM labelled_samples'");
		return -EINVAL;
	}
	w = mem_alloc(sizeof(*w));

	*w = (struct sqlwindow){.sel = sel,
				.from = (double)sel->from_ns / NSEC_PER_SEC,
				.to = (double)sel->to_ns / NSEC_PER_SEC};
	rc = sqlview_change(view, make_all, w, e);
	if (rc)
		sqlwindow_free(w);
	else
		*out = w;
	return rc;
}

void sqlwindow_free(struct sqlwindow *w)
{
	if (!w)
		return;
	sqlite3_finalize(w->frames);
	for (size_t i = 0; i < w->n_views; i++)
		free(w->views[i]);
	idmap_release(&w->idle);
	free(w);
}

void sqlwindow_bind(const struct sqlwindow *w, struct sqlite3_stmt *st)
{
	int from = sqlite3_bind_parameter_index(st, ":from"),
	    to = sqlite3_bind_parameter_index(st, ":to");

	if (from)
		sqlite3_bind_double(st, from, w->from);
	if (to)
		sqlite3_bind_double(st, to, w->to);
}

/* --- the queries that ship --- */

static bool is_view(const struct sqlwindow *w, const char *word, size_t len)
{
	for (size_t i = 0; i < w->n_views; i++)
		if (strlen(w->views[i]) == len && !strncmp(w->views[i], word, len))
			return true;
	return false;
}

/* "sonde_totals", "sonde_totals(:from, :to)", "sonde_steps(60, :from, :to)" as a subquery; where it
 * ends. */
static const char *add_function(const struct sqlwindow *w, const char *word, size_t len,
				struct strbuf *out)
{
	const char *end = word + len;
	size_t call = *end == '(' ? strcspn(end, ")") + 1 : 0;

	strbuf_addf(out, "(SELECT * FROM %.*s", (int)len, word);
	if (call)
		strbuf_add(out, end, call);
	else
		strbuf_addf(out, "(%.3f, %.3f)", w->from, w->to);
	strbuf_addstr(out, " WHERE +process_id IN (SELECT id FROM temp.win_process)");
	if (filters_have(w->sel->filters, FILTER_TID))
		strbuf_addstr(out, " AND win_thread(tid)");
	strbuf_addch(out, ')');
	return end + call;
}

bool sqlwindow_rewrite(const struct sqlwindow *w, const char *query, struct strbuf *out)
{
	bool any = false;

	while (*query) {
		const size_t word = strspn(query, "ABCDEFGHIJKLMNOPQRSTUVWXYZ");
		const bool source =
			(word == 4 && (!strncmp(query, "FROM", 4) || !strncmp(query, "JOIN", 4))) &&
			query[4] == ' ';
		size_t len;

		if (!source) {
			strbuf_add(out, query, word ? word : 1);
			query += word ? word : 1;
			continue;
		}
		strbuf_add(out, query, 5);
		query += 5;
		for (len = 0; isalnum((unsigned char)query[len]) || query[len] == '_';)
			len++;
		if ((len == 12 && !strncmp(query, "sonde_totals", len)) ||
		    (len == 11 && !strncmp(query, "sonde_steps", len))) {
			query = add_function(w, query, len, out);
			any = true;
		} else if (is_view(w, query, len)) {
			strbuf_addstr(out, "win_");
			any = true;
		}
	}
	return any;
}
