/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/json_read.h"

#include <ctype.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "tools/fold/fold_build.h"

#define BYTES_MAX (128u << 20) /* a tree of JSON takes several times as much */
#define DEPTH_MAX 2048
#define NODES_MAX (4u << 20)
#define SUM_MAX   4e18
#define PARTS     1000

struct reading {
	struct fold_build *b;
	const struct fold_opts *o;
	const char *why;
	uint32_t process;
	const char *thread;
	uint32_t tid;
	double sum;
	/* speedscope */
	uint32_t *frames;
	size_t n_frames;
	double scale;    /* of a weight, to ns, bytes or parts of a sample */
	int64_t span_ns; /* the longest profile */
};

static void wrong(struct reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
}

static const char *text_of(struct reading *r, const json_t *v)
{
	return fold_text(r->b, json_is_string(v) ? json_string_value(v) : "");
}

static struct fold_frame frame_named(struct reading *r, const char *name)
{
	const char *none = fold_text(r->b, "");

	return (struct fold_frame){.name = *name ? name : fold_text(r->b, "[unknown]"),
				   .module = none,
				   .module_path = none,
				   .build_id = none,
				   .file = none,
				   .named = *name != '\0'};
}

static uint32_t line_of(const json_t *v)
{
	const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;

	return n > 0 && n < INT32_MAX ? (uint32_t)n : 0;
}

/* A weight that was scaled already. */
static void add(struct reading *r, uint32_t node, double value)
{
	uint64_t n;

	if (!(value >= 0) || r->sum + value > SUM_MAX) {
		wrong(r, value < 0 ? "it has a negative weight" : "its values are too large");
		return;
	}
	r->sum += value;
	n = (uint64_t)llround(value);
	if (!n)
		return;
	if (r->b->pub.n_nodes > NODES_MAX || r->b->pub.n_leaves > NODES_MAX) {
		wrong(r, "it is too large");
		return;
	}
	r->b->pub.nodes[node].self_ns += n;
	r->b->pub.nodes[node].self_samples += r->b->pub.unit == STORE_SAMPLES ? n : 1;
	r->b->pub.processes[r->process].ns += n;
	r->b->pub.processes[r->process].samples += r->b->pub.unit == STORE_SAMPLES ? n : 1;
	if (r->o->leaves)
		fold_add_leaf(r->b, &(struct fold_leaf){
					    .node = node,
					    .process = r->process,
					    .thread = r->thread,
					    .tid = r->tid,
					    .samples = r->b->pub.unit == STORE_SAMPLES ? n : 1,
					    .ns = n});
}

static uint32_t process_of(struct reading *r, uint32_t pid, const char *comm)
{
	const uint64_t identity = hash_str(hash_u64(HASH_SEED, pid), comm);
	const char *none = fold_text(r->b, "");
	uint32_t i;

	if (fold_known_process(r->b, identity, &i))
		return i;
	return fold_add_process(r->b, identity,
				&(struct fold_process){.pid = pid,
						       .comm = comm,
						       .exe = none,
						       .args = none,
						       .container = none,
						       .container_id = none});
}

/* --- speedscope --- */

static double unit_scale(const char *unit)
{
	static const struct {
		const char *name;
		double scale;
	} units[] = {{"nanoseconds", 1}, {"microseconds", 1e3}, {"milliseconds", 1e6},
		     {"seconds", 1e9},   {"bytes", 1},          {"none", PARTS}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name))
			return units[i].scale;
	return 0;
}

static void scope_frames(struct reading *r, const json_t *list)
{
	r->n_frames = json_array_size(list);
	r->frames = mem_array(r->n_frames + 1, sizeof(*r->frames));
	for (size_t i = 0; i < r->n_frames; i++) {
		const json_t *v = json_array_get(list, i);
		struct fold_frame fr = frame_named(r, text_of(r, json_object_get(v, "name")));

		fr.file = text_of(r, json_object_get(v, "file"));
		fr.line = line_of(json_object_get(v, "line"));
		r->frames[i] = fold_add_frame(r->b, &fr);
	}
}

static uint32_t scope_child(struct reading *r, uint32_t node, const json_t *v)
{
	const json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;

	if (i >= 0 && (size_t)i < r->n_frames)
		return fold_child(r->b, node, r->frames[i]);
	wrong(r, "a stack has a frame that is not in shared.frames");
	return node;
}

static void scope_sampled(struct reading *r, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples"),
		     *weights = json_object_get(profile, "weights");

	for (size_t i = 0; i < json_array_size(samples) && !r->why; i++) {
		const json_t *stack = json_array_get(samples, i),
			     *weight = json_array_get(weights, i);
		uint32_t node = 0;

		if (!json_is_number(weight) || json_array_size(stack) > DEPTH_MAX)
			wrong(r, "a sample has no weight, or too many frames");
		for (size_t k = 0; k < json_array_size(stack) && !r->why; k++)
			node = scope_child(r, node, json_array_get(stack, k));
		if (!r->why)
			add(r, node, json_number_value(weight) * r->scale);
	}
}

static void scope_evented(struct reading *r, const json_t *profile)
{
	const json_t *events = json_object_get(profile, "events");
	cleanup_free uint32_t *stack = mem_array(DEPTH_MAX + 1, sizeof(*stack));
	double last = 0;
	size_t depth = 0;

	stack[0] = 0;
	for (size_t i = 0; i < json_array_size(events) && !r->why; i++) {
		const json_t *v = json_array_get(events, i), *at = json_object_get(v, "at");
		const char *type = text_of(r, json_object_get(v, "type"));

		if (!json_is_number(at) || (*type != 'O' && (*type != 'C' || !depth)) ||
		    depth >= DEPTH_MAX) {
			wrong(r, "its events do not open and close frames");
			break;
		}
		if (depth)
			add(r, stack[depth], (json_number_value(at) - last) * r->scale);
		last = json_number_value(at);
		if (*type == 'C') {
			depth--;
			continue;
		}
		stack[depth + 1] = scope_child(r, stack[depth], json_object_get(v, "frame"));
		depth++;
	}
}

static void scope_profile(struct reading *r, const json_t *p)
{
	const double span = (json_number_value(json_object_get(p, "endValue")) -
			     json_number_value(json_object_get(p, "startValue"))) *
			    r->scale;

	if (r->b->pub.unit == STORE_TIME && span > (double)r->span_ns && span < (double)SUM_MAX)
		r->span_ns = (int64_t)span;
	r->thread = text_of(r, json_object_get(p, "name"));
	if (!strcmp(text_of(r, json_object_get(p, "type")), "evented"))
		scope_evented(r, p);
	else
		scope_sampled(r, p);
}

/* Counts are in thousandths: whole ones where none has a fraction. */
static void reduce(struct fold *f)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		if (f->nodes[i].self_ns % PARTS) {
			f->parts = PARTS;
			return;
		}
	for (size_t i = 0; i < f->n_leaves; i++)
		if (f->leaves[i].ns % PARTS) {
			f->parts = PARTS;
			return;
		}
	for (size_t i = 0; i < f->n_nodes; i++)
		f->nodes[i].self_ns = f->nodes[i].self_samples /= PARTS;
	for (size_t i = 0; i < f->n_leaves; i++)
		f->leaves[i].ns = f->leaves[i].samples /= PARTS;
	for (size_t i = 0; i < f->n_processes; i++)
		f->processes[i].ns = f->processes[i].samples /= PARTS;
}

static void read_scope(struct reading *r, const json_t *root)
{
	const json_t *profiles = json_object_get(root, "profiles");
	const char *unit = text_of(r, json_object_get(json_array_get(profiles, 0), "unit"));
	struct fold *f = &r->b->pub;

	r->scale = unit_scale(unit);
	if (!(r->scale > 0)) {
		wrong(r, "its first profile has no unit of speedscope's");
		return;
	}
	if (!strcmp(unit, "bytes")) {
		f->kind = store_kind_info(r->o->kind);
		if (!f->kind || !f->kind->sized) {
			wrong(r,
			      "it holds bytes, and does not say of what: --type alloc or --type inuse");
			return;
		}
		f->no_count = true;
	}
	f->unit = !strcmp(unit, "none") ? STORE_SAMPLES : f->kind->unit_value;
	scope_frames(r, json_object_get(json_object_get(root, "shared"), "frames"));
	r->process = process_of(r, 0, fold_text(r->b, ""));
	for (size_t i = 0; i < json_array_size(profiles) && !r->why; i++) {
		const json_t *p = json_array_get(profiles, i);

		if (!strcmp(text_of(r, json_object_get(p, "unit")), unit))
			scope_profile(r, p);
		else
			fold_add_loss(r->b,
				      &(struct fold_loss){
					      .reason = "another unit",
					      .n = json_array_size(json_object_get(p, "samples"))});
	}
	if (f->unit == STORE_SAMPLES)
		reduce(f);
	f->to_ns = r->span_ns;
}

/* --- Firefox Profiler --- */

struct gecko {
	const json_t *root, *shared, *thread;
	double interval_ns, start_ms, cpu_scale;
	double first_ms, last_ms;
};

/* A table or list of the thread; newer files share them. */
static const json_t *table(const struct gecko *g, const char *name)
{
	const json_t *t = json_object_get(g->thread, name);

	return t ? t : json_object_get(g->shared, name);
}

/* A column's number; -1: null, or not there. */
static json_int_t column(const json_t *t, const char *name, size_t i)
{
	const json_t *v = json_array_get(json_object_get(t, name), i);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : -1;
}

static const char *string_at(struct reading *r, const struct gecko *g, json_int_t i)
{
	const json_t *list = table(g, "stringArray");

	list = list ? list : table(g, "stringTable");
	return text_of(r, i < 0 ? NULL : json_array_get(list, (size_t)i));
}

static struct fold_frame gecko_frame(struct reading *r, const struct gecko *g, json_int_t frame)
{
	const json_t *frames = table(g, "frameTable"), *funcs = table(g, "funcTable");
	const json_int_t func = frame < 0 ? -1 : column(frames, "func", (size_t)frame);
	struct fold_frame fr = frame_named(r, fold_text(r->b, ""));
	json_int_t resource;

	if (func < 0)
		return fr;
	fr = frame_named(r, string_at(r, g, column(funcs, "name", (size_t)func)));
	fr.file = string_at(r, g, column(funcs, "fileName", (size_t)func));
	fr.line = line_of(json_array_get(json_object_get(frames, "line"), (size_t)frame));
	resource = column(funcs, "resource", (size_t)func);
	if (resource >= 0)
		fr.module = string_at(r, g,
				      column(table(g, "resourceTable"), "name", (size_t)resource));
	if (!strncmp(fr.module, "[kernel", 7)) {
		fr.module = fold_text(r->b, "[kernel]");
		fr.origin = FOLD_KERNEL;
	}
	return fr;
}

/* The node of each stack; a stack's prefix comes before it. */
static uint32_t *gecko_stacks(struct reading *r, const struct gecko *g, size_t *n)
{
	const json_t *stacks = table(g, "stackTable");
	uint32_t *nodes;

	*n = json_array_size(json_object_get(stacks, "frame"));
	nodes = mem_array(*n + 1, sizeof(*nodes));
	for (size_t i = 0; i < *n && !r->why; i++) {
		const json_int_t prefix = column(stacks, "prefix", i);
		const struct fold_frame fr = gecko_frame(r, g, column(stacks, "frame", i));

		if (prefix >= (json_int_t)i || r->b->pub.n_nodes > NODES_MAX)
			wrong(r, "a stack comes before its prefix, or there are too many");
		else
			nodes[i] = fold_child(r->b, prefix < 0 ? 0 : nodes[prefix],
					      fold_add_frame(r->b, &fr));
	}
	return nodes;
}

static uint32_t number_of(const json_t *v)
{
	const double n =
		json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);

	return n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
}

static void gecko_times(struct gecko *g, const json_t *samples, size_t i, double *at_ms)
{
	const json_t *time = json_array_get(json_object_get(samples, "time"), i),
		     *delta = json_array_get(json_object_get(samples, "timeDeltas"), i);

	*at_ms = json_is_number(time) ? json_number_value(time) : *at_ms + json_number_value(delta);
	if (g->first_ms < 0 || *at_ms < g->first_ms)
		g->first_ms = *at_ms;
	if (*at_ms > g->last_ms)
		g->last_ms = *at_ms;
}

static void gecko_thread(struct reading *r, struct gecko *g, const json_t *thread)
{
	const json_t *samples = json_object_get(thread, "samples"), *stacks, *cpu, *weights;
	cleanup_free uint32_t *nodes = NULL;
	double at_ms = 0;
	size_t n;

	g->thread = thread;
	nodes = gecko_stacks(r, g, &n);
	r->process = process_of(r, number_of(json_object_get(thread, "pid")),
				text_of(r, json_object_get(thread, "processName")));
	r->thread = text_of(r, json_object_get(thread, "name"));
	r->tid = number_of(json_object_get(thread, "tid"));
	stacks = json_object_get(samples, "stack");
	cpu = g->cpu_scale > 0 ? json_object_get(samples, "threadCPUDelta") : NULL;
	weights = json_object_get(samples, "weight");
	for (size_t i = 0; i < json_array_size(stacks) && !r->why; i++) {
		const json_int_t stack = column(samples, "stack", i);
		const json_t *weight = json_array_get(weights, i);

		gecko_times(g, samples, i, &at_ms);
		if (stack >= (json_int_t)n)
			wrong(r, "a sample has a stack that is not there");
		else if (json_is_array(cpu))
			add(r, stack < 0 ? 0 : nodes[stack],
			    json_number_value(json_array_get(cpu, i)) * g->cpu_scale);
		else if (stack >= 0)
			add(r, nodes[stack],
			    (json_is_number(weight) ? json_number_value(weight) : 1) *
				    g->interval_ns);
	}
}

static void read_gecko(struct reading *r, const json_t *root)
{
	const json_t *meta = json_object_get(root, "meta"),
		     *threads = json_object_get(root, "threads");
	struct gecko g = {.root = root, .shared = json_object_get(root, "shared"), .first_ms = -1};
	const char *unit =
		text_of(r, json_object_get(json_object_get(meta, "sampleUnits"), "threadCPUDelta"));
	struct fold *f = &r->b->pub;

	g.interval_ns = json_number_value(json_object_get(meta, "interval")) * 1e6;
	g.start_ms = json_number_value(json_object_get(meta, "startTime"));
	g.cpu_scale = !strcmp(unit, "ns") ? 1 : !strcmp(unit, "\302\265s") ? 1e3 : 0;
	if (!(g.interval_ns >= 1) || g.interval_ns > 1e15)
		g.interval_ns = 1e6;
	f->unit = STORE_TIME;
	for (size_t i = 0; i < json_array_size(threads) && !r->why; i++)
		gecko_thread(r, &g, json_array_get(threads, i));
	if (!(g.cpu_scale > 0))
		f->period_ns = (uint64_t)g.interval_ns;
	if (g.first_ms < 0 || !(g.last_ms > g.first_ms) || !(g.start_ms >= 0) ||
	    g.start_ms + g.last_ms > 4e12)
		return;
	f->from_ns = (int64_t)((g.start_ms + g.first_ms) * 1e6);
	f->to_ns = f->from_ns + (int64_t)((g.last_ms - g.first_ms) * 1e6 + g.interval_ns);
}

/* --- either --- */

bool json_read_looks(const char *data, size_t len)
{
	size_t i = 0;

	while (i < len && isspace((unsigned char)data[i]))
		i++;
	return i < len && data[i] == '{';
}

int json_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
	      struct fold **out, struct err *e)
{
	struct reading r = {.b = fold_begin(), .o = o};
	json_error_t error = {0};
	json_t *root = len > BYTES_MAX ? NULL : json_loadb(data, len, 0, &error);
	struct fold *f;

	r.b->pub.kind = store_kind_info(STORE_KIND_CPU);
	r.thread = fold_text(r.b, "");
	if (!root)
		r.why = len > BYTES_MAX ? "it is larger than 128 MiB" : error.text;
	else if (json_is_array(json_object_get(root, "profiles")))
		read_scope(&r, root);
	else if (json_is_array(json_object_get(root, "threads")))
		read_gecko(&r, root);
	else
		r.why = "its JSON is neither speedscope's nor the Firefox Profiler's";
	if (!r.why && o->kind && o->kind != r.b->pub.kind->kind)
		r.why = "it has no values of this --type";
	json_decref(root);
	free(r.frames);
	f = fold_end(r.b);
	if (!r.why) {
		*out = f;
		return 0;
	}
	fold_free(f);
	err_set(e, -EBADMSG, EXIT_USAGE, "%.300s is not a readable profile in JSON: %s", name,
		r.why);
	return -EBADMSG;
}
