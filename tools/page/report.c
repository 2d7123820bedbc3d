/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"
#include "tools/fold/fold_kind.h"
#include "tools/page/page_fill.h"
#include "tools/print/when.h"

#define DAY_NS (86400 * (int64_t)NSEC_PER_SEC)

void report_time(const struct timeline *t, int64_t ns, struct strbuf *s)
{
	char text[32];
	const char *z;

	when_utc(ns / NSEC_PER_SEC * NSEC_PER_SEC, text, sizeof(text));
	z = strchr(text, 'Z');
	if (t->sel->from_ns / DAY_NS != t->sel->to_ns / DAY_NS)
		strbuf_addf(s, "%.10s ", text);
	strbuf_addf(s, "%.*s", z ? (int)(z - text) - 11 : 8, text + 11);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100 * (double)part / (double)whole : 0;
}

/* --- spikes --- */

static void add_range(const struct timeline *t, int64_t from_ns, int64_t to_ns, struct strbuf *s)
{
	report_time(t, from_ns, s);
	if (to_ns > from_ns) {
		strbuf_addstr(s, " to ");
		report_time(t, to_ns, s);
	}
}

static void add_spike_who(const struct timeline *t, const struct timeline_spike *x,
			  struct strbuf *s)
{
	page_add_text(s, x->group == TIMELINE_ALL ? "many together" : t->groups[x->group].name);
}

static void spike_row(const struct timeline *t, const struct timeline_spike *x, struct strbuf *s)
{
	const struct timeline_process *most = &t->processes[x->busiest];
	struct strbuf command cleanup_strbuf = STRBUF_INIT;

	strbuf_addf(s, "<tr data-from=\"%" PRId64 "\" data-to=\"%" PRId64 "\"><td class=\"go\">",
		    x->from_ns, x->to_ns);
	add_range(t, x->from_ns, x->to_ns, s);
	strbuf_addstr(s, "</td><td class=\"fn\">");
	add_spike_who(t, x, s);
	strbuf_addf(
		s,
		"</td><td class=\"num\">%.2f</td><td class=\"num amount\">%.2f</td><td class=\"num\">%.0f %%</td><td class=\"fn\">",
		x->at.mean, x->at.usual, percent(x->cpu_ns, x->all_ns));
	page_add_text(s, most->comm);
	timeline_command(t, x, NULL, &command);
	strbuf_addf(s, " (%u)</td><td class=\"mod\">", most->pid);
	page_add_text(s, strbuf_str(&command));
	strbuf_addstr(s, "</td></tr>\n");
}

void report_spikes(const struct report *r, struct strbuf *s)
{
	size_t n = r->n_spikes < REPORT_SPIKES ? r->n_spikes : REPORT_SPIKES;

	if (!n) {
		strbuf_addf(
			s,
			"<p class=\"half\">No spikes: nothing used %.1f cores and %.0f deviations more than usual.</p>\n",
			TIMELINE_LEAST, SPIKES_SIGMAS);
		return;
	}
	strbuf_addf(s,
		    "<details id=\"all-spikes\"><summary>%zu spike%s; the largest: ", r->n_spikes,
		    r->n_spikes == 1 ? "" : "s");
	add_spike_who(r->t, &r->spikes[0], s);
	strbuf_addf(s, ", %.2f cores, ", r->spikes[0].at.mean);
	add_range(r->t, r->spikes[0].from_ns, r->spikes[0].to_ns, s);
	strbuf_addstr(
		s,
		"</summary><div class=\"wide\"><table id=\"spikes\"><thead><tr><th scope=\"col\">When</th><th scope=\"col\">Who</th><th scope=\"col\" class=\"num\">Cores</th><th scope=\"col\" class=\"num amount\">Usual</th><th scope=\"col\" class=\"num\">Of all</th><th scope=\"col\">Top command</th><th scope=\"col\" class=\"mod\">On that host</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < n; i++)
		spike_row(r->t, &r->spikes[i], s);
	strbuf_addstr(s, "</tbody></table></div>\n");
	if (r->n_spikes > n)
		strbuf_addf(s, "<p>%zu smaller ones are not shown.</p>\n", r->n_spikes - n);
	strbuf_addstr(s, "</details>\n");
}

/* --- what happened --- */

void report_events(const struct timeline *t, struct strbuf *s)
{
	if (!t->n_events)
		return;
	strbuf_addstr(s, "<h2>Events</h2>\n"
			 "<ul id=\"events\">\n");
	for (size_t i = 0; i < t->n_events && i < REPORT_EVENTS; i++) {
		strbuf_addstr(s, "<li><b>");
		add_range(t, t->events[i].from_ns, t->events[i].to_ns, s);
		strbuf_addstr(s, "</b> ");
		page_add_text(s, t->events[i].text);
		strbuf_addstr(s, "</li>\n");
	}
	if (t->n_events > REPORT_EVENTS)
		strbuf_addf(s, "<li>%zu more: sonde timeline --events shows all</li>\n",
			    t->n_events - REPORT_EVENTS);
	strbuf_addstr(s, "</ul>\n");
}

/* --- who ran --- */

static void process_row(const struct report *r, const struct process_rows_row *row,
			struct strbuf *s)
{
	const struct fold *f = r->cpu;
	const struct fold_process *p = row->who, *parent = process_rows_parent(r->procs, p);

	strbuf_addf(
		s,
		"<tr data-pid=\"%u\"><td class=\"num\">%u</td><td class=\"num\">%.2f</td><td class=\"num\">%.1f %%</td>"
		"<td class=\"fn go\">",
		p->pid, p->pid, fold_cores(f, row->ns), percent(row->ns, f->nodes[0].total_ns));
	page_add_text(s, p->comm);
	strbuf_addstr(s, "</td><td class=\"mod\">");
	if (parent) {
		page_add_text(s, parent->comm);
		strbuf_addch(s, ' ');
	}
	strbuf_addf(s, "%u</td><td class=\"amount\">", p->ppid);
	page_add_text(s, *p->container ? p->container : *p->unit ? p->unit : "-");
	strbuf_addstr(s, "</td><td class=\"fn\">");
	page_add_text(s, row->frame_ns ? f->frames[row->frame].name : "[no stack]");
	strbuf_addstr(s, "</td><td class=\"mod\">");
	page_add_text(s, *p->args ? p->args : p->exe);
	strbuf_addstr(s, "</td></tr>\n");
}

void report_processes(const struct report *r, struct strbuf *s)
{
	static const struct {
		const char *kind, *title;
	} columns[] = {
		{"num", "PID"},      {"num", "Cores"},        {"num", "Of all"},
		{"fn", "Command"},   {"mod", "Parent"},       {"amount", "Container"},
		{"fn", "Mostly in"}, {"mod", "Command line"},
	};
	size_t n = r->procs->n < REPORT_PROCESSES ? r->procs->n : REPORT_PROCESSES;

	strbuf_addf(
		s,
		"<h2>Processes</h2>\n"
		"<p class=\"half\">%zu, sorted by CPU time.</p>\n"
		"<div class=\"line live\"><input id=\"procs-filter\" type=\"search\" placeholder=\"Filter\" aria-label=\"Filter the processes by regular expression\" autocomplete=\"off\" spellcheck=\"false\"></div>\n"
		"<div class=\"wide\"><table id=\"procs\"><thead><tr>",
		r->procs->n);
	for (size_t i = 0; i < ARRAY_SIZE(columns); i++)
		strbuf_addf(s, "<th scope=\"col\" class=\"%s\">%s</th>", columns[i].kind,
			    columns[i].title);
	strbuf_addstr(s, "</tr></thead><tbody>\n");
	for (size_t i = 0; i < n; i++)
		process_row(r, &r->procs->rows[i], s);
	strbuf_addstr(
		s,
		"</tbody></table></div>\n<button id=\"procs-more\" type=\"button\" class=\"live\" hidden>Show all</button>\n");
	if (r->procs->n > n)
		strbuf_addf(s,
			    "<p>%zu smaller ones are not shown: sonde ps -n %zu lists all.</p>\n",
			    r->procs->n - n, r->procs->n);
}

void report_above(const struct report *r, struct strbuf *s)
{
	strbuf_addstr(s, "<section id=\"report\" aria-label=\"Over time\">\n");
	if (!r->t || !r->cpu) {
		strbuf_addstr(
			s,
			"<p>No CPU time was recorded in this range: there is no timeline and no list of processes.</p>\n");
	} else {
		report_drawing(r, s);
		report_spikes(r, s);
	}
	strbuf_addstr(s, "</section>\n");
}

void report_below(const struct report *r, struct strbuf *s)
{
	if (!r->t || !r->cpu)
		return;
	strbuf_addstr(s, "<section id=\"ran\" aria-label=\"Events and processes\">\n");
	report_events(r->t, s);
	report_processes(r, s);
	strbuf_addstr(s, "</section>\n");
}
