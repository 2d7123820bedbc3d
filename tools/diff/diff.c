/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/diff/diff.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/worker.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"
#include "tools/fold/fold_kind.h"

static bool is_gauge(const struct fold *f)
{
	return f->kind->class == STORE_GAUGE;
}

static void sum_functions(struct diffing *d)
{
	for (size_t i = 0; i < d->pub.n_nodes; i++) {
		const struct diff_node *n = &d->pub.nodes[i];
		struct diff_function *f = &d->pub.functions[n->function];

		for (int s = 0; s < 2; s++) {
			f->self.ns[s] += n->self_ns[s];
			f->self.samples[s] += n->self_samples[s];
			f->total.ns[s] += d->outer[i] ? n->total_ns[s] : 0;
			f->total.samples[s] += d->outer[i] ? n->total_samples[s] : 0;
		}
	}
}

/* Of a gauge: the ends of slices at which it was known. Before a recording began it was not 0. */
static uint64_t moments(const struct fold *f)
{
	cleanup_free bool *known = mem_array(f->n_slices + 1, sizeof(*known));
	uint64_t n = 0;

	if (!is_gauge(f))
		return 1;
	for (size_t i = 0; i < f->n_cells; i++)
		known[f->cells[i].slice] = true;
	for (size_t i = 0; i < f->n_slices; i++)
		n += known[i] || f->slices[i].covered_ns >= (uint64_t)f->slice_ns / 2;
	return n ? n : 1;
}

static void side_init(struct diff_side *s, const struct fold *f, enum diff_per per)
{
	uint64_t covered = 0;

	*s = (struct diff_side){.f = f,
				.ns = f->nodes[0].total_ns,
				.samples = f->nodes[0].total_samples,
				.means = moments(f)};
	for (size_t i = 0; i < f->n_slices; i++)
		covered += f->slices[i].covered_ns;
	if (!f->n_slices)
		covered = fold_recorded_ns(f);
	s->seconds = (double)covered / (double)NSEC_PER_SEC;
	s->ns /= s->means;
	s->whole = per == DIFF_PER_SAMPLE ? (double)s->ns :
		   is_gauge(f)            ? 1 :
		   f->unit == STORE_TIME  ? (double)covered :
					    s->seconds;
}

static double in_unit(const struct diff *d, int side, uint64_t ns)
{
	return d->side[side].whole > 0 ? (double)ns / d->side[side].whole : 0;
}

static void set_values(struct diff *d)
{
	for (size_t i = 0; i < d->n_functions; i++)
		for (int s = 0; s < 2; s++) {
			d->functions[i].self.v[s] = in_unit(d, s, d->functions[i].self.ns[s]);
			d->functions[i].total.v[s] = in_unit(d, s, d->functions[i].total.ns[s]);
		}
}

static void release_parts(struct diffing *d)
{
	idmap_release(&d->function_of);
	if (d->node[1] != d->node[0])
		free(d->node[1]);
	free(d->node[0]);
	d->node[0] = d->node[1] = NULL;
	free(d->end);
	free(d->outer);
	free(d->edge);
	free(d->edges);
	free(d->function[0]);
	free(d->function[1]);
	free(d->column_from);
	free(d->column_scale);
	free(d->self_series);
	free(d->total_series);
	free(d->edge_series);
}

int diff_make(const struct fold *before, const struct fold *after, enum diff_per per, double alpha,
	      struct diff **out, struct err *e)
{
	struct diffing *d = mem_alloc(sizeof(*d));
	struct diff_series *series;
	struct worker other;

	d->pub.per = per;
	d->pub.alpha = alpha;
	side_init(&d->pub.side[DIFF_BEFORE], before, per);
	side_init(&d->pub.side[DIFF_AFTER], after, per);
	if (before->kind != after->kind) {
		free(d);
		err_set(e, -EINVAL, EXIT_USAGE,
			"before is %s, after is %s: different kinds cannot be compared",
			before->kind->what, after->kind->what);
		err_fix(e, "sonde diff --type %s ...", after->kind->name);
		return -EINVAL;
	}
	if (per == DIFF_PER_SECOND && (d->pub.side[0].whole <= 0 || d->pub.side[1].whole <= 0)) {
		free(d);
		err_set(e, -EINVAL, EXIT_USAGE,
			"one of the profiles has no duration, so they cannot be compared per second");
		err_fix(e, "sonde diff --per sample ...");
		return -EINVAL;
	}
	d->pub.names_only = !fold_has_modules(before) || !fold_has_modules(after);
	if (diff_is_flat(d)) {
		diff_flat_make(d);
		set_values(&d->pub);
		series = diff_series_new(d);
	} else {
		diff_nodes_make(d);
		series = diff_series_new(d);
		worker_start(&other, diff_series_sort, series);
		diff_nodes_sum(d);
		diff_outer_find(d);
		sum_functions(d);
		set_values(&d->pub);
		diff_edges_make(d);
		worker_join(&other);
	}
	d->pub.by_slices = diff_series_make(d, series);
	diff_test(d);
	release_parts(d);
	*out = &d->pub;
	return 0;
}

const char *diff_unit(const struct diff *d)
{
	static const char *const rates[] = {
		[STORE_SAMPLES] = "samples per second", [STORE_EVENTS] = "events per second",
		[STORE_OBJECTS] = "objects per second", [STORE_TIME] = "seconds per second",
		[STORE_BYTES] = "bytes per second",
	};
	const struct fold *f = d->side[DIFF_AFTER].f;

	if (d->per == DIFF_PER_SAMPLE)
		return "share";
	if (is_gauge(f))
		return store_unit_name(f->unit);
	return fold_is_cores(f) ? "cores" : rates[f->unit];
}

void diff_free(struct diff *d)
{
	if (!d)
		return;
	free(d->functions);
	free(d->nodes);
	free(d->callers);
	free(d);
}

void diff_shed(struct diff *d)
{
	free(d->nodes);
	d->nodes = NULL;
	d->n_nodes = 0;
}

double diff_percent(const struct diff_value *v)
{
	return v->v[0] > 0 ? 100 * (v->v[1] - v->v[0]) / v->v[0] : NAN;
}

static int by_change(const void *a, const void *b, void *ctx)
{
	const struct diff_function *fs = ctx, *x = &fs[*(const uint32_t *)a],
				   *y = &fs[*(const uint32_t *)b];
	bool sure_x = x->self.significant || x->total.significant,
	     sure_y = y->self.significant || y->total.significant;
	double self_x = fabs(x->self.v[1] - x->self.v[0]),
	       self_y = fabs(y->self.v[1] - y->self.v[0]);
	double total_x = fabs(x->total.v[1] - x->total.v[0]),
	       total_y = fabs(y->total.v[1] - y->total.v[0]);

	if (sure_x != sure_y)
		return sure_x ? -1 : 1;
	if (self_x != self_y)
		return self_x > self_y ? -1 : 1;
	if (total_x != total_y)
		return total_x > total_y ? -1 : 1;
	return strcmp(x->frame->name, y->frame->name);
}

uint32_t *diff_movers(const struct diff *d, size_t *n)
{
	uint32_t *v = mem_array(d->n_functions, sizeof(*v));

	*n = 0;
	for (uint32_t i = 1; i < d->n_functions; i++) {
		const struct diff_function *f = &d->functions[i];

		if (f->self.v[0] != f->self.v[1] || f->total.v[0] != f->total.v[1] || f->n_callers)
			v[(*n)++] = i;
	}
	if (*n)
		qsort_r(v, *n, sizeof(*v), by_change, d->functions);
	return v;
}
