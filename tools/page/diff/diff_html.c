/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two folds are joined (fold_join), and frames that diff.c compares as equal (by name and
 * module) are made to look alike. So a function is one frame on both sides, whatever a file says
 * about its origin.
 */
#include "tools/page/diff/diff_html.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/diff/diff_print.h"
#include "tools/diff/diff_words.h"
#include "tools/fold/fold_kind.h"
#include "tools/page/flame_html.h"
#include "tools/page/flame_pack.h"
#include "tools/page/page_fill.h"
#include "tools/print/term.h"
#include "tools/print/when.h"

/*
 * The strip: both sides of a difference over time, as HTML that needs no script (except to choose
 * a range of a side): two drawings side by side on one scale, a column per slice of time (those of
 * the statistics), and the same as a table. Times that were not recorded are crossed out.
 */

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

/* Adds nothing if a side has no slices (a file), or if amounts are not per second. */
static void diff_strip_add(const struct diff_view *v, struct strbuf *s)
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

static const char *const SIDE[] = {"before (A)", "after (B)"};

static void add_title(const struct diff *d, struct strbuf *s)
{
	const struct fold *f = d->side[DIFF_AFTER].f;

	strbuf_addf(s, "What changed: %s", fold_is_cores(f) ? "CPU time" : f->kind->what);
	if (f->host && *f->host) {
		strbuf_addstr(s, " on ");
		page_add_text(s, f->host);
	}
}

/* --- the head --- */

static void fact_side(const struct diff_view *v, int side, struct strbuf *s)
{
	const struct diff_side *x = &v->d->side[side];
	cleanup_strbuf struct strbuf amount = STRBUF_INIT;
	char span[32], n[32], from[32], to[32];

	strbuf_addf(s, "<li>%s: <b>", SIDE[side]);
	page_add_text(s, v->sides->label[side]);
	strbuf_addstr(s, "</b>; ");
	if (x->f->from_ns > 0 && x->f->to_ns > x->f->from_ns)
		strbuf_addf(s, "%s to %s; ", when_utc(x->f->from_ns, from, sizeof(from)),
			    when_utc(x->f->to_ns, to, sizeof(to)));
	if (!diff_in_shares(v->d)) {
		diff_add_amount(&amount, v->d, v->d->functions[0].total.v[side]);
		page_add_text(s, strbuf_str(&amount));
		strbuf_addstr(s, ", ");
	}
	if (x->f->kind->class != STORE_GAUGE)
		strbuf_addf(s, "%s %s", units_count(x->samples, n, sizeof(n)),
			    store_kind_counted(x->f->kind));
	else
		strbuf_addstr(s, x->f->kind->what);
	if (x->seconds > 0)
		strbuf_addf(s, " in %s", units_seconds(x->seconds, span, sizeof(span)));
	strbuf_addstr(s, "</li>\n");
}

static void fact_change(const struct diff *d, struct strbuf *s)
{
	const struct diff_value *all = &d->functions[0].total;
	cleanup_strbuf struct strbuf change = STRBUF_INIT, percent = STRBUF_INIT,
				     noise = STRBUF_INIT;
	const struct fold *f = d->side[DIFF_AFTER].f;

	if (diff_in_shares(d)) {
		strbuf_addstr(
			s,
			"<li>compared <b>per sample</b>: shares of the total; changes are in percentage points</li>\n");
		return;
	}
	diff_add_change(&change, d, all->v[1] - all->v[0]);
	diff_add_percent(&percent, all);
	diff_add_amount(&noise, d, diff_detectable(all));
	strbuf_addf(s, "<li>compared <b>%s</b>: %s</li>\n<li>change <b>%s%s%s (%s)</b>, ",
		    f->kind->class == STORE_GAUGE ? "as an average over time" : "per second",
		    diff_unit(d), strbuf_str(&change), fold_is_cores(f) ? " cores" : "",
		    diff_per_second(d), strbuf_str(&percent));
	if (all->significant)
		strbuf_addf(s, "more than noise (p %s %.2g)</li>\n", all->p < 1e-4 ? "&#60;" : "=",
			    all->p < 1e-4 ? 1e-4 : all->p);
	else
		strbuf_addf(s, "within the noise: %s would have been detected</li>\n",
			    strbuf_str(&noise));
}

/* The most important facts, in one line. */
static void add_brief(const struct diff *d, struct strbuf *s)
{
	const struct diff_value *all = &d->functions[0].total;
	cleanup_strbuf struct strbuf change = STRBUF_INIT, percent = STRBUF_INIT;

	if (!diff_in_shares(d)) {
		diff_add_change(&change, d, all->v[1] - all->v[0]);
		diff_add_percent(&percent, all);
		strbuf_addf(s, "<b>%s%s%s (%s)</b>%s · ", strbuf_str(&change),
			    fold_is_cores(d->side[DIFF_AFTER].f) ? " cores" : "",
			    diff_per_second(d), strbuf_str(&percent),
			    all->significant ? "" : ", within the noise");
	}
	strbuf_addf(s, "<b>%zu of %zu functions</b> changed by more than noise", d->n_significant,
		    d->n_tested);
}

static void fact_test(const struct diff *d, struct strbuf *s)
{
	strbuf_addf(
		s,
		"<li><b>%zu of %zu functions</b> changed by more than noise (at most %.0f %% of them by chance): ",
		d->n_significant, d->n_tested, 100 * d->alpha);
	if (d->by_slices)
		strbuf_addf(s, "Welch's test over %zu and %zu slices of %.0f and %.0f s</li>\n",
			    d->side[0].n_slices, d->side[1].n_slices, d->side[0].slice_s,
			    d->side[1].slice_s);
	else
		strbuf_addstr(s, "by counts, assuming that samples are independent</li>\n");
}

static void fact_unseen(const struct diff *d, struct strbuf *s)
{
	for (int side = 0; side < 2; side++) {
		const struct fold *f = d->side[side].f;
		uint64_t lost = 0, all = f->nodes[0].total_ns;
		char n[32];

		for (size_t i = 0; i < f->n_losses; i++)
			lost += f->losses[i].n;
		strbuf_addf(s, "<li%s>%s: %s lost, %.2f %% in functions without a name</li>\n",
			    lost ? " class=\"warn\"" : "", SIDE[side],
			    units_count(lost, n, sizeof(n)),
			    all ? 100.0 * (double)f->frames_unnamed_ns / (double)all : 0);
	}
}

static void add_facts(const struct diff_view *v, const struct flame_tree *t, struct strbuf *s)
{
	char n[32];

	fact_side(v, DIFF_BEFORE, s);
	fact_side(v, DIFF_AFTER, s);
	fact_change(v->d, s);
	fact_test(v->d, s);
	fact_unseen(v->d, s);
	if (v->d->names_only)
		strbuf_addstr(
			s,
			"<li>one side has no modules: functions are compared by name only</li>\n");
	if (t->elided)
		strbuf_addf(s,
			    "<li>the %s smallest frames are drawn as \"(smaller frames)\"</li>\n",
			    units_count(t->elided, n, sizeof(n)));
}

/* --- the plain table --- */

static void add_columns(const struct diff *d, struct strbuf *s)
{
	page_add_column(s, "sure", "sure", "Sure");
	page_add_column(s, "num amount", "self", diff_in_shares(d) ? "Self, points" : "Self");
	page_add_column(s, "num", NULL, "Self %");
	page_add_column(s, "num cores", "selfA", "A");
	page_add_column(s, "num cores", "selfB", "B");
	page_add_column(s, "num amount", "total", diff_in_shares(d) ? "Total, points" : "Total");
	page_add_column(s, "num", NULL, "Total %");
	page_add_column(s, "num cores", "totalA", "A");
	page_add_column(s, "num cores", "totalB", "B");
	page_add_column(s, "num cores", "q", "q");
	page_add_column(s, "fn", "name", "Function");
	page_add_column(s, "mod", "module", "Module");
}

static void add_cell(struct strbuf *s, const char *kind, const char *text)
{
	strbuf_addf(s, "<td class=\"%s\">", kind);
	page_add_text(s, text);
	strbuf_addstr(s, "</td>");
}

static void add_side_cell(struct strbuf *s, const struct diff *d, double v)
{
	cleanup_strbuf struct strbuf text = STRBUF_INIT;

	if (diff_in_shares(d))
		strbuf_addf(&text, "%.2f %%", 100 * v);
	else
		diff_add_amount(&text, d, v);
	add_cell(s, "num cores", strbuf_str(&text));
}

static void add_value(struct strbuf *s, const struct diff *d, const struct diff_value *v)
{
	cleanup_strbuf struct strbuf change = STRBUF_INIT, percent = STRBUF_INIT;

	if (v->v[0] <= 0 && v->v[1] <= 0) {
		strbuf_addstr(
			s,
			"<td class=\"amount\"></td><td></td><td class=\"cores\"></td><td class=\"cores\"></td>");
		return;
	}
	diff_add_change(&change, d, v->v[1] - v->v[0]);
	diff_add_percent(&percent, v);
	add_cell(s, "num amount", strbuf_str(&change));
	add_cell(s, "num", strbuf_str(&percent));
	add_side_cell(s, d, v->v[0]);
	add_side_cell(s, d, v->v[1]);
}

static void add_row(struct strbuf *s, const struct diff *d, const struct diff_function *f)
{
	const struct diff_value *v = f->self.tested ? &f->self : &f->total;
	bool sure = f->self.significant || f->total.significant;
	cleanup_strbuf struct strbuf q = STRBUF_INIT, why = STRBUF_INIT;

	strbuf_addstr(s, sure ? "<tr>" : "<tr class=\"noise\">");
	add_cell(s, "sure", sure ? "yes" : v->tested ? "no" : "few");
	add_value(s, d, &f->self);
	add_value(s, d, &f->total);
	if (v->tested)
		strbuf_addf(&q, v->q < 1e-4 ? "<%.4f" : "%.4f", v->q < 1e-4 ? 1e-4 : v->q);
	add_cell(s, "num cores", strbuf_str(&q));
	strbuf_addstr(s, "<td class=\"fn\">");
	page_add_text(s, f->frame->name);
	diff_add_why(&why, d, f);
	strbuf_addstr(s, " <small class=\"why\">");
	page_add_text(s, strbuf_str(&why));
	strbuf_addstr(s, "</small></td>");
	add_cell(s, "mod", d->names_only ? "" : f->frame->module);
	strbuf_addstr(s, "</tr>\n");
}

static void add_rows(const struct diff *d, struct strbuf *s)
{
	size_t n;
	cleanup_free uint32_t *movers = diff_movers(d, &n);

	for (size_t i = 0; i < n && i < PAGE_TABLE_ROWS; i++)
		add_row(s, d, &d->functions[movers[i]]);
}

/* --- the tree --- */

/* Strings of one fold are equal by pointer. */
static void looks_unify(struct fold *f, bool names_only)
{
	struct idmap first = {0};
	const char *none = f->frames[0].module;

	for (size_t i = 1; i < f->n_frames; i++) {
		struct fold_frame *fr = &f->frames[i];
		uint64_t h, k;

		if (names_only)
			fr->module = none;
		h = hash_u64(hash_u64(HASH_SEED, (uintptr_t)fr->name), (uintptr_t)fr->module);
		if (!idmap_get(&first, h, &k)) {
			idmap_set(&first, h, i);
			continue;
		}
		fr->origin = f->frames[k].origin;
		f->frames[k].inlined &= fr->inlined;
	}
	for (size_t i = 1; i < f->n_frames; i++) {
		struct fold_frame *fr = &f->frames[i];
		uint64_t k = i;

		idmap_get(&first,
			  hash_u64(hash_u64(HASH_SEED, (uintptr_t)fr->name), (uintptr_t)fr->module),
			  &k);
		fr->inlined = f->frames[k].inlined;
	}
	idmap_release(&first);
}

static int add_data(const struct diff_view *v, const struct fold *both, const struct flame_tree *t,
		    const char *source_url, struct strbuf *data)
{
	const struct flame_pack_head head = {"nested", source_url ? source_url : ""};
	const char *const *labels = (const char *const *)v->sides->label;
	struct flame_rows sides[2];
	struct flame_pack_profile profile = {
		.f = both, .t = t, .sides = sides, .labels = labels, .n_sides = 2, .diff = v->d};
	int ret;

	for (int s = 0; s < 2; s++) {
		const struct diff_side *side = &v->d->side[s];

		flame_rows_begin_side(
			&sides[s], both,
			&(struct flame_rows_side){
				side->f, s == DIFF_BEFORE,
				side->f->kind->class == STORE_GAUGE ? side->means : 0});
		flame_rows_end(&sides[s], t, FLAME_HTML_MAX_ROWS / 2);
	}
	ret = flame_pack(&head, &profile, 1, data);
	for (int s = 0; s < 2; s++)
		flame_rows_release(&sides[s]);
	return ret;
}

int diff_html_write(const struct diff_view *v, const char *source_url, FILE *out, struct err *e)
{
	cleanup_strbuf struct strbuf title = STRBUF_INIT, brief = STRBUF_INIT, facts = STRBUF_INIT,
				     columns = STRBUF_INIT, rows = STRBUF_INIT, data = STRBUF_INIT,
				     strip = STRBUF_INIT;
	struct fold *both = fold_join(v->d->side[DIFF_BEFORE].f, 1, v->d->side[DIFF_AFTER].f);
	struct flame_tree t;
	int ret;

	looks_unify(both, v->d->names_only);
	flame_tree_init(&t, both, FLAME_HTML_MAX_NODES, true);
	ret = add_data(v, both, &t, source_url, &data);
	if (!ret) {
		add_title(v->d, &title);
		add_brief(v->d, &brief);
		add_facts(v, &t, &facts);
		add_columns(v->d, &columns);
		add_rows(v->d, &rows);
		diff_strip_add(v, &strip);
		page_fill(&(struct page_parts){.title = &title,
					       .brief = &brief,
					       .facts = &facts,
					       .columns = &columns,
					       .rows = &rows,
					       .data = &data,
					       .report = &strip},
			  out);
	} else {
		err_set(e, ret, EXIT_RUNTIME, "cannot pack the difference: %s", strerror(-ret));
	}
	flame_tree_release(&t);
	fold_free(both);
	return ret;
}
