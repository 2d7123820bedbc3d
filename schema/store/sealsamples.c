/* SPDX-License-Identifier: Apache-2.0 */
/* sealsamples: see the header. One segment's rows are held in memory: 24 bytes each. */
#include "schema/store/sealsamples.h"

#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define HOUR_S 3600
#define BLOCK_ROWS 32768 /* about 40 KB: less than 5 % of its pages is lost, and no question reads much too much */

/* --- reading, and sums by the hour --- */

struct part { /* what is summed of one series */
	int64_t hour;    /* seconds since 1970 */
	int64_t ts;
	uint64_t n, period;
};

struct reading_hours {
	struct sealsamples *x;
	struct pass pass;
	struct part *parts; /* by series */
};

static int64_t hour_of(int64_t utc_s)
{
	return utc_s - ((utc_s % HOUR_S) + HOUR_S) % HOUR_S;
}

static void part_end(struct sealsamples *x, struct part *p, uint32_t series)
{
	if (!p->n)
		return;
	mem_grow(x->hours, x->n_hours, x->cap_hours);
	x->hours[x->n_hours++] = (struct seal_hour){p->ts, p->n, series};
	p->n = 0;
}

/* Would a row at the hour's start count, and for as much? Then that is where the sum stands. */
static bool stands_at_hour(struct reading_hours *h, uint32_t series, int64_t hour, uint64_t period)
{
	struct pass *p = &h->pass;
	const struct reading_task *t = pass_task(p, series);

	if (p->state[series] == SERIES_PLAIN)
		return true;
	return hour >= p->s->runs[t->run].from_ns / NSEC_PER_SEC && pass_takes(p, series, hour - p->s->t0) &&
	       choice_period(pass_run(p, series), hour) == period;
}

static void sum_row(struct reading_hours *h, const struct sample_row *r)
{
	struct part *p = &h->parts[r->series];
	int64_t utc = r->ts + h->pass.s->t0, hour = hour_of(utc);
	bool plain;
	uint64_t period;

	if (!pass_takes(&h->pass, r->series, r->ts))
		return;
	plain = h->pass.state[r->series] == SERIES_PLAIN;
	period = plain ? 0 : choice_period(pass_run(&h->pass, r->series), utc);
	if (p->n && (p->hour != hour || p->period != period))
		part_end(h->x, p, r->series);
	if (!p->n)
		*p = (struct part){.hour = hour, .period = period,
				   .ts = stands_at_hour(h, r->series, hour, period) ? hour - h->pass.s->t0 : r->ts};
	p->n += r->n;
}

static void take_chunk(struct reading_hours *h, const struct samples *c)
{
	struct sealsamples *x = h->x;

	while (x->cap - x->n < c->n) {
		x->cap = x->cap ? x->cap * 2 : 4 * SAMPLES_CHUNK;
		x->rows = mem_realloc(x->rows, x->cap * sizeof(*x->rows));
	}
	for (size_t i = 0; i < c->n; i++) {
		x->rows[x->n++] = c->rows[i];
		x->weight[c->rows[i].series] += c->rows[i].n;
		x->total += c->rows[i].n;
		sum_row(h, &c->rows[i]);
	}
}

int sealsamples_read(struct sealsamples *x, struct store_segment *s, struct err *e)
{
	const struct store_query all = {.to_ns = INT64_MAX, .kind = STORE_KIND_CPU};
	struct reading_hours h = {.x = x};
	struct samples c;
	int rc = pass_open_samples(&h.pass, s, &all, &c, e);

	*x = (struct sealsamples){0};
	if (rc)
		return rc;
	h.pass.choice.window = false; /* as the views choose */
	x->weight = mem_array(s->n_series, sizeof(*x->weight));
	h.parts = mem_array(s->n_series, sizeof(*h.parts));
	while ((rc = samples_next(&c)) == SQLITE_ROW)
		take_chunk(&h, &c);
	for (uint32_t i = 1; i < s->n_series; i++)
		part_end(x, &h.parts[i], i);
	free(h.parts);
	pass_release(&h.pass);
	return samples_close(&c, rc, e);
}

void sealsamples_release(struct sealsamples *x)
{
	free(x->rows);
	free(x->weight);
	free(x->hours);
	*x = (struct sealsamples){0};
}

/* --- writing --- */

static int by_place(const void *a, const void *b)
{
	const struct sample_row *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static bool is_ordered(const struct sample_row *rows, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_place(&rows[i - 1], &rows[i]) >= 0)
			return false;
	return true;
}

/* Ordered, each (ts, series) once. Rows come in order of time, so a bucket at a time is sorted; else all. */
static size_t put_in_order(struct sample_row *rows, size_t n)
{
	size_t from = 0, kept = 0;

	for (size_t i = 1; i <= n; i++) {
		if (i < n && rows[i].ts < rows[i - 1].ts) {
			qsort(rows, n, sizeof(*rows), by_place);
			break;
		}
		if (i < n && rows[i].ts == rows[from].ts)
			continue;
		if (!is_ordered(rows + from, i - from))
			qsort(rows + from, i - from, sizeof(*rows), by_place);
		from = i;
	}
	for (size_t i = 0; i < n; i++) {
		if (kept && rows[kept - 1].ts == rows[i].ts && rows[kept - 1].series == rows[i].series)
			rows[kept - 1].n += rows[i].n;
		else
			rows[kept++] = rows[i];
	}
	return kept;
}

static int translate(struct sealsamples *x, const struct sealdict *d, int64_t shift)
{
	for (size_t i = 0; i < x->n; i++) {
		struct sample_row *r = &x->rows[i];

		r->ts += shift;
		r->series = sealdict_id(d, SEAL_SERIES, r->series);
		if (!r->series || r->ts <= -PACK_TS_MAX || r->ts >= PACK_TS_MAX)
			return SQLITE_CORRUPT;
	}
	x->n = put_in_order(x->rows, x->n);
	return SQLITE_OK;
}

/* Rows of the blocks that `sql` gives for [first, last], behind those that are there. */
static int take_blocks(struct sealsamples *x, sqlite3 *day, const char *sql, int64_t first, int64_t last)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, sql, -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, first);
		sqlite3_bind_int64(st, 2, last);
	}
	while (rc == SQLITE_OK && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		struct pack_reader r;

		pack_open(&r, sqlite3_column_blob(st, 1), (size_t)sqlite3_column_bytes(st, 1), sqlite3_column_int64(st, 0));
		do {
			mem_grow(x->rows, x->n, x->cap);
		} while (pack_next(&r, &x->rows[x->n], 1) && ++x->n);
		rc = r.bad ? SQLITE_CORRUPT : SQLITE_OK;
	}
	sqlite3_finalize(st);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* What stands in the day's blocks from `first` on comes into x->rows, and out of the day. */
static int take_overlap(struct sealsamples *x, sqlite3 *day, int64_t first)
{
	size_t before = x->n;
	int rc = take_blocks(x, day, "DELETE FROM sample_pack WHERE last >= ?1 AND ts <= ?2 RETURNING ts, data", first, INT64_MAX);

	if (rc == SQLITE_OK && x->n > before) {
		qsort(x->rows, x->n, sizeof(*x->rows), by_place);
		x->n = put_in_order(x->rows, x->n);
	}
	return rc;
}

/* So many of the rows make a block: whole buckets, of one hour. */
static size_t block_rows(const struct sample_row *rows, size_t n, int64_t t0)
{
	size_t end = 0;

	while (end < n && hour_of(rows[end].ts + t0) == hour_of(rows[0].ts + t0)) {
		size_t k = end;

		while (k < n && rows[k].ts == rows[end].ts)
			k++;
		if (end && k > BLOCK_ROWS)
			break;
		end = k;
	}
	return end;
}

static int put_block(sqlite3_stmt *st, const struct sample_row *rows, size_t n, struct strbuf *bytes)
{
	uint64_t total = 0;

	strbuf_reset(bytes);
	if (pack_encode(rows, n, bytes))
		return SQLITE_CORRUPT;
	for (size_t i = 0; i < n; i++)
		total += rows[i].n;
	sqlite3_bind_int64(st, 1, rows[0].ts);
	sqlite3_bind_int64(st, 2, rows[n - 1].ts);
	sqlite3_bind_int64(st, 3, (int64_t)n);
	sqlite3_bind_int64(st, 4, (int64_t)total);
	sqlite3_bind_blob64(st, 5, bytes->buf, bytes->len, SQLITE_STATIC);
	sqlite3_step(st);
	return sqlite3_reset(st);
}

static int put_blocks(const struct sealsamples *x, sqlite3 *day, int64_t t0)
{
	struct strbuf bytes cleanup_strbuf = STRBUF_INIT;
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, "INSERT INTO sample_pack(ts, last, rows, n, data) VALUES(?1, ?2, ?3, ?4, ?5)", -1, &st,
				    NULL);

	for (size_t at = 0, n; rc == SQLITE_OK && at < x->n; at += n) {
		n = block_rows(x->rows + at, x->n - at, t0);
		rc = put_block(st, x->rows + at, n, &bytes);
	}
	sqlite3_finalize(st);
	return rc;
}

int sealsamples_load(struct sealsamples *x, sqlite3 *day, int64_t first, int64_t last)
{
	return take_blocks(x, day, "SELECT ts, data FROM sample_pack WHERE ts BETWEEN ?1 AND ?2 ORDER BY ts", first, last);
}

static int drop_between(sqlite3 *day, const char *sql, int64_t first, int64_t last)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(day, sql, -1, &st, NULL);

	if (rc == SQLITE_OK) {
		sqlite3_bind_int64(st, 1, first);
		sqlite3_bind_int64(st, 2, last);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

int sealsamples_replace(struct sealsamples *x, sqlite3 *day, int64_t first, int64_t last, int64_t t0)
{
	int rc = drop_between(day, "DELETE FROM sample_pack WHERE ts BETWEEN ?1 AND ?2", first, last);

	x->n = put_in_order(x->rows, x->n);
	return rc == SQLITE_OK ? put_blocks(x, day, t0) : rc;
}

static int hour_by_place(const void *a, const void *b)
{
	const struct seal_hour *x = a, *y = b;

	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->series < y->series ? -1 : x->series > y->series;
}

static int put_hours(struct sealsamples *x, const struct sealdict *d, int64_t shift)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(d->day, "INSERT INTO sample(ts, series, n) VALUES(?1, ?2, ?3)"
					    " ON CONFLICT DO UPDATE SET n = n + excluded.n", -1, &st, NULL);

	for (size_t i = 0; i < x->n_hours; i++) {
		x->hours[i].ts += shift;
		x->hours[i].series = sealdict_id(d, SEAL_SERIES, x->hours[i].series);
	}
	if (x->n_hours)
		qsort(x->hours, x->n_hours, sizeof(*x->hours), hour_by_place);
	for (size_t i = 0; rc == SQLITE_OK && i < x->n_hours; i++) {
		sqlite3_bind_int64(st, 1, x->hours[i].ts);
		sqlite3_bind_int64(st, 2, x->hours[i].series);
		sqlite3_bind_int64(st, 3, (int64_t)x->hours[i].n);
		sqlite3_step(st);
		rc = sqlite3_reset(st);
	}
	sqlite3_finalize(st);
	return rc;
}

int sealsamples_put(struct sealsamples *x, const struct sealdict *d, int64_t shift, int64_t t0)
{
	int rc = put_hours(x, d, shift);

	if (rc == SQLITE_OK)
		rc = translate(x, d, shift);
	if (rc == SQLITE_OK && x->n)
		rc = take_overlap(x, d->day, x->rows[0].ts);
	return rc == SQLITE_OK ? put_blocks(x, d->day, t0) : rc;
}
