/* SPDX-License-Identifier: Apache-2.0 */
/* diff_text: a difference for people. What is noise is there too: marked, and grey where there are
 * colours. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/strbuf.h"
#include "schema/base/units.h"
#include "tools/diff/diff_print.h"
#include "tools/diff/diff_words.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/table.h"
#include "tools/print/term.h"

static void head_side(const struct diff_view *v, int side, FILE *out)
{
	const struct diff_side *s = &v->d->side[side];
	cleanup_strbuf struct strbuf label = STRBUF_INIT;
	cleanup_strbuf struct strbuf amount = STRBUF_INIT;
	char span[32], samples[32];

	strbuf_addshown(&label, v->sides->label[side], strlen(v->sides->label[side]));
	fprintf(out, "%s %s\n        ", side ? "after: " : "before:", strbuf_str(&label));
	if (!diff_in_shares(v->d)) {
		diff_add_amount(&amount, v->d, v->d->functions[0].total.v[side]);
		fprintf(out, "%s, ", strbuf_str(&amount));
	}
	if (s->f->kind->class != STORE_GAUGE)
		fprintf(out, "%s %s", units_count(s->samples, samples, sizeof(samples)),
			store_kind_counted(s->f->kind));
	else
		fprintf(out, "%s", s->f->kind->what);
	if (s->seconds > 0)
		fprintf(out, " in %s", units_seconds(s->seconds, span, sizeof(span)));
	fputc('\n', out);
}

static void head_count(const struct diff *d, FILE *out)
{
	fprintf(out, "\n        %zu of %zu functions changed by more than noise\n",
		d->n_significant, d->n_tested);
}

static void head_change(const struct diff *d, FILE *out)
{
	const struct diff_value *v = &d->functions[0].total;
	cleanup_strbuf struct strbuf change = STRBUF_INIT, percent = STRBUF_INIT,
				     noise = STRBUF_INIT;

	if (diff_in_shares(d)) {
		fprintf(out, "change: in percentage points of the whole");
		head_count(d, out);
		return;
	}
	diff_add_change(&change, d, v->v[1] - v->v[0]);
	diff_add_percent(&percent, v);
	diff_add_amount(&noise, d, diff_detectable(v));
	fprintf(out, "change: %s%s%s (%s), ", strbuf_str(&change),
		fold_is_cores(d->side[DIFF_AFTER].f) ? " cores" : "", diff_per_second(d),
		strbuf_str(&percent));
	if (v->significant)
		fprintf(out, "more than noise (p %s %.2g)", v->p < 1e-4 ? "<" : "=",
			fmax(v->p, 1e-4));
	else
		fprintf(out, "within the noise: a change of %s would have shown",
			strbuf_str(&noise));
	head_count(d, out);
}

/* --- a row --- */

static enum term_color color_of(const struct diff_function *f)
{
	const struct diff_value *v = f->self.significant ? &f->self : &f->total;

	if (!f->self.significant && !f->total.significant)
		return TERM_DIM;
	return v->v[1] > v->v[0] ? TERM_RED : TERM_GREEN;
}

static void cells_of(struct table *t, const struct diff *d, const struct diff_value *v)
{
	cleanup_strbuf struct strbuf change = STRBUF_INIT, percent = STRBUF_INIT;

	if (v->v[0] > 0 || v->v[1] > 0) {
		diff_add_change(&change, d, v->v[1] - v->v[0]);
		diff_add_percent(&percent, v);
	}
	table_cell(t, strbuf_str(&change));
	table_cell(t, strbuf_str(&percent));
}

static void row(struct table *t, const struct diff *d, const struct diff_function *f)
{
	cleanup_strbuf struct strbuf why = STRBUF_INIT;

	table_cell(t, f->self.significant || f->total.significant ? "*" : "~");
	cells_of(t, d, &f->self);
	cells_of(t, d, &f->total);
	if (f->inlined)
		table_cellf(t, "%s (inlined)", f->frame->name);
	else
		table_cell(t, f->frame->name);
	diff_add_why(&why, d, f);
	table_cell(t, strbuf_str(&why));
	table_row_color(t, color_of(f));
}

static void legend(const struct diff_view *v, size_t n_movers)
{
	const struct diff *d = v->d;
	const size_t shown = n_movers < v->rows ? n_movers : v->rows;

	if (d->by_slices)
		fprintf(stderr,
			"* more than noise: Welch's test over %zu and %zu slices of %.0f and %.0f s;\n"
			"  of the rows with * at most %.0f %% are expected to be chance\n~ not more than noise\n",
			d->side[0].n_slices, d->side[1].n_slices, d->side[0].slice_s,
			d->side[1].slice_s, 100 * d->alpha);
	else
		fprintf(stderr,
			"* more than noise, if samples are independent (without slices of\n"
			"  time the noise itself cannot be measured); of those rows at most %.0f %% are\n  expected to be chance   ~ not more than noise\n",
			100 * d->alpha);
	if (n_movers > shown)
		fprintf(stderr, "%zu more: -n %zu shows them\n", n_movers - shown, n_movers);
}

void diff_text(const struct diff_view *v, FILE *out)
{
	const struct table_column columns[] = {
		{"", TABLE_LEFT},      {diff_in_shares(v->d) ? "SELF PT" : "SELF", TABLE_RIGHT},
		{"", TABLE_RIGHT},     {diff_in_shares(v->d) ? "TOTAL PT" : "TOTAL", TABLE_RIGHT},
		{"", TABLE_RIGHT},     {"FUNCTION", TABLE_MIDDLE},
		{"WHY", TABLE_MIDDLE},
	};
	struct table *t = table_new(columns, ARRAY_SIZE(columns));
	cleanup_free uint32_t *movers = NULL;
	size_t n = 0;

	head_side(v, DIFF_BEFORE, out);
	head_side(v, DIFF_AFTER, out);
	head_change(v->d, out);
	movers = diff_movers(v->d, &n);
	for (size_t i = 0; i < n && i < v->rows; i++)
		row(t, v->d, &v->d->functions[movers[i]]);
	if (n)
		table_print(t, out, v->wide ? 0 : term_width(out));
	table_free(t);
	if (v->talk)
		netnew_print(v->talk, out);
	fflush(out);
	if (!v->quiet)
		legend(v, n);
}
