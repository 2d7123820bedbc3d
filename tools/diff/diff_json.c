/* SPDX-License-Identifier: Apache-2.0 */
/* diff_json: a difference for programs; the header has the schemas. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "tools/diff/diff_print.h"
#include "tools/diff/diff_words.h"
#include "tools/formats/flame_json.h"
#include "tools/print/framename.h"
#include "tools/print/json.h"

#define CALLERS 10 /* of a function, new ones and those that are gone */

static void set_number(json_t *o, const char *key, uint64_t v)
{
	json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_real(json_t *o, const char *key, double v)
{
	json_object_set_new(o, key, isfinite(v) ? json_real(v) : json_null());
}

static json_t *value_json(const struct diff_value *v)
{
	json_t *o = json_object();

	set_real(o, "before", v->v[0]);
	set_real(o, "after", v->v[1]);
	set_real(o, "change", v->v[1] - v->v[0]);
	set_real(o, "change_percent", diff_percent(v));
	set_number(o, "before_ns", v->ns[0]);
	set_number(o, "after_ns", v->ns[1]);
	set_number(o, "before_samples", v->samples[0]);
	set_number(o, "after_samples", v->samples[1]);
	set_real(o, "p", v->tested ? v->p : NAN);
	set_real(o, "q", v->tested ? v->q : NAN);
	json_object_set_new(o, "tested", json_boolean(v->tested));
	json_object_set_new(o, "significant", json_boolean(v->significant));
	set_real(o, "detectable", v->tested ? diff_detectable(v) : NAN);
	return o;
}

static json_t *side_json(const struct diff_view *v, int side)
{
	const struct diff_side *s = &v->d->side[side];
	json_t *o = json_object();

	json_object_set_new(o, "what", json_text(v->sides->label[side]));
	json_set_time(o, "from", s->f->from_ns);
	json_set_time(o, "to", s->f->to_ns);
	set_real(o, "seconds", s->seconds > 0 ? s->seconds : NAN);
	set_number(o, "samples", s->samples);
	set_number(o, "cpu_ns", s->ns);
	set_number(o, "slices", s->n_slices);
	set_real(o, "slice_s", s->n_slices ? s->slice_s : NAN);
	return o;
}

static json_t *head_json(const struct diff_view *v, const char *schema)
{
	static const char *const sides[] = {"before", "after"};
	const struct fold *after = v->d->side[DIFF_AFTER].f;
	json_t *j = json_envelope(schema, after->from_ns, after->to_ns);

	json_object_set_new(j, "type", json_string(after->kind->name));
	json_object_set_new(j, "unit", json_string(diff_unit(v->d)));
	json_object_set_new(j, "test", json_string(v->d->by_slices ? "welch" : "counts"));
	set_real(j, "alpha", v->d->alpha);
	for (int s = 0; s < 2; s++) {
		const struct fold *f = v->d->side[s].f;

		json_object_set_new(j, sides[s], side_json(v, s));
		for (size_t i = 0; i < f->n_losses; i++)
			if (f->losses[i].n)
				json_warn(j, "%s: %llu samples were lost: %s", sides[s],
					  (unsigned long long)f->losses[i].n, f->losses[i].reason);
	}
	if (!v->d->by_slices)
		json_warn(j, "one side has no time slices: samples are assumed to be independent");
	json_object_set_new(j, "all", value_json(&v->d->functions[0].total));
	set_number(j, "functions_tested", v->d->n_tested);
	set_number(j, "functions_significant", v->d->n_significant);
	return j;
}

static json_t *callers_json(const struct diff *d, const struct diff_function *f, bool gone)
{
	json_t *a = json_array();

	for (uint32_t i = f->callers; i < f->callers + f->n_callers; i++) {
		const struct diff_caller *c = &d->callers[i];
		json_t *o;

		if (c->gone != gone)
			continue;
		o = json_object();
		json_object_set_new(o, "function", json_text(d->functions[c->caller].frame->name));
		json_object_set_new(o, "module",
				    json_text_or_null(d->functions[c->caller].frame->module));
		set_number(o, "samples", c->samples);
		set_real(o, "p", c->p);
		set_real(o, "q", c->q);
		json_object_set_new(o, "significant", json_boolean(c->significant));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *function_json(const struct diff *d, const struct diff_function *f)
{
	json_t *o = json_object();

	json_object_set_new(o, "function", json_text(f->frame->name));
	json_object_set_new(o, "module", json_text_or_null(f->frame->module));
	json_object_set_new(o, "file", json_text_or_null(f->frame->file));
	json_object_set_new(o, "inlined", json_boolean(f->inlined));
	json_object_set_new(o, "significant",
			    json_boolean(f->self.significant || f->total.significant));
	json_set_time(o, "since", f->since_ns);
	json_cut_list(o, "new_callers", callers_json(d, f, false), CALLERS);
	json_cut_list(o, "gone_callers", callers_json(d, f, true), CALLERS);
	json_object_set_new(o, "self", value_json(&f->self));
	json_object_set_new(o, "total", value_json(&f->total));
	return o;
}

int diff_json(const struct diff_view *v, FILE *out)
{
	json_t *j = head_json(v, "diff");
	size_t n;
	cleanup_free uint32_t *movers = diff_movers(v->d, &n);

	for (size_t i = 0; i < n && i < v->rows; i++)
		json_array_append_new(json_rows(j),
				      function_json(v->d, &v->d->functions[movers[i]]));
	json_bound(j, n);
	json_cut_list(j, "new_connections", v->talk ? netnew_json(v->talk) : json_array(), v->rows);
	return json_print(j, out, 1);
}

static json_t *node_json(const struct diff *d, size_t i)
{
	const struct diff_node *n = &d->nodes[i];
	const struct diff_function *f = &d->functions[n->function];
	json_t *o = json_object();

	set_number(o, "id", i);
	json_object_set_new(o, "parent", i ? json_integer(n->parent) : json_null());
	json_object_set_new(o, "name", json_text(f->frame->name));
	json_object_set_new(o, "module", json_text_or_null(f->frame->module));
	json_object_set_new(o, "origin", json_string(flame_json_origin(f->frame->origin)));
	json_object_set_new(o, "inlined", json_boolean(f->inlined));
	set_number(o, "before_self_ns", n->self_ns[0]);
	set_number(o, "after_self_ns", n->self_ns[1]);
	set_number(o, "before_total_ns", n->total_ns[0]);
	set_number(o, "after_total_ns", n->total_ns[1]);
	set_number(o, "before_self_samples", n->self_samples[0]);
	set_number(o, "after_self_samples", n->self_samples[1]);
	set_number(o, "before_total_samples", n->total_samples[0]);
	set_number(o, "after_total_samples", n->total_samples[1]);
	json_object_set_new(o, "significant", json_boolean(f->total.significant));
	return o;
}

int diff_tree_json(const struct diff_view *v, FILE *out)
{
	json_t *j = head_json(v, "diff.tree");

	for (size_t i = 0; i < v->d->n_nodes; i++)
		json_array_append_new(json_rows(j), node_json(v->d, i));
	return json_print(j, out, 1);
}

void diff_folded(const struct diff_view *v, FILE *out)
{
	const struct diff *d = v->d;
	cleanup_free uint32_t *path = NULL;
	cleanup_strbuf struct strbuf line = STRBUF_INIT;
	size_t cap = 0;

	for (uint32_t i = 0; i < d->n_nodes && !ferror(out); i++) {
		size_t n = 0;

		if (!d->nodes[i].self_samples[0] && !d->nodes[i].self_samples[1])
			continue;
		for (uint32_t at = i; at; at = d->nodes[at].parent) {
			mem_grow(path, n, cap);
			path[n++] = at;
		}
		strbuf_reset(&line);
		while (n-- > 0) {
			framename_add(&line, d->functions[d->nodes[path[n]].function].frame->name);
			if (n)
				strbuf_addch(&line, ';');
		}
		strbuf_addf(&line, " %llu %llu\n", (unsigned long long)d->nodes[i].self_samples[0],
			    (unsigned long long)d->nodes[i].self_samples[1]);
		fwrite(line.buf, 1, line.len, out);
	}
}
