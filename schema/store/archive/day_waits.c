/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in comments are the header's rules. */
#include "schema/store/archive/day_waits.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/archive/day_rows.h"
#include "schema/store/model/kinds.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/sample_sums.h"
#include "schema/store/packed/series_list.h"

#define BY_STACK 0 /* the table whose rows are amounts */

/* Of each table what makes it, its keys, and what these refer to; then the sums. */
static const struct of_table {
	const char *name, *rows; /* here, and in an archive */
	const char *keys[WAIT_KEYS];
	enum day_dict what[WAIT_KEYS];
	const char *sums[WAIT_SUMS];
} TABLES[] = {
	[BY_STACK] = {WAIT_STACK_SUM,
		      NULL,
		      {"task", "stack", "label"},
		      {DAY_TASK, DAY_STACK, DAY_PLAIN},
		      {"n", "value", "max", "n_variance", "value_variance"}},
	{"wake_sum",
	 "wake_row",
	 {"task", "class", "waker", "context", "stack"},
	 {DAY_OTHER_TASK, DAY_PLAIN, DAY_OTHER_TASK, DAY_PLAIN, DAY_STACK},
	 {"n", "total_ns"}},
	{"culprit_sum",
	 "culprit_row",
	 {"task", "culprit", "kind"},
	 {DAY_OTHER_TASK, DAY_OTHER_TASK, DAY_PLAIN},
	 {"n", "total_ns"}},
	{"wait_on_sum",
	 "wait_on_row",
	 {"task", "class", "object", "waker", "stack"},
	 {DAY_OTHER_TASK, DAY_PLAIN, DAY_TEXT, DAY_OTHER_TASK, DAY_STACK},
	 {"n", "total_ns"}},
	{"throttle_sum",
	 "throttle_row",
	 {"run", "cgroup"},
	 {DAY_RUN, DAY_TEXT},
	 {"periods", "throttled", "throttled_ns"}},
	{"steal_sum", "steal_row", {"run"}, {DAY_RUN}, {"steal_ns", "idle_ns", "cpu_ns"}},
};

enum { N, VALUE, MAX, N_VARIANCE, VALUE_VARIANCE }; /* sums of BY_STACK */

static size_t count(const char *const *names, size_t most)
{
	size_t n = 0;

	while (n < most && names[n])
		n++;
	return n;
}

/* ---- rows ---- */

/* NULL: there are too many. Until the next one. */
static struct day_wait *sum_of(struct day_waits *w, struct day_merge *m, uint32_t table,
			       const uint32_t key[WAIT_KEYS])
{
	uint64_t h = hash_u64(HASH_SEED, table), *at;
	bool fresh;

	for (size_t i = 0; i < WAIT_KEYS; i++)
		h = hash_u64(h, key[i]);
	at = idmap_ref(&w->place, h, &fresh);
	if (!fresh) {
		struct day_wait *x = &w->v[*at];

		m->collided |= x->table != table || memcmp(x->key, key, sizeof(x->key)) != 0;
		return x;
	}
	if (w->n == WAITS_MOST) {
		w->unfit = true;
		return NULL;
	}
	*at = w->n;
	mem_grow(w->v, w->n, w->cap);
	w->v[w->n] = (struct day_wait){.table = table};
	memcpy(w->v[w->n].key, key, sizeof(w->v[w->n].key));
	return &w->v[w->n++];
}

/* A negative number is a damaged file's: readers take it as 0. */
static void add(struct day_waits *w, int64_t *sum, int64_t n)
{
	if (n > 0 && __builtin_add_overflow(*sum, n, sum))
		w->unfit = true;
}

/* ---- amounts by stack ---- */

struct series {
	uint32_t task, stack, label; /* task 0: of another kind, or there is no such series */
};

static int series_read(struct day_merge *m, struct day_waits *w, struct series **out, size_t *n)
{
	struct day_rows r;
	int rc;

	*n = series_list_slots(m->from, "SELECT max(id) FROM series",
			       "SELECT count(*) FROM series");
	*out = mem_array(*n + 1, sizeof(**out));
	rc = *n ? day_rows_open(&r, m->from, "series", "id, task, stack, label") : SQLITE_TOOBIG;
	if (rc != SQLITE_OK)
		return rc;
	while ((rc = day_rows_next(&r)) == SQLITE_ROW) {
		const int64_t id = day_rows_number(&r, 0), task = day_rows_number(&r, 1),
			      label = day_rows_number(&r, 3);

		if (id <= 0 || (uint64_t)id >= *n || task <= 0 ||
		    (uint64_t)task >= m->n_map[DAY_TASK] || !m->tasks[task].thread)
			continue;
		w->unfit |= m->tasks[task].number[3] == STORE_KIND_STANDING;
		if (m->tasks[task].number[3] != STORE_KIND_OFFCPU &&
		    m->tasks[task].number[3] != STORE_KIND_RUNQUEUE)
			continue;
		w->unfit |= label < 0 || label > UINT32_MAX;
		(*out)[id] =
			(struct series){(uint32_t)task, day_stacks_join(m, day_rows_number(&r, 2)),
					(uint32_t)label};
	}
	return day_rows_close(&r, rc);
}

static struct day_wait *sum_of_series(struct day_waits *w, struct day_merge *m,
				      const struct series *x)
{
	const uint32_t key[WAIT_KEYS] = {day_merge_task(m, x->task), x->stack, x->label};

	return sum_of(w, m, BY_STACK, key);
}

typedef void take_amount(struct day_waits *w, struct day_wait *x, const struct day_rows *r);

static void take_value(struct day_waits *w, struct day_wait *x, const struct day_rows *r)
{
	const char *hist = day_rows_text(r, 4);
	const int64_t max = day_rows_number(r, 3);

	add(w, &x->sum[N], day_rows_number(r, 1));
	add(w, &x->sum[VALUE], day_rows_number(r, 2));
	x->sum[MAX] = max > x->sum[MAX] ? max : x->sum[MAX];
	if (*hist)
		(void)hist_read(&x->hist, hist, strlen(hist), 0);
}

static void take_error(struct day_waits *w, struct day_wait *x, const struct day_rows *r)
{
	add(w, &x->sum[N_VARIANCE], day_rows_number(r, 1));
	add(w, &x->sum[VALUE_VARIANCE], day_rows_number(r, 2));
}

/* The first of the columns is the series. */
static int amounts_read(struct day_waits *w, struct day_merge *m, const struct series *series,
			size_t n, const char *table, const char *columns, take_amount *take)
{
	struct day_rows r;
	int rc = day_rows_open(&r, m->from, table, columns);

	if (rc != SQLITE_OK)
		return rc;
	while (!w->unfit && (rc = day_rows_next(&r)) == SQLITE_ROW) {
		const int64_t id = day_rows_number(&r, 0);
		struct day_wait *x = NULL;

		if (id > 0 && (uint64_t)id < n && series[id].task)
			x = sum_of_series(w, m, &series[id]);
		if (x)
			take(w, x, &r);
	}
	return day_rows_close(&r, w->unfit ? SQLITE_DONE : rc);
}

static int add_amounts(struct day_waits *w, struct day_merge *m)
{
	struct series *series;
	size_t n;
	int rc;

	if (!sql_number(m->from, "SELECT EXISTS (SELECT 1 FROM amount)", 0))
		return SQLITE_OK;
	rc = series_read(m, w, &series, &n);
	if (rc == SQLITE_OK)
		rc = amounts_read(w, m, series, n, "amount", "series, n, value, max, hist",
				  take_value);
	if (rc == SQLITE_OK)
		rc = amounts_read(w, m, series, n, "amount_error_row",
				  "series, n_variance, value_variance", take_error);
	free(series);
	return rc;
}

/* ---- all others ---- */

/* "task, class, n, total_ns" */
static void columns_of(const struct of_table *t, const char *ending, struct strbuf *out)
{
	for (size_t i = 0; i < count(t->keys, WAIT_KEYS); i++)
		strbuf_addf(out, "%s%s%s", i ? ", " : "", t->keys[i], ending);
	for (size_t i = 0; i < count(t->sums, WAIT_SUMS); i++)
		strbuf_addf(out, ", %s%s", t->sums[i], ending);
}

static int add_rows(struct day_waits *w, struct day_merge *m, uint32_t table)
{
	const struct of_table *t = &TABLES[table];
	const size_t n_keys = count(t->keys, WAIT_KEYS), n_sums = count(t->sums, WAIT_SUMS);
	struct strbuf columns cleanup_strbuf = STRBUF_INIT;
	struct day_rows r;
	int rc;

	columns_of(t, "", &columns);
	rc = day_rows_open(&r, m->from, t->rows, strbuf_str(&columns));
	if (rc != SQLITE_OK)
		return rc;
	while (!w->unfit && (rc = day_rows_next(&r)) == SQLITE_ROW) {
		uint32_t key[WAIT_KEYS] = {0};
		struct day_wait *x;

		for (size_t i = 0; i < n_keys; i++)
			key[i] =
				(uint32_t)day_merge_ref(m, t->what[i], day_rows_number(&r, (int)i));
		x = sum_of(w, m, table, key);
		for (size_t i = 0; x && i < n_sums; i++)
			add(w, &x->sum[i], day_rows_number(&r, (int)(n_keys + i)));
	}
	return day_rows_close(&r, w->unfit ? SQLITE_DONE : rc);
}

int day_waits_add(struct day_waits *w, struct day_merge *m)
{
	int rc = w->unfit ? SQLITE_OK : add_amounts(w, m);

	for (uint32_t i = BY_STACK + 1; rc == SQLITE_OK && !w->unfit && i < ARRAY_SIZE(TABLES); i++)
		rc = add_rows(w, m, i);
	w->unfit |= m->n_frames > DAY_FRAMES_MOST / 2;
	if (w->unfit)
		day_waits_release(w);
	return rc;
}

/* ---- the tables ---- */

static int by_key(const void *a, const void *b)
{
	const struct day_wait *x = a, *y = b;

	if (x->table != y->table)
		return x->table < y->table ? -1 : 1;
	for (size_t i = 0; i < WAIT_KEYS; i++)
		if (x->key[i] != y->key[i])
			return x->key[i] < y->key[i] ? -1 : 1;
	return 0;
}

static void stacks_number(struct day_waits *w, const struct day_merge *m)
{
	for (size_t i = 0; i < w->n; i++)
		for (size_t k = 0; k < WAIT_KEYS; k++)
			if (TABLES[w->v[i].table].keys[k] &&
			    TABLES[w->v[i].table].what[k] == DAY_STACK)
				w->v[i].key[k] = m->stack_id[w->v[i].key[k]];
}

static int make(const struct of_table *t, bool hist, sqlite3 *db)
{
	struct strbuf sql cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(&sql, "CREATE TABLE %s(", t->name);
	columns_of(t, " INTEGER NOT NULL", &sql);
	strbuf_addf(&sql, "%s, PRIMARY KEY(", hist ? ", hist TEXT" : "");
	for (size_t i = 0; i < count(t->keys, WAIT_KEYS); i++)
		strbuf_addf(&sql, "%s%s", i ? ", " : "", t->keys[i]);
	strbuf_addstr(&sql, ")) STRICT, WITHOUT ROWID");
	return sql_exec(db, strbuf_str(&sql));
}

static int put_one(sqlite3_stmt *st, const struct day_wait *x, struct strbuf *text)
{
	const struct of_table *t = &TABLES[x->table];
	int at = 0;

	for (size_t i = 0; i < count(t->keys, WAIT_KEYS); i++)
		sqlite3_bind_int64(st, ++at, x->key[i]);
	for (size_t i = 0; i < count(t->sums, WAIT_SUMS); i++)
		sqlite3_bind_int64(st, ++at, x->sum[i]);
	strbuf_reset(text);
	if (x->table == BY_STACK && hist_encode(&x->hist, 0, text))
		sqlite3_bind_text(st, ++at, strbuf_str(text), (int)text->len, SQLITE_STATIC);
	else if (x->table == BY_STACK)
		sqlite3_bind_null(st, ++at);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int put_table(const struct day_waits *w, sqlite3 *db, uint32_t table, size_t *at)
{
	const struct of_table *t = &TABLES[table];
	struct strbuf sql cleanup_strbuf = STRBUF_INIT, text cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc = make(t, table == BY_STACK, db);

	strbuf_addf(&sql, "INSERT INTO %s VALUES(?", t->name);
	for (size_t i = count(t->keys, WAIT_KEYS) + count(t->sums, WAIT_SUMS) + (table == BY_STACK);
	     i > 1; i--)
		strbuf_addstr(&sql, ", ?");
	strbuf_addstr(&sql, ")");
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, strbuf_str(&sql), -1, &st, NULL);
	for (; rc == SQLITE_OK && *at < w->n && w->v[*at].table == table; ++*at)
		rc = put_one(st, &w->v[*at], &text);
	sqlite3_finalize(st);
	return rc;
}

int day_waits_put(struct day_waits *w, struct day_merge *m)
{
	size_t at = 0;
	int rc = SQLITE_OK;

	if (w->unfit)
		return SQLITE_OK;
	stacks_number(w, m);
	if (w->n)
		qsort(w->v, w->n, sizeof(*w->v), by_key);
	for (uint32_t i = 0; rc == SQLITE_OK && i < ARRAY_SIZE(TABLES); i++)
		rc = put_table(w, m->db, i, &at);
	return rc;
}

void day_waits_release(struct day_waits *w)
{
	for (size_t i = 0; i < w->n; i++)
		hist_release(&w->v[i].hist);
	free(w->v);
	idmap_release(&w->place);
	*w = (struct day_waits){.unfit = w->unfit};
}
