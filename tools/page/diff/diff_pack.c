/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/page/diff/diff_pack.h"

#include <math.h>

#include "schema/base/array.h"
#include "schema/base/clock.h"

enum { SELF_TESTED = 1, SELF_SIGNIFICANT = 2, TOTAL_TESTED = 4, TOTAL_SIGNIFICANT = 8 };

static json_t *pair(double before, double after)
{
	json_t *a = json_array();

	json_array_append_new(a, json_real(before));
	json_array_append_new(a, json_real(after));
	return a;
}

/* JSON has no infinities: 0 means that no change would be detected. */
static void add_real(json_t *column, double v)
{
	json_array_append_new(column, json_real(isfinite(v) ? v : 0));
}

static void add_number(json_t *column, int64_t v)
{
	json_array_append_new(column, json_integer(v));
}

static int64_t flags_of(const struct diff_function *f)
{
	return (f->self.tested ? SELF_TESTED : 0) | (f->self.significant ? SELF_SIGNIFICANT : 0) |
	       (f->total.tested ? TOTAL_TESTED : 0) |
	       (f->total.significant ? TOTAL_SIGNIFICANT : 0);
}

static json_t *callers_of(const struct diff *d, const struct diff_function *f,
			  uint32_t (*text)(void *, const char *), void *ctx)
{
	json_t *a = json_array();

	for (uint32_t i = f->callers; i < f->callers + f->n_callers; i++) {
		const struct diff_caller *c = &d->callers[i];
		json_t *one;

		if (!c->significant)
			continue;
		one = json_array();
		add_number(one, text(ctx, d->functions[c->caller].frame->name));
		add_number(one, c->gone);
		json_array_append_new(a, one);
	}
	return a;
}

static json_t *functions_pack(const struct diff *d, uint32_t (*text)(void *ctx, const char *str),
			      void *ctx)
{
	static const char *const names[] = {"name",        "module",  "flags",
					    "self_q",      "total_q", "self_least",
					    "total_least", "since",   "callers"};
	json_t *o = json_object(), *column[ARRAY_SIZE(names)];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		column[i] = json_array();
		json_object_set_new(o, names[i], column[i]);
	}
	for (size_t i = 1; i < d->n_functions; i++) {
		const struct diff_function *f = &d->functions[i];

		if (!f->self.tested && !f->total.tested && !f->n_callers)
			continue;
		add_number(column[0], text(ctx, f->frame->name));
		add_number(column[1], text(ctx, d->names_only ? "" : f->frame->module));
		add_number(column[2], flags_of(f));
		add_real(column[3], f->self.tested ? f->self.q : 1);
		add_real(column[4], f->total.tested ? f->total.q : 1);
		add_real(column[5], diff_detectable(&f->self));
		add_real(column[6], diff_detectable(&f->total));
		add_number(column[7], f->since_ns / NSEC_PER_SEC);
		json_array_append_new(column[8], callers_of(d, f, text, ctx));
	}
	return o;
}

json_t *diff_pack(const struct diff *d, uint32_t (*text)(void *ctx, const char *str), void *ctx)
{
	const struct diff_side *a = &d->side[DIFF_BEFORE], *b = &d->side[DIFF_AFTER];
	json_t *o = json_object();

	json_object_set_new(o, "per", json_string(d->per == DIFF_PER_SAMPLE ? "sample" : "second"));
	json_object_set_new(o, "unit", json_string(diff_unit(d)));
	json_object_set_new(o, "alpha", json_real(d->alpha));
	json_object_set_new(o, "whole", pair(a->whole, b->whole));
	json_object_set_new(o, "seconds", pair(a->seconds, b->seconds));
	json_object_set_new(o, "names_only", json_boolean(d->names_only));
	json_object_set_new(o, "all_sure", json_boolean(d->functions[0].total.significant));
	json_object_set_new(o, "tested", json_integer((json_int_t)d->n_tested));
	json_object_set_new(o, "significant", json_integer((json_int_t)d->n_significant));
	json_object_set_new(o, "functions", functions_pack(d, text, ctx));
	return o;
}
