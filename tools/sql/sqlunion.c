/* SPDX-License-Identifier: Apache-2.0 */
/* sqlunion: Written after SQLite's "The Virtual Table Mechanism Of SQLite"
 * (vtab.html). */
#include "tools/sql/sqlunion.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/read/reader.h"

#define OPEN_MAX   32 /* segments that stay open beyond their use */
#define SLOTS      8  /* statements that a cursor keeps */
#define ARGS_MAX   16
#define ROWS_GUESS 1e6
/* in a cursor's statement: where what is behind FROM goes, which differs by segment */
#define SOURCE '\n'

/* A file's span is looked at this much wider: its last bucket may be longer than its others. */
#define SPAN_SLACK_S 3600

struct member {
	char *path;
	struct sqlunion_span span;
	struct store_segment *open; /* NULL: closed */
	unsigned int users;
	uint64_t used;
};

struct sqlunion {
	sqlite3 *db;
	struct member *members;
	size_t n, n_open;
	size_t model;     /* the member whose columns the tables have */
	int model_schema; /* once it was open */
	uint64_t clock;
	int (*prepare)(sqlite3 *db, void *ctx, struct err *e);
	void *ctx;
};

struct table {
	sqlite3_vtab base;
	struct sqlunion *u;
	char *view;
	char **columns;
	size_t n;
	bool is_function; /* table-valued, of each connection */
	bool timed;       /* its ts are those of buckets, which a file's span has */
	bool hosts;       /* the last column is SQLUNION_HOST */
};

/* A statement of one segment that can be asked again. */
struct slot {
	struct member *member; /* NULL: empty */
	char *sql;
	sqlite3_stmt *st;
};

struct cursor {
	sqlite3_vtab_cursor base;
	struct slot slots[SLOTS];
	char *sql;
	sqlite3_value *args[ARGS_MAX];
	int64_t locals[ARGS_MAX]; /* of an id: what it is in its segment */
	bool is_local[ARGS_MAX];
	int n_args;
	int64_t from_s, to_s; /* rows with another ts are not wanted */
	size_t at, end;       /* segments still to ask: [at, end) */
	sqlite3_stmt *st;     /* of segment `at`; borrowed from a slot; NULL: at the end */
	int64_t row;
};

bool sqlunion_is_id(const char *column)
{
	size_t len = strlen(column);

	return !strcmp(column, "id") ||
	       (len > 3 && !strcmp(column + len - 3, "_id") && strcmp(column, "runtime_id") &&
		strcmp(column, "container_id") && strcmp(column, "build_id") &&
		strcmp(column, "exec_id"));
}

static int table_error(sqlite3_vtab *base, const char *what)
{
	sqlite3_free(base->zErrMsg);
	base->zErrMsg = sqlite3_mprintf("%s", what);
	return SQLITE_ERROR;
}

/* ---- segments, opened as they are asked ---- */

/* Close the one that was used longest ago, where too many are open and one is idle. */
static void make_room(struct sqlunion *u)
{
	struct member *oldest = NULL;

	for (size_t i = 0; u->n_open >= OPEN_MAX && i < u->n; i++) {
		struct member *m = &u->members[i];

		if (m->open && !m->users && (!oldest || m->used < oldest->used))
			oldest = m;
	}
	if (!oldest)
		return;
	store_segment_close(oldest->open);
	oldest->open = NULL;
	u->n_open--;
}

static int member_get(struct sqlunion *u, struct member *m, struct err *e)
{
	if (!m->open) {
		int rc;

		make_room(u);
		rc = store_segment_open(m->path, &m->open, e);
		if (rc < 0)
			return rc;
		u->n_open++;
		rc = u->prepare ? u->prepare(store_segment_tables(m->open), u->ctx, e) : 0;
		if (rc < 0) {
			store_segment_close(m->open);
			m->open = NULL;
			u->n_open--;
			return rc;
		}
	}
	m->users++;
	m->used = ++u->clock;
	return 0;
}

static void slot_clear(struct slot *s)
{
	sqlite3_finalize(s->st);
	if (s->member)
		s->member->users--;
	free(s->sql);
	*s = (struct slot){0};
}

/* Is there a view of that name in the file? Where that cannot be asked who reads it says why. */
static bool has_view(sqlite3 *db, const char *view)
{
	sqlite3_stmt *st = NULL;
	bool has = true;

	if (sqlite3_prepare_v2(
		    db,
		    "SELECT 1 FROM sqlite_master WHERE name = ?1 UNION ALL SELECT 1 FROM sqlite_temp_master WHERE name = ?1",
		    -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, view, -1, SQLITE_STATIC);
		has = sqlite3_step(st) == SQLITE_ROW;
	}
	sqlite3_finalize(st);
	return has;
}

static bool has_column(sqlite3 *db, const char *view, const char *column)
{
	sqlite3_stmt *st = NULL;
	bool has = true;

	if (sqlite3_prepare_v2(db, "SELECT 1 FROM pragma_table_xinfo(?1) WHERE name = ?2", -1, &st,
			       NULL) == SQLITE_OK) {
		sqlite3_bind_text(st, 1, view, -1, SQLITE_STATIC);
		sqlite3_bind_text(st, 2, column, -1, SQLITE_STATIC);
		has = sqlite3_step(st) == SQLITE_ROW;
	}
	sqlite3_finalize(st);
	return has;
}

static bool is_host(const struct table *t, size_t column)
{
	return t->hosts && column == t->n - 1;
}

/* What has the table's columns in that segment, to be put behind FROM. To SQLite the name of a
 * column that is not there is a text. */
static void add_source(const struct table *t, const struct member *m, struct strbuf *sql)
{
	sqlite3 *db = store_segment_tables(m->open);
	bool lacks = false;

	if (t->is_function || store_segment_schema(m->open) == t->u->model_schema) {
		strbuf_addstr(sql, t->view);
		return;
	}
	for (size_t i = 0; i < t->n; i++) {
		if (is_host(t, i) || has_column(db, t->view, t->columns[i]))
			continue;
		strbuf_addf(sql, "%s, NULL AS \"%s\"", lacks ? "" : "(SELECT *", t->columns[i]);
		lacks = true;
	}
	strbuf_addf(sql, lacks ? " FROM %s)" : "%s", t->view);
}

/* The statement for segment `i`, ready to be bound; NULL: the table's error says why. */
static sqlite3_stmt *statement(struct cursor *c, size_t i)
{
	struct table *t = (struct table *)c->base.pVtab;
	struct member *m = &t->u->members[i];
	struct slot *s = &c->slots[i % SLOTS];
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;
	const char *hole;
	struct err e = {0};

	if (s->member == m && !strcmp(s->sql, c->sql)) {
		sqlite3_reset(s->st);
		return s->st;
	}
	slot_clear(s);
	if (member_get(t->u, m, &e) < 0) {
		table_error(c->base.pVtab, e.what);
		return NULL;
	}
	s->member = m;
	s->sql = mem_strdup(c->sql);
	hole = strchr(c->sql, SOURCE);
	strbuf_add(&sql, c->sql, (size_t)(hole - c->sql));
	if (t->is_function || has_view(store_segment_tables(m->open), t->view)) {
		add_source(t, m, &sql);
		strbuf_addstr(&sql, hole + 1);
	} else {
		strbuf_reset(&sql);
		strbuf_addstr(&sql, "SELECT 1 WHERE 0"); /* the segment is older than the view */
	}
	if (sqlite3_prepare_v2(store_segment_tables(m->open), strbuf_str(&sql), -1, &s->st, NULL) !=
	    SQLITE_OK) {
		table_error(c->base.pVtab, sqlite3_errmsg(store_segment_tables(m->open)));
		slot_clear(s);
		return NULL;
	}
	return s->st;
}

/* ---- the table ---- */

/* Those of the model. */
static int read_columns(struct table *t, struct strbuf *declared)
{
	struct member *model = &t->u->members[t->u->model];
	sqlite3_stmt *st = NULL;
	struct err e = {0};
	size_t cap = 0;
	int rc;

	if (member_get(t->u, model, &e) < 0)
		return SQLITE_ERROR;
	model->users--;
	t->is_function = !has_view(store_segment_tables(model->open), t->view);
	t->u->model_schema = store_segment_schema(model->open);
	rc = sqlite3_prepare_v2(
		store_segment_tables(model->open),
		"SELECT name, type, hidden FROM pragma_table_xinfo(?1) ORDER BY cid", -1, &st,
		NULL);
	if (rc != SQLITE_OK)
		return SQLITE_ERROR;
	sqlite3_bind_text(st, 1, t->view, -1, SQLITE_STATIC);
	strbuf_addstr(declared, "CREATE TABLE x(");
	while (sqlite3_step(st) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0),
			   *type = (const char *)sqlite3_column_text(st, 1);

		strbuf_addf(declared, "%s\"%s\" %s%s", t->n ? ", " : "", name,
			    sqlunion_is_id(name) ? "" :
			    type                 ? type :
						   "",
			    sqlite3_column_int(st, 2) == 1 ? " HIDDEN" : "");
		mem_grow(t->columns, t->n, cap);
		t->columns[t->n++] = mem_strdup(name);
	}
	if (t->n && store_names_hosts()) {
		strbuf_addstr(declared, ", host TEXT");
		mem_grow(t->columns, t->n, cap);
		t->columns[t->n++] = mem_strdup("host");
		t->hosts = true;
	}
	strbuf_addch(declared, ')');
	sqlite3_finalize(st);
	return t->n ? SQLITE_OK : SQLITE_ERROR;
}

static int table_close(sqlite3_vtab *base)
{
	struct table *t = (struct table *)base;

	for (size_t i = 0; i < t->n; i++)
		free(t->columns[i]);
	free(t->columns);
	free(t->view);
	free(t);
	return SQLITE_OK;
}

/* Views whose rows are those of a table by bucket (schema/store/files/span.h). */
static bool is_timed(const char *view)
{
	static const char *const names[] = {"cpu_samples",     "amounts",    "waits",
					    "wait_totals",     "requests",   "process_stats",
					    "container_stats", "host_stats", "net_stats",
					    "disk_stats",      "flows",      "block_stats"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(view, names[i]))
			return true;
	return false;
}

/* argv[3]: the view */
static int table_open(sqlite3 *db, void *u, int argc, const char *const *argv, sqlite3_vtab **out,
		      char **why)
{
	struct strbuf declared cleanup_strbuf = STRBUF_INIT;
	struct table *t = mem_alloc(sizeof(*t));
	int rc;

	t->u = u;
	t->view = mem_strdup(argc > 3 ? argv[3] : "");
	t->timed = is_timed(t->view);
	rc = read_columns(t, &declared);
	if (rc == SQLITE_OK)
		rc = sqlite3_declare_vtab(db, strbuf_str(&declared));
	if (rc != SQLITE_OK) {
		*why = sqlite3_mprintf("no segment has a view called %s", t->view);
		table_close(&t->base);
		return SQLITE_ERROR;
	}
	sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	*out = &t->base;
	return SQLITE_OK;
}

static const char *operator_of(unsigned char op)
{
	switch (op) {
	case SQLITE_INDEX_CONSTRAINT_EQ:
		return "=";
	case SQLITE_INDEX_CONSTRAINT_GT:
		return ">";
	case SQLITE_INDEX_CONSTRAINT_LE:
		return "<=";
	case SQLITE_INDEX_CONSTRAINT_LT:
		return "<";
	case SQLITE_INDEX_CONSTRAINT_GE:
		return ">=";
	default:
		return NULL;
	}
}

static void select_used(const struct table *t, uint64_t used, struct strbuf *sql)
{
	strbuf_addstr(sql, "SELECT ");
	for (size_t i = 0; i < t->n; i++) {
		if (is_host(t, i))
			strbuf_addf(sql, ", %s()", SQLUNION_HOST);
		else if (used >> (i < 63 ? i : 63) & 1)
			strbuf_addf(sql, "%s\"%s\"", i ? ", " : "", t->columns[i]);
		else
			strbuf_addf(sql, "%sNULL", i ? ", " : "");
	}
	strbuf_addf(sql, " FROM %c", SOURCE);
}

/* How much of the rows a comparison leaves. */
static double share_of(const char *column, bool equal, bool id)
{
	if (!equal)
		return 0.25;
	return !strcmp(column, "id") ? 1 / ROWS_GUESS : id ? 1e-4 : 0.05;
}

/* What an argument says: "i": an id; "f", "t": the first and the last ts that are wanted. */
static char kind_of(const struct table *t, const char *column, const char *op, bool id)
{
	if (!t->timed || strcmp(column, "ts") != 0)
		return id ? 'i' : 'v';
	return *op == '>' ? 'f' : *op == '<' ? 't' : 'v';
}

/* idxStr: for each argument kind_of, then "|" and the statement. */
static int best_index(sqlite3_vtab *base, sqlite3_index_info *info)
{
	struct table *t = (struct table *)base;
	struct strbuf kinds cleanup_strbuf = STRBUF_INIT, sql cleanup_strbuf = STRBUF_INIT;
	double rows = ROWS_GUESS;

	select_used(t, info->colUsed, &sql);
	for (int i = 0; i < info->nConstraint && kinds.len < ARGS_MAX; i++) {
		int column = info->aConstraint[i].iColumn;
		const char *op = operator_of(info->aConstraint[i].op);
		bool id = column >= 0 && sqlunion_is_id(t->columns[column]);

		if (!info->aConstraint[i].usable || column < 0 || is_host(t, (size_t)column) ||
		    !op || (id && *op != '=') || strcmp(sqlite3_vtab_collation(info, i), "BINARY"))
			continue;
		strbuf_addch(&kinds, kind_of(t, t->columns[column], op, id));
		strbuf_addf(&sql, "%s\"%s\" %s ?%zu", kinds.len > 1 ? " AND " : " WHERE ",
			    t->columns[column], op, kinds.len);
		info->aConstraintUsage[i].argvIndex = (int)kinds.len;
		rows *= share_of(t->columns[column], *op == '=', id);
	}
	info->idxStr = sqlite3_mprintf("%s|%s", strbuf_str(&kinds), strbuf_str(&sql));
	info->needToFreeIdxStr = 1;
	info->estimatedRows = (sqlite3_int64)rows + 1;
	info->estimatedCost = rows + 10;
	return info->idxStr ? SQLITE_OK : SQLITE_NOMEM;
}

/* ---- a scan ---- */

static int cursor_open(sqlite3_vtab *base, sqlite3_vtab_cursor **out)
{
	struct cursor *c = mem_alloc(sizeof(*c));

	(void)base;
	*out = &c->base;
	return SQLITE_OK;
}

static void args_clear(struct cursor *c)
{
	for (int i = 0; i < c->n_args; i++)
		sqlite3_value_free(c->args[i]);
	c->n_args = 0;
}

static int cursor_close(sqlite3_vtab_cursor *base)
{
	struct cursor *c = (struct cursor *)base;

	for (size_t i = 0; i < SLOTS; i++)
		slot_clear(&c->slots[i]);
	args_clear(c);
	free(c->sql);
	free(c);
	return SQLITE_OK;
}

/* An id names its segment: only that one is asked, for what the id is there. */
static void narrow(struct cursor *c, int arg, int64_t id)
{
	size_t segment = (size_t)(id >> SQLUNION_ID_SHIFT);

	if (id <= 0)
		return; /* means the same everywhere */
	c->is_local[arg] = true;
	c->locals[arg] = id & ((1ll << SQLUNION_ID_SHIFT) - 1);
	if (segment < c->at || segment >= c->end) {
		c->at = c->end = 0;
		return;
	}
	c->at = segment;
	c->end = segment + 1;
}

static void bind(const struct cursor *c, sqlite3_stmt *st)
{
	for (int i = 0; i < c->n_args; i++)
		if (c->is_local[i])
			sqlite3_bind_int64(st, i + 1, c->locals[i]);
		else
			sqlite3_bind_value(st, i + 1, c->args[i]);
}

/* Only rows from that ts on, or up to it, are wanted. */
static void narrow_ts(struct cursor *c, char kind, sqlite3_value *v)
{
	const int type = sqlite3_value_type(v);
	const double ts = sqlite3_value_double(v);

	if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || !(ts > -1e15 && ts < 1e15))
		return;
	if (kind == 'f' && (int64_t)ts > c->from_s)
		c->from_s = (int64_t)ts;
	else if (kind == 't' && (int64_t)ts < c->to_s)
		c->to_s = (int64_t)ts;
}

static bool is_elsewhere(const struct cursor *c)
{
	const struct sqlunion_span *span =
		&((const struct table *)c->base.pVtab)->u->members[c->at].span;

	return span->to_s &&
	       (span->to_s + SPAN_SLACK_S < c->from_s || span->from_s - SPAN_SLACK_S > c->to_s);
}

/* To the next row: of this segment, else of the next one that has any. */
static int advance(struct cursor *c)
{
	for (;;) {
		int rc;

		if (!c->st) {
			while (c->at < c->end && is_elsewhere(c))
				c->at++;
			if (c->at >= c->end)
				return SQLITE_OK;
			c->st = statement(c, c->at);
			if (!c->st)
				return SQLITE_ERROR;
			bind(c, c->st);
		}
		rc = sqlite3_step(c->st);
		c->row++;
		if (rc == SQLITE_ROW)
			return SQLITE_OK;
		if (rc != SQLITE_DONE) {
			table_error(c->base.pVtab, sqlite3_errmsg(sqlite3_db_handle(c->st)));
			return rc;
		}
		sqlite3_reset(c->st);
		c->st = NULL;
		c->at++;
	}
}

static int cursor_filter(sqlite3_vtab_cursor *base, int number, const char *plan, int argc,
			 sqlite3_value **argv)
{
	struct cursor *c = (struct cursor *)base;

	(void)number;
	if (c->st)
		sqlite3_reset(c->st);
	c->st = NULL;
	args_clear(c);
	c->at = 0;
	c->end = ((struct table *)base->pVtab)->u->n;
	c->from_s = INT64_MIN;
	c->to_s = INT64_MAX;
	for (int i = 0; i < argc && i < ARGS_MAX; i++) {
		c->args[i] = sqlite3_value_dup(argv[i]);
		c->n_args = i + 1;
		c->is_local[i] = false;
		if (plan[i] == 'i' && sqlite3_value_type(argv[i]) == SQLITE_INTEGER)
			narrow(c, i, sqlite3_value_int64(argv[i]));
		else if (plan[i] == 'i' && sqlite3_value_type(argv[i]) == SQLITE_FLOAT &&
			 sqlite3_value_double(argv[i]) < 9e18 &&
			 sqlite3_value_double(argv[i]) > -9e18)
			narrow(c, i, (int64_t)sqlite3_value_double(argv[i]));
		else if (plan[i] == 'f' || plan[i] == 't')
			narrow_ts(c, plan[i], argv[i]);
	}
	plan = strchr(plan, '|') + 1;
	if (!c->sql || strcmp(c->sql, plan)) {
		free(c->sql);
		c->sql = mem_strdup(plan);
	}
	return advance(c);
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
	return advance((struct cursor *)base);
}

static int cursor_eof(sqlite3_vtab_cursor *base)
{
	return !((struct cursor *)base)->st;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *out, int column)
{
	const struct cursor *c = (struct cursor *)base;
	const struct table *t = (struct table *)base->pVtab;

	if (sqlunion_is_id(t->columns[column]) &&
	    sqlite3_column_type(c->st, column) == SQLITE_INTEGER &&
	    sqlite3_column_int64(c->st, column) > 0)
		sqlite3_result_int64(out, sqlite3_column_int64(c->st, column) |
						  (int64_t)c->at << SQLUNION_ID_SHIFT);
	else
		sqlite3_result_value(out, sqlite3_column_value(c->st, column));
	return SQLITE_OK;
}

static int cursor_rowid(sqlite3_vtab_cursor *base, sqlite3_int64 *out)
{
	*out = ((struct cursor *)base)->row;
	return SQLITE_OK;
}

static const sqlite3_module MODULE = {
	.iVersion = 1,
	.xCreate = table_open,
	.xConnect = table_open,
	.xBestIndex = best_index,
	.xDisconnect = table_close,
	.xDestroy = table_close,
	.xOpen = cursor_open,
	.xClose = cursor_close,
	.xFilter = cursor_filter,
	.xNext = cursor_next,
	.xEof = cursor_eof,
	.xColumn = cursor_column,
	.xRowid = cursor_rowid,
};

/* ---- all of them ---- */

int sqlunion_new(sqlite3 *db, const char *const *paths, const struct sqlunion_span *spans, size_t n,
		 size_t model, int (*prepare)(sqlite3 *db, void *ctx, struct err *e), void *ctx,
		 struct sqlunion **out, struct err *e)
{
	struct sqlunion *u = mem_alloc(sizeof(*u));

	u->db = db;
	u->model = model;
	u->prepare = prepare;
	u->ctx = ctx;
	u->members = mem_array(n, sizeof(*u->members));
	for (; u->n < n; u->n++)
		u->members[u->n] =
			(struct member){.path = mem_strdup(paths[u->n]),
					.span = spans ? spans[u->n] : (struct sqlunion_span){0, 0}};
	if (sqlite3_create_module_v2(db, "sonde_union", &MODULE, u, NULL) != SQLITE_OK) {
		err_set(e, -EIO, EXIT_RUNTIME, "cannot join the segments: %s", sqlite3_errmsg(db));
		sqlunion_free(u);
		return -EIO;
	}
	*out = u;
	return 0;
}

void sqlunion_free(struct sqlunion *u)
{
	if (!u)
		return;
	for (size_t i = 0; i < u->n; i++) {
		if (u->members[i].open)
			store_segment_close(u->members[i].open);
		free(u->members[i].path);
	}
	free(u->members);
	free(u);
}

int sqlunion_has_view(struct sqlunion *u, const char *view, struct err *e)
{
	struct member *model = &u->members[u->model];
	int rc = member_get(u, model, e);

	if (rc < 0)
		return rc;
	model->users--;
	return has_view(store_segment_tables(model->open), view);
}

int sqlunion_table(struct sqlunion *u, const char *name, const char *view, struct err *e)
{
	char *sql = sqlite3_mprintf("CREATE VIRTUAL TABLE temp.\"%w\" USING sonde_union(%s)", name,
				    view),
	     *why = NULL;
	int rc = sqlite3_exec(u->db, sql, NULL, NULL, &why);

	sqlite3_free(sql);
	if (rc == SQLITE_OK)
		return 0;
	err_set(e, -EIO, EXIT_STORE, "cannot join the segments: %s",
		why ? why : sqlite3_errstr(rc));
	sqlite3_free(why);
	return -EIO;
}
