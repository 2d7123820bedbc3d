/* SPDX-License-Identifier: Apache-2.0 */
/* choice: one run for each (process, bucket); the header has the rules. */
#include "schema/store/model/choice.h"

#include <stdlib.h>

#include "schema/base/clock.h"
#include "schema/base/mem.h"

struct span {
	int64_t from, to;
};

static bool overlap(struct span a, struct span b)
{
	return a.from < b.to && b.from < a.to;
}

static bool within(struct span a, struct span b)
{
	return b.from <= a.from && a.to <= b.to;
}

static struct span run_span(const struct choice_run *r)
{
	return (struct span){r->from_ns, r->to_ns};
}

/* E of the bucket that begins at ts. */
static struct span bucket_span(const struct choice_run *r, int64_t ts)
{
	struct span s = {ts * NSEC_PER_SEC, (ts + r->bucket_s) * NSEC_PER_SEC};

	if (s.from < r->from_ns)
		s.from = r->from_ns;
	if (s.to > r->to_ns)
		s.to = r->to_ns;
	return s;
}

static bool finer(const struct choice *c, uint32_t a, uint32_t b)
{
	const struct choice_run *x = &c->runs[a], *y = &c->runs[b];

	if (x->bucket_s != y->bucket_s)
		return x->bucket_s < y->bucket_s;
	if (x->period_min != y->period_min)
		return x->period_min < y->period_min;
	return a < b;
}

static bool covers(const struct choice_run *r, uint32_t process)
{
	return r->scope == STORE_SCOPE_HOST || (r->has && r->has[process / 8] & 1u << process % 8);
}

static bool partial(const struct choice_run *r)
{
	return r->scope == STORE_SCOPE_PARTIAL;
}

/* Another run of the same family that covers the process and overlaps in time. */
static bool rival(const struct choice *c, uint32_t run, uint32_t other, uint32_t process)
{
	const struct choice_run *r = &c->runs[run], *x = &c->runs[other];

	return x->present && run != other && r->family == x->family &&
	       overlap(run_span(r), run_span(x)) && covers(x, process);
}

static bool rule_1(const struct choice *c, uint32_t run, uint32_t process, struct span e)
{
	for (uint32_t f = 0; f < c->n_runs; f++)
		if (rival(c, run, f, process) && partial(&c->runs[f]) == partial(&c->runs[run]) &&
		    finer(c, f, run) && within(e, run_span(&c->runs[f])))
			return true;
	return false;
}

/* Does the bucket [ts, ...) of the finer run touch a visible bucket of the coarser one? One
 * bucket of the finer run may touch several only where widths do not divide each other. */
static bool touches_standing(const struct choice *c, uint32_t coarse, uint32_t process,
			     struct span e)
{
	const struct choice_run *r = &c->runs[coarse];
	int64_t ts = e.from / NSEC_PER_SEC;

	for (ts -= ts % r->bucket_s; ts * NSEC_PER_SEC < e.to; ts += r->bucket_s) {
		struct span b = bucket_span(r, ts);

		if (b.from < b.to && overlap(b, e) && !rule_1(c, coarse, process, b))
			return true;
	}
	return false;
}

static bool hidden(const struct choice *c, uint32_t run, uint32_t process, struct span e)
{
	const struct choice_run *r = &c->runs[run];

	if (rule_1(c, run, process, e))
		return true;
	for (uint32_t x = 0; x < c->n_runs; x++) {
		if (!rival(c, run, x, process))
			continue;
		if (partial(r) && !partial(&c->runs[x])) {
			if (overlap(e, run_span(&c->runs[x])))
				return true;
		} else if (partial(r) == partial(&c->runs[x]) && finer(c, run, x) &&
			   touches_standing(c, x, process, e)) {
			return true;
		}
	}
	return false;
}

void choice_init(struct choice *c, struct choice_run *runs, size_t n_runs, size_t n_processes)
{
	*c = (struct choice){.runs = runs, .n_runs = n_runs, .n_processes = n_processes};
	for (size_t i = 0; i < n_runs; i++) {
		struct choice_run *r = &runs[i];

		r->has = NULL;
		r->period_min = r->n_periods ? UINT64_MAX : 0;
		for (uint32_t k = 0; k < r->n_periods; k++)
			if (r->periods[k].period_ns < r->period_min)
				r->period_min = r->periods[k].period_ns;
		r->alone = true;
		for (size_t k = 0; k < n_runs; k++)
			if (k != i && runs[k].present && runs[k].family == r->family &&
			    overlap(run_span(r), run_span(&runs[k])))
				r->alone = false;
	}
}

void choice_has(struct choice *c, uint32_t run, uint32_t process)
{
	struct choice_run *r = run < c->n_runs ? &c->runs[run] : NULL;

	if (!r || !r->present || r->scope == STORE_SCOPE_HOST || process >= c->n_processes)
		return;
	if (!r->has)
		r->has = mem_array(c->n_processes / 8 + 1, 1);
	r->has[process / 8] |= (uint8_t)(1u << process % 8);
}

void choice_window(struct choice *c, int64_t from_ns, int64_t to_ns)
{
	c->from_ns = from_ns;
	c->to_ns = to_ns;
	c->window = from_ns < to_ns;
	free(c->taken);
	c->taken = NULL;
}

void choice_release(struct choice *c)
{
	for (size_t i = 0; i < c->n_runs; i++) {
		free(c->runs[i].has);
		c->runs[i].has = NULL;
	}
	free(c->taken);
	c->taken = NULL;
}

/* Rule 0: the finest run of that family that covers the process for the whole window; 0: none. */
static uint32_t window_run(const struct choice *c, uint32_t family, uint32_t process)
{
	uint32_t best = 0;

	for (uint32_t i = 1; i < c->n_runs; i++) {
		const struct choice_run *r = &c->runs[i];

		if (r->present && r->family == family && !partial(r) && covers(r, process) &&
		    within((struct span){c->taken_from_ns, c->taken_to_ns}, run_span(r)) &&
		    (!best || finer(c, i, best)))
			best = i;
	}
	return best;
}

/* The window, cut to what there is of this family. */
static void window_begin(struct choice *c, uint32_t family)
{
	int64_t first = INT64_MAX, last = INT64_MIN;

	for (size_t i = 0; i < c->n_runs; i++) {
		if (!c->runs[i].present || c->runs[i].family != family)
			continue;
		first = c->runs[i].from_ns < first ? c->runs[i].from_ns : first;
		last = c->runs[i].to_ns > last ? c->runs[i].to_ns : last;
	}
	free(c->taken);
	c->taken = mem_array(c->n_processes, sizeof(*c->taken));
	c->taken_family = family;
	c->taken_from_ns = c->from_ns > first ? c->from_ns : first;
	c->taken_to_ns = c->to_ns < last ? c->to_ns : last;
	for (size_t i = 0; i < c->n_runs; i++)
		if (c->runs[i].present && c->runs[i].elsewhere && c->runs[i].family == family &&
		    overlap((struct span){c->taken_from_ns, c->taken_to_ns}, run_span(&c->runs[i])))
			c->taken_to_ns = c->taken_from_ns;
}

static uint32_t window_run_kept(struct choice *c, uint32_t family, uint32_t process)
{
	if (!c->taken || c->taken_family != family)
		window_begin(c, family);
	if (c->taken_from_ns >= c->taken_to_ns)
		return 0;
	if (!c->taken[process])
		c->taken[process] = window_run(c, family, process) + 1;
	return c->taken[process] - 1;
}

bool choice_takes(struct choice *c, uint32_t run, uint32_t process, int64_t ts)
{
	const struct choice_run *r = run < c->n_runs ? &c->runs[run] : NULL;
	uint32_t taken;

	if (!r || !r->present || process >= c->n_processes)
		return false;
	if (r->alone)
		return true;
	taken = c->window ? window_run_kept(c, r->family, process) : 0;
	if (taken)
		return taken == run;
	return !hidden(c, run, process, bucket_span(r, ts));
}

uint64_t choice_period(const struct choice_run *r, int64_t ts)
{
	uint64_t period = 0;

	for (uint32_t i = 0; i < r->n_periods; i++)
		if (i == 0 || r->periods[i].from_ns <= ts * NSEC_PER_SEC)
			period = r->periods[i].period_ns;
	return period;
}
