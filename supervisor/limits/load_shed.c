/* SPDX-License-Identifier: Apache-2.0 */
#include "supervisor/limits/load_shed.h"

#define ROOM 0.9 /* of the limit: what may be taken with one that comes back */

bool shed_stopped(const struct shed *r, unsigned int family, const struct probe_family *f)
{
	return r->of[family].step > f->steps || r->of[family].stopped_for_memory;
}

unsigned int shed_step(const struct shed *r, unsigned int family, const struct probe_family *f)
{
	return r->of[family].step < f->steps ? r->of[family].step : f->steps;
}

uint32_t shed_freq(const struct shed *r, unsigned int family, const struct probe_family *f,
		   uint32_t asked)
{
	uint32_t freq = asked >> shed_step(r, family, f);

	return freq ? freq : 1;
}

unsigned int shed_count(const struct shed *r, const struct shed_family *f, unsigned int n,
			enum shed_limit limit)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		if (f[i].wanted)
			sum += limit == SHED_CPU ? r->of[i].step : r->of[i].stopped_for_memory;
	return sum;
}

static bool runs(const struct shed *r, const struct shed_family *f, unsigned int i)
{
	return f[i].wanted && !shed_stopped(r, i, f[i].family);
}

static void sums_begin(struct shed *r)
{
	for (unsigned int i = 0; i < FAMILIES_MAX; i++) {
		r->of[i].sum = 0;
		r->of[i].looks = 0;
	}
}

static double mean_cores(const struct shed *r, const struct shed_look *l, unsigned int i)
{
	return r->of[i].looks ? r->of[i].sum / r->of[i].looks : l->f[i].cores;
}

void shed_note(struct shed *r, const struct shed_look *l)
{
	if (l->used <= l->limit)
		sums_begin(r);
	for (unsigned int i = 0; i < l->n; i++) {
		struct shed_state *s = &r->of[i];

		if (l->used > l->limit && l->f[i].cores > 0) {
			s->sum += l->f[i].cores;
			s->looks++;
		}
		if (!runs(r, l->f, i) || !l->f[i].settled || l->f[i].cores <= 0)
			continue;
		s->cores[s->step] = l->f[i].cores;
		s->switches[s->step] = l->switches;
	}
}

/* --- less is done --- */

static bool more_valued(const struct shed_family *f, unsigned int a, unsigned int b)
{
	return f[a].family < f[b].family;
}

/* Of two that take as much the less valued. `whole`: of those that do all and can do less; not
 * `but`. -1: no family. */
static int dearest(const struct shed *r, const struct shed_look *l, bool whole, int but)
{
	const struct shed_family *f = l->f;
	int found = -1;

	for (unsigned int i = 0; i < l->n; i++) {
		double cores = mean_cores(r, l, i),
		       most = found < 0 ? 0 : mean_cores(r, l, (unsigned int)found);

		if ((int)i == but || !runs(r, f, i) ||
		    (whole && (r->of[i].step || !f[i].family->steps)))
			continue;
		if (found < 0 || cores > most ||
		    (cores >= most && more_valued(f, (unsigned int)found, i)))
			found = (int)i;
	}
	return found;
}

/* -1: none runs. */
static int most_valued(const struct shed *r, const struct shed_look *l)
{
	int found = -1;

	for (unsigned int i = 0; i < l->n; i++)
		if (runs(r, l->f, i) && (found < 0 || more_valued(l->f, i, (unsigned int)found)))
			found = (int)i;
	return found;
}

/* That all who still do all would take less a step below. */
static double could_spare(const struct shed *r, const struct shed_look *l)
{
	double sum = 0;

	for (unsigned int i = 0; i < l->n; i++)
		if (runs(r, l->f, i) && !r->of[i].step && l->f[i].family->steps)
			sum += mean_cores(r, l, i) / 2;
	return sum;
}

static void go_down(struct shed *r, const struct shed_look *l, unsigned int i, unsigned int to,
		    struct shed_step *out)
{
	struct shed_state *s = &r->of[i];
	bool soon = s->back_ns && l->now_ns - s->back_ns < SHED_SOON * l->while_ns;

	if (s->back_ns)
		s->patience = !soon                       ? 0 :
			      s->patience < SHED_PATIENCE ? s->patience + 1 :
							    s->patience;
	s->step = to;
	s->room_ns = s->back_ns = 0;
	out->family = i;
	out->stop = to > l->f[i].family->steps;
	out->limit = SHED_CPU;
	sums_begin(r);
}

bool shed_more(struct shed *r, const struct shed_look *l, struct shed_step *out)
{
	int i = dearest(r, l, false, -1), other;
	bool for_other = false; /* which takes more, and can do no less */
	unsigned int steps, to;

	if (i < 0)
		return false;
	out->dearest = (unsigned int)i;
	out->dearest_cores = mean_cores(r, l, (unsigned int)i);
	if (r->of[i].step >= l->f[i].family->steps) {
		other = dearest(r, l, true, -1);
		for_other = other >= 0 && could_spare(r, l) >= l->used - l->limit;
		if (for_other)
			i = other;
		else if (i == most_valued(r, l) && dearest(r, l, false, i) >= 0)
			i = dearest(r, l, false, i);
	}
	steps = l->f[i].family->steps;
	to = r->of[i].step + (l->used > 2 * l->limit && !for_other ? 2 : 1);
	if (r->of[i].step < steps && to > steps)
		to = steps;
	if (to > steps && steps && l->used <= SHED_STOP * l->limit)
		return false;
	go_down(r, l, (unsigned int)i, to > steps + 1 ? steps + 1 : to, out);
	return true;
}

/* --- and more again --- */

/* What it would take at a step above the one where it is. */
static double would_take(const struct shed *r, const struct shed_look *l, unsigned int i,
			 unsigned int step)
{
	const struct shed_state *s = &r->of[i];
	const struct probe_family *family = l->f[i].family;
	unsigned int last = step;

	if (family->has_freq && s->step <= family->steps && l->f[i].cores > 0)
		return l->f[i].cores * (double)(1u << (s->step - step));
	while (last < family->steps && s->cores[last] <= 0)
		last++;
	if (s->cores[last] <= 0)
		return 0; /* it never ran: it is tried */
	if (family->by_switches && s->switches[last] > 0 && l->switches > 0)
		return s->cores[last] * l->switches / s->switches[last] *
		       (double)(1u << (last - step));
	return s->cores[last] * (double)(1u << (last - step));
}

/* The furthest that one may come back; its own step: not at all. */
static unsigned int fits(const struct shed *r, const struct shed_look *l, unsigned int i)
{
	const struct shed_state *s = &r->of[i];
	unsigned int to = 0;

	while (to < s->step && l->limit > 0 &&
	       l->used - l->f[i].cores + would_take(r, l, i, to) > ROOM * l->limit)
		to++;
	return to;
}

static void come_back(struct shed *r, const struct shed_look *l, unsigned int i, unsigned int to,
		      struct shed_step *out)
{
	struct shed_state *s = &r->of[i];

	*out = (struct shed_step){
		.family = i, .stop = s->step > l->f[i].family->steps, .limit = SHED_CPU};
	s->step = to;
	s->room_ns = 0;
	s->back_ns = l->now_ns;
}

/* The first in the order of value that fits; -1: none does. Who does not has no room any more. */
static int first_that_fits(struct shed *r, const struct shed_look *l)
{
	int found = -1;

	for (unsigned int i = 0; i < l->n; i++) {
		struct shed_state *s = &r->of[i];

		if (!l->f[i].wanted || s->stopped_for_memory || fits(r, l, i) >= s->step)
			s->room_ns = 0;
		else if (found < 0 || more_valued(l->f, i, (unsigned int)found))
			found = (int)i;
	}
	return found;
}

bool shed_less(struct shed *r, const struct shed_look *l, struct shed_step *out)
{
	int i = first_that_fits(r, l);
	struct shed_state *s = i >= 0 ? &r->of[i] : NULL;

	if (!s)
		return false;
	s->room_ns = s->room_ns ?: l->now_ns;
	if (l->limit > 0 && l->now_ns - s->room_ns < l->while_ns << s->patience)
		return false;
	come_back(r, l, (unsigned int)i, fits(r, l, (unsigned int)i), out);
	return true;
}

/* --- memory --- */

bool shed_more_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out)
{
	int last = -1, running = 0;

	for (unsigned int i = 0; i < n; i++)
		if (runs(r, f, i)) {
			last = (int)i;
			running++;
		}
	if (running < 2)
		return false;
	r->of[last].stopped_for_memory = true;
	*out = (struct shed_step){.family = (unsigned int)last, .stop = true, .limit = SHED_MEMORY};
	return true;
}

bool shed_less_memory(struct shed *r, const struct shed_family *f, unsigned int n,
		      struct shed_step *out)
{
	for (unsigned int i = 0; i < n; i++) {
		if (!f[i].wanted || !r->of[i].stopped_for_memory)
			continue;
		r->of[i].stopped_for_memory = false;
		*out = (struct shed_step){.family = i, .stop = true, .limit = SHED_MEMORY};
		return true;
	}
	return false;
}
