/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gecko_read: the Firefox Profiler's profiles. Their tables come in three forms, which are read
 * alike: columns of a thread (processed profiles), columns that all threads share (since version
 * 55), and rows with a schema (as Gecko itself writes them, with child processes in `processes`).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"
#include "schema/store/model/kinds.h"
#include "tools/formats/json/json_in.h"

#define TRACING_MS 1e6
#define PROCESSES  8 /* of processes within processes */

struct gecko {
	const json_t *shared, *libs, *thread;
	double interval_ns, start_ms, cpu_scale;
	double first_ms, last_ms;
};

/* --- tables --- */

/* Of the thread, or of all. */
static const json_t *table(const struct gecko *g, const char *name)
{
	const json_t *t = json_object_get(g->thread, name);

	return t ? t : json_object_get(g->shared, name);
}

static const json_t *cell(const json_t *t, const char *name, size_t i)
{
	const json_t *schema = json_object_get(t, "schema"), *at;

	if (!schema)
		return json_array_get(json_object_get(t, name), i);
	at = json_object_get(schema, name);
	return json_is_integer(at) ? json_array_get(json_array_get(json_object_get(t, "data"), i),
						    (size_t)json_integer_value(at)) :
				     NULL;
}

static size_t rows(const json_t *t, const char *name)
{
	return json_array_size(json_object_get(t, json_object_get(t, "schema") ? "data" : name));
}

/* A number; -1: null, or not there. */
static json_int_t number(const json_t *t, const char *name, size_t i)
{
	const json_t *v = cell(t, name, i);

	return json_is_integer(v) && json_integer_value(v) >= 0 ? json_integer_value(v) : -1;
}

static const char *string_at(struct json_reading *r, const struct gecko *g, json_int_t i)
{
	const json_t *list = table(g, "stringArray");

	list = list ? list : table(g, "stringTable");
	if (json_is_object(list)) /* of the first processed versions */
		list = json_object_get(list, "_array");
	return json_text_at(r, i < 0 ? NULL : json_array_get(list, (size_t)i));
}

/* --- frames --- */

/* "run (app.js:12:3)" */
static struct fold_frame frame_of_location(struct json_reading *r, const char *text)
{
	const char *open = strrchr(text, '('), *end = open ? strchr(open, ')') : NULL;
	const char *colon = open ? strchr(open, ':') : NULL;
	struct strbuf name cleanup_strbuf = STRBUF_INIT, file cleanup_strbuf = STRBUF_INIT;
	struct fold_frame fr;
	unsigned line = 0;

	if (!open || open == text || open[-1] != ' ' || !end || end[1] || !colon)
		return json_frame(r, fold_text(r->b, text));
	for (const char *next = colon; next; next = strchr(next + 1, ':'))
		if (sscanf(next, ":%u", &line) == 1 &&
		    (next[1 + strspn(next + 1, "0123456789")] == ')' ||
		     next[1 + strspn(next + 1, "0123456789")] == ':')) {
			colon = next;
			break;
		}
	strbuf_add(&name, text, (size_t)(open - 1 - text));
	strbuf_add(&file, open + 1, (size_t)(colon - open - 1));
	fr = json_frame(r, fold_text(r->b, strbuf_str(&name)));
	fr.file = fold_text(r->b, strbuf_str(&file));
	fr.line = line < INT32_MAX ? line : 0;
	return fr;
}

/* "0x12ab" of a library: samply writes addresses, and the viewer adds the names. */
static bool is_address(const char *name)
{
	return !strncmp(name, "0x", 2) && name[2] &&
	       !name[2 + strspn(name + 2, "0123456789abcdef")];
}

static void set_module(struct json_reading *r, const struct gecko *g, json_int_t resource,
		       struct fold_frame *fr)
{
	const json_t *resources = table(g, "resourceTable"), *lib;
	const json_int_t of = resource < 0 ? -1 : number(resources, "lib", (size_t)resource);
	const json_t *libs = json_object_get(g->thread, "libs");

	if (resource < 0)
		return;
	fr->module = string_at(r, g, number(resources, "name", (size_t)resource));
	lib = of < 0 ? NULL : json_array_get(libs ? libs : g->libs, (size_t)of);
	if (lib) {
		fr->module_path = json_text_at(r, json_object_get(lib, "path"));
		fr->build_id = json_text_at(r, json_object_get(lib, "codeId"));
	}
	if (!strncmp(fr->module, "[kernel", 7)) {
		fr->module = fold_text(r->b, "[kernel]");
		fr->origin = FOLD_KERNEL;
	}
}

static void set_unnamed(struct json_reading *r, const json_t *frames, size_t i,
			struct fold_frame *fr)
{
	const json_int_t address = number(frames, "address", i);
	struct strbuf s cleanup_strbuf = STRBUF_INIT;

	if (address <= 0 || !*fr->module || !is_address(fr->name))
		return;
	strbuf_addf(&s, "%s+0x%llx", fr->module, (unsigned long long)address);
	fr->name = fold_text(r->b, strbuf_str(&s));
	fr->named = false;
	fr->offset = (uint64_t)address;
}

static const char *file_of(struct json_reading *r, const struct gecko *g, const json_t *funcs,
			   size_t func)
{
	const json_int_t source = number(funcs, "source", func);

	return string_at(r, g,
			 source < 0 ? number(funcs, "fileName", func) :
				      number(table(g, "sources"), "filename", (size_t)source));
}

static struct fold_frame gecko_frame(struct json_reading *r, const struct gecko *g,
				     json_int_t frame)
{
	const json_t *frames = table(g, "frameTable"), *funcs = table(g, "funcTable");
	const json_int_t func = frame < 0 ? -1 : number(frames, "func", (size_t)frame);
	struct fold_frame fr = json_frame(r, fold_text(r->b, ""));

	if (func < 0 && frame >= 0)
		return frame_of_location(
			r, string_at(r, g, number(frames, "location", (size_t)frame)));
	if (func < 0)
		return fr;
	fr = json_frame(r, string_at(r, g, number(funcs, "name", (size_t)func)));
	fr.file = file_of(r, g, funcs, (size_t)func);
	fr.line = json_line(cell(frames, "line", (size_t)frame));
	fr.inlined = number(frames, "inlineDepth", (size_t)frame) > 0;
	set_module(r, g, number(funcs, "resource", (size_t)func), &fr);
	set_unnamed(r, frames, (size_t)frame, &fr);
	return fr;
}

/* The node of each stack; a stack's prefix comes before it. */
static uint32_t *gecko_stacks(struct json_reading *r, const struct gecko *g, size_t *n)
{
	const json_t *stacks = table(g, "stackTable");
	uint32_t *nodes;

	*n = rows(stacks, "frame");
	nodes = mem_array(*n + 1, sizeof(*nodes));
	for (size_t i = 0; i < *n && !r->why; i++) {
		const json_int_t prefix = number(stacks, "prefix", i);
		struct fold_frame fr = gecko_frame(r, g, number(stacks, "frame", i));

		if (prefix >= (json_int_t)i || r->b->pub.n_nodes > JSON_NODES_MAX) {
			json_wrong(r, "a stack comes before its prefix, or there are too many");
			break;
		}
		fr.inlined = fr.inlined && prefix >= 0;
		nodes[i] =
			fold_child(r->b, prefix < 0 ? 0 : nodes[prefix], fold_add_frame(r->b, &fr));
	}
	return nodes;
}

/* --- samples --- */

static uint32_t id_of(const json_t *v)
{
	const double n =
		json_is_string(v) ? strtod(json_string_value(v), NULL) : json_number_value(v);

	return n > 0 && n < UINT32_MAX ? (uint32_t)n : 0;
}

static void note_time(struct gecko *g, const json_t *samples, size_t i, double *at_ms)
{
	const json_t *time = cell(samples, "time", i), *delta = cell(samples, "timeDeltas", i);

	*at_ms = json_is_number(time) ? json_number_value(time) : *at_ms + json_number_value(delta);
	if (g->first_ms < 0 || *at_ms < g->first_ms)
		g->first_ms = *at_ms;
	if (*at_ms > g->last_ms)
		g->last_ms = *at_ms;
}

static bool has_column(const json_t *t, const char *name)
{
	return json_is_array(json_object_get(t, name)) ||
	       json_object_get(json_object_get(t, "schema"), name);
}

/* Of one sample, by its own count of CPU time, its weight, or the interval. */
static double worth_of(const struct gecko *g, const json_t *samples, size_t i, double weight_ns)
{
	const json_t *weight = cell(samples, "weight", i);

	if (g->cpu_scale > 0 && has_column(samples, "threadCPUDelta"))
		return json_number_value(cell(samples, "threadCPUDelta", i)) * g->cpu_scale;
	return (json_is_number(weight) ? json_number_value(weight) : 1) * weight_ns;
}

static void read_samples(struct json_reading *r, struct gecko *g, const uint32_t *nodes, size_t n)
{
	const json_t *samples = json_object_get(g->thread, "samples");
	const char *weighs = json_text_at(r, json_object_get(samples, "weightType"));
	const double weight_ns = !strcmp(weighs, "tracing-ms") ? TRACING_MS : g->interval_ns;
	const bool by_cpu = g->cpu_scale > 0 && has_column(samples, "threadCPUDelta");
	double at_ms = 0;

	if (!strcmp(weighs, "bytes")) {
		fold_add_loss(r->b, &(struct fold_loss){
					    .reason = "threads whose samples weigh bytes", .n = 1});
		return;
	}
	for (size_t i = 0; i < rows(samples, "stack") && !r->why; i++) {
		const json_int_t stack = number(samples, "stack", i);

		note_time(g, samples, i, &at_ms);
		if (stack >= (json_int_t)n)
			json_wrong(r, "a sample has a stack that is not there");
		else if (stack >= 0 || by_cpu)
			json_add(r, stack < 0 ? 0 : nodes[stack],
				 worth_of(g, samples, i, weight_ns));
	}
}

static void gecko_thread(struct json_reading *r, struct gecko *g, const json_t *thread)
{
	cleanup_free uint32_t *nodes = NULL;
	const char *comm;
	size_t n;

	g->thread = thread;
	nodes = gecko_stacks(r, g, &n);
	comm = json_text_at(r, json_object_get(thread, "processName"));
	r->process = json_process(r, id_of(json_object_get(thread, "pid")), comm);
	r->thread = json_text_at(r, json_object_get(thread, "name"));
	r->tid = id_of(json_object_get(thread, "tid"));
	read_samples(r, g, nodes, n);
}

static void read_process(struct json_reading *r, struct gecko *g, const json_t *root,
			 unsigned depth)
{
	const json_t *threads = json_object_get(root, "threads"),
		     *processes = json_object_get(root, "processes");

	g->shared = json_object_get(root, "shared");
	g->libs = json_object_get(root, "libs");
	for (size_t i = 0; i < json_array_size(threads) && !r->why; i++)
		gecko_thread(r, g, json_array_get(threads, i));
	for (size_t i = 0; i < json_array_size(processes) && !r->why && depth < PROCESSES; i++)
		read_process(r, g, json_array_get(processes, i), depth + 1);
}

void gecko_read(struct json_reading *r, const json_t *root)
{
	const json_t *meta = json_object_get(root, "meta");
	struct gecko g = {.first_ms = -1};
	const char *unit = json_text_at(
		r, json_object_get(json_object_get(meta, "sampleUnits"), "threadCPUDelta"));
	struct fold *f = &r->b->pub;

	g.interval_ns = json_number_value(json_object_get(meta, "interval")) * 1e6;
	g.start_ms = json_number_value(json_object_get(meta, "startTime"));
	g.cpu_scale = !strcmp(unit, "ns") ? 1 : !strcmp(unit, "\302\265s") ? 1e3 : 0;
	if (!(g.interval_ns >= 1) || g.interval_ns > 1e15)
		g.interval_ns = 1e6;
	f->unit = STORE_TIME;
	read_process(r, &g, root, 0);
	if (!(g.cpu_scale > 0))
		f->period_ns = (uint64_t)g.interval_ns;
	if (g.first_ms < 0 || !(g.last_ms > g.first_ms) || !(g.start_ms >= 0) ||
	    g.start_ms + g.last_ms > 4e12)
		return;
	f->from_ns = (int64_t)((g.start_ms + g.first_ms) * 1e6);
	f->to_ns = f->from_ns + (int64_t)((g.last_ms - g.first_ms) * 1e6 + g.interval_ns);
}
