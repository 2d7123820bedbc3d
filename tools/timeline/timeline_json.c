/* SPDX-License-Identifier: Apache-2.0 */
/* timeline_json: a timeline as JSON: spikes are its rows; it also has the groups with their use
 * over time, and the events. */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/print/json.h"
#include "tools/timeline/timeline_print.h"

#define COLUMNS 360
#define EVENTS  100 /* without --events */

static int by_cpu(const void *a, const void *b, void *ctx)
{
	const struct timeline_group *g = ctx, *x = &g[*(const uint32_t *)a],
				    *y = &g[*(const uint32_t *)b];

	if (x->cpu_ns != y->cpu_ns)
		return x->cpu_ns > y->cpu_ns ? -1 : 1;
	return x < y ? -1 : x > y;
}

uint32_t *timeline_ranked(const struct timeline *t)
{
	uint32_t *order = mem_array(t->n_groups + 1, sizeof(*order));

	for (uint32_t i = 0; i < t->n_groups; i++)
		order[i] = i;
	if (t->n_groups)
		qsort_r(order, t->n_groups, sizeof(*order), by_cpu, t->groups);
	return order;
}

void timeline_column(const struct timeline *t, size_t columns, size_t i, size_t *first, size_t *end)
{
	*first = i * t->n_steps / columns;
	*end = (i + 1) * t->n_steps / columns;
}

static const char *kind_of(const struct timeline_group *g)
{
	return g->is_host                  ? "host" :
	       g->kind == FILTER_PID       ? "process" :
	       g->kind == FILTER_CONTAINER ? "container" :
					     "command";
}

static void set_who(json_t *o, const struct timeline *t, uint32_t group)
{
	const struct timeline_group *g = group == TIMELINE_ALL ? NULL : &t->groups[group];

	json_object_set_new(o, "who", g ? json_text(g->name) : json_null());
	json_object_set_new(o, "who_is", json_string(g ? kind_of(g) : "all"));
	json_object_set_new(o, "processes",
			    json_integer((json_int_t)(g ? g->n_processes : t->n_processes)));
}

static json_t *spike_json(const struct timeline_view *v, const struct timeline_spike *s)
{
	const struct timeline_process *p = &v->t->processes[s->busiest];
	struct strbuf command cleanup_strbuf = STRBUF_INIT;
	json_t *o = json_object();

	json_set_time(o, "from", s->from_ns);
	json_set_time(o, "to", s->to_ns);
	set_who(o, v->t, s->group);
	json_object_set_new(o, "cpu_ns", json_integer((json_int_t)s->cpu_ns));
	json_object_set_new(o, "share",
			    json_real(s->all_ns ? (double)s->cpu_ns / (double)s->all_ns : 0));
	json_object_set_new(o, "cpu_cores", json_real(s->at.mean));
	json_object_set_new(o, "peak_cores", json_real(s->at.peak));
	json_object_set_new(o, "usual_cores", json_real(s->at.usual));
	json_object_set_new(o, "deviation_cores", json_real(s->at.deviation));
	json_object_set_new(o, "excess_core_seconds", json_real(s->excess_s));
	json_object_set_new(o, "top_comm", json_text(p->comm));
	json_object_set_new(o, "top_pid", json_integer(p->pid));
	json_object_set_new(o, "top_cpu_ns", json_integer((json_int_t)s->busiest_ns));
	timeline_command(v->t, s, v->store, &command);
	json_object_set_new(o, "command", json_text(strbuf_str(&command)));
	return o;
}

/* Sums by column; null where nothing was recorded. A gauge has its value at the column's end. */
static json_t *values_json(const struct timeline *t, enum timeline_of of, uint32_t group,
			   size_t columns, uint64_t *series)
{
	json_t *list = json_array();

	timeline_series(t, of, group, series);
	for (size_t i = 0; i < columns; i++) {
		size_t first, end;
		uint64_t sum = 0, covered = 0;

		timeline_column(t, columns, i, &first, &end);
		for (size_t k = first; k < end; k++) {
			sum = of == TIMELINE_INUSE ? series[k] : sum + series[k];
			covered += t->covered_ns[k];
		}
		json_array_append_new(list, of == TIMELINE_CPU && !covered ?
						    json_null() :
						    json_integer((json_int_t)sum));
	}
	return list;
}

static json_t *columns_json(const struct timeline *t, size_t columns)
{
	json_t *list = json_array();

	for (size_t i = 0; i < columns; i++) {
		size_t first, end;
		uint64_t covered = 0;
		json_t *o = json_object();

		timeline_column(t, columns, i, &first, &end);
		for (size_t k = first; k < end; k++)
			covered += t->covered_ns[k];
		json_set_time(o, "from", timeline_time(t, first));
		json_set_time(o, "to", timeline_time(t, end));
		json_object_set_new(o, "recorded_ns", json_integer((json_int_t)covered));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *groups_json(const struct timeline_view *v, size_t columns, uint64_t *series)
{
	const struct timeline *t = v->t;
	cleanup_free uint32_t *ranked = timeline_ranked(t);
	json_t *list = json_array();

	for (size_t i = 0; i < t->n_groups && i < v->groups && t->groups[ranked[i]].cpu_ns; i++) {
		json_t *o = json_object();

		set_who(o, t, ranked[i]);
		json_object_set_new(o, "cpu_ns",
				    json_integer((json_int_t)t->groups[ranked[i]].cpu_ns));
		json_object_set_new(o, "by_column_ns",
				    values_json(t, TIMELINE_CPU, ranked[i], columns, series));
		json_array_append_new(list, o);
	}
	return list;
}

/* The newest. */
static json_t *events_json(const struct timeline_view *v)
{
	const struct timeline *t = v->t;
	const size_t most = v->all_events || t->n_events < EVENTS ? t->n_events : EVENTS;
	json_t *list = json_array();

	for (size_t i = t->n_events - most; i < t->n_events; i++) {
		const struct timeline_event *x = &t->events[i];
		json_t *o = json_object();

		json_set_time(o, "from", x->from_ns);
		json_set_time(o, "to", x->to_ns);
		json_object_set_new(o, "event", json_string(x->kind));
		json_object_set_new(o, "who", json_text(x->who));
		json_object_set_new(o, "n", json_number_or_null(x->n, x->n));
		json_object_set_new(o, "text", json_text(x->text));
		json_array_append_new(list, o);
	}
	return list;
}

int timeline_used_json(const struct timeline_used *u, size_t n, FILE *out)
{
	static const char *const units[] = {[TIMELINE_USED_BYTES] = "bytes",
					    [TIMELINE_USED_RATE] = "bytes/s",
					    [TIMELINE_USED_SHARE] = "share",
					    [TIMELINE_USED_COUNT] = "per second",
					    [TIMELINE_USED_TIME] = "seconds"};
	json_t *j = json_envelope("timeline", u->sel->from_ns, u->sel->to_ns);

	json_object_set_new(j, "of", json_string(u->of));
	json_object_set_new(j, "unit", json_string(units[u->unit]));
	for (size_t i = 0; i < u->n && i < n; i++) {
		const struct timeline_used_line *x = &u->lines[i];
		json_t *o = json_object(), *values = json_array();

		json_object_set_new(o, "who", json_text(x->name));
		json_object_set_new(o, "last", x->last < 0 ? json_null() : json_real(x->last));
		json_object_set_new(o, "most", x->most < 0 ? json_null() : json_real(x->most));
		json_set_time(o, "most_at", x->most_ns);
		json_set_time(o, "ended", x->ended_ns);
		for (size_t k = 0; k < u->columns; k++)
			json_array_append_new(values, x->value[k] < 0 ? json_null() :
									json_real(x->value[k]));
		json_object_set_new(o, "by_column", values);
		json_array_append_new(json_rows(j), o);
	}
	json_bound(j, u->n);
	return json_print(j, out, 1);
}

int timeline_json(const struct timeline_view *v, FILE *out)
{
	const struct timeline *t = v->t;
	const size_t columns = t->n_steps < COLUMNS ? t->n_steps : COLUMNS;
	cleanup_free uint64_t *series = mem_array(t->n_steps + 1, sizeof(*series));
	json_t *j = json_envelope("timeline", t->sel->from_ns, t->sel->to_ns);

	for (size_t i = 0; i < v->shown_spikes; i++)
		json_array_append_new(json_rows(j), spike_json(v, &v->spikes[i]));
	json_object_set_new(j, "cpus", json_integer(t->cpus));
	json_object_set_new(j, "step_s", json_integer(t->step_ns / NSEC_PER_SEC));
	json_object_set_new(j, "columns", columns_json(t, columns));
	json_object_set_new(j, "cpu_by_column_ns",
			    values_json(t, TIMELINE_CPU, TIMELINE_ALL, columns, series));
	if (t->n_cells[TIMELINE_ALLOC])
		json_object_set_new(j, "allocated_by_column_bytes",
				    values_json(t, TIMELINE_ALLOC, TIMELINE_ALL, columns, series));
	if (t->n_cells[TIMELINE_INUSE])
		json_object_set_new(j, "inuse_by_column_bytes",
				    values_json(t, TIMELINE_INUSE, TIMELINE_ALL, columns, series));
	json_bound_list(j, "groups", groups_json(v, columns, series), t->n_groups);
	json_bound_list(j, "events", events_json(v), t->n_events);
	json_bound(j, v->n_spikes);
	return json_print(j, out, 1);
}
