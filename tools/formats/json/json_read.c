/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/json/json_read.h"

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
#include "tools/formats/json/json_in.h"

#define BYTES_MAX (128u << 20) /* a tree of JSON takes several times as much */
#define DEPTH_MAX 2048
#define PARTS     1000

void json_wrong(struct json_reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
}

const char *json_text_at(struct json_reading *r, const json_t *v)
{
	return fold_text(r->b, json_is_string(v) ? json_string_value(v) : "");
}

struct fold_frame json_frame(struct json_reading *r, const char *name)
{
	const char *none = fold_text(r->b, "");

	return (struct fold_frame){.name = *name ? name : fold_text(r->b, "[unknown]"),
				   .module = none,
				   .module_path = none,
				   .build_id = none,
				   .file = none,
				   .named = *name != '\0'};
}

uint32_t json_line(const json_t *v)
{
	const json_int_t n = json_is_integer(v) ? json_integer_value(v) : 0;

	return n > 0 && n < INT32_MAX ? (uint32_t)n : 0;
}

void json_add(struct json_reading *r, uint32_t node, double value)
{
	struct fold *f = &r->b->pub;
	uint64_t n, count;

	if (!(value >= 0) || r->sum + value > JSON_SUM_MAX) {
		json_wrong(r, value < 0 ? "it has a negative weight" : "its values are too large");
		return;
	}
	r->sum += value;
	r->fractions += value - floor(value);
	n = (uint64_t)floor(value) + (uint64_t)(llround(r->fractions) - r->told);
	r->told = llround(r->fractions);
	if (!n)
		return;
	if (f->n_nodes > JSON_NODES_MAX || f->n_leaves > JSON_NODES_MAX) {
		json_wrong(r, "it is too large");
		return;
	}
	count = f->unit == STORE_SAMPLES ? n : 1;
	f->nodes[node].self_ns += n;
	f->nodes[node].self_samples += count;
	f->processes[r->process].ns += n;
	f->processes[r->process].samples += count;
	if (r->o->leaves)
		fold_add_leaf(r->b, &(struct fold_leaf){.node = node,
							.process = r->process,
							.thread = r->thread,
							.tid = r->tid,
							.samples = count,
							.ns = n});
}

uint32_t json_process(struct json_reading *r, uint32_t pid, const char *comm)
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

static double unit_scale(const char *unit, enum store_unit *sort)
{
	static const struct {
		const char *name;
		enum store_unit sort;
		double scale;
	} units[] = {{"nanoseconds", STORE_TIME, 1},    {"microseconds", STORE_TIME, 1e3},
		     {"milliseconds", STORE_TIME, 1e6}, {"seconds", STORE_TIME, 1e9},
		     {"bytes", STORE_BYTES, 1},         {"none", STORE_SAMPLES, PARTS}};

	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (!strcmp(unit, units[i].name)) {
			*sort = units[i].sort;
			return units[i].scale;
		}
	return 0;
}

static void scope_frames(struct json_reading *r, const json_t *list)
{
	r->n_frames = json_array_size(list);
	r->frames = mem_array(r->n_frames + 1, sizeof(*r->frames));
	for (size_t i = 0; i < r->n_frames; i++) {
		const json_t *v = json_array_get(list, i);
		struct fold_frame fr = json_frame(r, json_text_at(r, json_object_get(v, "name")));

		fr.file = json_text_at(r, json_object_get(v, "file"));
		fr.line = json_line(json_object_get(v, "line"));
		r->frames[i] = fold_add_frame(r->b, &fr);
	}
}

static uint32_t scope_child(struct json_reading *r, uint32_t node, const json_t *v)
{
	const json_int_t i = json_is_integer(v) ? json_integer_value(v) : -1;

	if (i >= 0 && (size_t)i < r->n_frames)
		return fold_child(r->b, node, r->frames[i]);
	json_wrong(r, "a stack has a frame that is not in shared.frames");
	return node;
}

static void scope_sampled(struct json_reading *r, const json_t *profile)
{
	const json_t *samples = json_object_get(profile, "samples"),
		     *weights = json_object_get(profile, "weights");

	if (json_array_size(weights) > json_array_size(samples))
		json_wrong(r, "it has more weights than samples");
	for (size_t i = 0; i < json_array_size(samples) && !r->why; i++) {
		const json_t *stack = json_array_get(samples, i),
			     *weight = json_array_get(weights, i);
		uint32_t node = 0;

		if (!json_is_number(weight) || json_array_size(stack) > DEPTH_MAX)
			json_wrong(r, "a sample has no weight, or too many frames");
		for (size_t k = 0; k < json_array_size(stack) && !r->why; k++)
			node = scope_child(r, node, json_array_get(stack, k));
		if (!r->why)
			json_add(r, node, json_number_value(weight) * r->scale);
	}
}

/* Frames close in the order in which they opened. What is open at the end lasts until then. */
static void scope_evented(struct json_reading *r, const json_t *profile)
{
	const json_t *events = json_object_get(profile, "events"),
		     *end = json_object_get(profile, "endValue");
	cleanup_free uint32_t *stack = mem_array(DEPTH_MAX + 1, sizeof(*stack));
	cleanup_free json_int_t *opened = mem_array(DEPTH_MAX + 1, sizeof(*opened));
	double last = 0;
	size_t depth = 0;

	stack[0] = 0;
	for (size_t i = 0; i < json_array_size(events) && !r->why; i++) {
		const json_t *v = json_array_get(events, i), *at = json_object_get(v, "at"),
			     *frame = json_object_get(v, "frame");
		const char *type = json_text_at(r, json_object_get(v, "type"));

		if (!json_is_number(at) || (*type != 'O' && (*type != 'C' || !depth)) ||
		    depth >= DEPTH_MAX) {
			json_wrong(r, "its events do not open and close frames");
			break;
		}
		if (depth)
			json_add(r, stack[depth], json_number_value(at) * r->scale - last);
		last = json_number_value(at) * r->scale;
		if (*type == 'C') {
			if (frame && json_integer_value(frame) != opened[depth])
				json_wrong(r, "an event closes a frame that is not the innermost");
			depth--;
			continue;
		}
		stack[depth + 1] = scope_child(r, stack[depth], frame);
		depth++;
		opened[depth] = json_integer_value(frame);
	}
	if (depth && !r->why && json_number_value(end) * r->scale > last)
		json_add(r, stack[depth], json_number_value(end) * r->scale - last);
}

static void scope_profile(struct json_reading *r, const json_t *p)
{
	const double span = (json_number_value(json_object_get(p, "endValue")) -
			     json_number_value(json_object_get(p, "startValue"))) *
			    r->scale;

	if (r->b->pub.unit == STORE_TIME && span > (double)r->span_ns &&
	    span < (double)JSON_SUM_MAX)
		r->span_ns = (int64_t)span;
	r->thread = json_text_at(r, json_object_get(p, "name"));
	if (!strcmp(json_text_at(r, json_object_get(p, "type")), "evented"))
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

/* What its values are is what those of its first profile are. */
static void read_scope(struct json_reading *r, const json_t *root)
{
	const json_t *profiles = json_object_get(root, "profiles");
	const char *unit = json_text_at(r, json_object_get(json_array_get(profiles, 0), "unit"));
	struct fold *f = &r->b->pub;
	enum store_unit first = STORE_TIME, sort;

	if (!(unit_scale(unit, &first) > 0)) {
		json_wrong(r, "its first profile has no unit of speedscope's");
		return;
	}
	if (first == STORE_BYTES) {
		f->kind = store_kind_info(r->o->kind);
		if (!f->kind || !f->kind->sized) {
			f->kind = store_kind_info(STORE_KIND_CPU);
			json_wrong(
				r,
				"it holds bytes, and does not say of what: --type alloc or --type inuse");
			return;
		}
		f->no_count = true;
	}
	f->unit = first == STORE_SAMPLES ? STORE_SAMPLES : f->kind->unit_value;
	scope_frames(r, json_object_get(json_object_get(root, "shared"), "frames"));
	r->process = json_process(r, 0, fold_text(r->b, ""));
	for (size_t i = 0; i < json_array_size(profiles) && !r->why; i++) {
		const json_t *p = json_array_get(profiles, i);

		r->scale = unit_scale(json_text_at(r, json_object_get(p, "unit")), &sort);
		if (r->scale > 0 && sort == first)
			scope_profile(r, p);
		else
			fold_add_loss(r->b, &(struct fold_loss){
						    .reason = "profiles in another unit", .n = 1});
	}
	if (f->unit == STORE_SAMPLES)
		reduce(f);
	f->to_ns = r->span_ns;
}

/* --- either --- */

static const char *past_space(const char *at, const char *end)
{
	while (at < end && isspace((unsigned char)*at))
		at++;
	return at;
}

/* "{main};run 3" is a folded stack of PHP, and "[unknown];main 3" one, too. */
bool json_read_looks(const char *data, size_t len)
{
	const char *end = data + len, *at = past_space(data, end);
	const char *next = at < end ? past_space(at + 1, end) : end;

	if (at == end)
		return false;
	if (*at == '[')
		return next < end && (*next == '{' || *next == '[' || *next == ']');
	return *at == '{' && next < end && (*next == '"' || *next == '}');
}

static bool has_list(const json_t *root, const char *key)
{
	return json_is_array(json_object_get(root, key));
}

static void read_any(struct json_reading *r, const json_t *root)
{
	const json_t *inner =
		json_object_get(root, "profile"); /* as Firefox's developer tools wrote */

	if (has_list(root, "profiles") && json_is_object(json_object_get(root, "shared")))
		read_scope(r, root);
	else if (has_list(root, "threads"))
		gecko_read(r, root);
	else if (has_list(inner, "threads"))
		gecko_read(r, inner);
	else
		r->why = "its JSON is neither speedscope's nor the Firefox Profiler's";
}

int json_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
	      struct fold **out, struct err *e)
{
	struct json_reading r = {.b = fold_begin(), .o = o};
	json_error_t error = {0};
	json_t *root = len > BYTES_MAX ? NULL : json_loadb(data, len, 0, &error);
	struct fold *f;

	r.b->pub.kind = store_kind_info(STORE_KIND_CPU);
	r.thread = fold_text(r.b, "");
	if (!root)
		r.why = len > BYTES_MAX ? "it is larger than 128 MiB" : error.text;
	else
		read_any(&r, root);
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
