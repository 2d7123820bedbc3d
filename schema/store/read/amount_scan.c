/* SPDX-License-Identifier: Apache-2.0 */
/* amount_scan: walks over amounts, scales them, and keeps the latest values of gauges. */
#include <errno.h>
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/files/readonly.h"
#include "schema/store/files/span.h"
#include "schema/store/read/timeline.h"

static bool is_gauge(enum store_kind kind)
{
	const struct store_kind_info *k = store_kind_info(kind);

	return k && k->class == STORE_GAUGE;
}

int amount_scan_open(struct row_scan *p, struct store_segment *s, const struct store_query *q,
		     struct err *e)
{
	int64_t first, last;
	int rc = row_scan_begin(p, s, q, e);

	if (rc)
		return rc;
	row_scan_range(s, q, &first, &last);
	if (row_scan_columns(p, "amount",
			     q->no_hist ? "ts, series, n, value, max" :
					  "ts, series, n, value, max, hist",
			     is_gauge(q->kind) ? INT64_MIN : first, last))
		return 0;
	rc = row_scan_prepare(
		p, "SELECT series, n, ts, value, max, hist FROM amount WHERE ts BETWEEN ?1 AND ?2",
		e);
	if (!rc && is_gauge(q->kind))
		sqlite3_bind_int64(p->st, 1, INT64_MIN);
	return rc;
}

/* The last rate at or before that bucket. */
static uint64_t rate_at(const struct store_segment *s, uint32_t run, uint32_t process, int64_t ts)
{
	size_t low = 0, high = s->n_rates;

	while (low < high) { /* the first that is behind (run, process, ts) */
		size_t mid = low + (high - low) / 2;
		const struct reading_rate *r = &s->rates[mid];

		if (r->run != run         ? r->run > run :
		    r->process != process ? r->process > process :
					    r->ts > ts)
			high = mid;
		else
			low = mid + 1;
	}
	if (!low || s->rates[low - 1].run != run || s->rates[low - 1].process != process)
		return 0;
	return s->rates[low - 1].bytes;
}

uint64_t store_rate_at(struct store_segment *s, uint32_t run, uint32_t process, int64_t to_ns)
{
	return rate_at(s, run, process, to_ns == INT64_MAX ? INT64_MAX : to_ns / NSEC_PER_SEC);
}

/* An object of `size` bytes is sampled with probability 1 - exp(-size / rate). */
static double scale_of(const struct row_scan *p, const struct amount_seen *a)
{
	const struct reading_task *t = row_scan_task(p, a->series);
	uint32_t label = p->s->series_label[a->series];
	double size, rate;

	if (!p->s->n_rates || !store_kind_info(p->q->kind)->sized || !a->n)
		return 1;
	rate = (double)rate_at(p->s, t->run, t->process, a->ts);
	size = label ? (double)label : (double)a->value / (double)a->n;
	return rate > 1 && size > 0 ? 1 / -expm1(-size / rate) : 1;
}

static uint64_t number_at(sqlite3_stmt *st, int i)
{
	sqlite3_int64 v = sqlite3_column_int64(st, i);

	return v > 0 ? (uint64_t)v : 0;
}

static uint64_t number_of(const struct row_scan *p, int column, size_t row)
{
	const int64_t v = packedread_number(&p->columns, column, row);

	return v > 0 ? (uint64_t)v : 0;
}

/* The same of an archive's columns. */
static int next_of_columns(struct row_scan *p, struct amount_seen *out)
{
	size_t row;
	int rc;

	while ((rc = row_scan_column(p, &row)) == SQLITE_ROW) {
		const int64_t ts = packedread_number(&p->columns, 0, row),
			      series = packedread_number(&p->columns, 1, row);

		if (series <= 0 || (size_t)series >= p->s->n_series ||
		    !row_scan_takes(p, (uint32_t)series, ts))
			continue;
		*out = (struct amount_seen){
			.series = (uint32_t)series,
			.ts = ts + p->s->t0,
			.n = number_of(p, 2, row),
			.value = number_of(p, 3, row),
			.max = number_of(p, 4, row),
			.hist = p->q->no_hist ? "" : packedread_text(&p->columns, 5, row),
		};
		out->hist_len = strlen(out->hist);
		out->hist = out->hist_len ? out->hist : NULL;
		out->scale = scale_of(p, out);
		break;
	}
	return rc;
}

int amount_scan_next(struct row_scan *p, struct amount_seen *out)
{
	int rc;

	if (!p->st)
		return next_of_columns(p, out);
	while ((rc = sqlite3_step(p->st)) == SQLITE_ROW) {
		sqlite3_int64 series = sqlite3_column_int64(p->st, 0);
		int64_t ts = sqlite3_column_int64(p->st, 2);

		if (series <= 0 || (size_t)series >= p->s->n_series ||
		    !row_scan_takes(p, (uint32_t)series, ts))
			continue;
		*out = (struct amount_seen){
			.series = (uint32_t)series,
			.ts = ts + p->s->t0,
			.n = number_at(p->st, 1),
			.value = number_at(p->st, 3),
			.max = number_at(p->st, 4),
			.hist = (const char *)sqlite3_column_text(p->st, 5),
		};
		out->hist_len = out->hist ? (size_t)sqlite3_column_bytes(p->st, 5) : 0;
		out->scale = scale_of(p, out);
		break;
	}
	return rc;
}

/* --- gauges: the latest values --- */

void standing_init(struct standing *g, const struct store_segment *s)
{
	struct idmap firsts = {0};

	g->process = mem_array(s->dict.n_processes, sizeof(*g->process));
	g->round = mem_array(s->n_series, sizeof(*g->round));
	g->alike = mem_array(s->n_tasks + 1, sizeof(*g->alike));
	g->holds = mem_array(s->n_tasks + 1, sizeof(*g->holds));
	for (uint32_t i = 1; i < s->n_tasks; i++) {
		const struct reading_task *t = &s->tasks[i];
		uint64_t key = hash_u64(hash_u64(HASH_SEED, (uint64_t)t->run << 32 | t->process),
					(uint64_t)t->tid << 32 | t->kind);
		bool fresh;
		uint64_t *first;

		key = hash_str(hash_str(key, t->thread ? t->thread : ""),
			       t->labels ? t->labels : "");
		first = idmap_ref(&firsts, key, &fresh);
		if (fresh)
			*first = i;
		g->alike[i] = (uint32_t)*first;
	}
	idmap_release(&firsts);
}

void standing_release(struct standing *g)
{
	free(g->process);
	free(g->round);
	free(g->alike);
	free(g->holds);
}

bool standing_take(struct standing *g, const struct row_scan *p, uint32_t series)
{
	const struct reading_task *t = row_scan_task(p, series);
	struct standing_process *x = &g->process[t->process];
	uint32_t task = p->s->series_task[series], *holds = &g->holds[g->alike[task]];
	bool first = x->run != t->run || (*holds && *holds != task);

	*holds = task;
	if (first)
		*x = (struct standing_process){.run = t->run, .round = x->round + 1};
	g->round[series] = x->round;
	return first;
}

bool standing_has(const struct standing *g, const struct row_scan *p, uint32_t series)
{
	return g->round[series] &&
	       g->round[series] == g->process[row_scan_task(p, series)->process].round;
}

/* --- which kinds there are --- */

uint32_t store_run_kinds(const struct store_segment *s, int64_t run)
{
	uint32_t kinds = 0;

	if (run > 0 && s->day && s->day_runs)
		return (uint64_t)run < s->dict.n_runs ? s->day_runs[run].kinds : 0;
	for (size_t i = 1; i < s->n_tasks; i++)
		if ((!run || s->tasks[i].run == run) &&
		    store_kind_info((enum store_kind)s->tasks[i].kind))
			kinds |= 1u << s->tasks[i].kind;
	return kinds;
}

/* The bit of the kind of a series, 0 where it is of another run. */
static uint32_t kind_of(const struct store_segment *s, const struct store_query *q, int64_t series)
{
	const struct reading_task *t;

	if (series <= 0 || (size_t)series >= s->n_series)
		return 0;
	t = &s->tasks[s->series_task[series]];
	return !q->run || t->run == q->run ? 1u << (t->kind & 31) : 0;
}

/* The same of an archive's columns. */
static int kinds_of_columns(struct packedread *r, const struct store_segment *s,
			    const struct store_query *q, uint32_t possible, uint32_t *found)
{
	int64_t first, last;
	int rc = 0;

	row_scan_range(s, q, &first, &last);
	for (size_t k = packedtable_block_of(&r->t, first);
	     !rc && *found != possible && k < r->t.n_blocks &&
	     (!r->t.range || r->t.range[k].first <= last);
	     k++) {
		rc = packedread_block(r, k);
		for (size_t i = 0; !rc && i < r->c[0]->n && *found != possible; i++)
			if (r->c[0]->numbers[i] >= first && r->c[0]->numbers[i] <= last)
				*found |= kind_of(s, q, packedread_number(r, 1, i)) & possible;
		packedtable_release(&r->t, k);
	}
	return rc;
}

/* Walks until all of `possible` were met. */
static int kinds_among(struct store_segment *s, const struct store_query *q, const char *sql,
		       uint32_t possible, uint32_t *kinds, struct err *e)
{
	struct packedread columns;
	sqlite3_stmt *st;
	uint32_t found = 0;
	int64_t first, last;
	int rc = SQLITE_DONE;

	if (s->archived && packedread_open(&columns, s->db, "amount", "ts, series")) {
		rc = kinds_of_columns(&columns, s, q, possible, &found);
		packedread_release(&columns);
		*kinds |= found;
		return rc ? readonly_refused(s->path, s->db,
					     rc == -ENOMEM ? SQLITE_NOMEM : SQLITE_CORRUPT, e) :
			    0;
	}
	st = reading_prepare(s, sql, e);
	if (!st)
		return e && e->code ? e->code : -EIO;
	row_scan_range(s, q, &first, &last);
	sqlite3_bind_int64(st, 1, first);
	sqlite3_bind_int64(st, 2, last);
	while (found != possible && (rc = sqlite3_step(st)) == SQLITE_ROW)
		found |= kind_of(s, q, sqlite3_column_int64(st, 0)) & possible;
	*kinds |= found;
	return reading_finish(s, st, rc == SQLITE_ROW ? SQLITE_DONE : rc, e);
}

/* Samples are of one kind: is any of this run within the range? */
static int sampled_in(struct store_segment *s, const struct store_query *q, uint32_t *kinds,
		      struct err *e)
{
	int64_t first, last;
	struct samples c;
	bool found = false;
	int rc;

	row_scan_range(s, q, &first, &last);
	rc = samples_open(&c, s, first, last, e);
	if (rc)
		return rc;
	while (!found && (rc = samples_next(&c)) == SQLITE_ROW)
		for (size_t i = 0; i < c.n && !found; i++)
			found = !q->run || s->tasks[s->series_task[c.rows[i].series]].run == q->run;
	if (found)
		*kinds |= 1u << STORE_KIND_CPU;
	return samples_close(&c, rc, e);
}

/* An archive says which kinds it has, of all of its time; false: of the range it does not. */
static bool kinds_of_all(struct store_segment *s, const struct store_query *q, uint32_t *kinds)
{
	sqlite3_stmt *st = NULL;
	int64_t first, last, from, to;
	int rc;

	row_scan_range(s, q, &from, &to);
	if (!s->archived || !span_noted(s->db, &first, &last) || from > first || to < last ||
	    sqlite3_prepare_v2(
		    s->db,
		    "SELECT kind FROM run_count WHERE n > 0 AND kind BETWEEN 1 AND 31 AND (?1 = 0 OR run = ?1)",
		    -1, &st, NULL))
		return false;
	sqlite3_bind_int64(st, 1, q->run);
	while ((rc = sqlite3_step(st)) == SQLITE_ROW)
		*kinds |= 1u << sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return rc == SQLITE_DONE;
}

int store_kinds_in(struct store_segment *s, int64_t from_ns, int64_t to_ns, int64_t run,
		   uint32_t *kinds, struct err *e)
{
	const struct store_query q = {.from_ns = from_ns, .to_ns = to_ns, .run = run};
	const uint32_t sampled = 1u << STORE_KIND_CPU;
	const struct store_dict *d;
	uint32_t possible, found = 0;
	int rc;

	if (kinds_of_all(s, &q, &found)) {
		*kinds = found;
		return 0;
	}
	if (s->day)
		return reading_refuse_day(s, e);
	rc = store_segment_series(s, &d, e);
	if (rc)
		return rc;
	possible = store_run_kinds(s, run);
	if (possible & sampled)
		rc = sampled_in(s, &q, &found, e);
	if (!rc)
		rc = kinds_among(s, &q, "SELECT series FROM amount WHERE ts BETWEEN ?1 AND ?2",
				 possible & ~sampled, &found, e);
	if (!rc)
		*kinds = found;
	return rc;
}
