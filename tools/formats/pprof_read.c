/* SPDX-License-Identifier: Apache-2.0 */
/* pprof_read: Two passes: tables first, as they may come after the samples that
 * refer to them. */
#include "tools/formats/pprof_read.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "schema/base/strbuf.h"
#include "tools/fold/fold_build.h"
#include "tools/formats/labels.h"
#include "tools/formats/pprof_kind.h"

#define MAX_STEPS (1ull << 30)
#define MAX_SUM   4e18 /* fits into 64 bits */

struct string {
	const void *data;
	size_t len;
};
struct value_type {
	uint64_t type, unit;
};
struct mapping {
	uint64_t id, file, build_id;
};
struct function {
	uint64_t id, name, file, line;
};
struct line {
	uint64_t function, line;
};
struct location {
	uint64_t id, mapping, address;
	size_t line, n_lines;
	size_t frame, n_frames;
};

struct reading {
	const char *why; /* what is wrong with it; NULL: nothing */
	struct string *strings;
	size_t n_strings, cap_strings;
	struct value_type *types;
	size_t n_types, cap_types;
	struct mapping *mappings;
	size_t n_mappings, cap_mappings;
	struct function *functions;
	size_t n_functions, cap_functions;
	struct line *lines;
	size_t n_lines, cap_lines;
	struct location *locations;
	size_t n_locations, cap_locations;
	struct idmap mapping_of, function_of, location_of; /* id -> index */
	uint64_t time, duration, period, default_type, comment;
	struct value_type period_type;
	struct pprof_kind kind; /* which values */
	/* the fold */
	struct fold_build *b;
	const struct fold_opts *o;
	uint32_t *frames;
	size_t n_frames, cap_frames; /* of all locations, outermost first */
	uint64_t *path;
	size_t n_path, cap_path;  /* of the sample at hand */
	uint64_t steps;           /* frames met in all samples */
	struct label_set *labels; /* of the sample at hand; NULL: they are not asked for */
	double all_ns, all_samples;
};

static void wrong(struct reading *r, const char *why)
{
	if (!r->why)
		r->why = why;
}

#define ADD(r, list, n_list, cap_list, ...)                              \
	do {                                                             \
		if ((r)->n_list >= PPROF_ITEMS) {                        \
			wrong(r, "it is too large");                     \
		} else {                                                 \
			mem_grow((r)->list, (r)->n_list, (r)->cap_list); \
			(r)->list[(r)->n_list++] = (__VA_ARGS__);        \
		}                                                        \
	} while (0)

static const char *string_at(struct reading *r, uint64_t i)
{
	struct strbuf s = STRBUF_INIT;
	const char *text;

	if (i >= r->n_strings) {
		wrong(r, "it refers to a string that it does not have");
		return fold_text(r->b, "");
	}
	strbuf_add(&s, r->strings[i].data, r->strings[i].len);
	text = fold_text(r->b, strbuf_str(&s));
	strbuf_release(&s);
	return text;
}

static bool string_is(const struct reading *r, uint64_t i, const char *text)
{
	return i < r->n_strings && r->strings[i].len == strlen(text) &&
	       !memcmp(r->strings[i].data, text, strlen(text));
}

/* --- the tables --- */

/* Numbers of a message by field, as far as `max`; a number that comes twice has its last value. */
static void numbers(struct reading *r, const struct proto_field *message, uint64_t *by_field,
		    unsigned max)
{
	struct cursor c = cursor_init(message->data, message->len);
	struct proto_field f;

	if (message->type != 2)
		wrong(r, "a field that must be a message is not");
	while (message->type == 2 && proto_next(&c, &f))
		if (f.number <= max && f.type == 0)
			by_field[f.number] = f.value;
	if (c.bad)
		wrong(r, "it does not end");
}

static void read_line(struct reading *r, const struct proto_field *f)
{
	uint64_t v[3] = {0};

	numbers(r, f, v, 2);
	ADD(r, lines, n_lines, cap_lines, (struct line){v[1], v[2]});
}

static void read_location(struct reading *r, const struct proto_field *m)
{
	struct location new = {.line = r->n_lines};
	uint64_t v[4] = {0};
	struct cursor c = cursor_init(m->data, m->type == 2 ? m->len : 0);
	struct proto_field f;

	numbers(r, m, v, 3);
	while (!r->why && proto_next(&c, &f))
		if (f.number == 4)
			read_line(r, &f);
	new.id = v[1];
	new.mapping = v[2];
	new.address = v[3];
	new.n_lines = r->n_lines - new.line;
	idmap_set(&r->location_of, new.id, r->n_locations);
	ADD(r, locations, n_locations, cap_locations, new);
}

static void note_comment(struct reading *r, const struct proto_field *f)
{
	struct cursor left = {0};
	bool started = false;
	uint64_t v;

	while (proto_next_number(f, &left, &started, &v))
		if (!r->comment)
			r->comment = v;
	if (left.bad)
		wrong(r, "it does not end");
}

static void read_field(struct reading *r, const struct proto_field *f)
{
	uint64_t v[11] = {0};

	switch (f->number) {
	case 1:
		numbers(r, f, v, 2);
		ADD(r, types, n_types, cap_types, (struct value_type){v[1], v[2]});
		break;
	case 3:
		numbers(r, f, v, 6);
		idmap_set(&r->mapping_of, v[1], r->n_mappings);
		ADD(r, mappings, n_mappings, cap_mappings, (struct mapping){v[1], v[5], v[6]});
		break;
	case 4:
		read_location(r, f);
		break;
	case 5:
		numbers(r, f, v, 5);
		idmap_set(&r->function_of, v[1], r->n_functions);
		ADD(r, functions, n_functions, cap_functions,
		    (struct function){v[1], v[2], v[4], v[5]});
		break;
	case 6:
		if (f->type != 2)
			wrong(r, "a field that must be a string is not");
		ADD(r, strings, n_strings, cap_strings, (struct string){f->data, f->len});
		break;
	case 9:
		r->time = f->value;
		break;
	case 10:
		r->duration = f->value;
		break;
	case 11:
		numbers(r, f, v, 2);
		r->period_type = (struct value_type){v[1], v[2]};
		break;
	case 12:
		r->period = f->value;
		break;
	case 13:
		note_comment(r, f);
		break;
	case 14:
		r->default_type = f->value;
		break;
	default:
		break;
	}
}

/* --- frames --- */

/* As the store calls it: "/usr/lib/libc.so.6" is "libc.so.6", "[kernel.kallsyms]" "[kernel]",
 * "/tmp/perf-812.map" "[jit]". */
static const char *module_of(struct reading *r, const char *path, enum fold_origin *origin)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path,
		   *digits = name + 5;

	*origin = *name == '[' ? FOLD_KERNEL : FOLD_NATIVE;
	if (!strncmp(name, "[kernel", 7))
		return fold_text(r->b, "[kernel]");
	if (strncmp(name, "perf-", 5) || strcmp(digits + strspn(digits, "0123456789"), ".map"))
		return fold_text(r->b, name);
	*origin = FOLD_JIT;
	return fold_text(r->b, "[jit]");
}

static struct fold_frame frame_in(struct reading *r, const struct location *l)
{
	const char *none = fold_text(r->b, ""), *path = none, *build_id = none;
	struct fold_frame fr = {.name = none, .file = none, .offset = l->address};
	uint64_t i;

	if (l->mapping && !idmap_get(&r->mapping_of, l->mapping, &i))
		wrong(r, "it refers to a mapping that it does not have");
	else if (l->mapping) {
		path = string_at(r, r->mappings[i].file);
		build_id = string_at(r, r->mappings[i].build_id);
	}
	fr.module_path = path;
	fr.build_id = build_id;
	fr.module = module_of(r, path, &fr.origin);
	return fr;
}

static void add_frame(struct reading *r, const struct fold_frame *fr)
{
	mem_grow(r->frames, r->n_frames, r->cap_frames);
	r->frames[r->n_frames++] = fold_add_frame(r->b, fr);
}

static void frames_of(struct reading *r, struct location *l)
{
	const struct fold_frame bare = frame_in(r, l);
	char name[32];

	l->frame = r->n_frames;
	for (size_t k = l->n_lines; k-- > 0 && !r->why;) {
		const struct line *line = &r->lines[l->line + k];
		struct fold_frame fr = bare;
		uint64_t i;

		if (!idmap_get(&r->function_of, line->function, &i)) {
			wrong(r, "it refers to a function that it does not have");
			return;
		}
		fr.name = string_at(r, r->functions[i].name);
		fr.file = string_at(r, r->functions[i].file);
		fr.line = line->line <= UINT32_MAX ? (uint32_t)line->line : 0;
		fr.function_line =
			r->functions[i].line <= UINT32_MAX ? (uint32_t)r->functions[i].line : 0;
		fr.inlined = k + 1 < l->n_lines;
		fr.named = *fr.name != '\0';
		if (!fr.named)
			fr.name = fold_text(r->b, "[unknown]");
		if (!fr.inlined || !r->o->no_inline)
			add_frame(r, &fr);
	}
	if (!l->n_lines) {
		struct fold_frame fr = bare;
		struct strbuf s = STRBUF_INIT;

		snprintf(name, sizeof(name), "+0x%llx", (unsigned long long)l->address);
		strbuf_addf(&s, "%s%s", *bare.module ? bare.module : "[unknown]", name);
		fr.name = fold_text(r->b, strbuf_str(&s));
		strbuf_release(&s);
		add_frame(r, &fr);
	}
	l->n_frames = r->n_frames - l->frame;
}

/* --- samples --- */

struct labels {
	struct label_who who;
	const char *others; /* a JSON object; NULL: none */
	uint64_t bytes;
};

static void read_label(struct reading *r, const struct proto_field *f, struct labels *to)
{
	uint64_t v[5] = {0};
	const char *key;

	numbers(r, f, v, 4);
	if (!r->labels) /* who asks wants the stacks alone */
		return;
	if (string_is(r, v[1], "bytes") && r->b->pub.kind->sized && v[3] &&
	    v[3] <= UINT32_MAX) { /* of one object */
		to->bytes = v[3];
		return;
	}
	key = string_at(r, v[1]);
	if (!label_who_take(r->b, &to->who, key, v[2] ? string_at(r, v[2]) : NULL, v[3]))
		label_set_add(r->labels, key, v[2] ? string_at(r, v[2]) : NULL, (int64_t)v[3],
			      v[4] ? string_at(r, v[4]) : "");
}

static uint32_t process_of(struct reading *r, const struct label_who *l)
{
	const uint64_t identity =
		hash_str(hash_str(hash_str(hash_u64(HASH_SEED, l->pid), l->comm), l->container_id),
			 l->container);
	const char *none = fold_text(r->b, "");
	uint32_t process;

	if (fold_known_process(r->b, identity, &process))
		return process;
	return fold_add_process(r->b, identity,
				&(struct fold_process){.pid = (uint32_t)l->pid,
						       .comm = l->comm,
						       .exe = none,
						       .args = none,
						       .container = l->container,
						       .container_id = l->container_id});
}

static uint32_t node_of_path(struct reading *r)
{
	uint32_t node = 0;

	for (size_t i = r->n_path; i-- > 0 && !r->why;) {
		const struct location *l;
		uint64_t at;

		if (!idmap_get(&r->location_of, r->path[i], &at)) {
			wrong(r, "it refers to a location that it does not have");
			return 0;
		}
		l = &r->locations[at];
		for (size_t k = 0; k < l->n_frames; k++)
			node = fold_child(r->b, node, r->frames[l->frame + k]);
		r->steps += l->n_frames;
		if (r->b->pub.n_nodes > PPROF_ITEMS || r->steps > MAX_STEPS)
			wrong(r, "it is too large");
	}
	return node;
}

/* The sample's locations into r->path, its values, its labels. */
static void read_sample(struct reading *r, const struct proto_field *m, int64_t values[2],
			struct labels *labels)
{
	struct cursor c = cursor_init(m->data, m->type == 2 ? m->len : 0), left = {0};
	struct proto_field f;
	size_t n_values = 0;

	r->n_path = 0;
	while (!r->why && proto_next(&c, &f)) {
		bool started = false;
		uint64_t v;

		if (f.number == 3)
			read_label(r, &f, labels);
		while (f.number <= 2 && proto_next_number(&f, &left, &started, &v)) {
			if (f.number == 1) {
				ADD(r, path, n_path, cap_path, v);
				continue;
			}
			if (n_values == r->kind.value)
				values[0] = (int64_t)v;
			if (n_values == r->kind.count)
				values[1] = (int64_t)v;
			n_values++;
		}
		if (left.bad)
			wrong(r, "it does not end");
	}
	if (c.bad)
		wrong(r, "it does not end");
	if (n_values != r->n_types)
		wrong(r, "a sample has more or fewer values than the profile has types");
	labels->others = r->labels && !r->why ? label_set_take(r->labels, r->b) : NULL;
}

static void add_sample(struct reading *r, const struct proto_field *m)
{
	struct labels labels = {.who = label_who_none(r->b)};
	int64_t values[2] = {0, r->kind.count == SIZE_MAX};
	struct fold_node *node;
	uint64_t exact;
	double ns;
	uint32_t at, process;

	read_sample(r, m, values, &labels);
	if (values[0] < 0 || values[1] < 0)
		wrong(r, "it has negative values: it is a difference of profiles");
	ns = (double)values[0] * r->kind.scale;
	r->all_ns += ns;
	r->all_samples += (double)values[1];
	if (r->all_ns > MAX_SUM || r->all_samples > MAX_SUM)
		wrong(r, "its values are too large");
	if (r->why)
		return;
	/* a double has 53 bits */
	exact = r->kind.scale == (double)(uint64_t)r->kind.scale ?
			(uint64_t)values[0] * (uint64_t)r->kind.scale :
			(uint64_t)ns;
	at = node_of_path(r);
	node = &r->b->pub.nodes[at];
	node->self_ns += exact;
	node->self_samples += (uint64_t)values[1];
	if (!r->o->leaves)
		return;
	process = process_of(r, &labels.who);
	r->b->pub.processes[process].ns += exact;
	r->b->pub.processes[process].samples += (uint64_t)values[1];
	fold_add_leaf(r->b, &(struct fold_leaf){.node = at,
						.process = process,
						.thread = labels.who.thread,
						.tid = (uint32_t)labels.who.tid,
						.labels = labels.others,
						.samples = (uint64_t)values[1],
						.ns = exact,
						.label = (uint32_t)labels.bytes});
}

static void read_all(struct reading *r, const void *data, size_t len, bool samples)
{
	struct cursor c = cursor_init(data, len);
	struct proto_field f;

	r->labels = samples && r->o->leaves ? label_set_new() : NULL;
	while (!r->why && proto_next(&c, &f)) {
		if (samples && f.number == 2)
			add_sample(r, &f);
		else if (!samples && f.number != 2)
			read_field(r, &f);
	}
	if (c.bad)
		wrong(r, "it is truncated, or not a pprof profile");
	label_set_free(r->labels);
	r->labels = NULL;
}

/* --- which values --- */

/* Marks the locations that stacks end in. */
static void mark_leaf(struct reading *r, const struct proto_field *m, uint8_t *leaf)
{
	struct labels labels = {0};
	int64_t values[2];
	uint64_t at;

	read_sample(r, m, values, &labels);
	if (!r->why && r->n_path && idmap_get(&r->location_of, r->path[0], &at))
		leaf[at] = 1;
}

/* Of each location that is a leaf the innermost function's name; those without are left out. */
static const char **leaves_read(struct reading *r, const void *data, size_t len, size_t *n)
{
	cleanup_free uint8_t *leaf = mem_array(r->n_locations + 1, 1);
	const char **names = mem_array(r->n_locations + 1, sizeof(*names));
	struct cursor c = cursor_init(data, len);
	struct proto_field f;
	uint64_t i;

	while (!r->why && proto_next(&c, &f))
		if (f.number == 2)
			mark_leaf(r, &f, leaf);
	*n = 0;
	for (size_t k = 0; k < r->n_locations && !r->why; k++)
		if (leaf[k] && r->locations[k].n_lines &&
		    idmap_get(&r->function_of, r->lines[r->locations[k].line].function, &i))
			names[(*n)++] = string_at(r, r->functions[i].name);
	return names;
}

static struct pprof_type type_of(struct reading *r, struct value_type t)
{
	return (struct pprof_type){string_at(r, t.type), string_at(r, t.unit)};
}

/* 0, or what pprof_kind_choose says; r->why where the file is no profile. */
static int choose(struct reading *r, const void *data, size_t len, const char *name, struct err *e)
{
	cleanup_free struct pprof_type *types = mem_array(r->n_types + 1, sizeof(*types));
	cleanup_free const char **leaves = NULL;
	struct pprof_names names = {.types = types, .n_types = r->n_types, .period = r->period};
	int rc;

	for (size_t i = 0; i < r->n_types; i++)
		types[i] = type_of(r, r->types[i]);
	names.default_type = r->default_type ? string_at(r, r->default_type) : "";
	names.comment = r->comment ? string_at(r, r->comment) : "";
	names.period_type =
		r->period_type.type ? type_of(r, r->period_type) : (struct pprof_type){"", ""};
	r->kind = (struct pprof_kind){.value = SIZE_MAX, .count = SIZE_MAX};
	if (!strcmp(names.period_type.type, "contentions"))
		names.leaves = leaves = leaves_read(r, data, len, &names.n_leaves);
	if (r->why)
		return 0;
	rc = pprof_kind_choose(&names, r->o->kind, name, &r->kind, e);
	if (rc)
		return rc;
	r->b->pub.kind = r->kind.kind;
	r->b->pub.no_count = r->kind.count == SIZE_MAX && r->kind.kind->kind != STORE_KIND_CPU;
	r->b->pub.too = r->kind.kind->with ? 1u << r->kind.kind->with : 0;
	r->b->pub.unit = r->kind.timed ? r->kind.kind->unit_value : STORE_SAMPLES;
	return 0;
}

static void set_times(struct reading *r)
{
	struct fold *f = &r->b->pub;
	int64_t from = r->time < (uint64_t)1 << 62 ? (int64_t)r->time : 0;

	f->from_ns = from;
	f->to_ns = r->kind.timed && r->duration < (uint64_t)1 << 60 ? from + (int64_t)r->duration :
								      from;
	f->period_ns = r->kind.period;
}

static void release(struct reading *r)
{
	free(r->strings);
	free(r->types);
	free(r->mappings);
	free(r->functions);
	free(r->lines);
	free(r->locations);
	free(r->frames);
	free(r->path);
	idmap_release(&r->mapping_of);
	idmap_release(&r->function_of);
	idmap_release(&r->location_of);
}

static int no_profile(const char *name, const char *why, struct err *e)
{
	err_set(e, -EBADMSG, EXIT_USAGE, "%.300s is not a readable pprof profile: %s", name, why);
	err_fix(e,
		"go tool pprof -raw %.200s    protoc --decode perftools.profiles.Profile profile.proto",
		name);
	return -EBADMSG;
}

int pprof_read(const void *data, size_t len, const char *name, const struct fold_opts *o,
	       struct fold **out, struct err *e)
{
	struct reading r = {.b = fold_begin(), .o = o};
	struct fold *f;
	int rc = 0;

	read_all(&r, data, len, false);
	if (!r.why)
		rc = choose(&r, data, len, name, e);
	for (size_t i = 0; i < r.n_locations && !r.why && !rc; i++)
		frames_of(&r, &r.locations[i]);
	if (!r.why && !rc)
		read_all(&r, data, len, true);
	set_times(&r);
	release(&r);
	f = fold_end(r.b);
	if (!r.why && !rc) {
		*out = f;
		return 0;
	}
	fold_free(f);
	return r.why ? no_profile(name, r.why, e) : rc;
}
