/* SPDX-License-Identifier: Apache-2.0 */
/* recordings: the runs of a store, over all its segments, numbered. A run that goes on in the next segment has the
 * same token there; runs of several families that were begun together are one recording. */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "tools/select.h"

struct list {
	struct select_recording *items;
	size_t n, cap;
};

#define RUNS_SQL(recording)                                                                            \
	"SELECT id, " recording ", family, options, scope, bucket_s, from_ns, to_ns, state, pid,"      \
	" (SELECT period_ns FROM run_period p WHERE p.run = r.id ORDER BY p.from_ns DESC LIMIT 1)"     \
	" FROM run r ORDER BY id"

static const char *column_text(sqlite3_stmt *st, int i)
{
	const char *s = (const char *)sqlite3_column_text(st, i);

	return s ? s : "";
}

static struct select_recording *find_token(const struct list *l, uint64_t token)
{
	for (size_t i = l->n; i-- > 0;)
		if (l->items[i].token == token)
			return &l->items[i];
	return NULL;
}

static struct select_recording *add_new(struct list *l, sqlite3_stmt *st)
{
	struct select_recording *r;

	mem_grow(l->items, l->n, l->cap);
	r = &l->items[l->n++];
	memset(r, 0, sizeof(*r));
	r->token = (uint64_t)sqlite3_column_int64(st, 1);
	snprintf(r->family, sizeof(r->family), "%s", column_text(st, 2));
	r->options = mem_strdup(column_text(st, 3));
	r->scope = (enum store_scope)sqlite3_column_int(st, 4);
	r->bucket_s = (uint32_t)sqlite3_column_int(st, 5);
	r->from_ns = sqlite3_column_int64(st, 6);
	return r;
}

/* "cpu,offcpu" */
static void add_family(struct select_recording *r, const char *family)
{
	size_t len = strlen(r->family), n = strlen(family);

	for (const char *at = r->family; *at;) {
		size_t one = strcspn(at, ",");

		if (one == n && !strncmp(at, family, n))
			return;
		at += one + (at[one] == ',');
	}
	if (len + n + 2 <= sizeof(r->family))
		snprintf(r->family + len, sizeof(r->family) - len, ",%s", family);
}

/* Later segments know more of the end, so they come later. */
static void take_row(struct list *l, sqlite3_stmt *st, const char *path)
{
	struct select_recording *r = find_token(l, (uint64_t)sqlite3_column_int64(st, 1));
	struct select_run *run;

	if (!r)
		r = add_new(l, st);
	else
		add_family(r, column_text(st, 2));
	if (sqlite3_column_int64(st, 6) < r->from_ns)
		r->from_ns = sqlite3_column_int64(st, 6);
	if (sqlite3_column_int64(st, 7) > r->to_ns)
		r->to_ns = sqlite3_column_int64(st, 7);
	r->state = sqlite3_column_int(st, 8);
	r->pid = sqlite3_column_int64(st, 9);
	r->period_ns = (uint64_t)sqlite3_column_int64(st, 10);
	r->runs = mem_realloc(r->runs, (r->n_runs + 1) * sizeof(*r->runs));
	run = &r->runs[r->n_runs++];
	snprintf(run->segment, sizeof(run->segment), "%s", path);
	run->run = sqlite3_column_int64(st, 0);
}

static int read_runs(struct list *l, struct store_segment *s, const char *path, struct err *e)
{
	sqlite3 *db = store_segment_db(s);
	sqlite3_stmt *st = NULL;
	int rc;

	rc = sqlite3_prepare_v2(db, RUNS_SQL("iif(recording, recording, token)"), -1, &st, NULL);
	if (rc != SQLITE_OK) /* older than runs that belong together */
		rc = sqlite3_prepare_v2(db, RUNS_SQL("token"), -1, &st, NULL);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			take_row(l, st, path);
	if (rc != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read the runs of %s: %s", path, sqlite3_errmsg(db));
	else
		rc = 0;
	sqlite3_finalize(st);
	return rc;
}

static int read_segment(struct list *l, const struct store_segment_info *info, struct err *e)
{
	struct store_segment *s = info->open;
	int rc = s ? 0 : store_segment_open(info->path, &s, e);

	if (!rc)
		rc = read_runs(l, s, info->path, e);
	if (!info->open)
		store_segment_close(s);
	return rc;
}

static int by_begin(const void *a, const void *b)
{
	const struct select_recording *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return x->token < y->token ? -1 : x->token > y->token;
}

int select_recordings_of(const struct store_segment_info *segments, size_t n_segments, struct select_recording **out, size_t *n,
			 struct err *e)
{
	struct list l = {0};
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < n_segments; i++)
		rc = read_segment(&l, &segments[i], e);
	if (rc) {
		select_recordings_free(l.items, l.n);
		return rc;
	}
	if (l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_begin);
	for (i = 0; i < l.n; i++)
		l.items[i].number = (int64_t)i + 1;
	*out = l.items;
	*n = l.n;
	return 0;
}

int select_recordings(const char *store, struct select_recording **out, size_t *n, struct err *e)
{
	struct store_segment_info *segments;
	size_t n_segments;
	int rc = store_segments_open(store, 0, INT64_MAX, SELECT_OPEN, &segments, &n_segments, e);

	if (rc)
		return rc;
	rc = select_recordings_of(segments, n_segments, out, n, e);
	store_segments_close(segments, n_segments);
	return rc;
}

void select_recordings_free(struct select_recording *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(r[i].options);
		free(r[i].runs);
	}
	free(r);
}
