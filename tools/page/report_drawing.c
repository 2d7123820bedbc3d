/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_drawing: CPU use over time as SVG, and as a table.
 *
 *   1. A column has some steps of the timeline; its height is the mean of its recorded time, in
 *      cores: ns / recorded ns. It is stacked by container, and outside of containers by command:
 *      the REPORT_NAMED with the most CPU time and all others.
 *   2. A column without recorded data is a gap: crossed out, never drawn as idle. A partly
 *      recorded column shows the mean of that part, so that ten seconds within a day are visible.
 *   3. The drawing has no text and is stretched to the page's width; times and scale are next to
 *      it. Its unit is a column by a thousandth of the height.
 */
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/page/page_fill.h"
#include "tools/page/report.h"

#define HEIGHT 1000

struct plot {
	const struct timeline *t;
	size_t columns, steps, n_named; /* steps of a column; the last may have fewer */
	uint32_t named[REPORT_NAMED];   /* groups */
	uint64_t others;                /* how many groups have no colour */
	uint64_t *ns[REPORT_NAMED + 1]; /* for each column; the last are all others */
	uint64_t *sum, *covered;
	uint32_t *most; /* the group with most of the column; UINT32_MAX: none */
	double top;     /* cores at full height */
};

static size_t column_of(const struct plot *p, uint32_t step)
{
	return step / p->steps;
}

/* Its steps, half-open. */
static void column_steps(const struct plot *p, size_t i, size_t *first, size_t *end)
{
	*first = i * p->steps;
	*end = *first + p->steps < p->t->n_steps ? *first + p->steps : p->t->n_steps;
}

static bool is_gap(const struct plot *p, size_t i)
{
	return !p->covered[i];
}

static uint64_t used(const struct timeline *t, uint32_t group)
{
	const struct timeline_group *g = &t->groups[group];
	const size_t *at = t->first_cell[TIMELINE_CPU];
	uint64_t ns = 0;

	for (uint32_t i = 0; i < g->n_processes; i++) {
		uint32_t process = t->by_group[g->first_process + i];

		for (size_t k = at[process]; k < at[process + 1]; k++)
			ns += t->cells[TIMELINE_CPU][k].value;
	}
	return ns;
}

/* The groups with the most CPU time, in order. */
static void choose(struct plot *p)
{
	uint64_t best[REPORT_NAMED];
	size_t with = 0;

	for (uint32_t i = 0; i < p->t->n_groups; i++) {
		uint64_t ns = used(p->t, i);
		size_t k = p->n_named;

		with += ns > 0;
		if (!ns || (k == REPORT_NAMED && ns <= best[k - 1]))
			continue;
		p->n_named += k < REPORT_NAMED;
		for (k = p->n_named - 1; k && best[k - 1] < ns; k--) {
			best[k] = best[k - 1];
			p->named[k] = p->named[k - 1];
		}
		best[k] = ns;
		p->named[k] = i;
	}
	p->others = with - p->n_named;
}

/* The cells of a process are in order of time. */
static void add_process(struct plot *p, uint32_t process, size_t series, uint64_t *high)
{
	const struct timeline_cell *c = p->t->cells[TIMELINE_CPU];
	const size_t *at = p->t->first_cell[TIMELINE_CPU];
	size_t before = SIZE_MAX;
	uint64_t mine = 0;

	for (size_t k = at[process]; k < at[process + 1]; k++) {
		size_t i = column_of(p, c[k].step);

		mine = i == before ? mine + c[k].value : c[k].value;
		before = i;
		p->ns[series][i] += c[k].value;
		p->sum[i] += c[k].value;
		if (mine > high[i]) {
			high[i] = mine;
			p->most[i] = process;
		}
	}
}

static void sum_up(struct plot *p)
{
	cleanup_free uint64_t *high = mem_array(p->columns + 1, sizeof(*high));

	for (size_t i = 0; i < p->columns; i++) {
		size_t first, end;

		p->most[i] = UINT32_MAX;
		column_steps(p, i, &first, &end);
		for (size_t k = first; k < end; k++)
			p->covered[i] += p->t->covered_ns[k];
	}
	for (uint32_t process = 0; process < p->t->n_processes; process++) {
		size_t series = 0;

		while (series < p->n_named && p->named[series] != p->t->processes[process].group)
			series++;
		add_process(p, process, series < p->n_named ? series : REPORT_NAMED, high);
	}
	for (size_t i = 0; i < p->columns; i++)
		if (!is_gap(p, i) && (double)p->sum[i] / (double)p->covered[i] > p->top)
			p->top = (double)p->sum[i] / (double)p->covered[i];
}

static void plot_init(struct plot *p, const struct timeline *t)
{
	*p = (struct plot){.t = t, .steps = (t->n_steps + REPORT_COLUMNS - 1) / REPORT_COLUMNS};
	p->columns = (t->n_steps + p->steps - 1) / p->steps;
	for (size_t i = 0; i <= REPORT_NAMED; i++)
		p->ns[i] = mem_array(p->columns + 1, sizeof(**p->ns));
	p->sum = mem_array(p->columns + 1, sizeof(*p->sum));
	p->covered = mem_array(p->columns + 1, sizeof(*p->covered));
	p->most = mem_array(p->columns + 1, sizeof(*p->most));
	choose(p);
	sum_up(p);
}

static void plot_release(struct plot *p)
{
	for (size_t i = 0; i <= REPORT_NAMED; i++)
		free(p->ns[i]);
	free(p->sum);
	free(p->covered);
	free(p->most);
}

/* --- the drawing --- */

/* One path per series, so that 120 columns of eight stay small. */
static void add_series(const struct plot *p, size_t series, uint64_t *below, struct strbuf *s)
{
	strbuf_addf(s, "<path class=\"s%zu\" d=\"", series);
	for (size_t i = 0; i < p->columns; i++) {
		double unit = p->top * (double)p->covered[i] / HEIGHT;
		unsigned y, y2;

		if (is_gap(p, i) || !p->ns[series][i])
			continue;
		y = (unsigned)((double)below[i] / unit + 0.5);
		below[i] += p->ns[series][i];
		y2 = (unsigned)((double)below[i] / unit + 0.5);
		if (y2 > y)
			strbuf_addf(s, "M%zu %uh1v-%uh-1z", i, HEIGHT - y, y2 - y);
	}
	strbuf_addstr(s, "\"/>");
}

static void add_gaps(const struct plot *p, struct strbuf *s)
{
	strbuf_addstr(s, "<path class=\"unseen\" d=\"");
	for (size_t i = 0, end; i < p->columns; i = end) {
		for (end = i; end < p->columns && is_gap(p, end);)
			end++;
		if (end > i)
			strbuf_addf(s, "M%zu 0H%zuV%dH%zuzL%zu %dM%zu %dL%zu 0", i, end, HEIGHT, i,
				    end, HEIGHT, i, HEIGHT, end);
		else
			end++;
	}
	strbuf_addstr(s, "\"/>");
}

static void add_spikes(const struct plot *p, const struct report *r, struct strbuf *s)
{
	strbuf_addstr(s, "<path class=\"spike\" d=\"");
	for (size_t i = 0; i < r->n_spikes && i < REPORT_SPIKES; i++)
		strbuf_addf(s, "M%zu 0H%zu", column_of(p, (uint32_t)r->spikes[i].at.first),
			    column_of(p, (uint32_t)(r->spikes[i].at.end - 1)) + 1);
	strbuf_addstr(s, "\"/>");
}

static void add_name(const struct plot *p, uint32_t process, struct strbuf *s)
{
	page_add_text(s, p->t->processes[process].comm);
	strbuf_addf(s, " (%u)", p->t->processes[process].pid);
}

/* The text of a column under the pointer. */
static void add_titles(const struct plot *p, struct strbuf *s)
{
	strbuf_addstr(s, "<g class=\"hover\">");
	for (size_t i = 0; i < p->columns; i++) {
		size_t first, end;

		column_steps(p, i, &first, &end);
		strbuf_addf(s, "<rect x=\"%zu\" width=\"1\" height=\"%d\"><title>", i, HEIGHT);
		report_time(p->t, timeline_time(p->t, first), s);
		if (is_gap(p, i))
			strbuf_addstr(s, ": not recorded");
		else
			strbuf_addf(s, ": %.2f cores", (double)p->sum[i] / (double)p->covered[i]);
		if (p->most[i] != UINT32_MAX) {
			strbuf_addstr(s, ", most: ");
			add_name(p, p->most[i], s);
		}
		strbuf_addstr(s, "</title></rect>");
	}
	strbuf_addstr(s, "</g>");
}

static void add_legend(const struct plot *p, const struct report *r, struct strbuf *s)
{
	bool gap = false;

	strbuf_addstr(s, "<ul class=\"legend\">");
	for (size_t i = 0; i < p->n_named; i++) {
		strbuf_addf(s, "<li><i class=\"s%zu\"></i>", i);
		page_add_text(s, p->t->groups[p->named[i]].name);
		strbuf_addstr(s, "</li>");
	}
	if (p->others)
		strbuf_addf(s, "<li><i class=\"s%d\"></i>%llu others</li>", REPORT_NAMED,
			    (unsigned long long)p->others);
	for (size_t i = 0; i < p->columns; i++)
		gap = gap || is_gap(p, i);
	if (gap)
		strbuf_addstr(s, "<li>crossed out: nothing recorded</li>");
	if (r->n_spikes)
		strbuf_addstr(s, "<li>line on top: a spike</li>");
	strbuf_addstr(s, "</ul>\n");
}

/* --- the same as a table --- */

static void add_table(const struct plot *p, struct strbuf *s)
{
	strbuf_addstr(
		s,
		"<details><summary>As a table</summary><div class=\"wide\"><table id=\"use\"><thead><tr><th scope=\"col\">From</th><th scope=\"col\" class=\"num\">Cores</th><th scope=\"col\" class=\"num\">CPU s</th><th scope=\"col\">Top command</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < p->columns; i++) {
		size_t first, end;

		column_steps(p, i, &first, &end);
		strbuf_addstr(s, "<tr><td>");
		report_time(p->t, timeline_time(p->t, first), s);
		if (is_gap(p, i))
			strbuf_addstr(s, "</td><td class=\"num\">not recorded");
		else
			strbuf_addf(s, "</td><td class=\"num\">%.2f",
				    (double)p->sum[i] / (double)p->covered[i]);
		strbuf_addf(s, "</td><td class=\"num\">%.3f</td><td class=\"fn\">",
			    (double)p->sum[i] / NSEC_PER_SEC);
		if (p->most[i] != UINT32_MAX)
			add_name(p, p->most[i], s);
		strbuf_addstr(s, "</td></tr>\n");
	}
	strbuf_addstr(s, "</tbody></table></div></details>\n");
}

void report_drawing(const struct report *r, struct strbuf *s)
{
	const struct timeline *t = r->t;
	cleanup_free uint64_t *below = NULL;
	struct plot p;

	plot_init(&p, t);
	below = mem_array(p.columns + 1, sizeof(*below));
	strbuf_addf(
		s,
		"<p class=\"half\">Cores; the top is %.2f of %u.</p><svg id=\"drawing\" class=\"drawing\" viewBox=\"0 0 %zu %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"Cores used over time by container; the table below shows the same.\">",
		p.top, t->cpus, p.columns, HEIGHT);
	for (size_t i = 0; i <= REPORT_NAMED; i++)
		if (p.top > 0 && (i < p.n_named || i == REPORT_NAMED))
			add_series(&p, i, below, s);
	add_gaps(&p, s);
	add_spikes(&p, r, s);
	add_titles(&p, s);
	strbuf_addstr(s, "</svg><p class=\"axis\"><span>");
	report_time(t, t->sel->from_ns, s);
	strbuf_addstr(s, "</span><span>");
	report_time(t, t->sel->to_ns, s);
	strbuf_addstr(s, " UTC</span></p>\n");
	add_legend(&p, r, s);
	add_table(&p, s);
	plot_release(&p);
}
