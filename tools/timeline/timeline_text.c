/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline_text: strips of the use over time, the spikes with the command that shows each, and what
 * happened.
 *
 *  1. Each column of a strip is several steps; its height is the highest of them. All strips of CPU
 * use have one scale, whose top is the highest step of the total; memory has another scale.
 *  2. A column without recorded data is blank; one without any use has the lowest sign.
 *  3. With unicode, heights are blocks of eighths, else `_.:-=+*#@`.
 */
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "schema/base/units.h"
#include "tools/print/spark.h"
#include "tools/print/term.h"
#include "tools/print/when.h"
#include "tools/print/wrap.h"
#include "tools/timeline/timeline_print.h"

#define NAME_COLUMNS  16
#define TAIL_COLUMNS  24
#define LEAST_COLUMNS 12
#define MOST_COLUMNS  120
#define EVENTS        12
#define EVENT_LEAST   32

struct drawing {
	const struct timeline_view *v;
	const struct timeline *t;
	FILE *out;
	size_t columns;
	int64_t now_ns;
	uint64_t *series;
	double *value; /* of each step; -1: not recorded */
};

static void put_name(FILE *out, const char *name)
{
	struct strbuf label cleanup_strbuf = STRBUF_INIT;

	term_add_middle(&label, name, NAME_COLUMNS);
	fprintf(out, "%s%*s |", strbuf_str(&label),
		NAME_COLUMNS - (int)term_columns(strbuf_str(&label)), "");
}

static void put_column(FILE *out, bool unicode, double x, double top)
{
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	spark_add(&s, &x, 1, top, unicode);
	fputs(strbuf_str(&s), out);
}

static double highest(const double *x, size_t first, size_t end)
{
	double most = -1;

	for (size_t i = first; i < end; i++)
		most = x[i] > most ? x[i] : most;
	return most;
}

static void put_strip(const struct drawing *d, const char *name, double top, const char *tail)
{
	put_name(d->out, name);
	for (size_t i = 0; i < d->columns; i++) {
		size_t first, end;

		timeline_column(d->t, d->columns, i, &first, &end);
		put_column(d->out, d->v->unicode, highest(d->value, first, end), top);
	}
	fprintf(d->out, "| %s\n", tail);
}

static double mean_of(const struct drawing *d)
{
	uint64_t ns = 0, covered = 0;

	for (size_t i = 0; i < d->t->n_steps; i++) {
		ns += d->series[i];
		covered += d->t->covered_ns[i];
	}
	return covered ? (double)ns / (double)covered : 0;
}

static void cpu_strip(const struct drawing *d, const char *name, uint32_t group, double *top)
{
	char tail[64];
	double most;

	timeline_series(d->t, TIMELINE_CPU, group, d->series);
	timeline_cores(d->t, d->series, d->value);
	most = highest(d->value, 0, d->t->n_steps);
	most = most > 0 ? most : 0;
	if (group == TIMELINE_ALL)
		*top = most;
	snprintf(tail, sizeof(tail), "%5.2f cores, max %.2f", mean_of(d), most);
	put_strip(d, name, *top, tail);
}

static void memory_strip(const struct drawing *d, const char *name, enum timeline_of of)
{
	double per = of == TIMELINE_ALLOC ? (double)d->t->step_ns / NSEC_PER_SEC : 1, most = 0,
	       last = 0;
	char now[32], high[32], tail[80];

	if (!d->t->n_cells[of])
		return;
	timeline_series(d->t, of, TIMELINE_ALL, d->series);
	for (size_t i = 0; i < d->t->n_steps; i++) {
		d->value[i] = (double)d->series[i] / per;
		most = d->value[i] > most ? d->value[i] : most;
		last = d->series[i] ? d->value[i] : last;
	}
	units_bytes((uint64_t)most, high, sizeof(high));
	units_bytes((uint64_t)last, now, sizeof(now));
	if (of == TIMELINE_ALLOC)
		snprintf(tail, sizeof(tail), "max %s/s", high);
	else
		snprintf(tail, sizeof(tail), "%s, max %s", now, high);
	put_strip(d, name, most, tail);
}

/* The times of the first and the last column, and where there is room of the one in the middle. */
static void put_times(FILE *out, size_t columns, int64_t from_ns, int64_t middle_ns, int64_t to_ns)
{
	char from[32], middle[32], to[32];
	int64_t now_ns = clock_utc_ns();
	size_t mid = columns / 2;
	int used;

	when_local(from_ns, now_ns, from, sizeof(from));
	when_local(middle_ns, now_ns, middle, sizeof(middle));
	when_local(to_ns, now_ns, to, sizeof(to));
	used = fprintf(out, "%*s%s", NAME_COLUMNS + 2, "", from) - NAME_COLUMNS - 2;
	if ((size_t)used + 1 < mid && mid + strlen(middle) + 1 + strlen(to) < columns)
		used += fprintf(out, "%*s%s", (int)mid - used, "", middle);
	fprintf(out, "%*s%s\n",
		used + (int)strlen(to) < (int)columns ? (int)columns - used - (int)strlen(to) : 1,
		"", to);
}

static void put_axis(const struct drawing *d)
{
	size_t first, end;

	timeline_column(d->t, d->columns, d->columns / 2, &first, &end);
	put_times(d->out, d->columns, d->t->sel->from_ns, timeline_time(d->t, first),
		  d->t->sel->to_ns);
}

static void put_strips(struct drawing *d)
{
	const struct timeline *t = d->t;
	cleanup_free uint32_t *ranked = timeline_ranked(t);
	char each[32];
	double top = 0;

	if (t->n_cells[TIMELINE_CPU]) {
		cpu_strip(d, "all", TIMELINE_ALL, &top);
		for (size_t i = 0;
		     i < t->n_groups && i < d->v->groups && t->groups[ranked[i]].cpu_ns; i++)
			cpu_strip(d, t->groups[ranked[i]].name, ranked[i], &top);
	}
	memory_strip(d, "Go: allocated", TIMELINE_ALLOC);
	memory_strip(d, "Go: in use", TIMELINE_INUSE);
	put_axis(d);
	fprintf(d->out, "each column %s%s\n",
		units_ns((int64_t)((t->n_steps + d->columns - 1) / d->columns) * t->step_ns, each,
			 sizeof(each)),
		t->n_cells[TIMELINE_CPU] ? ", its highest step; blank: nothing recorded" : "");
}

static void put_spike(const struct drawing *d, const struct timeline_spike *s)
{
	const struct timeline *t = d->t;
	const struct timeline_process *p = &t->processes[s->busiest];
	struct strbuf name cleanup_strbuf = STRBUF_INIT, command cleanup_strbuf = STRBUF_INIT;
	struct strbuf said cleanup_strbuf = STRBUF_INIT;
	char from[32], to[32], cores[32];

	term_add_middle(&name,
			s->group == TIMELINE_ALL ? "many together" : t->groups[s->group].name, 40);
	strbuf_addf(&said, "%s to %s  %s%s%s  %s (usually %.2f), %.0f %% of all; most: ",
		    when_local(s->from_ns, d->now_ns, from, sizeof(from)),
		    when_local(s->to_ns, d->now_ns, to, sizeof(to)), term_on(d->out, TERM_BOLD),
		    strbuf_str(&name), term_off(d->out),
		    units_cores(s->at.mean, cores, sizeof(cores)), s->at.usual,
		    s->all_ns ? 100 * (double)s->cpu_ns / (double)s->all_ns : 0);
	strbuf_reset(&name);
	term_add_middle(&name, p->comm, 24);
	strbuf_addf(&said, "%s (%u)", strbuf_str(&name), p->pid);
	wrap_print(d->out, strbuf_str(&said), 4);
	timeline_command(t, s, d->v->store, &command);
	fprintf(d->out, "    %s\n", strbuf_str(&command));
}

static void put_spikes(const struct drawing *d)
{
	const struct timeline_view *v = d->v;

	if (!d->t->n_cells[TIMELINE_CPU])
		return;
	if (!v->n_spikes) {
		fprintf(d->out,
			"\nno spikes: nothing exceeded its usual use by %.1f cores and %.0f deviations\n",
			TIMELINE_LEAST, SPIKES_SIGMAS);
		return;
	}
	fprintf(d->out,
		"\nspikes, the largest first (%.0f deviations and %.1f cores above the median):\n",
		SPIKES_SIGMAS, TIMELINE_LEAST);
	for (size_t i = 0; i < v->shown_spikes; i++)
		put_spike(d, &v->spikes[i]);
	if (v->n_spikes > v->shown_spikes)
		fprintf(d->out, "%zu more: -n %zu shows them\n", v->n_spikes - v->shown_spikes,
			v->n_spikes);
}

static void put_events(const struct drawing *d)
{
	const struct timeline *t = d->t;
	char from[32], to[32], length[32];

	if (t->n_events)
		fprintf(d->out, "\nwhat happened:\n");
	for (size_t i = 0; i < t->n_events && (d->v->all_events || i < EVENTS); i++) {
		const struct timeline_event *x = &t->events[i];
		struct strbuf s cleanup_strbuf = STRBUF_INIT;
		size_t room;

		strbuf_addstr(&s, when_local(x->from_ns, d->now_ns, from, sizeof(from)));
		if (x->to_ns > x->from_ns)
			strbuf_addf(&s, " to %s", when_local(x->to_ns, d->now_ns, to, sizeof(to)));
		/* of what lasted, not of what happened so often */
		if (x->to_ns > x->from_ns && !x->n)
			strbuf_addf(&s, " (%s)",
				    units_ns(x->to_ns - x->from_ns, length, sizeof(length)));
		strbuf_addstr(&s, "  ");
		room = d->v->width > s.len + EVENT_LEAST ? d->v->width - s.len : EVENT_LEAST;
		term_add_middle(&s, x->text, d->v->width ? room : 200);
		fprintf(d->out, "%s\n", strbuf_str(&s));
	}
	if (!d->v->all_events && t->n_events > EVENTS)
		fprintf(d->out, "%zu more: --events shows them\n", t->n_events - EVENTS);
}

size_t timeline_columns(unsigned width)
{
	const size_t room = width > NAME_COLUMNS + TAIL_COLUMNS + LEAST_COLUMNS + 3 ?
				    width - NAME_COLUMNS - TAIL_COLUMNS - 3 :
				    LEAST_COLUMNS;

	return room < MOST_COLUMNS ? room : MOST_COLUMNS;
}

static void say_used(double x, enum timeline_used_unit unit, char *buf, size_t size)
{
	char bytes[32];

	if (x < 0)
		snprintf(buf, size, "-");
	else if (unit == TIMELINE_USED_SHARE)
		units_share(x, 1, buf, size);
	else if (unit == TIMELINE_USED_COUNT)
		snprintf(buf, size, "%.3g/s", x);
	else if (unit == TIMELINE_USED_TIME)
		snprintf(buf, size,
			 x < 1e-3 ? "%.3g us" :
			 x < 1    ? "%.3g ms" :
				    "%.3g s",
			 x < 1e-3 ? 1e6 * x :
			 x < 1    ? 1e3 * x :
				    x);
	else
		snprintf(buf, size, "%s%s", units_bytes((uint64_t)x, bytes, sizeof(bytes)),
			 unit == TIMELINE_USED_RATE ? "/s" : "");
}

void timeline_used_text(const struct timeline_used *u, size_t n, bool unicode, FILE *out)
{
	char last[48], most[48], when[32];

	for (size_t i = 0; i < u->n && i < n; i++) {
		const struct timeline_used_line *x = &u->lines[i];

		put_name(out, x->name);
		for (size_t k = 0; k < u->columns; k++)
			put_column(out, unicode, x->value[k], u->lines[0].most);
		say_used(x->last, u->unit, last, sizeof(last));
		say_used(x->most, u->unit, most, sizeof(most));
		fprintf(out, "| %s, max %s at %s", last, most,
			when_local(x->most_ns, clock_utc_ns(), when, sizeof(when)));
		if (x->ended_ns)
			fprintf(out, ", ended %s",
				when_local(x->ended_ns, clock_utc_ns(), when, sizeof(when)));
		fputc('\n', out);
	}
	put_times(out, u->columns, u->sel->from_ns, timeline_used_time(u, u->columns / 2),
		  u->sel->to_ns);
	if (u->n > n)
		fprintf(out, "%zu more: -n %zu shows them\n", u->n - n, u->n);
}

void timeline_text(const struct timeline_view *v, FILE *out)
{
	const struct timeline *t = v->t;
	struct drawing d = {.v = v, .t = t, .out = out, .now_ns = clock_utc_ns()};

	d.columns = timeline_columns(v->width);
	d.columns = d.columns < t->n_steps ? d.columns : t->n_steps;
	d.series = mem_array(t->n_steps + 1, sizeof(*d.series));
	d.value = mem_array(t->n_steps + 1, sizeof(*d.value));
	put_strips(&d);
	put_spikes(&d);
	put_events(&d);
	free(d.series);
	free(d.value);
}
