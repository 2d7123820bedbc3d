/* SPDX-License-Identifier: Apache-2.0 */
/* segcount: Rows are summed by series first, so that each series is looked up once.
 */
#include "schema/store/retention/segcount.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/fact.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/segment.h"
#include "schema/store/model/sql.h"
#include "schema/store/packed/packing.h"
#include "schema/store/read/samples.h"

#define BY_SERIES(table)                                                                                                   \
	"SELECT r.family, sum(x.c), sum(x.n), 0, min(x.a), max(x.z + r.bucket_s) FROM (SELECT series AS s, count(*) AS c," \
	" sum(n) AS n, min(ts) AS a, max(ts) AS z FROM " table                                                             \
	" GROUP BY series) x JOIN series ON series.id = x.s"                                                               \
	" JOIN task ON task.id = series.task JOIN run r ON r.id = task.run GROUP BY 1"

static const struct {
	const char *table, *sql;
} parts[] = {
	{"sample", BY_SERIES("sample")}, /* the first: an archive's are read as columns */
	{"amount", BY_SERIES("amount")},
	{"wait_row",
	 "SELECT r.family, sum(x.c), sum(x.n), 0, min(x.a), max(x.z + r.bucket_s) FROM (SELECT task AS t,"
	 " count(*) AS c, sum(n) AS n, min(ts) AS a, max(ts) AS z FROM wait_row GROUP BY task) x"
	 " JOIN task ON task.id = x.t JOIN run r ON r.id = task.run GROUP BY 1"},
	{"loss_row",
	 "SELECT r.family, 0, 0, sum(l.n), NULL, NULL FROM loss_row l JOIN run r ON r.id = l.run GROUP BY 1"},
};

void segcount_add(struct segcount_family *into, uint32_t *n, const struct segcount_family *f)
{
	uint32_t i = 0;

	while (i < *n && strncmp(into[i].name, f->name, sizeof(f->name)))
		i++;
	if (i == *n && *n < SEGCOUNT_FAMILIES) {
		into[i] = (struct segcount_family){0};
		if (i < SEGCOUNT_FAMILIES - 1)
			memcpy(into[i].name, f->name, sizeof(f->name));
		++*n;
	}
	i = i < SEGCOUNT_FAMILIES ? i : SEGCOUNT_FAMILIES - 1;
	into[i].rows += f->rows;
	into[i].events += f->events;
	into[i].lost += f->lost;
}

static void take_row(struct segcount *c, sqlite3_stmt *st, int64_t t0)
{
	struct segcount_family f = {
		.rows = (uint64_t)sqlite3_column_int64(st, 1),
		.events = (uint64_t)sqlite3_column_int64(st, 2),
		.lost = (uint64_t)sqlite3_column_int64(st, 3),
	};
	const char *name = (const char *)sqlite3_column_text(st, 0);
	int64_t from, to;

	snprintf(f.name, sizeof(f.name), "%s", name ? name : "");
	segcount_add(c->family, &c->n, &f);
	if (sqlite3_column_type(st, 4) == SQLITE_NULL)
		return;
	from = (t0 + sqlite3_column_int64(st, 4)) * NSEC_PER_SEC;
	to = (t0 + sqlite3_column_int64(st, 5)) * NSEC_PER_SEC;
	c->from_ns = !c->from_ns || from < c->from_ns ? from : c->from_ns;
	c->to_ns = to > c->to_ns ? to : c->to_ns;
}

/* Each row is an event. */
#define OF_FACT                                                                                                                  \
	"SELECT r.family, sum(x.c), sum(x.c), 0, min(x.a), max(x.z + r.bucket_s) FROM (SELECT run, count(*) AS c, min(ts) AS a," \
	" max(ts) AS z FROM %s GROUP BY run) x JOIN run r ON r.id = x.run GROUP BY 1"

static int read_part(sqlite3 *db, const char *sql, int64_t t0, struct segcount *c)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(db, sql, -1, &st, NULL);

	while (rc == SQLITE_OK || rc == SQLITE_ROW) {
		rc = sqlite3_step(st);
		if (rc == SQLITE_ROW)
			take_row(c, st, t0);
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? 0 : segment_errno(db, rc);
}

/* An older schema has fewer tables. */
static int read_table(sqlite3 *db, const char *table, const char *sql, int64_t t0,
		      struct segcount *c)
{
	char there[96];

	snprintf(there, sizeof(there), "SELECT 1 FROM sqlite_master WHERE name = '%s'", table);
	return sql_number(db, there, 0) ? read_part(db, sql, t0, c) : 0;
}

/* Columns of an archive: SQLite would take long for them. */
static void count_chunk(const struct samples *x, struct segcount_family *by_run,
			const struct store_segment *s, int64_t edge[2])
{
	for (size_t i = 0; i < x->n; i++) {
		struct segcount_family *f =
			&by_run[s->tasks[s->series_task[x->rows[i].series]].run];

		f->rows++;
		f->events += x->rows[i].n;
		edge[0] = x->rows[i].ts < edge[0] ? x->rows[i].ts : edge[0];
		edge[1] = x->rows[i].ts > edge[1] ? x->rows[i].ts : edge[1];
	}
}

static void take_runs(struct segcount *c, const struct store_dict *d,
		      struct segcount_family *by_run)
{
	for (size_t i = 0; i < d->n_runs; i++) {
		if (!by_run[i].rows)
			continue;
		snprintf(by_run[i].name, sizeof(by_run[i].name), "%s", d->runs[i].family);
		segcount_add(c->family, &c->n, &by_run[i]);
	}
}

static int read_packed(const char *path, struct segcount *c, struct err *e)
{
	int64_t edge[2] = {INT64_MAX, INT64_MIN};
	struct segcount_family *by_run;
	const struct store_dict *d;
	struct store_segment *s;
	struct samples x;
	int rc = store_segment_open(path, &s, e);

	if (rc)
		return rc;
	rc = store_segment_dict(s, &d, e);
	if (!rc)
		rc = samples_open(&x, s, INT64_MIN, INT64_MAX, e);
	if (!rc) {
		by_run = mem_array(d->n_runs, sizeof(*by_run));
		while ((rc = samples_next(&x)) == SQLITE_ROW)
			count_chunk(&x, by_run, s, edge);
		if (rc == SQLITE_DONE)
			take_runs(c, d, by_run);
		free(by_run);
		rc = samples_close(&x, rc, e);
	}
	if (!rc && edge[0] <= edge[1]) {
		c->from_ns = (s->t0 + edge[0]) * NSEC_PER_SEC;
		c->to_ns = (s->t0 + edge[1] + 1) * NSEC_PER_SEC;
	}
	store_segment_close(s);
	return rc;
}

int segcount_read(const char *path, struct segcount *out, struct err *e)
{
	struct segcount c = {0};
	sqlite3 *db;
	int rc = readonly_open(path, &db, e);
	int64_t t0;
	bool packed;

	if (rc)
		return rc;
	t0 = sql_number(db, "SELECT value FROM meta WHERE key = 't0'", 0);
	packed = packing_is_packed(db);
	if (packed)
		rc = read_packed(path, &c, e);
	for (size_t i = packed; !rc && i < ARRAY_SIZE(parts); i++)
		rc = read_table(db, parts[i].table, parts[i].sql, t0, &c);
	for (size_t i = 0; !rc && FACTS[i]; i++) {
		char *sql = sqlite3_mprintf(OF_FACT, FACTS[i]->table);

		rc = sql ? read_table(db, FACTS[i]->table, sql, t0, &c) : -ENOMEM;
		sqlite3_free(sql);
	}
	if (rc)
		err_set(e, rc, EXIT_STORE, "cannot count what is in %s: %s", path,
			sqlite3_errmsg(db));
	else
		*out = c;
	sqlite3_close(db);
	return rc;
}
