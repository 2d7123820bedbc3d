/* SPDX-License-Identifier: Apache-2.0 */
/* timeline: values by process and step of time. Rows come in order of time, so one step is held at
 * a time. */
#include "schema/store/read/timeline.h"

#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

void timeline_begin(struct timeline *x, const struct store_segment *s)
{
	x->value = mem_array(s->dict.n_processes, sizeof(*x->value));
	x->is_touched = mem_array(s->dict.n_processes, sizeof(*x->is_touched));
	x->touched = mem_array(s->dict.n_processes, sizeof(*x->touched));
}

static void timeline_tell(struct timeline *x)
{
	for (size_t i = 0; i < x->n_touched; i++) {
		uint32_t process = x->touched[i];

		if (!x->told)
			x->told = x->each(x->ctx, x->step * NSEC_PER_SEC, process,
					  (uint64_t)llround(x->value[process]));
		x->is_touched[process] = false;
		if (!x->stands)
			x->value[process] = 0;
	}
	x->n_touched = 0;
}

void timeline_step(struct timeline *x, int64_t ts)
{
	timeline_tell(x);
	x->step = ts - ts % x->step_s;
	x->end = x->step + x->step_s;
}

void timeline_end(struct timeline *x, bool all)
{
	if (all)
		timeline_tell(x);
	free(x->value);
	free(x->is_touched);
	free(x->touched);
}

/* --- samples --- */

/* A series of which each row counts, for the same. */
struct steady {
	double period; /* 0: not one, or not met yet */
	uint32_t process;
};

/* A row that may need a decision. */
static void sample_row(struct row_scan *p, const struct sample_row *r, struct timeline *x,
		       struct steady *steady)
{
	int64_t ts = r->ts + p->s->t0;
	uint64_t period;

	if (!row_scan_takes(p, r->series, r->ts))
		return;
	period = p->q->count ? 1 : choice_period(row_scan_run(p, r->series), ts);
	if (!period)
		return;
	timeline_put(x, ts, row_scan_task(p, r->series)->process, (double)r->n * (double)period);
	if (p->state[r->series] == SERIES_PLAIN)
		*steady = (struct steady){(double)period, row_scan_task(p, r->series)->process};
}

static void sample_rows(struct row_scan *p, const struct samples *c, struct timeline *x,
			struct steady *steady)
{
	for (size_t i = 0; i < c->n && !x->told; i++) {
		const struct sample_row *r = &c->rows[i];
		struct steady *k = &steady[r->series];

		if (k->period > 0)
			timeline_put(x, r->ts + p->s->t0, k->process, (double)r->n * k->period);
		else
			sample_row(p, r, x, k);
	}
}

int sample_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		    timeline_each *each, void *ctx, struct err *e)
{
	struct timeline x = {.each = each, .ctx = ctx, .step_s = step_s, .first = INT64_MIN};
	cleanup_free struct steady *steady = NULL; /* by series */
	struct samples c;
	struct row_scan p;
	bool kept;
	int rc = kept_timeline(s, q, &x, &kept, e);

	if (rc || kept)
		return rc;
	rc = row_scan_open_samples(&p, s, q, &c, e);
	if (rc)
		return rc;
	timeline_begin(&x, s);
	steady = mem_array(s->n_series, sizeof(*steady));
	while (!x.told && (rc = samples_next(&c)) == SQLITE_ROW)
		sample_rows(&p, &c, &x, steady);
	timeline_end(&x, rc == SQLITE_DONE);
	row_scan_release(&p);
	rc = samples_close(&c, rc, e);
	return rc ? rc : x.told;
}

/* --- amounts --- */

struct amount_line {
	struct timeline line;
	struct standing standing;
	double *last; /* by series, of gauges: what it is in the sum with */
};

static void amount_put(struct amount_line *x, const struct row_scan *p, const struct amount_seen *a)
{
	uint32_t process = row_scan_task(p, a->series)->process;
	double now = (double)(p->q->count ? a->n : a->value) * a->scale, before = 0;

	if (x->line.stands) {
		before = standing_has(&x->standing, p, a->series) ? x->last[a->series] : 0;
		/* another run: what the one before told is over */
		if (standing_take(&x->standing, p, a->series)) {
			before = 0;
			timeline_put(&x->line, a->ts, process, -x->line.value[process]);
		}
		x->last[a->series] = now;
	}
	timeline_put(&x->line, a->ts, process, now - before);
}

int amount_timeline(struct store_segment *s, const struct store_query *q, uint32_t step_s,
		    timeline_each *each, void *ctx, struct err *e)
{
	const struct store_kind_info *k = store_kind_info(q->kind);
	struct amount_line x = {.line = {.each = each, .ctx = ctx, .step_s = step_s}};
	const struct store_dict *d;
	struct amount_seen a;
	struct row_scan p;
	int64_t last;
	int rc = store_segment_series(s, &d, e);

	if (rc || !k)
		return rc;
	rc = amount_scan_open(&p, s, q, e);
	if (rc)
		return rc;
	x.line.stands = k->class == STORE_GAUGE;
	row_scan_range(s, q, &x.line.first, &last);
	x.line.first += x.line.first == INT64_MIN ? 0 : s->t0;
	timeline_begin(&x.line, s);
	standing_init(&x.standing, s);
	x.last = mem_array(s->n_series, sizeof(*x.last));
	while (!x.line.told && (rc = amount_scan_next(&p, &a)) == SQLITE_ROW)
		amount_put(&x, &p, &a);
	rc = x.line.told ? SQLITE_DONE : rc;
	timeline_end(&x.line, rc == SQLITE_DONE);
	free(x.last);
	standing_release(&x.standing);
	rc = row_scan_close(&p, rc, e);
	return rc ? rc : x.line.told;
}
