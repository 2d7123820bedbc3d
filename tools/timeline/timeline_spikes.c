/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/timeline/timeline_spikes.h"

#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/typed.h"
#include "tools/print/when.h"

#define EXPLAINED 0.5

struct spiking {
	const struct timeline *t;
	struct timeline_spike *v;
	size_t n, cap;
	uint64_t *all, *ns; /* of each step: all of it, the group's */
	double *cores;
};

static int64_t whole_second(int64_t ns)
{
	return (ns + NSEC_PER_SEC - 1) / NSEC_PER_SEC * NSEC_PER_SEC;
}

static uint64_t sum(const uint64_t *ns, const struct spike *at)
{
	uint64_t all = 0;

	for (size_t i = at->first; i < at->end; i++)
		all += ns[i];
	return all;
}

static void add(struct spiking *s, uint32_t group, const struct spike *at)
{
	const struct timeline *t = s->t;
	int64_t from = timeline_time(t, at->first), to = timeline_time(t, at->end);
	struct timeline_spike x = {
		.group = group, .at = *at, .cpu_ns = sum(s->ns, at), .all_ns = sum(s->all, at)};

	x.from_ns = whole_second(from > t->sel->from_ns ? from : t->sel->from_ns);
	x.to_ns = whole_second(to < t->sel->to_ns ? to : t->sel->to_ns);
	x.excess_s = at->excess * (double)t->step_ns / NSEC_PER_SEC;
	x.busiest = timeline_busiest(t, group, at->first, at->end, &x.busiest_ns);
	mem_grow(s->v, s->n, s->cap);
	s->v[s->n++] = x;
}

/* Do the groups' spikes at that time make up half of it? */
static bool is_explained(const struct spiking *s, size_t n, const struct spike *at)
{
	double by_groups = 0;

	for (size_t i = 0; i < n; i++) {
		const struct timeline_spike *x = &s->v[i];
		size_t first = x->at.first > at->first ? x->at.first : at->first;
		size_t end = x->at.end < at->end ? x->at.end : at->end;

		if (end > first)
			by_groups += x->at.excess * (double)(end - first) /
				     (double)(x->at.end - x->at.first);
	}
	return by_groups >= EXPLAINED * at->excess;
}

static void find(struct spiking *s, uint32_t group)
{
	const struct timeline *t = s->t;
	const size_t before = s->n;
	cleanup_free struct spike *found = NULL;
	size_t n = 0;

	timeline_series(t, TIMELINE_CPU, group, s->ns);
	timeline_cores(t, s->ns, s->cores);
	found = spikes_find(s->cores, t->n_steps, (double)t->period_ns / (double)t->step_ns,
			    TIMELINE_LEAST, &n);
	for (size_t i = 0; i < n; i++)
		if (group != TIMELINE_ALL || !is_explained(s, before, &found[i]))
			add(s, group, &found[i]);
}

static int by_excess(const void *a, const void *b)
{
	const struct timeline_spike *x = a, *y = b;

	if (x->excess_s != y->excess_s)
		return x->excess_s > y->excess_s ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

struct timeline_spike *timeline_spikes(const struct timeline *t, size_t *n)
{
	struct spiking s = {.t = t};
	const double least_ns = TIMELINE_LEAST * (double)t->step_ns / 2;

	s.all = mem_array(t->n_steps + 1, sizeof(*s.all));
	s.ns = mem_array(t->n_steps + 1, sizeof(*s.ns));
	s.cores = mem_array(t->n_steps + 1, sizeof(*s.cores));
	timeline_series(t, TIMELINE_CPU, TIMELINE_ALL, s.all);
	for (uint32_t i = 0; i < t->n_groups; i++)
		if ((double)t->groups[i].cpu_ns >= least_ns)
			find(&s, i);
	find(&s, TIMELINE_ALL);
	if (s.n)
		qsort(s.v, s.n, sizeof(*s.v), by_excess);
	free(s.all);
	free(s.ns);
	free(s.cores);
	*n = s.n;
	return s.v;
}

void timeline_command(const struct timeline *t, const struct timeline_spike *s, const char *store,
		      struct strbuf *out)
{
	const struct timeline_group *g = s->group == TIMELINE_ALL ? NULL : &t->groups[s->group];
	char from[40], to[40];

	strbuf_addf(out, "%s flame", typed_sonde(false));
	timeline_filter(t, s->group, out);
	/* of one kind, values are OR: ours is the narrower one */
	if (t->sel->filter_text[0] && !(g && !g->is_host && filters_have(t->sel->filters, g->kind)))
		strbuf_addf(out, " %s", t->sel->filter_text);
	strbuf_addf(out, " --from %s --to %s", when_zoned(s->from_ns, from, sizeof(from)),
		    when_zoned(s->to_ns, to, sizeof(to)));
	if (t->sel->self)
		strbuf_addstr(out, " --self");
	if (store) {
		strbuf_addstr(out, " --store ");
		filter_word(store, out);
	}
}
