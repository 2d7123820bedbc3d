/* SPDX-License-Identifier: Apache-2.0 */
/* A drawing's unit is a column by a thousandth of the height; the page stretches it. */
#include "tools/page/diff/diff_strip.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_words.h"
#include "tools/page/page_fill.h"
#include "tools/print/when.h"

#define HEIGHT 1000

/* Amount of each slice in the unit of the difference; -1: less than half of it was recorded. Owned
 * by the caller. */
static double *levels(const struct diff_side *side)
{
	const struct fold *f = side->f;
	double *v = mem_array(f->n_slices + 1, sizeof(*v));
	const double unit =
		side->whole / side->seconds / 1e9; /* of an amount, for each ns recorded */

	for (size_t i = 0; i < f->n_cells; i++)
		v[f->cells[i].slice] += (double)f->cells[i].ns;
	for (size_t i = 0; i < f->n_slices; i++) {
		uint64_t covered = f->slices[i].covered_ns;

		v[i] = covered && covered * 2 >= (uint64_t)(f->slices[i].to_ns -
							    f->slices[i].from_ns) ?
			       v[i] / unit / (double)covered :
			       -1;
	}
	return v;
}

static double highest(const double *v, size_t n, double most)
{
	for (size_t i = 0; i < n; i++)
		most = v[i] > most ? v[i] : most;
	return most;
}

static void add_clock(int64_t ns, struct strbuf *s)
{
	char text[32];

	when_utc(ns, text, sizeof(text));
	strbuf_addf(s, "%.8s", text + strlen("2026-11-20T"));
}

static void add_level(const struct diff_view *v, double level, struct strbuf *s)
{
	struct strbuf text cleanup_strbuf = STRBUF_INIT;

	if (level < 0) {
		strbuf_addstr(s, "not recorded");
		return;
	}
	diff_add_amount(&text, v->d, level);
	page_add_text(s, strbuf_str(&text));
}

/* The controls with which the script narrows the side (tools/page/script/brush.js). */
static void add_sliders(char side, struct strbuf *s)
{
	strbuf_addf(
		s,
		"<div class=\"line live\"><label>from <input id=\"from%c\" type=\"range\" min=\"0\" value=\"0\"></label><label>to "
		"<input id=\"to%c\" type=\"range\" min=\"0\" value=\"0\"></label><output id=\"range%c\" for=\"from%c to%c\"></output>"
		"<button id=\"all%c\" type=\"button\">All of %c</button></div>",
		side, side, side, side, side, side, side);
}

static void add_drawing(const struct diff_view *v, int side, const double *level, double top,
			struct strbuf *s)
{
	const struct fold *f = v->d->side[side].f;

	strbuf_addf(s, "<div><p class=\"half\">%s: ", side ? "B, after" : "A, before");
	page_add_text(s, v->sides->label[side]);
	strbuf_addstr(s, "; the top is ");
	add_level(v, top, s);
	strbuf_addf(
		s,
		"</p><svg class=\"drawing\" data-side=\"%d\" viewBox=\"0 0 %zu %d\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s over time; the table below shows the same.\"><path class=\"%s\" d=\"",
		side, f->n_slices, HEIGHT, side ? "After" : "Before", side ? "s0" : "s1");
	for (size_t i = 0; i < f->n_slices; i++)
		if (level[i] > 0)
			strbuf_addf(s, "M%zu %dv-%.0fh1V%dz", i, HEIGHT, level[i] / top * HEIGHT,
				    HEIGHT);
	strbuf_addstr(s, "\"/><path class=\"unseen\" d=\"");
	for (size_t i = 0; i < f->n_slices; i++)
		if (level[i] < 0)
			strbuf_addf(s, "M%zu 0h1v%dh-1zl1 %dM%zu %dl1 -%d", i, HEIGHT, HEIGHT, i,
				    HEIGHT, HEIGHT);
	strbuf_addstr(s, "\"/><g class=\"hover\">");
	for (size_t i = 0; i < f->n_slices; i++) {
		strbuf_addf(s, "<rect x=\"%zu\" width=\"1\" height=\"%d\"><title>", i, HEIGHT);
		add_clock(f->slices[i].from_ns, s);
		strbuf_addstr(s, ": ");
		add_level(v, level[i], s);
		strbuf_addstr(s, "</title></rect>");
	}
	strbuf_addstr(s, "</g><path class=\"veil\" d=\"\"/></svg><p class=\"axis\"><span>");
	add_clock(f->slices[0].from_ns, s);
	strbuf_addstr(s, "</span><span>");
	add_clock(f->slices[f->n_slices - 1].to_ns, s);
	strbuf_addstr(s, " UTC</span></p>");
	add_sliders(side ? 'B' : 'A', s);
	strbuf_addstr(s, "</div>\n");
}

static void add_table(const struct diff_view *v, double *const level[2], struct strbuf *s)
{
	strbuf_addstr(
		s,
		"<details><summary>As a table</summary><div class=\"wide\"><table id=\"over-time\"><thead><tr><th scope=\"col\">Side</th><th scope=\"col\">From</th><th scope=\"col\" class=\"num\">Amount</th></tr></thead><tbody>\n");
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < v->d->side[side].f->n_slices; i++) {
			strbuf_addf(s, "<tr><td>%s</td><td>", side ? "B" : "A");
			add_clock(v->d->side[side].f->slices[i].from_ns, s);
			strbuf_addstr(s, "</td><td class=\"num\">");
			add_level(v, level[side][i], s);
			strbuf_addstr(s, "</td></tr>\n");
		}
	strbuf_addstr(s, "</tbody></table></div></details>\n");
}

void diff_strip_add(const struct diff_view *v, struct strbuf *s)
{
	double *level[2], top = 0;

	for (int side = 0; side < 2; side++) {
		const struct diff_side *x = &v->d->side[side];

		if (x->f->n_slices < 2 || x->seconds <= 0 || x->f->kind->class == STORE_GAUGE)
			return;
	}
	if (diff_in_shares(v->d))
		return;
	for (int side = 0; side < 2; side++) {
		level[side] = levels(&v->d->side[side]);
		top = highest(level[side], v->d->side[side].f->n_slices, top);
	}
	strbuf_addstr(s, "<section aria-label=\"Over time\">\n<div class=\"pair\">\n");
	for (int side = 0; side < 2 && top > 0; side++)
		add_drawing(v, side, level[side], top, s);
	strbuf_addstr(s, "</div>\n");
	add_table(v, level, s);
	strbuf_addstr(s, "</section>\n");
	free(level[0]);
	free(level[1]);
}
