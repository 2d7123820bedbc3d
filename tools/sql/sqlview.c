/* SPDX-License-Identifier: Apache-2.0 */
/* Once the views are made, an authorizer allows only reading. */
#include "tools/sql/sqlview.h"

#include <ctype.h>
#include <errno.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "schema/extension/extension.h"
#include "schema/store/files/folder.h"
#include "schema/store/files/migrate.h"
#include "schema/store/read/reader.h"
#include "schema/store/read/unreadable.h"
#include "tools/sql/sqlunion.h"

#define ATTACHED_MAX 10 /* SQLITE_MAX_ATTACHED, as Debian builds it */
#define OVER_STEPS   10000
#define SQLVIEW_NAME 64

struct sqlview {
	struct store_segment *newest;
	sqlite3 *db;             /* of newest */
	struct sqlunion *joined; /* NULL: they are attached */
	size_t n;
	struct strbuf stored; /* ",sample,series,": tables of the newest, where there are several */
	const char *asked;    /* the statement that is prepared now; NULL: none */
	char of_one[SQLVIEW_NAME]; /* see sqlview_asks; "": none */
	int (*over)(void *ctx);
	void *over_ctx;
};

static const char *const STABLE_VIEWS[] = {"runs",
					   "containers",
					   "processes",
					   "process_ends",
					   "functions",
					   "frames",
					   "stack_frames",
					   "stacks",
					   "cpu_samples",
					   "amounts",
					   "amount_spread",
					   "loss",
					   "cost",
					   "unwinding",
					   "waits",
					   "wait_totals",
					   "runqueue",
					   "neighbours",
					   "wakers",
					   "wait_objects",
					   "standing",
					   "throttling",
					   "steal",
					   "slowed",
					   "go_heap",
					   "go_heap_growth",
					   "go_alloc_rate",
					   "go_processes",
					   "scraped",
					   "go_amounts",
					   "go_readings",
					   "process_notes",
					   "requests",
					   "request_spread",
					   "request_phases",
					   "running_requests",
					   "host_stats",
					   "disk_stats",
					   "filesystem_stats",
					   "net_stats",
					   "sensor_stats",
					   "block_stats",
					   "block_devices",
					   "slow_blocks",
					   "fsyncs",
					   "lasting_fsyncs",
					   "failed_opens",
					   "disk_files",
					   "held_files",
					   "probes",
					   "probe_stats",
					   "probe_events",
					   "logs",
					   "log_patterns",
					   "log_seconds",
					   "java_waits",
					   "java_wait_log",
					   "java_recorded",
					   "gpu_stats",
					   "gpu_process_stats",
					   "jvm_stats",
					   "event_logs",
					   "cgroup_stats",
					   "container_stats",
					   "cgroup_disk_stats",
					   "process_stats",
					   "ended_stats",
					   "events",
					   "oom_kills",
					   "oom_tasks",
					   "descriptor_stats",
					   "process_mem_stats",
					   "fill_stats",
					   "flows",
					   "edges",
					   "net_failures",
					   "listeners",
					   "netns_stats",
					   "connections",
					   "peer_names",
					   "flow_marks",
					   "request_log",
					   "request_bytes",
					   "request_spans",
					   "labelled_samples",
					   "file_calls",
					   "lock_waits",
					   "block_order"};

/* Each file has its own sums: these are summed again, the same columns in the same order. */
static const struct summed {
	const char *view, *keys,
		*parts; /* parts: the table of all files' rows where they are not attached */
	int n_keys;
	const char *more;
} SUMMED[] = {
	{"functions_top", "function, module, container", "functions_top_parts", 3,
	 ", max(file) AS file"},
	{"lines_top", "function, file, line, module, container", "lines_top_parts", 5, ""},
};
#define N_SUMMED ARRAY_SIZE(SUMMED)

/* Of schema/extension. */
static const char *const FUNCTIONS[] = {"sonde_samples", "sonde_totals", "sonde_steps",
					"sonde_frames"};

static int run_sql(sqlite3 *db, const char *sql, struct err *e)
{
	char *why = NULL;
	int rc = sqlite3_exec(db, sql, NULL, NULL, &why);

	if (rc == SQLITE_OK)
		return 0;
	err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", why ? why : sqlite3_errstr(rc));
	sqlite3_free(why);
	return -EIO;
}

/* The columns of a view in one segment, each id raised by the segment's number. -ENOENT: it has no
 * such view. */
static int add_columns(struct strbuf *out, sqlite3 *db, const char *schema, const char *view,
		       size_t segment, struct err *e)
{
	sqlite3_stmt *st = NULL;
	int rc, n = 0;

	rc = sqlite3_prepare_v2(db, "SELECT name FROM pragma_table_info(?1, ?2) ORDER BY cid", -1,
				&st, NULL);
	if (rc != SQLITE_OK)
		return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s",
			       sqlite3_errmsg(db));
	sqlite3_bind_text(st, 1, view, -1, SQLITE_STATIC);
	sqlite3_bind_text(st, 2, schema, -1, SQLITE_STATIC);
	for (; sqlite3_step(st) == SQLITE_ROW; n++) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		if (sqlunion_is_id(name))
			strbuf_addf(out, "%siif(\"%s\" > 0, \"%s\" | %lld, \"%s\") AS \"%s\"",
				    n ? ", " : "", name, name,
				    (long long)((int64_t)segment << SQLUNION_ID_SHIFT), name, name);
		else
			strbuf_addf(out, "%s\"%s\"", n ? ", " : "", name);
	}
	sqlite3_finalize(st);
	return n ? 0 : -ENOENT; /* the segment is older than the view */
}

static int unite(struct sqlview *v, const char *view, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	bool any = false;
	int rc;

	strbuf_addf(&sql, "CREATE TEMP VIEW %s AS ", view);
	for (size_t i = 0; i < v->n; i++) {
		size_t before = sql.len;
		char schema[32];

		snprintf(schema, sizeof(schema), i ? "s%zu" : "main", i);
		strbuf_addstr(&sql, any ? " UNION ALL SELECT " : "SELECT ");
		rc = add_columns(&sql, v->db, schema, view, i, e);
		if (rc == -ENOENT) {
			sql.len = before;
			sql.buf[before] = '\0';
			continue;
		}
		if (rc < 0)
			return rc;
		any = true;
		strbuf_addf(&sql, " FROM %s.%s", schema, view);
	}
	return !any ? 0 : run_sql(v->db, strbuf_str(&sql), e);
}

/* `from`: all rows of all segments */
static int sum_again(struct sqlview *v, const struct summed *x, const char *from, struct err *e)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(
		&sql,
		"CREATE TEMP VIEW %s AS SELECT %s, sum(self) AS self, sum(total) AS total, sum(self_ns) AS self_ns, "
		"sum(total_ns) AS total_ns%s FROM (%s) GROUP BY 1",
		x->view, x->keys, x->more, from);
	for (int i = 2; i <= x->n_keys; i++)
		strbuf_addf(&sql, ", %d", i);
	strbuf_addstr(&sql, " ORDER BY self DESC, total DESC");
	return run_sql(v->db, strbuf_str(&sql), e);
}

static int unite_summed(struct sqlview *v, const struct summed *x, struct err *e)
{
	struct strbuf from cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&from, "SELECT * FROM main.%s", x->view);
	for (size_t i = 1; i < v->n; i++)
		strbuf_addf(&from, " UNION ALL SELECT * FROM s%zu.%s", i, x->view);
	return sum_again(v, x, strbuf_str(&from), e);
}

static int join_summed(struct sqlview *v, const struct summed *x, struct err *e)
{
	struct strbuf from cleanup_strbuf = STRBUF_INIT;
	int rc = sqlunion_table(v->joined, x->parts, x->view, e);

	strbuf_addf(&from, "SELECT * FROM temp.%s", x->parts);
	return rc ? rc : sum_again(v, x, strbuf_str(&from), e);
}

/* A segment that cannot be attached (a log that needs write access, a file just removed) is left
 * out, and named in the answer. */
static void attach(struct sqlview *v, const char *path)
{
	char *sql = sqlite3_mprintf("ATTACH %Q AS s%d; SELECT count(*) FROM s%d.sqlite_master",
				    path, (int)v->n, (int)v->n);
	char *undo = sqlite3_mprintf("DETACH s%d", (int)v->n);

	if (sqlite3_exec(v->db, sql, NULL, NULL, NULL) == SQLITE_OK) {
		v->n++;
	} else {
		log_warn("%s is left out: %s", path, sqlite3_errmsg(v->db));
		unreadable_add(path);
		sqlite3_exec(v->db, undo, NULL, NULL, NULL);
	}
	sqlite3_free(undo);
	sqlite3_free(sql);
}

static int refused(sqlite3 *db, struct err *e)
{
	return err_set(e, -EIO, EXIT_STORE, "cannot read the store: %s", sqlite3_errmsg(db));
}

/* All that the newest has but what is joined by now, and what is the same in each segment. */
static int find_stored(struct sqlview *v, struct err *e)
{
	static const char query[] =
		"SELECT name FROM (SELECT name FROM main.sqlite_master WHERE type IN ('table', 'view') UNION SELECT name FROM main.packed_view) "
		"WHERE name NOT LIKE 'sqlite%' AND name NOT LIKE 'packed%' AND name NOT IN ('kind', 'kinds', 'wait_class', 'end_kind') "
		"AND name NOT IN (SELECT name FROM temp.sqlite_master)";
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(v->db, query, -1, &st, NULL);

	strbuf_addch(&v->stored, ',');
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		strbuf_addf(&v->stored, "%s,", (const char *)sqlite3_column_text(st, 0));
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : refused(v->db, e);
}

static bool is_word(const char *text, const char *word)
{
	const size_t len = strlen(word);

	for (const char *at = strcasestr(text, word); len && at; at = strcasestr(at + 1, word))
		if ((at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_')) &&
		    !isalnum((unsigned char)at[len]) && at[len] != '_')
			return true;
	return false;
}

/* What a statement reads itself, not through a view, of the newest segment, whose views are
 * temporary ones where it is an archive. SQLite names no database where it counts rows only, no
 * view for what a view's inner queries read (the statement names it, too), and a view that is only
 * counted as what is read through. */
static void note_reading(struct sqlview *v, const char *table, const char *database,
			 const char *through)
{
	char name[SQLVIEW_NAME + 2];

	if (!v || !v->asked ||
	    (database && strcmp(database, "main") != 0 && strcmp(database, "temp") != 0) ||
	    *v->of_one)
		return;
	table = through ? through : table;
	snprintf(name, sizeof(name), ",%s,", table);
	if (strcasestr(strbuf_str(&v->stored), name) && is_word(v->asked, table))
		snprintf(v->of_one, sizeof(v->of_one), "%s", table);
}

/* `ctx`: of the connection over all segments; NULL: of one to a segment. */
static int allow_reading(void *ctx, int action, const char *a, const char *b, const char *c,
			 const char *d)
{
	switch (action) {
	case SQLITE_READ:
		note_reading(ctx, a, c, d);
		return SQLITE_OK;
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
	case SQLITE_TRANSACTION:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return b && !sqlite3_stricmp(b, "load_extension") ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_PRAGMA: /* asking, not setting */
		return !b || !sqlite3_stricmp(a, "table_info") ||
				       !sqlite3_stricmp(a, "table_xinfo") ||
				       !sqlite3_stricmp(a, "index_list") ||
				       !sqlite3_stricmp(a, "index_info") ?
			       SQLITE_OK :
			       SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

static int unite_all(struct sqlview *v, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(STABLE_VIEWS); i++)
		rc = unite(v, STABLE_VIEWS[i], e);
	for (size_t i = 0; rc == 0 && i < N_SUMMED; i++)
		rc = unite_summed(v, &SUMMED[i], e);
	return rc;
}

/* An archive's samples, read natively. Before confine. */
static int sample_views(sqlite3 *db, struct err *e)
{
	struct err why = {0};
	int rc = migrate_packed_check(db, sqlite3_db_filename(db, "main"), &why);

	if (rc == SQLITE_AUTH && why.code)
		return err_set(e, why.code, why.exit, "%s", why.what);
	rc = rc == SQLITE_OK ? run_sql(db, "PRAGMA query_only=0", e) : refused(db, e);
	if (rc == 0 && extension_views(db) != SQLITE_OK)
		rc = refused(db, e);
	return rc ? rc : run_sql(db, "PRAGMA query_only=1", e);
}

static void meet(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *st = NULL;

	sqlite3_prepare_v2(db, sql, -1, &st, NULL);
	sqlite3_finalize(st);
}

/* SQLite makes a table-valued function at its first use, and a packed table of an archive, which
 * looks to the authorizer as if a table were created. */
static void meet_tables(sqlite3 *db)
{
	sqlite3_stmt *st = NULL;

	meet(db,
	     "SELECT 1 FROM json_each('[]'), json_tree('[]'), pragma_table_xinfo(''), pragma_table_info(''), sonde_samples, sonde_totals, sonde_steps(1), sonde_frames(0)");
	if (sqlite3_prepare_v2(db, "SELECT name FROM packed_table", -1, &st, NULL) != SQLITE_OK)
		return;
	while (sqlite3_step(st) == SQLITE_ROW) {
		char *sql = sqlite3_mprintf("SELECT 1 FROM \"%w\"", sqlite3_column_text(st, 0));

		if (sql)
			meet(db, sql);
		sqlite3_free(sql);
	}
	sqlite3_finalize(st);
}

/* What each connection to a segment may do, and for how long. */
static void confine(sqlite3 *db, const struct sqlview *v)
{
	/* The views use json functions, which SQLite refuses in an untrusted schema. The authorizer
	 * allows built-in functions only, so that a store from elsewhere can do no more than a
	 * query typed here. */
	sqlite3_db_config(db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
	meet_tables(db);
	sqlite3_set_authorizer(db, allow_reading, NULL);
	sqlite3_progress_handler(db, OVER_STEPS, v->over, v->over_ctx);
}

/* Whose file the connection has. */
static void say_host(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	sqlite3 *db = sqlite3_user_data(ctx);
	sqlite3_stmt *st = NULL;

	(void)n;
	(void)v;
	if (sqlite3_prepare_v2(db, "SELECT value FROM main.meta WHERE key = 'host'", -1, &st,
			       NULL) == SQLITE_OK &&
	    sqlite3_step(st) == SQLITE_ROW)
		sqlite3_result_value(ctx, sqlite3_column_value(st, 0));
	sqlite3_finalize(st);
}

/* sonde_size(bytes): "1.75 MiB", as every verb prints it. */
static void say_size(sqlite3_context *ctx, int n, sqlite3_value **v)
{
	const double bytes = sqlite3_value_double(v[0]);
	char text[UNITS_MAX];

	(void)n;
	if (sqlite3_value_type(v[0]) == SQLITE_NULL || !(bytes >= 0 && bytes < 0x1p63))
		return;
	sqlite3_result_text(ctx, units_bytes((uint64_t)bytes, text, sizeof(text)), -1,
			    SQLITE_TRANSIENT);
}

static int prepare_member(sqlite3 *db, void *ctx, struct err *e)
{
	int rc = extension_tables(db) == SQLITE_OK ? sample_views(db, e) : refused(db, e);

	if (rc == 0 &&
	    sqlite3_create_function(db, SQLUNION_HOST, 0, SQLITE_UTF8 | SQLITE_DETERMINISTIC, db,
				    say_host, NULL, NULL) != SQLITE_OK)
		rc = refused(db, e);
	if (rc == 0)
		confine(db, ctx);
	return rc;
}

static int join_functions(struct sqlview *v, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(FUNCTIONS); i++)
		rc = sqlunion_table(v->joined, FUNCTIONS[i], FUNCTIONS[i], e);
	return rc;
}

static int join_view(struct sqlview *v, const char *view, struct err *e)
{
	int has = sqlunion_has_view(v->joined, view, e);

	return has > 0 ? sqlunion_table(v->joined, view, view, e) : has;
}

/* `paths`: newest first, as ids are raised. Which views there are the model says, whose own are
 * made by prepare_member: those of an archive that is the newest are not, and may not be, until all
 * are joined (sample_views): of two that have a name the first stays. */
static int join_all(struct sqlview *v, const char *const *paths, const struct sqlunion_span *spans,
		    size_t n, size_t model, struct err *e)
{
	int rc = sqlunion_new(v->db, paths, spans, n, model, prepare_member, v, &v->joined, e);

	for (size_t i = 0; rc == 0 && i < ARRAY_SIZE(STABLE_VIEWS); i++)
		rc = join_view(v, STABLE_VIEWS[i], e);
	for (size_t i = 0; rc == 0 && i < N_SUMMED; i++)
		rc = join_summed(v, &SUMMED[i], e);
	return rc ? rc : join_functions(v, e);
}

static int attach_all(struct sqlview *v, const char **paths, size_t n, struct err *e)
{
	int rc;

	for (size_t i = 1; i < n; i++) {
		attach(v, paths[i]);
		paths[v->n - 1] = paths[i]; /* those that were left out have no number */
	}
	rc = unite_all(v, e);
	if (rc == 0)
		rc = sqlunion_new(v->db, paths, NULL, v->n, 0, prepare_member, v, &v->joined, e);
	return rc ? rc : join_functions(v, e);
}

/* An archive's samples need a connection to itself, as do more files than can be attached, and
 * views that differ. */
static bool one_by_one(const struct store_segment_info *segments, size_t n)
{
	bool any = n > ATTACHED_MAX + 1 || store_names_hosts();

	for (size_t i = 0; !any && i < n; i++)
		any = folder_is_archived(segments[i].path) ||
		      segments[i].schema != segments[0].schema;
	return any;
}

/* Counted from the newest: the newest one of the newest schema. */
static size_t model_of(const struct store_segment_info *segments, size_t n)
{
	size_t model = n - 1;

	for (size_t i = n; i-- > 0;)
		if (segments[i].schema > segments[model].schema)
			model = i;
	return n - 1 - model;
}

static int join(struct sqlview *v, const struct store_segment_info *segments, size_t n,
		struct err *e)
{
	cleanup_free const char **paths = mem_array(n, sizeof(*paths));
	cleanup_free struct sqlunion_span *spans = mem_array(n, sizeof(*spans));
	int rc;

	if (n == 1 && !store_names_hosts())
		return 0;
	rc = run_sql(v->db, "PRAGMA query_only=0", e);
	if (rc)
		return rc;
	for (size_t i = 0; i < n; i++) {
		const struct store_segment_info *x = &segments[n - 1 - i];

		paths[i] = x->path;
		if (folder_is_archived(x->path)) /* others grow meanwhile */
			spans[i] = (struct sqlunion_span){x->from_ns / NSEC_PER_SEC,
							  x->to_ns / NSEC_PER_SEC};
	}
	rc = one_by_one(segments, n) ? join_all(v, paths, spans, n, model_of(segments, n), e) :
				       attach_all(v, paths, n, e);
	return rc ? rc : run_sql(v->db, "PRAGMA query_only=1", e);
}

/* The tables over all segments are made in its connection, where names are not qualified by host.
 */
static int open_newest(const char *path, struct store_segment **out, struct err *e)
{
	bool hosts = store_names_hosts();
	int rc;

	store_name_hosts(false);
	rc = store_segment_open(path, out, e);
	store_name_hosts(hosts);
	return rc;
}

int sqlview_open(const char *store, struct sqlview **out, struct err *e)
{
	cleanup_free struct store_segment_info *segments = NULL;
	struct sqlview *v;
	size_t n = 0;
	int rc;

	rc = store_segments(store, 0, INT64_MAX, &segments, &n, e);
	if (rc < 0)
		return rc;
	if (!n) {
		err_set(e, -ENODATA, EXIT_NOTHING, "the store %s is empty", store);
		err_fix(e, "sudo sonde record -d 10s");
		return -ENODATA;
	}
	v = mem_alloc(sizeof(*v));
	rc = open_newest(segments[n - 1].path, &v->newest, e);
	if (rc < 0) {
		free(v);
		return rc;
	}
	v->db = store_segment_tables(v->newest);
	v->n = 1;
	sqlite3_db_config(v->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 1, NULL);
	sqlite3_create_function(v->db, "sonde_size", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL,
				say_size, NULL, NULL);
	rc = extension_tables(v->db) == SQLITE_OK ? join(v, segments, n, e) : refused(v->db, e);
	if (rc == 0 && v->joined)
		rc = find_stored(v, e);
	if (rc == 0)
		rc = sample_views(v->db, e);
	if (rc < 0) {
		sqlview_close(v);
		return rc;
	}
	confine(v->db, v);
	sqlite3_set_authorizer(v->db, allow_reading, v);
	*out = v;
	return 0;
}

const char *const *sqlview_views(size_t *n)
{
	*n = ARRAY_SIZE(STABLE_VIEWS);
	return STABLE_VIEWS;
}

int sqlview_change(struct sqlview *v, int (*make)(struct sqlite3 *db, void *ctx, struct err *e),
		   void *ctx, struct err *e)
{
	int rc;

	sqlite3_set_authorizer(v->db, NULL, NULL);
	rc = run_sql(v->db, "PRAGMA query_only=0", e);
	if (rc == 0)
		rc = make(v->db, ctx, e);
	sqlite3_exec(v->db, "PRAGMA query_only=1", NULL, NULL, NULL);
	sqlite3_set_authorizer(v->db, allow_reading, v);
	return rc;
}

void sqlview_asks(struct sqlview *v, const char *sql)
{
	v->asked = sql;
	v->of_one[0] = '\0';
}

const char *sqlview_of_one(const struct sqlview *v)
{
	return *v->of_one ? v->of_one : NULL;
}

void sqlview_close(struct sqlview *v)
{
	if (!v)
		return;
	sqlite3_set_authorizer(v->db, NULL, NULL);
	store_segment_close(v->newest);
	sqlunion_free(v->joined);
	strbuf_release(&v->stored);
	free(v);
}

struct sqlite3 *sqlview_db(struct sqlview *v)
{
	return v->db;
}

void sqlview_watch(struct sqlview *v, int (*over)(void *ctx), void *ctx)
{
	v->over = over;
	v->over_ctx = ctx;
	sqlite3_progress_handler(v->db, OVER_STEPS, over, ctx);
}
