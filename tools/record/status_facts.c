/* SPDX-License-Identifier: Apache-2.0 */
/*
 * status_facts: what a recording holds, lost and cost, and what the store holds. From the sums that
 * each segment keeps of its runs (run_count and its like), so that it takes no longer where there
 * is more.
 */
#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
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

static void facts_lost_at(struct status_facts *f, const char *reason, int64_t from_ns,
			  int64_t to_ns)
{
	for (size_t i = 0; i < f->n_losses; i++) {
		struct status_loss *l = &f->losses[i];

		if (strcmp(l->reason, reason))
			continue;
		l->from_ns = l->from_ns && l->from_ns < from_ns ? l->from_ns : from_ns;
		l->to_ns = l->to_ns > to_ns ? l->to_ns : to_ns;
	}
}

static int refused(sqlite3 *db, int rc, struct err *e)
{
	return err_set(e, (rc & 0xff) == SQLITE_CORRUPT ? -EBADMSG : -EIO, EXIT_STORE,
		       "cannot read %s: %s", sqlite3_db_filename(db, NULL), sqlite3_errmsg(db));
}

/* The runs of the recording ?1 in one segment, by the token that they share: asked together, since
 * to prepare a statement takes longer than to step it. */
#define ITS "(SELECT id FROM run WHERE iif(recording, recording, token) = ?1)"

/* `x`: ?1, a run or a recording's token. */
static int ask(sqlite3 *db, const char *sql, int64_t x, sqlite3_stmt **st, struct err *e)
{
	int rc = sqlite3_prepare_v2(db, sql, -1, st, NULL);

	if (rc != SQLITE_OK)
		return refused(db, rc, e);
	sqlite3_bind_int64(*st, 1, x);
	return 0;
}

/* The end of a statement: did the last step fail? */
static int told(sqlite3 *db, sqlite3_stmt *st, struct err *e)
{
	int rc = sqlite3_finalize(st);

	return rc == SQLITE_OK ? 0 : refused(db, rc, e);
}

static int one_row(sqlite3 *db, const char *sql, int64_t x, uint64_t *a, uint64_t *b, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db, sql, x, &st, e);

	if (rc < 0)
		return rc;
	if (sqlite3_step(st) == SQLITE_ROW) {
		*a += (uint64_t)sqlite3_column_int64(st, 0);
		*b += sqlite3_column_count(st) > 1 ? (uint64_t)sqlite3_column_int64(st, 1) : 0;
	}
	return told(db, st, e);
}

static int add_counts(struct status_facts *f, sqlite3 *db, int64_t token, struct err *e)
{
	return one_row(
		db,
		"SELECT sum(iif(kind = 1, n, 0)), sum(iif(kind = 1, 0, n)) FROM run_count WHERE run IN " ITS,
		token, &f->samples, &f->events, e);
}

#define NAMED_ROWS 16384 /* rows looked at, at most: of a busy host those of two minutes or so */
#define NAMED(last, limit)                                                                                                      \
	"SELECT sum(x.n), sum(iif(r.function > 0, x.n, 0)) FROM (SELECT series, sum(n) AS n FROM (SELECT series, n FROM sample" \
	" WHERE ts > " last limit                                                                                               \
	") GROUP BY series) x CROSS JOIN series e ON e.id = x.series CROSS JOIN task t ON t.id = e.task"                        \
	" LEFT JOIN stack k ON k.id = e.stack LEFT JOIN frame r ON r.id = k.leaf WHERE t.run = ?1"
#define NEWEST     " ORDER BY ts DESC LIMIT " NUMBER(NAMED_ROWS)
#define NUMBER(n)  NUMBER_(n)
#define NUMBER_(n) #n
#define ENDED \
	"(SELECT r.to_ns / 1000000000 - t0.value FROM run r JOIN meta t0 ON t0.key = 't0' WHERE r.id = ?1)"

static bool is_packed(sqlite3 *db)
{
	uint64_t packed = 0, none = 0;
	struct err e = {0};

	return !one_row(
		       db,
		       "SELECT sql LIKE 'CREATE VIRTUAL%' FROM sqlite_master WHERE name = 'sample' AND ?1",
		       1, &packed, &none, &e) &&
	       packed;
}

/* The share of the samples whose leaf has a name: of its last ten minutes in its newest segment, of
 * at most that many rows; of all its rows there if it had no samples in that time. */
static int add_named(struct status_facts *f, struct store_segment *s, int64_t run, struct err *e)
{
	sqlite3 *db = store_segment_tables(s);
	uint64_t looked_at = f->looked_at, there = 0, none = 0;
	int rc;

	if (is_packed(db)) /* its dictionary takes too long to read */
		return one_row(db, "SELECT samples, named FROM run_named WHERE run = ?1", run,
			       &f->looked_at, &f->named, e);
	rc = one_row(db, "SELECT EXISTS (SELECT 1 FROM task WHERE run = ?1 AND kind = 1)", run,
		     &there, &none, e);

	if (rc || !there)
		return rc;
	rc = one_row(db, NAMED(ENDED " - 600", NEWEST), run, &f->looked_at, &f->named, e);
	if (rc || f->looked_at != looked_at)
		return rc;
	return one_row(db, NAMED("-1 << 62", ""), run, &f->looked_at, &f->named, e);
}

static int add_losses_and_memory(struct status_facts *f, sqlite3 *db, int64_t token, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(db,
		     "SELECT reason, sum(n) FROM run_loss WHERE run IN " ITS
		     " GROUP BY reason ORDER BY min(run), reason",
		     token, &st, e);

	if (rc < 0)
		return rc;
	while (sqlite3_step(st) == SQLITE_ROW)
		facts_lose(f, (const char *)sqlite3_column_text(st, 0),
			   (uint64_t)sqlite3_column_int64(st, 1));
	rc = told(db, st, e);
	if (rc < 0)
		return rc;
	f->private_bytes = f->map_bytes = 0; /* the latest segment's */
	return one_row(db,
		       "SELECT sum(private_bytes), sum(map_bytes) FROM run_cost WHERE run IN " ITS,
		       token, &f->private_bytes, &f->map_bytes, e);
}

/* When: of the rows, which are few. */
static int add_loss_times(struct status_facts *f, sqlite3 *db, int64_t token, struct err *e)
{
	sqlite3_stmt *st;
	int rc =
		f->n_losses ?
			ask(db,
			    "SELECT l.reason, min(l.ts) + t0.value, max(l.ts + r.bucket_s) + t0.value"
			    " FROM loss_row l JOIN meta t0 ON t0.key = 't0' JOIN run r ON r.id = l.run"
			    " WHERE l.run IN " ITS " GROUP BY 1",
			    token, &st, e) :
			-ENODATA;

	if (rc < 0)
		return rc == -ENODATA ? 0 : rc;
	while (sqlite3_step(st) == SQLITE_ROW)
		facts_lost_at(f, (const char *)sqlite3_column_text(st, 0),
			      sqlite3_column_int64(st, 1) * NSEC_PER_SEC,
			      sqlite3_column_int64(st, 2) * NSEC_PER_SEC);
	return told(db, st, e);
}

/* What its family has as the note "refused" or "unnamed" of a process that is there still. */
static int add_refused(struct status_facts *f, sqlite3 *db, int64_t run, struct err *e)
{
	sqlite3_stmt *st;
	int rc = ask(
		db,
		"SELECT p.comm, p.pid, t.value, n.key = 'unnamed' FROM process_note n JOIN process p ON p.id = n.process"
		" JOIN text t ON t.id = n.value WHERE n.run = ?1 AND n.key IN ('refused', 'unnamed') AND t.value <> ''"
		" AND NOT p.end_ns ORDER BY p.comm, p.pid",
		run, &st, e);

	if (rc < 0)
		return rc;
	while (sqlite3_step(st) == SQLITE_ROW) {
		mem_grow(f->refused, f->n_refused, f->cap_refused);
		f->refused[f->n_refused++] = (struct status_refused){
			mem_strdup((const char *)sqlite3_column_text(st, 0)),
			mem_strdup((const char *)sqlite3_column_text(st, 2)),
			sqlite3_column_int64(st, 1), sqlite3_column_int64(st, 3) != 0};
	}
	return told(db, st, e);
}

/* The recording's runs in one segment: `runs`, `n` of them. */
struct part {
	struct status_facts *f;
	const struct select_run *runs;
	size_t n;
};

static int add_its_ending(void *ctx, const struct store_ending_row *r)
{
	const struct part *p = ctx;

	for (size_t i = 0; i < p->n; i++)
		if (p->runs[i].run == r->run)
			return endings_add(&p->f->endings, r);
	return 0;
}

/* What only the newest segment is asked. */
static int add_newest(struct part *p, struct store_segment *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < p->n && !rc; i++) {
		rc = add_named(p->f, s, p->runs[i].run, e);
		if (rc == 0 && !is_packed(store_segment_tables(s)))
			rc = add_refused(p->f, store_segment_tables(s), p->runs[i].run, e);
	}
	return rc;
}

static int add_part(struct part *p, struct store_segment *s, int64_t token, bool newest,
		    struct err *e)
{
	int rc = add_counts(p->f, store_segment_tables(s), token, e);

	if (rc == 0 && newest)
		rc = add_newest(p, s, e);
	if (rc == 0)
		rc = add_losses_and_memory(p->f, store_segment_tables(s), token, e);
	if (rc == 0)
		rc = add_loss_times(p->f, store_segment_tables(s), token, e);
	if (rc == 0)
		rc = store_own_cost_of(s, token, &p->f->own, e);
	return rc ? rc : store_endings(s, 0, INT64_MAX, 0, add_its_ending, p, e);
}

static const struct store_segment_info *find_segment(const struct status_store *store,
						     const char *path)
{
	size_t i = 0;

	while (i < store->n_segments && strcmp(store->segments[i].path, path))
		i++;
	return i < store->n_segments ? &store->segments[i] : NULL;
}

static size_t n_in_segment(const struct select_run *r, size_t n)
{
	size_t i = 1;

	while (i < n && !strcmp(r[i].segment, r->segment))
		i++;
	return i;
}

int status_fill(struct status_facts *f, const struct status_store *store,
		const struct select_recording *rec, struct err *e)
{
	int rc = 0;

	f->rec = rec;
	f->live = recorder_is_live(rec);
	for (size_t i = 0, n; i < rec->n_runs && !rc; i += n) {
		struct part p = {.f = f,
				 .runs = &rec->runs[i],
				 .n = n = n_in_segment(&rec->runs[i], rec->n_runs - i)};
		const struct store_segment_info *info = find_segment(store, p.runs->segment);
		struct store_segment *s = info ? info->open : NULL;

		if (!s)
			rc = store_segment_open(p.runs->segment, &s, e);
		if (rc == 0)
			rc = add_part(&p, s, (int64_t)rec->token, i + n == rec->n_runs, e);
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
	int rc = store_segments_open(store, 0, INT64_MAX, SELECT_OPEN, &s->segments, &s->n_segments,
				     e);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < s->n_segments; i++) {
		const struct store_segment_info *info = &s->segments[i];

		/* one transaction for all queries: SQLite locks the file and checks for a journal
		 * only once */
		if (info->open)
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
