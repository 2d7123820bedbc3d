/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recordings: the runs of a store, over all its segments, numbered. A run that goes on in the next
 * segment has the same token there; runs of several families that were begun together are one
 * recording.
 *
 * A recording's range is that of its rows. A run's begin is written once, so where the wall clock
 * was set back during the run, rows are earlier. Then they are looked for:
 *   1. The table clock has how far UTC was ahead of the boot clock at the start of a segment and at
 *      each change: in this segment that was less than before, in a segment that the recording is
 * in.
 *   2. The segment has rows from before the run's begin.
 *
 * Loaders begin another run with the same `recording` there (schema/store/write/stretch.c); runs of
 * earlier versions are as above.
 *
 * A gap is a time that no clock showed while the recording went on: after the clock was set
 * forward, or between what came after it was set back and what came before. A segment may end with
 * the step (it is then older than a segment may be), so that only the next one has the rows behind
 * it: steps are compared with a recording's end when all segments are read.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/facts/fact.h"
#include "schema/store/model/sql.h"
#include "tools/select/select.h"

/* The clock was set forward while a recording went on. */
struct step {
	uint64_t token;
	int64_t from_ns, to_ns;
};

struct list {
	struct select_recording *items;
	size_t n, cap;
	struct step *steps;
	size_t n_steps, cap_steps;
};

#define ALWAYS_BUCKET_S 10 /* as long as buckets of what records always are at least */

#define STEP_NS NSEC_PER_SEC /* clocks that are set by less are not looked at */

/* A segment, by how much UTC was ahead of the boot clock (at least and at most), and since when it
 * has that on record. */
struct place {
	const struct store_segment_info *info;
	sqlite3 *db;
	int64_t t0, offset_least, offset_most, clock_ns;
};

#define RUNS_SQL                                                                                                     \
	"SELECT id, iif(recording, recording, token), family, options, scope, bucket_s, from_ns, to_ns, state, pid," \
	" (SELECT period_ns FROM run_period p WHERE p.run = r.id ORDER BY p.from_ns DESC LIMIT 1), recording <> 0"   \
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
	r->options = mem_strdup(column_text(st, 3));
	r->scope = (enum store_scope)sqlite3_column_int(st, 4);
	r->bucket_s = (uint32_t)sqlite3_column_int(st, 5);
	r->from_ns = sqlite3_column_int64(st, 6);
	r->offset_ns = INT64_MIN / 2;
	r->kept = !strncmp(r->options, STORE_KEPT, sizeof(STORE_KEPT) - 1);
	r->always = !sqlite3_column_int(st, 11) && r->bucket_s >= ALWAYS_BUCKET_S;
	return r;
}

static struct select_part *part_of(struct select_recording *r, const char *family)
{
	struct select_part *p;

	for (size_t i = 0; i < r->n_parts; i++)
		if (!strncmp(r->parts[i].family, family, sizeof(p->family) - 1))
			return &r->parts[i];
	r->parts = mem_realloc(r->parts, (r->n_parts + 1) * sizeof(*r->parts));
	p = &r->parts[r->n_parts++];
	memset(p, 0, sizeof(*p));
	snprintf(p->family, sizeof(p->family), "%s", family);
	return p;
}

/* Of the parts together. */
static void sum_up(struct select_recording *r)
{
	size_t len = 0;

	r->state = 1;
	r->pid = r->parts[0].pid;
	for (size_t i = 0; i < r->n_parts; i++) {
		const struct select_part *p = &r->parts[i];

		if (len < sizeof(r->family))
			len += (size_t)snprintf(r->family + len, sizeof(r->family) - len,
						i ? ",%s" : "%s", p->family);
		if (r->state && p->state != 1)
			r->state = p->state;
		if (!r->period_ns)
			r->period_ns = p->period_ns;
	}
}

/* --- rows from before the run's begin --- */

/* The run's buckets before `begin` in that table, seconds since t0; *first and *last grow. A table
 * that an older schema does not have holds nothing. */
static void earlier_in(const struct place *x, const char *sql, int64_t run, int64_t begin,
		       int64_t *first, int64_t *last)
{
	sqlite3_stmt *st = NULL;

	if (sqlite3_prepare_v2(x->db, sql, -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, run);
		sqlite3_bind_int64(st, 2, begin);
		if (sqlite3_step(st) == SQLITE_ROW && sqlite3_column_type(st, 0) != SQLITE_NULL) {
			if (sqlite3_column_int64(st, 0) < *first)
				*first = sqlite3_column_int64(st, 0);
			if (sqlite3_column_int64(st, 1) > *last)
				*last = sqlite3_column_int64(st, 1);
		}
	}
	sqlite3_finalize(st);
}

#define EARLIER(from, ts, run) \
	"SELECT min(" ts "), max(" ts ") FROM " from " WHERE " run " = ?1 AND " ts " < ?2"

static void earlier(const struct place *x, int64_t run, int64_t begin, int64_t *first,
		    int64_t *last)
{
	static const char *const tables[] = {
		EARLIER("sample x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task",
			"x.ts", "t.run"),
		EARLIER("amount x JOIN series e ON e.id = x.series JOIN task t ON t.id = e.task",
			"x.ts", "t.run"),
		EARLIER("wait_row x JOIN task t ON t.id = x.task", "x.ts", "t.run"),
		EARLIER("request_row", "ts", "run"),
	};
	char sql[128];

	*first = INT64_MAX;
	*last = INT64_MIN;
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		earlier_in(x, tables[i], run, begin, first, last);
	for (size_t i = 0; FACTS[i]; i++) {
		snprintf(sql, sizeof(sql), EARLIER("%s", "ts", "run"), FACTS[i]->table);
		earlier_in(x, sql, run, begin, first, last);
	}
}

static void take_gap(struct select_recording *r, int64_t from_ns, int64_t to_ns)
{
	if (to_ns - from_ns <= r->gap_to_ns - r->gap_from_ns)
		return;
	r->gap_from_ns = from_ns;
	r->gap_to_ns = to_ns;
}

static void take_earlier(const struct place *x, struct select_recording *r, int64_t run,
			 int64_t from_ns)
{
	int64_t begin = from_ns / NSEC_PER_SEC - x->t0, first, last, end_ns;

	if (x->offset_least >= r->offset_ns - STEP_NS || x->info->from_ns >= from_ns)
		return;
	earlier(x, run, begin, &first, &last);
	if (first == INT64_MAX)
		return;
	if ((x->t0 + first) * NSEC_PER_SEC < r->from_ns)
		r->from_ns = (x->t0 + first) * NSEC_PER_SEC;
	end_ns = (x->t0 + last + r->bucket_s) * NSEC_PER_SEC;
	take_gap(r, end_ns, from_ns);
}

static void add_step(struct list *l, const struct select_recording *r, int64_t from_ns,
		     int64_t to_ns)
{
	mem_grow(l->steps, l->n_steps, l->cap_steps);
	l->steps[l->n_steps++] = (struct step){r->token, from_ns, to_ns};
}

/* Where the clock was set forward after the run began: since the last segment, and the largest
 * steps that this one has on record. r is as the segments before this one know it. */
static void find_steps(struct list *l, const struct place *x, const struct select_recording *r,
		       int64_t from_ns)
{
	static const char sql[] =
		"SELECT utc_ns - step, utc_ns FROM (SELECT utc_ns, boot_offset_ns - lag(boot_offset_ns)"
		" OVER (ORDER BY utc_ns - boot_offset_ns) AS step FROM clock)"
		" WHERE step > ?1 AND utc_ns - step > ?2 ORDER BY step DESC LIMIT 8";
	sqlite3_stmt *st = NULL;

	if (r->offset_ns > INT64_MIN / 2 && r->offset_ns < x->offset_least - STEP_NS)
		add_step(l, r, r->to_ns, x->clock_ns);
	if (x->offset_least >= x->offset_most - STEP_NS)
		return;
	if (sqlite3_prepare_v2(x->db, sql, -1, &st, NULL) == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, STEP_NS);
		sqlite3_bind_int64(st, 2, from_ns);
		while (sqlite3_step(st) == SQLITE_ROW)
			add_step(l, r, sqlite3_column_int64(st, 0), sqlite3_column_int64(st, 1));
	}
	sqlite3_finalize(st);
}

/* Those that the recording went on after. */
static void take_forward(struct list *l)
{
	for (size_t i = 0; i < l->n_steps; i++) {
		struct select_recording *r = find_token(l, l->steps[i].token);

		if (r && l->steps[i].to_ns < r->to_ns)
			take_gap(r, l->steps[i].from_ns, l->steps[i].to_ns);
	}
}

/* Later segments know more of the end, so they come later. */
static void take_row(struct list *l, sqlite3_stmt *st, const struct place *x)
{
	struct select_recording *r = find_token(l, (uint64_t)sqlite3_column_int64(st, 1));
	struct select_part *part;
	struct select_run *run;
	int64_t from_ns;

	if (!r)
		r = add_new(l, st);
	from_ns = sqlite3_column_int64(st, 6);
	find_steps(l, x, r, from_ns);
	if (x->offset_most > r->offset_ns)
		r->offset_ns = x->offset_most;
	take_earlier(x, r, sqlite3_column_int64(st, 0), from_ns);
	part = part_of(r, column_text(st, 2));
	part->state = sqlite3_column_int(st, 8);
	if (part->state == STORE_RUN_ELSEWHERE)
		part->state = 1;
	part->pid = sqlite3_column_int64(st, 9);
	part->period_ns = (uint64_t)sqlite3_column_int64(st, 10);
	if (from_ns < r->from_ns)
		r->from_ns = from_ns;
	if (sqlite3_column_int64(st, 7) > r->to_ns)
		r->to_ns = sqlite3_column_int64(st, 7);
	r->runs = mem_realloc(r->runs, (r->n_runs + 1) * sizeof(*r->runs));
	run = &r->runs[r->n_runs++];
	snprintf(run->segment, sizeof(run->segment), "%s", x->info->path);
	run->run = sqlite3_column_int64(st, 0);
	run->from_ns = from_ns;
	run->to_ns = sqlite3_column_int64(st, 7);
}

static int run_by_begin(const void *a, const void *b)
{
	const struct select_run *x = *(const struct select_run *const *)a,
				*y = *(const struct select_run *const *)b;

	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Between its runs. */
static void take_between(struct select_recording *r)
{
	cleanup_free const struct select_run **by =
		mem_array(r->n_runs, sizeof(struct select_run *));
	int64_t end_ns = INT64_MAX;

	for (size_t i = 0; i < r->n_runs; i++)
		by[i] = &r->runs[i];
	qsort(by, r->n_runs, sizeof(struct select_run *), run_by_begin);
	for (size_t i = 0; i < r->n_runs; i++) {
		if (end_ns < by[i]->from_ns - STEP_NS)
			take_gap(r, end_ns, by[i]->from_ns);
		if (!i || by[i]->to_ns > end_ns)
			end_ns = by[i]->to_ns;
	}
}

static int read_runs(struct list *l, struct store_segment *s, const struct store_segment_info *info,
		     struct err *e)
{
	sqlite3 *db = store_segment_tables(s);
	const struct place x = {
		.info = info,
		.db = db,
		.t0 = sql_number(db, "SELECT value FROM meta WHERE key = 't0'", 0),
		.offset_least = sql_number(db, "SELECT min(boot_offset_ns) FROM clock", INT64_MAX),
		.offset_most = sql_number(db, "SELECT max(boot_offset_ns) FROM clock", INT64_MIN),
		.clock_ns = sql_number(db, "SELECT min(utc_ns) FROM clock", INT64_MAX),
	};
	const char *path = info->path;
	sqlite3_stmt *st = NULL;
	int rc;

	rc = sqlite3_prepare_v2(db, RUNS_SQL, -1, &st, NULL);
	if (rc == SQLITE_OK)
		while ((rc = sqlite3_step(st)) == SQLITE_ROW)
			take_row(l, st, &x);
	if (rc != SQLITE_DONE)
		rc = err_set(e, -EIO, EXIT_STORE, "cannot read the runs of %s: %s", path,
			     sqlite3_errmsg(db));
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
		rc = read_runs(l, s, info, e);
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

int select_recordings_of(const struct store_segment_info *segments, size_t n_segments,
			 struct select_recording **out, size_t *n, struct err *e)
{
	struct list l = {0};
	size_t i;
	int rc = 0;

	for (i = 0; !rc && i < n_segments; i++)
		rc = read_segment(&l, &segments[i], e);
	take_forward(&l);
	free(l.steps);
	if (rc) {
		select_recordings_free(l.items, l.n);
		return rc;
	}
	if (l.n)
		qsort(l.items, l.n, sizeof(*l.items), by_begin);
	for (i = 0; i < l.n; i++) {
		l.items[i].number = (int64_t)i + 1;
		take_between(&l.items[i]);
		sum_up(&l.items[i]);
	}
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
		free(r[i].parts);
		free(r[i].runs);
	}
	free(r);
}

int64_t select_recording_took_ns(const struct select_recording *r)
{
	return r->to_ns - r->from_ns - (r->gap_to_ns - r->gap_from_ns);
}
