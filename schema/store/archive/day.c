/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/archive/day.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/facts/fact.h"
#include "schema/store/archive/day_merge.h"
#include "schema/store/archive/day_rows.h"
#include "schema/store/archive/day_waits.h"
#include "schema/store/archive/remake.h"
#include "schema/store/files/migrate.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/files/span.h"
#include "schema/store/files/stamp.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/pack_table.h"
#include "schema/store/packed/packing.h"
#include "schema/store/packed/sample_sums.h"
#include "schema/store/packed/sums.h"

#define CARRIED_MOST 2000 /* rows of a table that is not summed */
#define COLUMNS_MOST 80
#define BUCKET_MAX_S 3600
#define SUMMED_MOST  32

/* ---- rule 5 ---- */

static bool is_fit(sqlite3 *db)
{
	return migrate_version(db) == migrate_known() && readonly_archived_ns(db) &&
	       sql_number(db, "SELECT value FROM meta WHERE key = 'sums'", 0) > 0 &&
	       sql_number(db, "SELECT value FROM meta WHERE key = 'first_ts'", INT64_MIN) !=
		       INT64_MIN &&
	       !sql_number(db, SUMS_AT_ONCE, 1) &&
	       !sql_number(db, "SELECT EXISTS (SELECT 1 FROM task_label)", 1) &&
	       !sql_number(
		       db,
		       "SELECT EXISTS (SELECT 1 FROM run_period GROUP BY run HAVING count(*) > 1)",
		       1);
}

static bool may_be_member(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct err unsaid = {0};
	sqlite3 *db;
	bool fit;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path) ||
	    !folder_is_archived(path) || readonly_open(path, &db, &unsaid))
		return false;
	fit = is_fit(db);
	sqlite3_close(db);
	return fit;
}

size_t day_members(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, size_t *first)
{
	size_t best = 0, now = 0;

	for (size_t i = 0; i < n; i++) {
		now = may_be_member(dir, names[i]) ? now + 1 : 0;
		if (now > best && now <= DAY_MOST) {
			best = now;
			*first = i + 1 - now;
		}
	}
	return best >= DAY_LEAST ? best : 0;
}

/* ---- what is made ---- */

struct making {
	const char *dir;
	char (*names)[SEGMENT_NAME_MAX];
	size_t n;
	struct day_merge m;
	int64_t first, last;       /* seconds since 1970, both included: a range has all of it */
	int64_t first_ts, last_ts; /* as an archive notes them */
	int64_t stamp[DAY_MOST];
	struct idmap samples; /* thread << 32 | number of the stack -> samples */
	struct idmap amounts; /* thread -> its place among these: */
	struct amount {
		int64_t task, n, value;
	} * of_task;
	size_t n_amounts, cap_amounts;
	struct day_waits waits;
	const char *summed[SUMMED_MOST]; /* tables of rows that have sums */
	size_t n_summed;
	bool at_once; /* two runs of neighbours overlap */
	int failed;   /* -errno */
};

/* Of a table what its column refers to; `sums`: it is a table of sums. */
static enum day_dict refers(const struct fact *f, const char *column, bool sums)
{
	static const enum day_dict of_type[] = {
		[FACT_NUMBER] = DAY_PLAIN,    [FACT_TEXT] = DAY_TEXT,
		[FACT_PROCESS] = DAY_PROCESS, [FACT_CONTAINER] = DAY_CONTAINER,
		[FACT_SERIES] = DAY_PLAIN,    [FACT_TAG] = DAY_PLAIN};
	static const struct {
		const char *column;
		enum day_dict what;
	} others[] = {{"process", DAY_PROCESS}, {"task", DAY_TASK},          {"protocol", DAY_TEXT},
		      {"service", DAY_TEXT},    {"operation", DAY_TEXT},     {"status", DAY_TEXT},
		      {"comm", DAY_TEXT},       {"container", DAY_CONTAINER}};

	if (!strcmp(column, "ts"))
		return DAY_TS;
	if (!strcmp(column, "run"))
		return sums ? DAY_FIRST : DAY_RUN;
	for (uint32_t i = 0; f && i < f->n; i++)
		if (!strcmp(f->columns[i].name, column))
			return of_type[f->columns[i].type];
	for (size_t i = 0; !f && i < ARRAY_SIZE(others); i++)
		if (!strcmp(others[i].column, column))
			return others[i].what;
	return DAY_PLAIN;
}

static const struct fact *fact_named(const char *table)
{
	for (size_t i = 0; FACTS[i]; i++)
		if (!strcmp(FACTS[i]->table, table))
			return FACTS[i];
	return NULL;
}

/* Column `status` of end_row is a number, of requests it is a text. */
static enum day_dict refers_in(const char *table, const char *column, bool sums)
{
	if (!strcmp(table, "end_row") && !strcmp(column, "status"))
		return DAY_PLAIN;
	return refers(fact_named(table), column, sums);
}

/* A mapped row into statement `to`. */
static int put_row(struct making *x, sqlite3_stmt *from, sqlite3_stmt *to,
		   const enum day_dict *what)
{
	for (int i = 0; i < sqlite3_column_count(from); i++) {
		if (what[i] == DAY_PLAIN || sqlite3_column_type(from, i) != SQLITE_INTEGER)
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		else
			sqlite3_bind_int64(
				to, i + 1,
				day_merge_ref(&x->m, what[i], sqlite3_column_int64(from, i)));
	}
	sqlite3_step(to);
	return sqlite3_reset(to);
}

/* All rows of `from` in the archive into `to`, which has columns of the same names; `table` tells
 * what they refer to. A table that the archive has not is empty. */
static int copy_rows(struct making *x, const char *from, const char *to, const char *table,
		     bool sums)
{
	struct strbuf select = STRBUF_INIT, insert = STRBUF_INIT;
	enum day_dict what[COLUMNS_MOST];
	sqlite3_stmt *in = NULL, *out = NULL;
	int rc;

	strbuf_addf(&select, "SELECT * FROM \"%s\"", from);
	rc = sqlite3_prepare_v2(x->m.from, strbuf_str(&select), -1, &in, NULL);
	if (rc == SQLITE_ERROR) {
		strbuf_release(&select);
		return SQLITE_OK;
	}
	strbuf_addf(&insert, "INSERT INTO \"%s\"(", to);
	for (int i = 0; rc == SQLITE_OK && i < sqlite3_column_count(in); i++) {
		if (i == COLUMNS_MOST)
			rc = SQLITE_TOOBIG;
		else
			what[i] = refers_in(table, sqlite3_column_name(in, i), sums);
		strbuf_addf(&insert, "%s\"%s\"", i ? ", " : "", sqlite3_column_name(in, i));
	}
	strbuf_addstr(&insert, ") VALUES(?");
	for (int i = 1; i < sqlite3_column_count(in); i++)
		strbuf_addstr(&insert, ", ?");
	strbuf_addstr(&insert, ")");
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(x->m.db, strbuf_str(&insert), -1, &out, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(in)) == SQLITE_ROW)
		rc = put_row(x, in, out, what);
	sqlite3_finalize(in);
	sqlite3_finalize(out);
	strbuf_release(&select);
	strbuf_release(&insert);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* ---- rule 2: sums of wide rows, waits, requests ---- */

static void name_parts(const char *table, const char *ending, char out[SUMS_NAME_MAX])
{
	snprintf(out, SUMS_NAME_MAX, "%.*s%s", (int)(strlen(table) - strlen("_row")), table,
		 ending);
}

static int sums_prepare(struct making *x)
{
	int rc = SQLITE_OK;

	while (rc == SQLITE_OK && x->n_summed < SUMMED_MOST) {
		rc = sums_parts(x->m.db, x->n_summed, &x->summed[x->n_summed]);
		x->n_summed += rc == SQLITE_OK;
	}
	return rc == SQLITE_DONE ? sample_sums_empty(x->m.db) : rc;
}

static int sums_add(struct making *x)
{
	char parts[SUMS_NAME_MAX], sum[SUMS_NAME_MAX];
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < x->n_summed; i++) {
		name_parts(x->summed[i], "_parts", parts);
		name_parts(x->summed[i], "_sum", sum);
		rc = copy_rows(x, sum, parts, x->summed[i], true);
	}
	return rc;
}

static int sums_end(struct making *x)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < x->n_summed; i++)
		rc = sums_of_parts(x->m.db, i);
	return rc;
}

/* ---- rule 2: samples and amounts ---- */

static bool has(sqlite3 *db, const char *table)
{
	char *sql = sqlite3_mprintf("SELECT rows FROM packed_table WHERE name = %Q", table);
	int64_t n = sql ? sql_number(db, sql, -1) : 0;

	sqlite3_free(sql);
	if (n >= 0)
		return n > 0;
	sql = sqlite3_mprintf("SELECT EXISTS (SELECT 1 FROM \"%w\")", table);
	n = sql ? sql_number(db, sql, 0) : 0;
	sqlite3_free(sql);
	return n > 0;
}

static bool add(int64_t *sum, int64_t n)
{
	return n >= 0 && !__builtin_add_overflow(*sum, n, sum);
}

/* SQLITE_DONE: the archive has no such sums. */
static int open_sums(struct making *x, struct day_rows *r, const char *sums, const char *columns,
		     const char *rows)
{
	const int rc = day_rows_open(r, x->m.from, sums, columns);

	if (rc != SQLITE_ERROR)
		return rc;
	x->m.too_large |= has(x->m.from, rows); /* so are its own sums */
	return SQLITE_DONE;
}

static int samples_add(struct making *x)
{
	struct day_rows r;
	int rc = open_sums(x, &r, SAMPLE_SUM, "task, stack, n", "sample");

	if (rc != SQLITE_OK)
		return rc == SQLITE_DONE ? SQLITE_OK : rc;
	while ((rc = day_rows_next(&r)) == SQLITE_ROW) {
		const uint64_t task = day_merge_task(&x->m, day_rows_number(&r, 0)),
			       stack = day_stacks_join(&x->m, day_rows_number(&r, 1));
		bool fresh;
		uint64_t *n = idmap_ref(&x->samples, task << 32 | stack, &fresh);

		x->m.too_large |= !add((int64_t *)n, day_rows_number(&r, 2));
	}
	return day_rows_close(&r, rc);
}

static int amounts_add(struct making *x)
{
	struct day_rows r;
	int rc = open_sums(x, &r, AMOUNT_SUM, "task, n, value", "amount");

	if (rc != SQLITE_OK)
		return rc == SQLITE_DONE ? SQLITE_OK : rc;
	while ((rc = day_rows_next(&r)) == SQLITE_ROW) {
		const uint32_t task = day_merge_task(&x->m, day_rows_number(&r, 0));
		bool fresh;
		uint64_t *at = idmap_ref(&x->amounts, task, &fresh);
		struct amount *a;

		if (fresh) {
			*at = x->n_amounts;
			mem_grow(x->of_task, x->n_amounts, x->cap_amounts);
			x->of_task[x->n_amounts++] = (struct amount){.task = task};
		}
		a = &x->of_task[*at];
		x->m.too_large |= !add(&a->n, day_rows_number(&r, 1)) ||
				  !add(&a->value, day_rows_number(&r, 2));
	}
	return day_rows_close(&r, rc);
}

struct sample {
	uint32_t task, stack;
	int64_t n;
};

static int by_task_and_stack(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	if (x->task != y->task)
		return x->task < y->task ? -1 : 1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

static int numbers_put(sqlite3_stmt *st, const int64_t *v, int n)
{
	for (int i = 0; i < n; i++)
		sqlite3_bind_int64(st, i + 1, v[i]);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int samples_put(struct making *x)
{
	cleanup_free struct sample *all = mem_array(x->samples.n + 1, sizeof(*all));
	sqlite3_stmt *st = NULL;
	size_t n = 0;
	int rc = sqlite3_prepare_v2(x->m.db, "INSERT INTO " SAMPLE_SUM " VALUES(?, ?, ?)", -1, &st,
				    NULL);

	for (size_t i = 0; i < x->samples.cap; i++) {
		const struct idmap_slot *s = &x->samples.slots[i];

		if (s->used && s->key >> 32)
			all[n++] =
				(struct sample){(uint32_t)(s->key >> 32),
						x->m.stack_id[(uint32_t)s->key], (int64_t)s->value};
	}
	if (n)
		qsort(all, n, sizeof(*all), by_task_and_stack);
	for (size_t i = 0; rc == SQLITE_OK && i < n; i++)
		rc = numbers_put(st, (int64_t[]){all[i].task, all[i].stack, all[i].n}, 3);
	sqlite3_finalize(st);
	return rc;
}

static int amounts_put(struct making *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(x->m.db, "INSERT INTO " AMOUNT_SUM " VALUES(?, ?, ?)", -1, &st,
				    NULL);

	for (size_t i = 0; rc == SQLITE_OK && i < x->n_amounts; i++)
		if (x->of_task[i].task)
			rc = numbers_put(st,
					 (int64_t[]){x->of_task[i].task, x->of_task[i].n,
						     x->of_task[i].value},
					 3);
	sqlite3_finalize(st);
	return rc;
}

/* ---- what only a day has ---- */

/* Losses, costs and how stacks ended are rows by bucket: of a range that has the whole day their
 * sums by run. */
#define DAY_TABLES                                                                                                                                                                                       \
	"CREATE TABLE day_file(name TEXT PRIMARY KEY, number INTEGER NOT NULL, stamp INTEGER NOT NULL, from_ns INTEGER NOT NULL, to_ns INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT, WITHOUT ROWID;" \
	"CREATE TABLE day_run(run INTEGER PRIMARY KEY, first INTEGER NOT NULL, number INTEGER NOT NULL, kinds INTEGER NOT NULL) STRICT;"                                                                 \
	"CREATE TABLE day_task(task INTEGER PRIMARY KEY, files INTEGER NOT NULL) STRICT;"                                                                                                                \
	"CREATE TABLE day_loss(run INTEGER NOT NULL, reason TEXT NOT NULL, n INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, PRIMARY KEY(run, reason)) STRICT, WITHOUT ROWID;"          \
	"CREATE TABLE day_cost(run INTEGER NOT NULL, program TEXT NOT NULL, cpu_ns INTEGER NOT NULL, PRIMARY KEY(run, program)) STRICT, WITHOUT ROWID;"                                                  \
	"CREATE TABLE day_unwound(run INTEGER NOT NULL, exe INTEGER NOT NULL, image INTEGER NOT NULL, reason INTEGER NOT NULL, n INTEGER NOT NULL, PRIMARY KEY(run, exe, image, reason)) STRICT, WITHOUT ROWID"

/* The rows that `select` has of the archive, of which column i refers to what[i]. */
static int copy_selected(struct making *x, const char *select, const char *insert,
			 const enum day_dict *what)
{
	sqlite3_stmt *in = NULL, *out = NULL;
	int rc = sqlite3_prepare_v2(x->m.from, select, -1, &in, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(x->m.db, insert, -1, &out, NULL);
	while (rc == SQLITE_OK && (rc = sqlite3_step(in)) == SQLITE_ROW)
		rc = put_row(x, in, out, what);
	sqlite3_finalize(in);
	sqlite3_finalize(out);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int condense(struct making *x)
{
	static const enum day_dict loss[] = {DAY_RUN, DAY_PLAIN, DAY_PLAIN, DAY_TS, DAY_TS},
				   cost[] = {DAY_RUN, DAY_PLAIN, DAY_PLAIN},
				   unwound[] = {DAY_RUN, DAY_TEXT, DAY_IMAGE, DAY_PLAIN, DAY_PLAIN};
	int rc = copy_selected(
		x, "SELECT run, reason, sum(n), min(ts), max(ts) FROM loss_row GROUP BY 1, 2",
		"INSERT INTO day_loss VALUES(?, ?, ?, ?, ?)", loss);

	if (rc == SQLITE_OK)
		rc = copy_selected(x,
				   "SELECT run, program, sum(cpu_ns) FROM cost_row GROUP BY 1, 2",
				   "INSERT INTO day_cost VALUES(?, ?, ?)", cost);
	return rc == SQLITE_OK ?
		       copy_selected(
			       x,
			       "SELECT run, exe, image, reason, sum(n) FROM unwound_row GROUP BY 1, 2, 3, 4",
			       "INSERT INTO day_unwound VALUES(?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
			       unwound) :
		       rc;
}

static void widen(struct making *x, int64_t first, int64_t last)
{
	x->first = first < x->first ? first : x->first;
	x->last = last > x->last ? last : x->last;
}

/* What a range must have for each of its tables to be in it as a whole. */
static void span_add(struct making *x)
{
	static const char *const tables[] = {"loss_row", "cost_row", "unwound_row"};
	const int64_t t0 = x->m.from_t0, shift = t0 - x->m.t0;
	int64_t first, last;

	if (span_noted(x->m.from, &first, &last)) {
		x->first_ts = first + shift < x->first_ts ? first + shift : x->first_ts;
		x->last_ts = last + shift > x->last_ts ? last + shift : x->last_ts;
		widen(x, t0 + first,
		      t0 + last - 1 +
			      sql_number(x->m.from, "SELECT max(bucket_s) FROM run", BUCKET_MAX_S));
	}
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		char sql[96];

		snprintf(sql, sizeof(sql), "SELECT min(ts) FROM %s", tables[i]);
		first = sql_number(x->m.from, sql, INT64_MAX);
		snprintf(sql, sizeof(sql), "SELECT max(ts) FROM %s", tables[i]);
		last = sql_number(x->m.from, sql, INT64_MIN);
		if (first != INT64_MAX)
			widen(x, t0 + first, t0 + last);
	}
}

/* As `segments` finds it (read/segments.c). */
static int file_put(struct making *x, const char *name, uint32_t number)
{
	sqlite3 *from = x->m.from;
	const int64_t t0 = x->m.from_t0, second = 1000000000;
	int64_t first = 0, last = 0, run_to = sql_number(from, "SELECT max(to_ns) FROM run", 0), to;
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(x->m.db, "INSERT INTO day_file VALUES(?1, ?2, ?3, ?4, ?5, ?6)",
				    -1, &st, NULL);

	span_noted(from, &first, &last);
	to = (t0 + last + sql_number(from, "SELECT max(bucket_s) FROM run", 1)) * second;
	if (run_to > (t0 + first) * second && run_to < to)
		to = run_to;
	sqlite3_bind_text(st, 1, name, -1, SQLITE_STATIC);
	sqlite3_bind_int64(st, 2, number);
	sqlite3_bind_int64(st, 3, x->stamp[number]);
	sqlite3_bind_int64(st, 4, (t0 + first) * second);
	sqlite3_bind_int64(st, 5, to);
	sqlite3_bind_int64(st, 6,
			   sql_number(from, "PRAGMA page_count", 0) *
				   sql_number(from, "PRAGMA page_size", 0));
	sqlite3_step(st);
	return rc == SQLITE_OK ? sqlite3_finalize(st) : rc;
}

/* Its own runs, with the kinds that each has. */
static int runs_note(struct making *x)
{
	sqlite3_stmt *kinds = NULL, *st = NULL;
	int rc = sqlite3_prepare_v2(x->m.from, "SELECT DISTINCT kind FROM task WHERE run = ?1", -1,
				    &kinds, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(x->m.db, "INSERT INTO day_run VALUES(?, ?, ?, ?)", -1, &st,
					NULL);
	for (size_t i = 1; rc == SQLITE_OK && i < x->m.n_map_run; i++) {
		const uint32_t run = x->m.map_run[i];
		int64_t mask = 0;

		if (!run)
			continue;
		sqlite3_bind_int64(kinds, 1, (int64_t)i);
		while (sqlite3_step(kinds) == SQLITE_ROW)
			if (sqlite3_column_int64(kinds, 0) >= 0 &&
			    sqlite3_column_int64(kinds, 0) < 32)
				mask |= 1ll << sqlite3_column_int64(kinds, 0);
		sqlite3_reset(kinds);
		rc = numbers_put(st, (int64_t[]){run, x->m.runs[run].first, x->m.hour, mask}, 4);
	}
	sqlite3_finalize(kinds);
	sqlite3_finalize(st);
	return rc;
}

static int tasks_note(struct making *x)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(x->m.db, "INSERT INTO day_task VALUES(?, ?)", -1, &st, NULL);

	for (size_t i = 1; rc == SQLITE_OK && i < x->m.cap_hours; i++)
		if (x->m.task_hours[i])
			rc = numbers_put(st, (int64_t[]){(int64_t)i, (int64_t)x->m.task_hours[i]},
					 2);
	sqlite3_finalize(st);
	return rc;
}

/* ---- rule 3 ---- */

/* Tables of the file that is made, but for those of the dictionary, of runs, and those that have
 * rows in each file. */
struct tables {
	char (*name)[PACKING_NAME_MAX];
	int64_t *rows; /* of all archives */
	size_t n, cap;
};

static int tables_read(sqlite3 *db, struct tables *t)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(
		db,
		"SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite@_%' ESCAPE '@'"
		" AND name NOT LIKE 'packed@_%' ESCAPE '@' AND name NOT IN ('meta', 'run', 'run_period', 'text', 'container', 'image',"
		" 'source', 'function', 'frame', 'stack', 'process', 'task', 'rate_row')",
		-1, &st, NULL);

	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(st, 0);

		rc = SQLITE_OK;
		if (has(db, name))
			continue;
		mem_grow(t->name, t->n, t->cap);
		snprintf(t->name[t->n++], PACKING_NAME_MAX, "%s", name);
	}
	sqlite3_finalize(st);
	t->rows = mem_array(t->n + 1, sizeof(*t->rows));
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static void tables_count(struct tables *t, sqlite3 *from)
{
	for (size_t i = 0; i < t->n; i++) {
		char *sql = sqlite3_mprintf("SELECT count(*) FROM \"%w\"", t->name[i]);

		if (has(from, t->name[i]))
			t->rows[i] += sql ? sql_number(from, sql, INT32_MAX) : INT32_MAX;
		sqlite3_free(sql);
	}
}

/* Rows that say all by what they refer to, and by their own run. */
static bool may_be_carried(const struct making *x, const char *table, int64_t rows)
{
	const struct fact *f = fact_named(table);

	if (!strcmp(table, "run_count"))
		return true;
	if (x->at_once || rows > CARRIED_MOST)
		return false;
	for (uint32_t i = 0; f && i < f->n; i++)
		if (f->columns[i].type == FACT_SERIES || f->columns[i].type == FACT_TAG)
			return false;
	for (size_t i = 0; i < x->n_summed; i++)
		if (!strcmp(x->summed[i], table))
			return false;
	return f || !strcmp(table, "end_row");
}

static int tables_carry(struct making *x, const struct tables *t)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < t->n; i++)
		if (may_be_carried(x, t->name[i], t->rows[i]))
			rc = copy_rows(x, t->name[i], t->name[i], t->name[i], false);
	return rc;
}

static int tables_drop(struct making *x, const struct tables *t)
{
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < t->n; i++)
		if (t->rows[i] && !may_be_carried(x, t->name[i], t->rows[i]))
			rc = pack_table_exec(x->m.db,
					     sqlite3_mprintf("DROP TABLE \"%w\"", t->name[i]));
	return rc;
}

/* ---- archive after archive ---- */

static int meta_put(sqlite3 *db, const char *key, int64_t value)
{
	return pack_table_exec(
		db, sqlite3_mprintf("INSERT OR REPLACE INTO meta(key, value) VALUES(%Q, %lld)", key,
				    (long long)value));
}

/* What an archive's meta says of its host. */
static int meta_copy(struct making *x)
{
	static const enum day_dict plain[] = {DAY_PLAIN, DAY_PLAIN};

	return copy_selected(x,
			     "SELECT key, value FROM meta WHERE key NOT IN ('schema_version', 't0',"
			     " 'archived_ns', 'first_ts', 'last_ts', 'sums')",
			     "INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)", plain);
}

static bool runs_overlap(sqlite3 *db)
{
	return sql_number(
		       db,
		       "SELECT EXISTS (SELECT 1 FROM run a JOIN run b ON b.id > a.id AND b.family = a.family"
		       " AND a.from_ns < b.to_ns AND b.from_ns < a.to_ns)",
		       1) > 0;
}

typedef int each_archive(struct making *x, uint32_t number, void *ctx);

static int with_archive(struct making *x, uint32_t number, each_archive *each, void *ctx)
{
	char path[PATH_MAX];
	struct err unsaid = {0};
	sqlite3 *from;
	int rc;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", x->dir, x->names[number]) >= sizeof(path))
		return SQLITE_CANTOPEN;
	if (!x->stamp[number])
		x->stamp[number] = stamp_of(path);
	if (!x->stamp[number] || readonly_open(path, &from, &unsaid)) {
		x->failed = -EAGAIN;
		return SQLITE_CANTOPEN;
	}
	rc = is_fit(from) ? SQLITE_OK : SQLITE_MISMATCH;
	x->m.from = from;
	if (rc == SQLITE_OK)
		rc = each(x, number, ctx);
	day_merge_end(&x->m);
	sqlite3_close(from);
	if (stamp_of(path) != x->stamp[number] || rc == SQLITE_MISMATCH) {
		x->failed = -EAGAIN;
		return SQLITE_MISMATCH;
	}
	return rc;
}

static int count_one(struct making *x, uint32_t number, void *ctx)
{
	const int64_t t0 = sql_number(x->m.from, "SELECT value FROM meta WHERE key = 't0'", 0);

	if (!number)
		x->m.t0 = t0;
	tables_count(ctx, x->m.from);
	return SQLITE_OK;
}

static int add_one(struct making *x, uint32_t number, void *ctx)
{
	int rc = day_merge_begin(&x->m, x->m.from, number);

	if (rc == SQLITE_OK)
		rc = samples_add(x);
	if (rc == SQLITE_OK)
		rc = amounts_add(x);
	if (rc == SQLITE_OK)
		rc = day_waits_add(&x->waits, &x->m);
	if (rc == SQLITE_OK)
		rc = sums_add(x);
	if (rc == SQLITE_OK)
		rc = tables_carry(x, ctx);
	if (rc == SQLITE_OK)
		rc = condense(x);
	if (rc == SQLITE_OK)
		rc = runs_note(x);
	if (rc == SQLITE_OK)
		rc = file_put(x, x->names[number], number);
	if (rc == SQLITE_OK)
		rc = meta_copy(x);
	span_add(x);
	return rc;
}

static int add_all(struct making *x, struct tables *t)
{
	int rc = SQLITE_OK;

	for (uint32_t i = 0; rc == SQLITE_OK && i < x->n; i++)
		rc = with_archive(x, i, count_one, t);
	for (uint32_t i = 0; rc == SQLITE_OK && i < x->n; i++)
		rc = with_archive(x, i, add_one, t);
	x->at_once = runs_overlap(x->m.db);
	return rc;
}

static int finish(struct making *x, const struct tables *t)
{
	sqlite3 *db = x->m.db;
	int rc = day_stacks_end(&x->m);

	if (rc == SQLITE_OK)
		rc = samples_put(x);
	if (rc == SQLITE_OK)
		rc = amounts_put(x);
	if (rc == SQLITE_OK)
		rc = day_waits_put(&x->waits, &x->m);
	if (rc == SQLITE_OK)
		rc = sums_end(x);
	if (rc == SQLITE_OK)
		rc = tasks_note(x);
	if (rc == SQLITE_OK)
		rc = tables_drop(x, t);
	if (rc == SQLITE_OK)
		rc = packing_pack_made(db, PACKING_LEAST, PACKING_BLOCK_ROWS);
	if (rc == SQLITE_OK)
		rc = segment_mark_archived(db);
	return rc;
}

static int notes_put(struct making *x)
{
	const struct {
		const char *key;
		int64_t value;
	} notes[] = {{"t0", x->m.t0},      {"first_ts", x->first_ts}, {"last_ts", x->last_ts},
		     {"sums", 1},          {"day", (int64_t)x->n},    {"day_first", x->first},
		     {"day_last", x->last}};
	int rc = SQLITE_OK;

	for (size_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(notes); i++)
		rc = meta_put(x->m.db, notes[i].key, notes[i].value);
	return rc;
}

static int fill(void *ctx, sqlite3 *db)
{
	struct making *x = ctx;
	struct tables t = {0};
	int rc = sql_exec(db, "BEGIN IMMEDIATE");

	x->m.db = db;
	if (rc == SQLITE_OK)
		rc = migrate_apply(db, 0);
	if (rc == SQLITE_OK)
		rc = tables_read(db, &t);
	if (rc == SQLITE_OK)
		rc = sql_exec(db, DAY_TABLES);
	if (rc == SQLITE_OK)
		rc = sums_prepare(x);
	if (rc == SQLITE_OK)
		rc = add_all(x, &t);
	if (rc == SQLITE_OK)
		rc = finish(x, &t);
	if (rc == SQLITE_OK)
		rc = notes_put(x);
	if (rc == SQLITE_OK && x->m.collided)
		rc = SQLITE_MISMATCH;
	if (rc == SQLITE_OK && x->m.too_large)
		rc = SQLITE_TOOBIG;
	for (int i = 0; i < DAY_DICTS; i++) {
		sqlite3_finalize(x->m.joined[i].insert);
		x->m.joined[i].insert = NULL;
	}
	if (rc == SQLITE_OK)
		rc = sql_exec(
			db, "COMMIT; PRAGMA page_size = 1024; VACUUM; PRAGMA journal_mode=DELETE");
	free(t.name);
	free(t.rows);
	return rc;
}

int day_make(const char *dir, char (*names)[SEGMENT_NAME_MAX], size_t n, const char *to,
	     struct err *e)
{
	struct making x = {.dir = dir,
			   .names = names,
			   .n = n < DAY_MOST ? n : DAY_MOST,
			   .first = INT64_MAX,
			   .last = INT64_MIN,
			   .first_ts = INT64_MAX,
			   .last_ts = INT64_MIN};
	int rc = remake_new(to, fill, &x, e);

	if (rc && (x.failed || x.m.too_large || x.m.collided))
		rc = e->code = x.failed ? x.failed : x.m.too_large ? -E2BIG : -EAGAIN;
	day_merge_release(&x.m);
	idmap_release(&x.samples);
	idmap_release(&x.amounts);
	day_waits_release(&x.waits);
	free(x.of_task);
	return rc;
}
