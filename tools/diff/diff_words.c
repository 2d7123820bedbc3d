/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/diff/diff_words.h"

#include <math.h>
#include <string.h>

#include "schema/base/units.h"
#include "schema/store/read/reader.h"
#include "tools/fold/fold_kind.h"
#include "tools/print/when.h"

bool diff_in_shares(const struct diff *d)
{
	return d->per == DIFF_PER_SAMPLE;
}

static enum store_unit unit_of(const struct diff *d)
{
	return d->side[DIFF_AFTER].f->unit;
}

/* "/s" where an amount is one per second; cores are not written so. */
const char *diff_per_second(const struct diff *d)
{
	return d->side[DIFF_AFTER].f->kind->class == STORE_GAUGE || unit_of(d) == STORE_TIME ? "" :
											       "/s";
}

void diff_add_amount(struct strbuf *s, const struct diff *d, double v)
{
	char text[32];

	if (unit_of(d) == STORE_TIME)
		strbuf_addf(s, "%.2f%s", v,
			    fold_is_cores(d->side[DIFF_AFTER].f) ? " cores" : " s each second");
	else if (unit_of(d) == STORE_BYTES)
		strbuf_addf(s, "%s%s", units_bytes((uint64_t)v, text, sizeof(text)),
			    diff_per_second(d));
	else
		strbuf_addf(s, "%.1f %s%s", v, store_kind_counted(d->side[DIFF_AFTER].f->kind),
			    diff_per_second(d));
}

/* "+0.412" cores, "-3.20" points; of a host that is all but idle a digit more */
void diff_add_change(struct strbuf *s, const struct diff *d, double change)
{
	const struct diff_value *all = &d->functions[0].total;

	char text[32];

	if (diff_in_shares(d))
		strbuf_addf(s, "%+.2f", 100 * change);
	else if (unit_of(d) == STORE_TIME)
		strbuf_addf(s, "%+.*f", all->v[0] < 1 && all->v[1] < 1 ? 4 : 3, change);
	else if (unit_of(d) == STORE_BYTES)
		strbuf_addf(s, "%c%s", change < 0 ? '-' : '+',
			    units_bytes((uint64_t)fabs(change), text, sizeof(text)));
	else
		strbuf_addf(s, "%+.1f", change);
}

void diff_add_percent(struct strbuf *s, const struct diff_value *v)
{
	double p = diff_percent(v);

	if (isnan(p))
		strbuf_addstr(s, v->v[1] > 0 ? "new" : "");
	else if (v->v[1] <= 0)
		strbuf_addstr(s, "gone");
	else if (p >= 1000)
		strbuf_addf(s, "x %.0f", v->v[1] / v->v[0]);
	else
		strbuf_addf(s, "%+.*f %%", fabs(p) < 99.95 ? 1 : 0, p);
}

static void add_joined(struct strbuf *s, const char *what, const char *name)
{
	if (s->len)
		strbuf_addstr(s, ", ");
	strbuf_addf(s, "%s%s", what, name);
}

static void add_callers(struct strbuf *s, const struct diff *d, const struct diff_function *f)
{
	for (int gone = 0; gone < 2; gone++) {
		size_t said = 0;

		for (uint32_t i = f->callers; i < f->callers + f->n_callers && said < 1; i++) {
			const struct diff_caller *c = &d->callers[i];

			if (!c->significant || c->gone != gone)
				continue;
			add_joined(s, gone ? "caller gone: " : "new caller: ",
				   d->functions[c->caller].frame->name);
			said++;
		}
	}
}

void diff_add_why(struct strbuf *s, const struct diff *d, const struct diff_function *f)
{
	bool sure = f->self.significant || f->total.significant;
	const struct diff_value *v =
		f->self.tested && f->self.v[0] + f->self.v[1] > 0 ? &f->self : &f->total;
	char when[32];

	if (sure || f->n_callers)
		add_callers(s, d, f);
	if (sure && f->since_ns)
		add_joined(s, "since ",
			   when_local(f->since_ns, d->side[DIFF_AFTER].f->from_ns, when,
				      sizeof(when)));
	if (sure)
		return;
	if (!v->tested)
		add_joined(s, "too few samples", "");
	else if (v->v[0] > 0)
		strbuf_addf(s, "%snoise: %.0f %% would show", s->len ? ", " : "",
			    fmin(999, 100 * diff_detectable(v) / v->v[0]));
	else
		add_joined(s, "noise", "");
}
