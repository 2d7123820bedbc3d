/* SPDX-License-Identifier: Apache-2.0 */
/* segcount: see the header. Rows are summed by series first, so that each series is looked up once. */
#include "schema/store/segcount.h"

#include <errno.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/store/reading.h"
#include "schema/store/segment.h"

#define BY_SERIES(table)                                                                                              \
	"SELECT r.family, sum(x.c), sum(x.n), 0, min(x.a), max(x.z + r.bucket_s) FROM (SELECT series AS s, count(*) AS c," \
	" sum(n) AS n, min(ts) AS a, max(ts) AS z FROM " table " GROUP BY series) x JOIN series ON series.id = x.s"    \
	" JOIN task ON task.id = series.task JOIN run r ON r.id = task.run GROUP BY 1"

static const struct {
	const char *table, *sql;
} parts[] = {
	{"sample", BY_SERIES("sample")},
	{"amount", BY_SERIES("amount")},
	{"wait_row", "SELECT r.family, sum(x.c), sum(x.n), 0, min(x.a), max(x.z + r.bucket_s) FROM (SELECT task AS t,"
		     " count(*) AS c, sum(n) AS n, min(ts) AS a, max(ts) AS z FROM wait_row GROUP BY task) x"
		     " JOIN task ON task.id = x.t JOIN run r ON r.id = task.run GROUP BY 1"},
	{"loss_row", "SELECT r.family, 0, 0, sum(l.n), NULL, NULL FROM loss_row l JOIN run r ON r.id = l.run GROUP BY 1"},
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

int segcount_read(const char *path, struct segcount *out, struct err *e)
{
	struct segcount c = {0};
	sqlite3 *db;
	int rc = reading_open(path, &db, e);
	int64_t t0;

	if (rc)
		return rc;
	t0 = reading_number(db, "SELECT value FROM meta WHERE key = 't0'", 0);
	for (size_t i = 0; !rc && i < sizeof(parts) / sizeof(parts[0]); i++) {
		char there[96];

		snprintf(there, sizeof(there), "SELECT 1 FROM sqlite_master WHERE name = '%s'", parts[i].table);
		if (reading_number(db, there, 0)) /* an older schema has fewer */
			rc = read_part(db, parts[i].sql, t0, &c);
	}
	if (rc)
		err_set(e, rc, EXIT_STORE, "cannot count what is in %s: %s", path, sqlite3_errmsg(db));
	else
		*out = c;
	sqlite3_close(db);
	return rc;
}
