/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/import_tell.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"
#include "tools/print/json.h"

/* 2001: what is before is no time of the day, but since some boot */
#define OLDEST_NS  (1000000000ll * NSEC_PER_SEC)
#define STACK_MAX  2048  /* the deepest that sonde-import takes */
#define BUCKET_MAX 86400 /* s, that sonde-import takes */
#define SPAN_MAX \
	((double)IMPORT_BUCKETS * BUCKET_MAX * NSEC_PER_SEC) /* of a span that is reckoned */

static bool has_time(const struct fold *f)
{
	return f->unit == STORE_TIME;
}

static bool is_cpu(const struct fold *f)
{
	return f->kind->kind == STORE_KIND_CPU;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static bool divides_all(const struct fold *f, uint64_t period)
{
	for (size_t i = 0; i < f->n_leaves; i++)
		if (f->leaves[i].ns % period)
			return false;
	return true;
}

/* The file's period, or the mean sample, where every leaf is a multiple of it. Else the largest
 * time that every leaf is a multiple of: the store counts samples of one length. */
static uint64_t period_of(const struct fold *f, uint64_t hz, bool *divided)
{
	const struct fold_node *all = &f->nodes[0];
	const uint64_t parts = f->parts ? f->parts : 1;
	uint64_t period = 0;

	*divided = false;
	if (!has_time(f))
		return NSEC_PER_SEC / hz > parts ? NSEC_PER_SEC / hz / parts : 1;
	if (f->period_ns)
		period = f->period_ns;
	else if (all->total_samples)
		period = all->total_ns / all->total_samples;
	if (period && divides_all(f, period))
		return period;
	*divided = true;
	period = 0;
	for (size_t i = 0; i < f->n_leaves && period != 1; i++)
		period = gcd(period, f->leaves[i].ns);
	return period ? period : 1;
}

static int64_t span_of(const struct fold *f, const struct import_when *w)
{
	int64_t span = f->to_ns > f->from_ns ? f->to_ns - f->from_ns : 0;
	double work;

	/* perf's samples have times, but no duration */
	if (!f->period_ns && f->slice_ns)
		for (size_t i = 0; i < f->n_leaves; i++) {
			int64_t end = (f->leaves[i].slice + 1) * NSEC_PER_SEC;

			span = end > span ? end : span;
		}
	if (span || !is_cpu(f))
		return span;
	work = has_time(f) ? (double)f->nodes[0].total_ns :
			     (double)f->nodes[0].total_samples * (double)w->period_ns;
	return work < SPAN_MAX ? (int64_t)work : (int64_t)SPAN_MAX;
}

void import_plan(const struct fold *f, int64_t to_ns, uint64_t hz, struct import_when *out)
{
	int64_t span, bucket_ns, end = to_ns;

	*out = (struct import_when){0};
	out->period_ns = is_cpu(f) ? period_of(f, hz, &out->divided) : 0;
	span = span_of(f, out);
	if (f->from_ns > OLDEST_NS)
		end = f->from_ns + span;
	out->bucket_s = span / IMPORT_BUCKETS / NSEC_PER_SEC < BUCKET_MAX ?
				(uint32_t)(span / IMPORT_BUCKETS / NSEC_PER_SEC) + 1 :
				BUCKET_MAX;
	bucket_ns = out->bucket_s * NSEC_PER_SEC;
	out->from_ns = (end - span) / bucket_ns * bucket_ns;
	out->to_ns = out->from_ns + (span ? span : bucket_ns);
	out->buckets = (uint32_t)((out->to_ns - out->from_ns + bucket_ns - 1) / bucket_ns);
}

static void put(json_t *o, FILE *out)
{
	json_dumpf(o, out, JSON_COMPACT); /* a stream that refuses bytes says so at the end */
	fputc('\n', out);
	json_decref(o);
}

void import_tell_run(const struct import_when *w, const char *options, FILE *out)
{
	json_t *o = json_object();

	json_object_set_new(o, "run", json_text(options));
	json_object_set_new(o, "from_ns", json_integer(w->from_ns));
	json_object_set_new(o, "to_ns", json_integer(w->to_ns));
	json_object_set_new(o, "bucket_s", json_integer(w->bucket_s));
	json_object_set_new(o, "period_ns", json_integer((json_int_t)w->period_ns));
	put(o, out);
}

static void set_text(json_t *o, const char *key, const char *s)
{
	if (s && *s)
		json_object_set_new(o, key, json_text(s));
}

static void tell_frame(const struct fold_frame *fr, FILE *out)
{
	json_t *o = json_object();

	json_object_set_new(o, "frame", json_text(fr->name));
	set_text(o, "module", fr->module);
	set_text(o, "path", fr->module_path);
	set_text(o, "build_id", fr->build_id);
	set_text(o, "file", fr->file);
	json_object_set_new(o, "line", json_integer(fr->line));
	json_object_set_new(o, "offset", json_integer((json_int_t)(fr->offset & INT64_MAX)));
	if (fr->origin == FOLD_KERNEL)
		json_object_set_new(o, "kernel", json_true());
	if (fr->origin == FOLD_JIT)
		json_object_set_new(o, "jit", json_true());
	if (fr->inlined)
		json_object_set_new(o, "inlined", json_true());
	if (!fr->named && fr->offset) /* then its name is made of its place */
		json_object_set_new(o, "unnamed", json_true());
	put(o, out);
}

static void tell_process(const struct fold_process *p, const char *name, FILE *out)
{
	json_t *o = json_object();

	json_object_set_new(o, "process", json_text(p->comm && *p->comm ? p->comm : name));
	json_object_set_new(o, "pid", json_integer(p->pid));
	json_object_set_new(o, "ppid", json_integer(p->ppid));
	json_object_set_new(o, "uid", json_integer(p->uid));
	json_object_set_new(o, "start_ns", json_integer(p->start_ns > OLDEST_NS ? p->start_ns : 0));
	set_text(o, "exe", p->exe);
	set_text(o, "args", p->args);
	set_text(o, "unit", p->unit);
	set_text(o, "container", p->container);
	set_text(o, "container_id", p->container_id);
	set_text(o, "image", p->container_image);
	put(o, out);
}

/* --- leaves --- */

struct telling {
	const struct fold *f;
	const struct import_when *w;
	uint32_t frames; /* told before */
	FILE *out;
};

static json_t *stack_json(const struct telling *t, uint32_t node)
{
	uint32_t path[STACK_MAX];
	json_t *list = json_array();
	size_t n = 0;

	for (; node && n < STACK_MAX; node = t->f->nodes[node].parent)
		path[n++] = t->f->nodes[node].frame;
	while (n--)
		json_array_append_new(list, json_integer(t->frames + path[n]));
	return list;
}

static void add_time(json_t *times, int64_t at_ns, uint64_t n, uint64_t value)
{
	json_array_append_new(times, json_integer(at_ns));
	json_array_append_new(times, json_integer((json_int_t)n));
	json_array_append_new(times, json_integer((json_int_t)value));
}

/* Evenly: each bucket has what is due at its end and was not told yet. */
static void spread(const struct telling *t, json_t *times, uint64_t n, uint64_t value)
{
	const int64_t bucket_ns = t->w->bucket_s * NSEC_PER_SEC;
	const uint64_t buckets = t->w->buckets;
	uint64_t n_told = 0, value_told = 0;

	for (uint64_t i = 0; i < buckets; i++) {
		uint64_t n_due = (uint64_t)((unsigned __int128)n * (i + 1) / buckets);
		uint64_t value_due = (uint64_t)((unsigned __int128)value * (i + 1) / buckets);

		if (n_due > n_told || value_due > value_told)
			add_time(times, t->w->from_ns + (int64_t)i * bucket_ns, n_due - n_told,
				 value_due - value_told);
		n_told = n_due;
		value_told = value_due;
	}
}

/* What the store counts for a leaf. */
static uint64_t samples_of(const struct fold *f, const struct import_when *w, uint64_t samples,
			   uint64_t ns)
{
	return is_cpu(f) && has_time(f) ? (ns + w->period_ns / 2) / w->period_ns : samples;
}

static void tell_leaf(const struct telling *t, const struct fold_leaf *l, uint64_t samples,
		      uint64_t ns)
{
	const struct fold *f = t->f;
	json_t *add = json_object(), *times = json_array();
	const uint64_t n = samples_of(f, t->w, samples, ns);

	json_object_set_new(add, "add", json_string(f->kind->name));
	json_object_set_new(add, "process", json_integer(l->process));
	set_text(add, "thread", l->thread);
	set_text(add, "labels", l->labels);
	json_object_set_new(add, "tid", json_integer(l->tid));
	json_object_set_new(add, "label", json_integer(l->label));
	json_object_set_new(add, "stack", stack_json(t, l->node));
	if (f->kind->class == STORE_GAUGE)
		add_time(times,
			 t->w->from_ns + (t->w->buckets - 1) * (t->w->bucket_s * NSEC_PER_SEC), n,
			 ns);
	else if (f->slice_ns && !f->n_slices)
		add_time(times, t->w->from_ns + l->slice * NSEC_PER_SEC, n, ns);
	else
		spread(t, times, n, ns);
	json_object_set_new(add, "times", times);
	put(add, t->out);
}

static int by_series(const void *a, const void *b, void *ctx)
{
	const struct fold_leaf *leaves = ctx, *x = &leaves[*(const uint32_t *)a],
			       *y = &leaves[*(const uint32_t *)b];

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	if (x->slice != y->slice)
		return x->slice < y->slice ? -1 : 1;
	if (x->labels != y->labels) {
		const int c = strcmp(x->labels ? x->labels : "", y->labels ? y->labels : "");

		if (c)
			return c;
	}
	return strcmp(x->thread ? x->thread : "", y->thread ? y->thread : "");
}

void import_tell(const struct fold *f, const struct import_when *w, const char *name,
		 uint32_t *frames, FILE *out)
{
	const struct telling t = {.f = f, .w = w, .frames = *frames, .out = out};
	cleanup_free uint32_t *order = mem_array(f->n_leaves + 1, sizeof(*order));

	for (size_t i = 0; i < f->n_frames; i++)
		tell_frame(&f->frames[i], out);
	for (size_t i = 0; i < f->n_processes && !*frames; i++)
		tell_process(&f->processes[i], name, out);
	*frames += (uint32_t)f->n_frames;
	for (uint32_t i = 0; i < f->n_leaves; i++)
		order[i] = i;
	if (f->n_leaves)
		qsort_r(order, f->n_leaves, sizeof(*order), by_series, f->leaves);
	for (size_t i = 0, k; i < f->n_leaves; i = k) {
		uint64_t samples = 0, ns = 0;

		for (k = i; k < f->n_leaves && !by_series(&order[i], &order[k], f->leaves); k++) {
			samples += f->leaves[order[k]].samples;
			ns += f->leaves[order[k]].ns;
		}
		tell_leaf(&t, &f->leaves[order[i]], samples, ns);
	}
}

uint64_t import_cut(const struct fold *f)
{
	cleanup_free uint32_t *depth = mem_array(f->n_nodes + 1, sizeof(*depth));
	uint64_t n = 0;

	for (size_t i = 1; i < f->n_nodes; i++)
		depth[i] = depth[f->nodes[i].parent] + 1;
	for (size_t i = 0; i < f->n_leaves; i++)
		n += depth[f->leaves[i].node] > STACK_MAX;
	return n;
}

uint64_t import_samples(const struct fold *f, const struct import_when *w)
{
	uint64_t n = 0;

	for (size_t i = 0; i < f->n_leaves; i++)
		n += samples_of(f, w, f->leaves[i].samples, f->leaves[i].ns);
	return n;
}
