/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stretch: runs during which the wall clock is set back.
 *
 * Readers take a run to cover all of [from, to), and where two runs of a family overlap they take
 * each bucket from one of them (model/choice.h). Rows from before a run's begin are outside of what
 * it says of itself: with another run they counted twice. So:
 *   1. The caller's run is one or more runs of the store, its stretches. They have the same
 *      `recording`: the caller's, or else the token of the first.
 *   2. What is recorded goes to the stretch that began last of those that began before its time.
 *      Where none did, a new one begins.
 *   3. Stretches never overlap each other: one that is set back to before another one grows up to
 *      its begin, and then the other one goes on.
 * What waited since before the clock was set may come late: it does not widen a stretch.
 * While TALLY_RUNS are in use no further one begins: what is recorded stays in the last.
 */
#include "schema/base/clock.h"
#include "schema/store/write/writer_state.h"

#define STEP_NS NSEC_PER_SEC /* as little before a begin is still of it */

/* 0: a new one has to begin. */
static uint32_t stretch_at(const struct store_writer *w, uint32_t run, int64_t utc_ns)
{
	uint32_t last = 0, first = run;

	for (uint32_t id = 1; id <= w->n_runs; id++) {
		const struct writer_run *r = &w->run[id - 1];

		if (r->of != run)
			continue;
		if (r->from_ns <= utc_ns && (!last || r->from_ns > w->run[last - 1].from_ns))
			last = id;
		if (r->from_ns < w->run[first - 1].from_ns)
			first = id;
	}
	return !last && w->run[first - 1].from_ns - utc_ns < STEP_NS ? first : last;
}

int64_t stretch_end(const struct store_writer *w, const struct writer_run *r)
{
	int64_t end = INT64_MAX;

	for (uint32_t i = 0; i < w->n_runs; i++)
		if (w->run[i].of == r->of && w->run[i].from_ns > r->from_ns &&
		    w->run[i].from_ns < end)
			end = w->run[i].from_ns;
	return end;
}

static uint64_t period_of(const struct writer_run *r)
{
	return r->periods[r->n_periods - 1].period_ns;
}

/* The same run from then on. If there is no room, that which is written to. */
static uint32_t stretch_begin(struct store_writer *w, uint32_t run, int64_t utc_ns)
{
	const struct writer_run *r = &w->run[run - 1];
	const struct store_run o = {
		.family = r->family,
		.options = r->options,
		.scope = (enum store_scope)r->scope,
		.bucket_s = r->bucket_s,
		.period_ns = period_of(&w->run[r->now - 1]),
		.cpus = r->cpus,
		.from_ns = utc_ns,
		.recording = r->recording ? r->recording : r->token,
		.fine_s = r->fine_s,
		.share = r->share,
	};
	uint32_t id = writer_run_add(w, &o, run);

	return id ? id : r->now;
}

/* What is offered from now on is the new one's: the others have what they have seen. */
static void stretch_turn(struct store_writer *w, uint32_t run, uint32_t id, int64_t utc_ns)
{
	struct writer_run *r = &w->run[run - 1], *is = &w->run[id - 1];
	uint64_t period = period_of(&w->run[r->now - 1]), before = 0;

	for (uint32_t i = 0; i < w->n_runs; i++)
		if (w->run[i].of == run && i + 1 != id)
			before += w->run[i].tally->seen - w->tally.data->besides[i];
	is->offered_before = before;
	__atomic_store_n(&w->tally.data->offered[r->now - 1], 0, __ATOMIC_RELAXED);
	__atomic_store_n(&r->now, id, __ATOMIC_RELEASE);
	if (period != period_of(is))
		store_run_period(w, run, utc_ns, period);
}

void store_runs_at(struct store_writer *w, int64_t utc_ns)
{
	bool turned = false;

	for (uint32_t run = 1, n = w->n_runs; run <= n; run++) {
		uint32_t id;

		if (w->run[run - 1].of != run)
			continue;
		id = stretch_at(w, run, utc_ns);
		if (!id)
			id = stretch_begin(w, run, utc_ns);
		if (id == w->run[run - 1].now)
			continue;
		stretch_turn(w, run, id, utc_ns);
		turned = true;
	}
	if (!turned)
		return;
	events_new_epoch(w);
}
