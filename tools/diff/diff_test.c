/* SPDX-License-Identifier: Apache-2.0 */
/* diff_test: which of the differences are more than noise. diff.h says what is tested, and how it
 * is adjusted. */
#include <math.h>
#include <stdlib.h>

#include "schema/base/worker.h"
#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "tools/diff/diff_parts.h"
#include "tools/diff/stats.h"

#define SHIFT_ALPHA 0.01

/* Parts of the error budget, and how a part is shared out. */
static const double SELF_PART = 0.62, TOTAL_PART = 0.1, CALLER_PART = 0.08, EQUAL = 0.25;

struct test {
	double p, q, se, df, weight;
	bool done;
};

/* What one sample adds to the mean of a side. */
static double unit_of(const struct diff *d, int side, const uint64_t ns[2],
		      const uint64_t samples[2])
{
	double whole = d->side[side].whole;
	uint64_t n = samples[0] + samples[1];

	return n && whole > 0 ? ((double)ns[0] + (double)ns[1]) / (double)n / whole : 0;
}

static size_t seen_in(const double *x, size_t n)
{
	size_t k = 0;

	for (size_t i = 0; i < n; i++)
		k += x[i] > 0;
	return k;
}

static void by_slices(const struct diffing *d, const float *row, const uint64_t ns[2],
		      const uint64_t samples[2], struct test *t)
{
	double a[DIFF_SLICES], b[DIFF_SLICES];
	size_t n_a = d->pub.side[0].n_slices, n_b = d->pub.side[1].n_slices;
	struct stats_test s;

	for (size_t i = 0; i < n_a; i++)
		a[i] = row[i] * d->column_scale[i];
	for (size_t i = 0; i < n_b; i++)
		b[i] = row[d->second + i] * d->column_scale[d->second + i];
	stats_welch(a, n_a, unit_of(&d->pub, 0, ns, samples), b, n_b,
		    unit_of(&d->pub, 1, ns, samples), &s);
	*t = (struct test){.p = s.p, .se = s.se, .df = s.df};
	if (!samples[0] || !samples[1])
		t->p = samples[1] ? stats_presence(seen_in(b, n_b), n_b, n_a) :
				    stats_presence(seen_in(a, n_a), n_a, n_b);
}

/* The error of a rate is that of its count. */
static void by_counts(const struct diff *d, const uint64_t ns[2], const uint64_t samples[2],
		      struct test *t)
{
	double e[2], unit[2], v = 0;

	for (int s = 0; s < 2; s++) {
		e[s] = d->per == DIFF_PER_SECOND ? d->side[s].seconds : (double)d->side[s].samples;
		unit[s] = unit_of(d, s, ns, samples);
		v += unit[s] * unit[s] * ((double)samples[s] + 1);
	}
	t->p = stats_counts((double)samples[0], (double)samples[1], e[1] / (e[0] + e[1]));
	t->se = sqrt(v);
	t->df = 1e6;
}

static void test_one(const struct diffing *d, const float *row, const uint64_t ns[2],
		     const uint64_t samples[2], struct test *t)
{
	*t = (struct test){.p = 1, .q = 1};
	if (samples[0] + samples[1] < DIFF_LEAST)
		return;
	if (d->pub.by_slices)
		by_slices(d, row, ns, samples, t);
	else
		by_counts(&d->pub, ns, samples, t);
	t->done = true;
	t->q = 1;
	t->weight = (double)(samples[0] + samples[1]);
}

/* q of all that is done, as a rate over the whole answer: `part` of the budget is this family's. */
static void adjust(struct test *t, size_t n, double part)
{
	cleanup_free double *p = mem_array(n + 1, sizeof(*p));
	cleanup_free double *w = mem_array(n + 1, sizeof(*w));
	cleanup_free double *q = mem_array(n + 1, sizeof(*q));
	double sum = 0;
	size_t m = 0, k = 0;

	for (size_t i = 0; i < n; i++)
		if (t[i].done) {
			sum += t[i].weight;
			m++;
		}
	for (size_t i = 0; i < n; i++)
		if (t[i].done) {
			t[i].weight = EQUAL / (double)m + (1 - EQUAL) * t[i].weight / sum;
			p[k] = t[i].p;
			w[k++] = t[i].weight;
		}
	stats_adjust(p, w, m, q);
	k = 0;
	for (size_t i = 0; i < n; i++)
		if (t[i].done)
			t[i].q = fmin(1, q[k++] / part);
}

static void keep(struct diff_value *v, const struct test *t, double alpha, double part,
		 size_t found)
{
	v->tested = t->done;
	v->p = t->p;
	v->q = t->q;
	v->significant = t->done && t->q <= alpha;
	if (!t->done)
		return;
	v->se = t->se;
	v->df = t->df;
	v->level = alpha * part * t->weight * (double)(found ? found : 1);
}

double diff_detectable(const struct diff_value *v)
{
	return v->tested ? stats_detectable(v->se, v->df, v->level) : 0;
}

static size_t found_in(const struct test *t, size_t n, double alpha)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += t[i].done && t[i].q <= alpha;
	return found;
}

static struct diff_value *value_of(struct diff_function *f, bool total)
{
	return total ? &f->total : &f->self;
}

static void test_functions(struct diffing *d, bool total, double part)
{
	struct diff *pub = &d->pub;
	cleanup_free struct test *t = mem_array(pub->n_functions, sizeof(*t));
	const float *series = total ? d->total_series : d->self_series;
	size_t found;

	t[0].p = t[0].q = 1;
	for (size_t i = 1; i < pub->n_functions; i++) {
		const struct diff_value *v = value_of(&pub->functions[i], total);

		test_one(d, series ? series + i * d->stride : NULL, v->ns, v->samples, &t[i]);
	}
	adjust(t, pub->n_functions, part);
	found = found_in(t, pub->n_functions, pub->alpha);
	for (size_t i = 1; i < pub->n_functions; i++)
		keep(value_of(&pub->functions[i], total), &t[i], pub->alpha, part, found);
}

static void test_selves(void *ctx)
{
	test_functions(ctx, false, SELF_PART);
}

/* The total is tested separately. As a share it is always the whole. */
static void test_all(struct diffing *d)
{
	struct diff_value *v = &d->pub.functions[0].total;
	struct test t;

	d->pub.functions[0].self.p = d->pub.functions[0].self.q = v->p = v->q = 1;
	if (d->pub.per == DIFF_PER_SAMPLE)
		return;
	test_one(d, d->total_series, v->ns, v->samples, &t);
	t.q = t.p;
	t.weight = 1;
	keep(v, &t, d->pub.alpha, 1, 1);
}

static int by_function(const void *a, const void *b)
{
	const struct diff_caller *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->caller < y->caller ? -1 : x->caller > y->caller;
}

static void test_callers(struct diffing *d)
{
	cleanup_free struct test *t = mem_array(d->n_edges + 1, sizeof(*t));
	struct diff *pub = &d->pub;

	for (size_t i = 0; i < d->n_edges; i++) {
		const struct diff_edge *x = &d->edges[i];
		const struct diff_function *f = &pub->functions[x->function];
		int side = x->samples[1] ? 1 : 0;
		uint64_t n = f->total.samples[side], ns[2] = {0, 0};

		ns[side] = n ? (uint64_t)((double)f->total.ns[side] * (double)x->samples[side] /
					  (double)n) :
			       0;
		test_one(d, d->edge_series ? d->edge_series + i * d->stride : NULL, ns, x->samples,
			 &t[i]);
	}
	adjust(t, d->n_edges, CALLER_PART);
	for (size_t i = 0; i < d->n_edges; i++) {
		const struct diff_edge *x = &d->edges[i];

		mem_grow(pub->callers, pub->n_callers, d->cap_callers);
		pub->callers[pub->n_callers++] = (struct diff_caller){
			.caller = x->caller,
			.function = x->function,
			.samples = x->samples[0] + x->samples[1],
			.gone = x->samples[0] > 0,
			.significant = t[i].done && t[i].q <= pub->alpha,
			.p = t[i].p,
			.q = t[i].q,
		};
	}
	if (pub->n_callers)
		qsort(pub->callers, pub->n_callers, sizeof(*pub->callers), by_function);
	for (uint32_t i = (uint32_t)pub->n_callers; i-- > 0;) {
		pub->functions[pub->callers[i].function].callers = i;
		pub->functions[pub->callers[i].function].n_callers++;
	}
}

/* Do the slices of after follow those of before? */
static bool in_one_row(const struct diff *d)
{
	const struct fold *a = d->side[0].f, *b = d->side[1].f;
	int64_t gap = b->slices[0].from_ns - a->slices[a->n_slices - 1].to_ns;

	/* slices of whole files are as long as the longest file */
	return gap >= 0 && gap <= a->slice_ns &&
	       llabs(b->slice_ns - a->slice_ns) <= a->slice_ns / 10;
}

static void find_since(struct diffing *d, struct diff_function *f, const float *row,
		       const struct diff_value *v)
{
	double x[2 * DIFF_SLICES], unit = unit_of(&d->pub, 1, v->ns, v->samples);
	size_t n = 0, of_before = in_one_row(&d->pub) ? d->pub.side[0].n_slices : 0, at;
	struct stats_shift s;

	for (size_t i = 0; i < of_before; i++)
		x[n++] = row[i] * d->column_scale[i];
	for (size_t i = d->second; i < d->second + d->pub.side[1].n_slices; i++)
		x[n++] = row[i] * d->column_scale[i];
	if (!stats_find_shift(x, n, unit, &s) || s.p > SHIFT_ALPHA ||
	    (s.after > s.before) != (v->v[1] > v->v[0]))
		return;
	at = s.at < of_before ? s.at : d->second + s.at - of_before;
	f->since_ns = d->column_from[at];
}

void diff_test(struct diffing *d)
{
	struct diff *pub = &d->pub;
	struct worker other;

	worker_start(&other, test_selves, d);
	test_functions(d, true, TOTAL_PART);
	worker_join(&other);
	test_callers(d);
	test_all(d);
	for (size_t i = 0; i < pub->n_functions; i++) {
		struct diff_function *f = &pub->functions[i];
		bool self = f->self.significant, total = f->total.significant;

		pub->n_tested += i && (f->self.tested || f->total.tested);
		pub->n_significant += i && (self || total);
		if (pub->by_slices && (self || total))
			find_since(d, f, (self ? d->self_series : d->total_series) + i * d->stride,
				   self ? &f->self : &f->total);
	}
}
