/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/store/archive/day_merge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/argshare.h"
#include "schema/store/model/sql.h"

#define COLUMNS_MOST 32
#define OUTER_MOST   64 /* functions at one place */
#define ROWS_MOST    (16 << 20)

/* ---- the tables: their columns, and what these refer to ---- */

/* Of what a column of a dictionary is the id. All others are as they are. */
static const struct {
	enum day_dict table;
	const char *column;
	enum day_dict what;
} REFERS[] = {
	{DAY_FUNCTION, "image", DAY_IMAGE},        {DAY_FUNCTION, "source", DAY_SOURCE},
	{DAY_FRAME, "image", DAY_IMAGE},           {DAY_FRAME, "function", DAY_FUNCTION},
	{DAY_FRAME, "outer", DAY_FRAME},           {DAY_PROCESS, "exe", DAY_TEXT},
	{DAY_PROCESS, "cgroup", DAY_TEXT},         {DAY_PROCESS, "unit", DAY_TEXT},
	{DAY_PROCESS, "lang", DAY_TEXT},           {DAY_PROCESS, "runtime", DAY_TEXT},
	{DAY_PROCESS, "container", DAY_CONTAINER}, {DAY_TASK, "run", DAY_FIRST},
	{DAY_TASK, "process", DAY_PROCESS},
};

static const char *const TABLES[DAY_DICTS] = {
	[DAY_TEXT] = "text",       [DAY_CONTAINER] = "container", [DAY_IMAGE] = "image",
	[DAY_SOURCE] = "source",   [DAY_FUNCTION] = "function",   [DAY_FRAME] = "frame",
	[DAY_PROCESS] = "process", [DAY_TASK] = "task",           [DAY_STACK] = "stack",
};

/* Of a table: its columns but the id, in order. */
struct columns {
	int n;
	char name[COLUMNS_MOST][64];
	enum day_dict what[COLUMNS_MOST];
};

static int columns_of(struct day_merge *m, enum day_dict table, struct columns *out)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		m->db,
		"SELECT name FROM pragma_table_info(?1, 'main') WHERE name <> 'id' ORDER BY cid",
		-1, &st, NULL);

	*out = (struct columns){0};
	sqlite3_bind_text(st, 1, TABLES[table], -1, SQLITE_STATIC);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		rc = out->n < COLUMNS_MOST ? SQLITE_OK : SQLITE_TOOBIG;
		if (rc != SQLITE_OK)
			break;
		snprintf(out->name[out->n], sizeof(out->name[0]), "%s", name ? name : "");
		out->what[out->n] = DAY_PLAIN;
		for (size_t i = 0; i < ARRAY_SIZE(REFERS); i++)
			if (REFERS[i].table == table && !strcmp(REFERS[i].column, name))
				out->what[out->n] = REFERS[i].what;
		out->n++;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int column_named(const struct columns *c, const char *name)
{
	int i = 0;

	while (i < c->n && strcmp(c->name[i], name) != 0)
		i++;
	return i;
}

static int select_all(struct day_merge *m, enum day_dict table, const struct columns *c,
		      sqlite3_stmt **out)
{
	struct strbuf sql = STRBUF_INIT;
	int rc;

	strbuf_addstr(&sql, "SELECT id");
	for (int i = 0; i < c->n; i++)
		strbuf_addf(&sql, ", \"%s\"", c->name[i]);
	strbuf_addf(&sql, " FROM \"%s\" ORDER BY id", TABLES[table]);
	rc = sqlite3_prepare_v2(m->from, strbuf_str(&sql), -1, out, NULL);
	strbuf_release(&sql);
	return rc;
}

/* ---- a row of the file that is made ---- */

/* A value of a row: a number, or a text. */
struct value {
	int64_t number;
	const char *text; /* NULL: a number */
	size_t len;
};

static int insert_prepare(struct day_merge *m, enum day_dict table, int n)
{
	struct strbuf sql = STRBUF_INIT;
	int rc;

	strbuf_addf(&sql, "INSERT INTO \"%s\" VALUES(?", TABLES[table]);
	for (int i = 0; i < n; i++)
		strbuf_addstr(&sql, ", ?");
	strbuf_addstr(&sql, ")");
	rc = sqlite3_prepare_v2(m->db, strbuf_str(&sql), -1, &m->joined[table].insert, NULL);
	strbuf_release(&sql);
	return rc;
}

static int insert(struct day_merge *m, enum day_dict table, const struct value *v, int n)
{
	struct day_joined *j = &m->joined[table];
	int rc = j->insert ? SQLITE_OK : insert_prepare(m, table, n);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(j->insert, 1, (int64_t)j->n);
	for (int i = 0; i < n; i++)
		if (v[i].text)
			sqlite3_bind_text(j->insert, i + 2, v[i].text, (int)v[i].len,
					  SQLITE_STATIC);
		else
			sqlite3_bind_int64(j->insert, i + 2, v[i].number);
	sqlite3_step(j->insert);
	return sqlite3_reset(j->insert);
}

/* `apart`: it is no other archive's. */
static int join(struct day_merge *m, enum day_dict table, const struct value *v, int n, bool apart,
		uint32_t *id)
{
	struct day_joined *j = &m->joined[table];
	uint64_t key = hash_u64(HASH_SEED, apart ? m->hour + 1 : 0),
		 check = hash_u64(~HASH_SEED, key), *at;
	bool fresh;

	for (int i = 0; i < n; i++) {
		const void *data = v[i].text ? (const void *)v[i].text : &v[i].number;
		const size_t len = v[i].text ? v[i].len : sizeof(v[i].number);

		key = hash_u64(hash_bytes(key, data, len), len);
		check = hash_u64(hash_bytes(check, data, len), len + 7);
	}
	at = idmap_ref(&j->id_of, key, &fresh);
	if (!fresh) {
		*id = (uint32_t)*at;
		m->collided |= j->check[*at] != check;
		return SQLITE_OK;
	}
	*id = (uint32_t)(*at = ++j->n);
	if (j->n + 1 > j->cap) {
		j->cap = 2 * (j->n + 64);
		j->check = mem_realloc(j->check, j->cap * sizeof(*j->check));
	}
	j->check[j->n] = check;
	return insert(m, table, v, n);
}

/* ---- references ---- */

static uint32_t task_here(struct day_merge *m, int64_t id);

static uint32_t text_here(struct day_merge *m, int64_t id)
{
	struct value v;
	uint32_t here = 0;

	if (id <= 0 || (uint64_t)id >= m->n_map[DAY_TEXT] || !m->texts[id])
		return 0;
	if (m->map[DAY_TEXT][id])
		return m->map[DAY_TEXT][id];
	v = (struct value){.text = m->texts[id], .len = strlen(m->texts[id])};
	if (join(m, DAY_TEXT, &v, 1, false, &here) != SQLITE_OK)
		m->collided = true;
	m->map[DAY_TEXT][id] = here;
	return here;
}

int64_t day_merge_ref(struct day_merge *m, enum day_dict what, int64_t id)
{
	switch (what) {
	case DAY_PLAIN:
		return id;
	case DAY_TS:
		return id + m->from_t0 - m->t0;
	case DAY_RUN:
	case DAY_FIRST:
		if (id <= 0 || (uint64_t)id >= m->n_map_run || !m->map_run[id])
			return 0;
		return what == DAY_RUN ? m->map_run[id] : m->runs[m->map_run[id]].first;
	case DAY_TEXT:
		return text_here(m, id);
	case DAY_TASK:
		return day_merge_task(m, id);
	case DAY_OTHER_TASK:
		return task_here(m, id);
	case DAY_STACK:
		return day_stacks_join(m, id);
	default:
		return what < DAY_DICTS && id > 0 && (uint64_t)id < m->n_map[what] ?
			       m->map[what][id] :
			       0;
	}
}

/* ---- an archive's tables ---- */

static void value_of(struct day_merge *m, sqlite3_stmt *st, int column, enum day_dict what,
		     struct value *out)
{
	if (sqlite3_column_type(st, column) == SQLITE_TEXT)
		*out = (struct value){.text = (const char *)sqlite3_column_text(st, column),
				      .len = (size_t)sqlite3_column_bytes(st, column)};
	else
		*out = (struct value){
			.number = day_merge_ref(m, what, sqlite3_column_int64(st, column))};
}

/* A process's command line as a whole: how it is shared with others is another matter in each file.
 */
static void args_whole(struct day_merge *m, const struct columns *c, sqlite3_stmt *st,
		       struct value *v, struct strbuf *args)
{
	const int base = column_named(c, "args_base"), keep = column_named(c, "args_keep"),
		  own = column_named(c, "args"), end = column_named(c, "args_end");
	const int64_t text = sqlite3_column_int64(st, base + 1);
	const char *whole = text > 0 && (uint64_t)text < m->n_map[DAY_TEXT] ? m->texts[text] : NULL,
		   *mine = (const char *)sqlite3_column_text(st, own + 1);

	strbuf_reset(args);
	argshare_whole(whole ? whole : "", (size_t)sqlite3_column_int64(st, keep + 1),
		       mine ? mine : "", (size_t)sqlite3_column_int64(st, end + 1), args);
	v[base] = v[keep] = v[end] = (struct value){0};
	v[own] = (struct value){.text = strbuf_str(args), .len = args->len};
}

static int join_table(struct day_merge *m, enum day_dict table)
{
	struct columns c;
	struct strbuf args = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc = columns_of(m, table, &c);
	const int end = column_named(&c, "end_ns");

	if (rc == SQLITE_OK)
		rc = select_all(m, table, &c, &st);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);
		struct value v[COLUMNS_MOST];

		rc = SQLITE_OK;
		if (id <= 0 || (uint64_t)id >= m->n_map[table])
			continue;
		for (int i = 0; i < c.n; i++)
			value_of(m, st, i + 1, c.what[i], &v[i]);
		if (table == DAY_PROCESS)
			args_whole(m, &c, st, v, &args);
		rc = join(m, table, v, c.n, table == DAY_PROCESS && v[end].number,
			  &m->map[table][id]);
	}
	sqlite3_finalize(st);
	strbuf_release(&args);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int read_texts(struct day_merge *m)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(m->from, "SELECT id, value FROM text", -1, &st, NULL);

	m->texts = mem_array(m->n_map[DAY_TEXT], sizeof(*m->texts));
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);
		const char *text = (const char *)sqlite3_column_text(st, 1);

		if (id > 0 && (uint64_t)id < m->n_map[DAY_TEXT] && !m->texts[id])
			m->texts[id] = mem_strdup(text ? text : "");
		rc = SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- frames and threads: rows of numbers, by id ---- */

/* A frame after the one that it was inlined into. */
static int join_frame(struct day_merge *m, const struct columns *c, int64_t (*rows)[COLUMNS_MOST],
		      const bool *there, size_t id, int depth)
{
	const int outer = column_named(c, "outer");
	struct value v[COLUMNS_MOST];
	const int64_t around = rows[id][outer];
	int rc = SQLITE_OK;

	if (m->map[DAY_FRAME][id] || depth > OUTER_MOST)
		return SQLITE_OK;
	if (around > 0 && (uint64_t)around < m->n_map[DAY_FRAME] && there[around])
		rc = join_frame(m, c, rows, there, (size_t)around, depth + 1);
	for (int i = 0; i < c->n; i++)
		v[i] = (struct value){.number = day_merge_ref(m, c->what[i], rows[id][i])};
	return rc == SQLITE_OK ? join(m, DAY_FRAME, v, c->n, false, &m->map[DAY_FRAME][id]) : rc;
}

static int join_frames(struct day_merge *m)
{
	const size_t n = m->n_map[DAY_FRAME];
	int64_t(*rows)[COLUMNS_MOST] = mem_array(n, sizeof(*rows));
	bool *there = mem_array(n, sizeof(*there));
	struct columns c;
	sqlite3_stmt *st = NULL;
	int rc = columns_of(m, DAY_FRAME, &c);

	if (rc == SQLITE_OK)
		rc = select_all(m, DAY_FRAME, &c, &st);
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);

		rc = SQLITE_OK;
		if (id <= 0 || (uint64_t)id >= n)
			continue;
		there[id] = true;
		for (int i = 0; i < c.n; i++)
			rows[id][i] = sqlite3_column_int64(st, i + 1);
	}
	sqlite3_finalize(st);
	rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
	for (size_t i = 1; rc == SQLITE_OK && i < n; i++)
		if (there[i])
			rc = join_frame(m, &c, rows, there, i, 0);
	free(rows);
	free(there);
	return rc;
}

static void hours_put(struct day_merge *m, uint32_t task)
{
	if (task >= m->cap_hours) {
		const size_t cap = 2 * (task + 64ul);

		m->task_hours = mem_realloc(m->task_hours, cap * sizeof(*m->task_hours));
		memset(m->task_hours + m->cap_hours, 0,
		       (cap - m->cap_hours) * sizeof(*m->task_hours));
		m->cap_hours = cap;
	}
	m->task_hours[task] |= 1ull << m->hour;
}

static int read_tasks(struct day_merge *m)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(m->from, "SELECT id, run, process, tid, kind, thread FROM task",
				    -1, &st, NULL);

	m->tasks = mem_array(m->n_map[DAY_TASK], sizeof(*m->tasks));
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);
		const char *thread = (const char *)sqlite3_column_text(st, 5);
		struct day_task *t;

		rc = SQLITE_OK;
		if (id <= 0 || (uint64_t)id >= m->n_map[DAY_TASK])
			continue;
		t = &m->tasks[id];
		for (int i = 0; i < 4; i++)
			t->number[i] = sqlite3_column_int64(st, i + 1);
		free(t->thread);
		t->thread = mem_strdup(thread ? thread : "");
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static uint32_t task_here(struct day_merge *m, int64_t id)
{
	const struct day_task *t;
	uint32_t here = 0;

	if (id <= 0 || (uint64_t)id >= m->n_map[DAY_TASK] || !m->tasks[id].thread)
		return 0;
	t = &m->tasks[id];
	if (!m->map[DAY_TASK][id]) {
		const struct value v[] = {{.number = day_merge_ref(m, DAY_FIRST, t->number[0])},
					  {.number = day_merge_ref(m, DAY_PROCESS, t->number[1])},
					  {.number = t->number[2]},
					  {.number = t->number[3]},
					  {.text = t->thread, .len = strlen(t->thread)}};

		if (join(m, DAY_TASK, v, ARRAY_SIZE(v), false, &here) != SQLITE_OK)
			m->collided = true;
		m->map[DAY_TASK][id] = here;
	}
	return m->map[DAY_TASK][id];
}

uint32_t day_merge_task(struct day_merge *m, int64_t id)
{
	const uint32_t here = task_here(m, id);

	if (here)
		hours_put(m, here);
	return here;
}

/* ---- runs ---- */

static uint64_t alike(sqlite3_stmt *st)
{
	uint64_t h = HASH_SEED;

	for (int i = 1; i < sqlite3_column_count(st); i++) {
		const char *v = (const char *)sqlite3_column_text(st, i);

		h = hash_str(h, v ? v : "");
	}
	return h;
}

static uint32_t run_new(struct day_merge *m, uint64_t h)
{
	const uint32_t id = (uint32_t)++m->n_runs;

	if (id >= m->cap_runs) {
		m->cap_runs = 2 * (id + 32ul);
		m->runs = mem_realloc(m->runs, m->cap_runs * sizeof(*m->runs));
	}
	m->runs[id] = (struct day_run){.alike = h, .first = id, .hour = m->hour};
	for (uint32_t i = 1; i < id && m->runs[id].first == id; i++)
		if (m->runs[i].alike == h)
			m->runs[id].first = m->runs[i].first;
	return id;
}

/* The row as it is, but for its id. */
static int run_put(struct day_merge *m, int64_t there, uint32_t here)
{
	sqlite3_stmt *from = NULL, *to = NULL;
	int rc = sqlite3_prepare_v2(
		m->from,
		"SELECT token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted, recording FROM run WHERE id = ?1",
		-1, &from, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(
			m->db,
			"INSERT INTO run(token, family, options, scope, bucket_s, cpus, from_ns, to_ns, state, pid, accounted, recording, id)"
			" VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
			-1, &to, NULL);
	sqlite3_bind_int64(from, 1, there);
	if (rc == SQLITE_OK && sqlite3_step(from) == SQLITE_ROW) {
		for (int i = 0; i < 12; i++)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		sqlite3_bind_int64(to, 13, here);
		sqlite3_step(to);
		rc = sqlite3_reset(to);
	}
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	return rc;
}

static int periods_put(struct day_merge *m)
{
	sqlite3_stmt *from = NULL, *to = NULL;
	int rc = sqlite3_prepare_v2(m->from, "SELECT run, from_ns, period_ns FROM run_period", -1,
				    &from, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(m->db, "INSERT INTO run_period VALUES(?, ?, ?)", -1, &to,
					NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(from)) == SQLITE_ROW) {
		sqlite3_bind_int64(to, 1, day_merge_ref(m, DAY_RUN, sqlite3_column_int64(from, 0)));
		sqlite3_bind_int64(to, 2, sqlite3_column_int64(from, 1));
		sqlite3_bind_int64(to, 3, sqlite3_column_int64(from, 2));
		sqlite3_step(to);
		rc = sqlite3_reset(to);
	}
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int join_runs(struct day_merge *m)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		m->from,
		"SELECT id, family, options, scope, bucket_s, cpus, (SELECT period_ns FROM run_period p WHERE p.run = r.id) FROM run r ORDER BY id",
		-1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const int64_t id = sqlite3_column_int64(st, 0);

		rc = SQLITE_OK;
		if (id <= 0 || (uint64_t)id >= m->n_map_run)
			continue;
		m->map_run[id] = run_new(m, alike(st));
		rc = run_put(m, id, m->map_run[id]);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? periods_put(m) : rc;
}

/* ---- one archive ---- */

static int room(struct day_merge *m)
{
	char sql[96];

	for (int i = 0; i < DAY_DICTS; i++) {
		int64_t most;

		snprintf(sql, sizeof(sql), "SELECT max(id) FROM \"%s\"", TABLES[i]);
		most = sql_number(m->from, sql, 0);
		if (most < 0 || most > ROWS_MOST)
			return SQLITE_TOOBIG;
		m->n_map[i] = (size_t)most + 1;
		m->map[i] = mem_array(m->n_map[i], sizeof(*m->map[i]));
	}
	m->n_map_run =
		(size_t)sql_number(m->from, "SELECT max(id) FROM run WHERE id < 65536", 0) + 1;
	m->map_run = mem_array(m->n_map_run, sizeof(*m->map_run));
	return SQLITE_OK;
}

int day_merge_begin(struct day_merge *m, sqlite3 *from, uint32_t hour)
{
	static const enum day_dict ORDER[] = {DAY_CONTAINER, DAY_IMAGE, DAY_SOURCE, DAY_FUNCTION,
					      DAY_PROCESS};
	int rc;

	m->from = from;
	m->hour = hour;
	m->from_t0 = sql_number(from, "SELECT value FROM meta WHERE key = 't0'", 0);
	rc = room(m);
	if (rc == SQLITE_OK)
		rc = join_runs(m);
	if (rc == SQLITE_OK)
		rc = read_texts(m);
	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(ORDER); i++)
		rc = join_table(m, ORDER[i]);
	if (rc == SQLITE_OK)
		rc = join_frames(m);
	if (rc == SQLITE_OK)
		rc = read_tasks(m);
	return rc == SQLITE_OK ? day_stacks_read(m) : rc;
}

void day_merge_end(struct day_merge *m)
{
	day_stacks_forget(m);
	for (size_t i = 0; m->texts && i < m->n_map[DAY_TEXT]; i++)
		free(m->texts[i]);
	for (size_t i = 0; m->tasks && i < m->n_map[DAY_TASK]; i++)
		free(m->tasks[i].thread);
	free(m->texts);
	free(m->tasks);
	free(m->map_run);
	for (int i = 0; i < DAY_DICTS; i++) {
		free(m->map[i]);
		m->map[i] = NULL;
		m->n_map[i] = 0;
	}
	m->texts = NULL;
	m->tasks = NULL;
	m->map_run = NULL;
	m->n_map_run = 0;
	m->from = NULL;
}

void day_merge_release(struct day_merge *m)
{
	day_merge_end(m);
	for (size_t i = 1; m->stacks && i <= m->joined[DAY_STACK].n; i++)
		free(m->stacks[i].frames);
	free(m->stacks);
	free(m->stack_id);
	free(m->runs);
	free(m->task_hours);
	for (int i = 0; i < DAY_DICTS; i++) {
		idmap_release(&m->joined[i].id_of);
		free(m->joined[i].check);
		sqlite3_finalize(m->joined[i].insert);
	}
}
