/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_series: what a timeline answers once it is made. */
#include <stdio.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/timeline/timeline.h"

/* The processes of a group: *n of t->by_group. */
static const uint32_t *processes_of(const struct timeline *t, uint32_t group, size_t *n)
{
	*n = group == TIMELINE_ALL ? t->n_processes : t->groups[group].n_processes;
	return t->by_group + (group == TIMELINE_ALL ? 0 : t->groups[group].first_process);
}

static void add_process(const struct timeline *t, enum timeline_of of, uint32_t process,
			uint64_t *out)
{
	for (size_t i = t->first_cell[of][process]; i < t->first_cell[of][process + 1]; i++)
		out[t->cells[of][i].step] += t->cells[of][i].value;
}

/* A value holds until the next reading; every reading of a process is recorded, so it ends with the
 * last one. */
static void add_standing(const struct timeline *t, uint32_t process, uint64_t *out)
{
	const struct timeline_cell *c = t->cells[TIMELINE_INUSE];
	size_t first = t->first_cell[TIMELINE_INUSE][process],
	       end = t->first_cell[TIMELINE_INUSE][process + 1];

	for (size_t i = first; i < end; i++) {
		size_t until = i + 1 < end ? c[i + 1].step : c[i].step + 1;

		for (size_t step = c[i].step; step < until; step++)
			out[step] += c[i].value;
	}
}

void timeline_series(const struct timeline *t, enum timeline_of of, uint32_t group, uint64_t *out)
{
	size_t n;
	const uint32_t *process = processes_of(t, group, &n);

	memset(out, 0, t->n_steps * sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		if (of == TIMELINE_INUSE)
			add_standing(t, process[i], out);
		else
			add_process(t, of, process[i], out);
	}
}

void timeline_cores(const struct timeline *t, const uint64_t *ns, double *out)
{
	for (size_t i = 0; i < t->n_steps; i++)
		out[i] = t->covered_ns[i] * 2 >= (uint64_t)t->step_ns ?
				 (double)ns[i] / (double)t->covered_ns[i] :
				 -1;
}

uint32_t timeline_busiest(const struct timeline *t, uint32_t group, size_t first, size_t end,
			  uint64_t *ns)
{
	const struct timeline_cell *c = t->cells[TIMELINE_CPU];
	const size_t *at = t->first_cell[TIMELINE_CPU];
	uint32_t best = 0;
	size_t n;
	const uint32_t *process = processes_of(t, group, &n);

	*ns = 0;
	for (size_t i = 0; i < n; i++) {
		uint64_t sum = 0;

		for (size_t k = at[process[i]]; k < at[process[i] + 1]; k++)
			sum += c[k].step >= first && c[k].step < end ? c[k].value : 0;
		if (sum > *ns) {
			*ns = sum;
			best = process[i];
		}
	}
	return best;
}

void timeline_filter(const struct timeline *t, uint32_t group, struct strbuf *out)
{
	const struct timeline_group *g = group == TIMELINE_ALL ? NULL : &t->groups[group];

	if (!g || g->is_host)
		return;
	if (g->kind == FILTER_PID || !filter_can_say(g->name))
		strbuf_addf(out, " --pid %u", g->pid);
	else
		filter_option(g->kind, g->name, out);
}
