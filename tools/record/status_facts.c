/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_facts: what a recording holds, lost and cost, and what the store holds. From the sums that each segment keeps of its
 * runs (run_count and its like), so that it takes no longer where there is more.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/read/reader.h"
#include "tools/record/recorder.h"
#include "tools/record/status.h"

static void facts_lose(struct status_facts *f, const char *reason, uint64_t n)
{
	for (size_t i = 0; i < f->n_losses; i++) {
		if (!strcmp(f->losses[i].reason, reason)) {
			f->losses[i].n += n;
			return;
		}
	}
	mem_grow(f->losses, f->n_losses, f->cap_losses);
	f->losses[f->n_losses++] = (struct status_loss){.reason = mem_strdup(reason), .n = n};
}

static int refused(sqlite3 *db, int rc, struct err *e)
{
	return err_set(e, (rc & 0xff) == SQLITE_CORRUPT ? -EBADMSG : -EIO, EXIT_STORE, "cannot read %s: %s", sqlite3_db_filename(db, NULL),
		       sqlite3_errmsg(db));
}

static int ask(sqlite3 *db, const char *sql, int64_t run, sqlite3_stmt **st, struct err *e)
{
	int rc = sqlite3_prepare_v2(db, sql, -1, st, NULL);

	if (rc != SQLITE_OK)
		return refused(db, rc, e);
	sqlite3_bind_int64(*st, 1, run);
	return 0;
}

/* The end of a statement: did the last step fail? */
static int told(sqlite3 *db, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_finalize(st);

	return rc == SQLITE_OK ? 0 : refused(db, rc, e);
}

static int one_row(sqlite3 *db, const char *sql, int64_t run, uint64_t *a, uint64_t *b, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, sql, run, &st, e);

	if (rc < 0)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW) {
		*a += (uint64_t)sqlite3_column_int64(st, 0);
		*b += sqlite3_column_count(st) > 1 ? (uint64_t)sqlite3_column_int64(st, 1) : 0;
	}
	return told(db, st, e);
}

static int add_counts(struct status_facts *f, struct store_segment *s, int64_t run, struct err *e)
{
	return one_row(store_segment_tables(s), "SELECT sum(iif(kind = 1, n, 0)), sum(iif(kind = 1, 0, n)) FROM run_count WHERE run = ?1", run,
		       &f->samples, &f->events, e);
}

#define NAMED_ROWS 16384 /* rows looked at, at most: of a busy host those of two minutes or so */
#define NAMED(last, limit)                                                                                            \
	"SELECT sum(x.n), sum(iif(r.function > 0, x.n, 0)) FROM (SELECT series, sum(n) AS n FROM (SELECT series, n FROM sample" \
	" WHERE ts > " last limit ") GROUP BY series) x CROSS JOIN series e ON e.id = x.series CROSS JOIN task t ON t.id = e.task"  \
	" LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frame r ON r.id = k.leaf WHERE t.run = ?1"
#define NEWEST " ORDER BY ts DESC LIMIT " NUMBER(NAMED_ROWS)
#define NUMBER(n) NUMBER_(n)
#define NUMBER_(n) #n
#define ENDED "(SELECT r.to_ns / 1000000000 - t0.value FROM run r JOIN meta t0 ON t0.key = 't0' WHERE r.id = ?1)"

static bool is_packed(sqlite3 *db)
{
	uint64_t packed = 0, none = 0;
	struct err e = {0};

	return !one_row(db, "SELECT sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE name = 'sample' AND ?1", 1, &packed, &none, &e) && packed;
}

/* The share of the samples whose leaf has a name: of its last ten minutes in its newest segment, and of so many rows; of all it has there if it did not run on a CPU since. */
static int add_named(struct status_facts *f, struct store_segment *s, int64_t run, struct err *e)
{
	sqlite3 *db = store_segment_tables(s);
	uint64_t looked_at = f->looked_at, there = 0, none = 0;
	int rc;

	if (is_packed(db)) /* its dictionary takes too long to read */
		return one_row(db, "SELECT samples, named FROM run_named WHERE run = ?1", run, &f->looked_at, &f->named, e);
	rc = one_row(db, "SELECT EXISTS (SELECT 1 FROM task WHERE run = ?1 AND kind = 1)", run, &there, &none, e);

	if (rc || !there)
		return rc;
	rc = one_row(db, NAMED(ENDED " - 600", NEWEST), run, &f->looked_at, &f->named, e);
	if (rc || f->looked_at != looked_at)
		return rc;
	return one_row(db, NAMED("-1 << 62", ""), run, &f->looked_at, &f->named, e);
}

static int add_losses_and_cost(struct status_facts *f, sqlite3 *db, int64_t run, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, "SELECT reason, n FROM run_loss WHERE run = ?1", run, &st, e);

	if (rc < 0)
		return rc;
	while (sqlite3_step(st) == SQLITE_ROW)
		facts_lose(f, (const char *)sqlite3_column_text(st, 0), (uint64_t)sqlite3_column_int64(st, 1));
	rc = told(db, st, e);
	if (rc < 0)
		return rc;
	rc = ask(db, "SELECT sum(private_bytes), sum(map_bytes) FROM run_cost WHERE run = ?1", run, &st, e);
	if (rc < 0)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW) {
		f->private_bytes += (uint64_t)sqlite3_column_int64(st, 0);
		f->map_bytes += (uint64_t)sqlite3_column_int64(st, 1);
	}
	return told(db, st, e);
}

/* What its family has as the note "refused" of a process that is there still. */
static int add_refused(struct status_facts *f, sqlite3 *db, int64_t run, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, "SELECT p.comm, p.pid, t.value FROM process_note n JOIN process p ON p.id = n.process JOIN text t ON t.id = n.value"
			 " WHERE n.run = ?1 AND n.key = 'refused' AND t.value <> '' AND NOT p.end_ns ORDER BY p.comm, p.pid", run, &st, e);

	if (rc < 0)
		return rc;
	while (sqlite3_step(st) == SQLITE_ROW) {
		mem_grow(f->refused, f->n_refused, f->cap_refused);
		f->refused[f->n_refused++] = (struct status_refused){mem_strdup((const char *)sqlite3_column_text(st, 0)),
								     mem_strdup((const char *)sqlite3_column_text(st, 2)), sqlite3_column_int64(st, 1)};
	}
	return told(db, st, e);
}

static int add_run(struct status_facts *f, struct store_segment *s, int64_t run, bool newest, struct err *e)
{
	int rc = add_counts(f, s, run, e);

	if (rc == 0 && newest)
		rc = add_named(f, s, run, e);
	if (rc == 0 && newest && !is_packed(store_segment_tables(s)))
		rc = add_refused(f, store_segment_tables(s), run, e);
	if (rc == 0)
		rc = add_losses_and_cost(f, store_segment_tables(s), run, e);
	if (rc == 0)
		rc = store_own_cost_of(s, run, &f->own, e);
	return rc ? rc : store_endings(s, 0, INT64_MAX, run, endings_add, &f->endings, e);
}

static const struct store_segment_info *find_segment(const struct status_store *store, const char *path)
{
	size_t i = 0;

	while (i < store->n_segments && strcmp(store->segments[i].path, path))
		i++;
	return i < store->n_segments ? &store->segments[i] : NULL;
}

int status_fill(struct status_facts *f, const struct status_store *store, const struct select_recording *rec, struct err *e)
{
	const struct select_run *newest = rec->n_runs ? &rec->runs[rec->n_runs - 1] : NULL;
	int rc = 0;

	f->rec = rec;
	f->live = recorder_is_live(rec);
	for (size_t i = 0; i < rec->n_runs && !rc; i++) {
		const struct select_run *r = &rec->runs[i];
		const struct store_segment_info *info = find_segment(store, r->segment);
		struct store_segment *s = info ? info->open : NULL;

		if (i && strcmp(r->segment, r[-1].segment))
			f->private_bytes = f->map_bytes = 0; /* the latest; of one segment those of all families together */
		if (!s)
			rc = store_segment_open(r->segment, &s, e);
		if (rc == 0)
			rc = add_run(f, s, r->run, !strcmp(r->segment, newest->segment), e);
		if (!info || !info->open)
			store_segment_close(s);
	}
	endings_sort(&f->endings);
	return rc;
}

void status_release(struct status_facts *f)
{
	for (size_t k = 0; k < f->n_losses; k++)
		free(f->losses[k].reason);
	free(f->losses);
	for (size_t k = 0; k < f->n_refused; k++) {
		free(f->refused[k].comm);
		free(f->refused[k].why);
	}
	free(f->refused);
	endings_release(&f->endings);
}

int status_store_fill(struct status_store *s, const char *store, struct err *e)
{
	int rc = store_segments_open(store, 0, INT64_MAX, SELECT_OPEN, &s->segments, &s->n_segments, e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct store_segment_info *info = &s->segments[i];

		if (info->open) /* one transaction for all that is asked of it: SQLite locks the file and looks beside it once */
			sqlite3_exec(store_segment_tables(info->open), "BEGIN", NULL, NULL, NULL);
		s->bytes += info->bytes;
		if (info->from_ns && (!s->from_ns || info->from_ns < s->from_ns))
			s->from_ns = info->from_ns;
		if (info->to_ns > s->to_ns)
			s->to_ns = info->to_ns;
	}
	(void)folder_aside(store, &s->aside, &s->n_aside); /* of one file: none */
	return 0;
}
