/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/formats/pprof.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "tools/formats/labels.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2, LABEL_NUM = 3, LABEL_UNIT = 4 };
enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINE = 10
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
	FUNCTION_START_LINE = 5
};

#define PAGE       0x1000ull
#define FIRST_BASE 0x400000ull
#define MAX_FILE   (1ull << 40) /* no file is larger; what says so is not an offset */

struct text { /* string -> index in the string table */
	char *str;
	uint32_t index;
	UT_hash_handle hh;
};

struct module {    /* one mapping */
	char *key; /* path, NUL, build-id */
	const char *name, *build_id;
	uint64_t min, max; /* offsets seen */
	uint64_t base;     /* address = base + offset */
	uint32_t id, order;
	bool raw, all_named, all_files, all_lines, any_inlined, main;
	UT_hash_handle hh;
};

struct chain { /* frames of one location, innermost first -> its id */
	uint32_t *frames;
	uint32_t id;
	UT_hash_handle hh;
};

struct gzip {
	z_stream z;
	FILE *out;
	int error; /* 0, or -errno: nothing more is written */
};

struct builder {
	const struct fold *f;
	struct gzip *gzip; /* NULL: all stays in `out` */
	struct strbuf out;
	struct strbuf strings;
	struct text *texts;
	struct module *modules;
	struct module **module_of; /* by frame, NULL: none */
	struct idmap functions;    /* name << 32 | file -> id */
	struct idmap first_lines;  /* the same -> the function's first line */
	struct chain *chains;
	uint32_t *location; /* by node: the location that ends there, 0: not made yet */
	uint32_t *above;    /* by node: the node that location was called from */
	uint32_t no_stack;  /* its location, 0: not made yet */
	bool bare;          /* samples have no labels */
	uint32_t n_strings, n_modules, n_functions, n_locations;
};

static uint32_t string_id(struct builder *b, const char *str)
{
	struct text *t;

	HASH_FIND_STR(b->texts, str, t);
	if (t)
		return t->index;
	t = mem_alloc(sizeof(*t));
	t->str = mem_strdup(str);
	t->index = b->n_strings++;
	HASH_ADD_KEYPTR(hh, b->texts, t->str, strlen(t->str), t);
	proto_bytes(&b->strings, PROFILE_STRING, str, strlen(str));
	return t->index;
}

static void value_type(struct builder *b, unsigned field, const char *type, const char *unit)
{
	cleanup_strbuf struct strbuf m = STRBUF_INIT;

	proto_uint(&m, VALUE_TYPE, string_id(b, type));
	proto_uint(&m, VALUE_UNIT, string_id(b, unit));
	proto_bytes(&b->out, field, m.buf, m.len);
}

static uint64_t function_key(struct builder *b, const char *name, const char *file)
{
	return (uint64_t)string_id(b, name) << 32 | string_id(b, file);
}

/* One place of a function may know where it begins, another (inlined) not. */
static void first_line_note(struct builder *b, const struct fold_frame *fr)
{
	if (fr->function_line)
		idmap_set(&b->first_lines, function_key(b, fr->name, fr->file), fr->function_line);
}

static uint32_t function_id(struct builder *b, const char *name, const char *file)
{
	cleanup_strbuf struct strbuf m = STRBUF_INIT;
	uint32_t name_id = string_id(b, name), file_id = string_id(b, file);
	uint64_t key = function_key(b, name, file), first_line = 0, id;

	if (idmap_get(&b->functions, key, &id))
		return (uint32_t)id;
	idmap_get(&b->first_lines, key, &first_line);
	id = ++b->n_functions;
	idmap_set(&b->functions, key, id);
	proto_uint(&m, FUNCTION_ID, id);
	proto_uint(&m, FUNCTION_NAME, name_id);
	proto_uint(&m, FUNCTION_SYSTEM_NAME, name_id);
	proto_uint(&m, FUNCTION_FILENAME, file_id);
	proto_uint(&m, FUNCTION_START_LINE, first_line);
	proto_bytes(&b->out, PROFILE_FUNCTION, m.buf, m.len);
	return (uint32_t)id;
}

/* --- mappings --- */

static const char *module_filename(const struct fold_frame *fr)
{
	if (fr->origin == FOLD_KERNEL && !strcmp(fr->module, "[kernel]"))
		return "[kernel.kallsyms]";
	return *fr->module_path ? fr->module_path : fr->module;
}

static struct module *module_get(struct builder *b, const struct fold_frame *fr)
{
	const char *name = module_filename(fr);
	size_t name_len = strlen(name), id_len = strlen(fr->build_id), len = name_len + 1 + id_len;
	char *key = mem_alloc(len + 1);
	struct module *m;

	memcpy(key, name, name_len);
	memcpy(key + name_len + 1, fr->build_id, id_len);
	HASH_FIND(hh, b->modules, key, len, m);
	if (m) {
		free(key);
		return m;
	}
	m = mem_alloc(sizeof(*m));
	*m = (struct module){.key = key,
			     .name = key,
			     .build_id = key + name_len + 1,
			     .min = UINT64_MAX,
			     .order = b->n_modules++,
			     .all_named = true,
			     .all_files = true,
			     .all_lines = true,
			     .raw = fr->origin == FOLD_KERNEL || fr->origin == FOLD_JIT};
	HASH_ADD_KEYPTR(hh, b->modules, m->key, len, m);
	return m;
}

static void module_note(struct module *m, const struct fold_frame *fr)
{
	if (fr->offset < m->min)
		m->min = fr->offset;
	if (fr->offset > m->max)
		m->max = fr->offset;
	if (fr->offset >= MAX_FILE)
		m->raw = true;
	m->all_named &= fr->named;
	m->all_files &= *fr->file != '\0';
	m->all_lines &= fr->line != 0;
	m->any_inlined |= fr->inlined;
}

/* The path of the executable that used most CPU time: pprof takes the first mapping for the
 * program. */
static const char *main_path(const struct fold *f)
{
	const struct fold_process *best = NULL;

	for (size_t i = 0; i < f->n_processes; i++)
		if (!best || f->processes[i].ns > best->ns)
			best = &f->processes[i];
	return best ? best->exe : "";
}

static int module_order(const struct module *a, const struct module *b)
{
	if (a->main != b->main)
		return a->main ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static uint64_t page_up(uint64_t v)
{
	return v > UINT64_MAX - PAGE ? UINT64_MAX : (v + PAGE) & ~(PAGE - 1);
}

static void module_emit(struct builder *b, const struct module *m, uint64_t start, uint64_t limit)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	proto_uint(&s, MAPPING_ID, m->id);
	proto_uint(&s, MAPPING_START, start);
	proto_uint(&s, MAPPING_LIMIT, limit);
	proto_uint(&s, MAPPING_FILENAME, string_id(b, m->name));
	proto_uint(&s, MAPPING_BUILD_ID, string_id(b, m->build_id));
	proto_uint(&s, MAPPING_HAS_FUNCTIONS, m->all_named);
	proto_uint(&s, MAPPING_HAS_FILENAMES, m->all_named && m->all_files);
	proto_uint(&s, MAPPING_HAS_LINES, m->all_named && m->all_lines);
	proto_uint(&s, MAPPING_HAS_INLINE, m->any_inlined);
	proto_bytes(&b->out, PROFILE_MAPPING, s.buf, s.len);
}

/* Frames of stacks that leaves have: a fold may be shown in parts, each with some of the leaves. */
static void nodes_used(const struct fold *f, uint8_t *frames)
{
	cleanup_free uint8_t *seen = mem_array(f->n_nodes + 1, 1);

	for (size_t i = 0; i < f->n_leaves; i++)
		for (uint32_t node = f->leaves[i].node; node && !seen[node];
		     node = f->nodes[node].parent) {
			seen[node] = 1;
			frames[f->nodes[node].frame] = 1;
		}
}

static void modules_collect(struct builder *b)
{
	const struct fold *f = b->f;
	cleanup_free uint8_t *used = mem_array(f->n_frames + 1, 1);

	nodes_used(f, used);
	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *fr = &f->frames[i];

		if (!used[i] || fr->origin == FOLD_GROUP || !*module_filename(fr))
			continue;
		first_line_note(b, fr);
		b->module_of[i] = module_get(b, fr);
		module_note(b->module_of[i], fr);
	}
}

static void modules_emit(struct builder *b)
{
	const char *path = main_path(b->f);
	uint64_t next = FIRST_BASE;
	uint32_t id = 0;
	struct module *m, *tmp;

	HASH_ITER (hh, b->modules, m, tmp)
		m->main = *path && !strcmp(m->name, path);
	HASH_SORT(b->modules, module_order);
	HASH_ITER (hh, b->modules, m, tmp) {
		m->id = ++id;
		if (m->raw) {
			module_emit(b, m, m->min & ~(PAGE - 1), page_up(m->max));
			continue;
		}
		m->base = next;
		next += page_up(m->max);
		module_emit(b, m, m->base, next);
	}
}

/* --- locations --- */

static void line_emit(struct builder *b, struct strbuf *location, const struct fold_frame *fr)
{
	cleanup_strbuf struct strbuf line = STRBUF_INIT;

	proto_uint(&line, LINE_FUNCTION, function_id(b, fr->name, fr->file));
	proto_uint(&line, LINE_LINE, fr->line);
	proto_bytes(location, LOCATION_LINE, line.buf, line.len);
}

static uint32_t location_emit(struct builder *b, const uint32_t *frames, size_t n)
{
	const struct fold_frame *physical = &b->f->frames[frames[n - 1]];
	const struct module *m = b->module_of[frames[n - 1]];
	cleanup_strbuf struct strbuf s = STRBUF_INIT;
	uint32_t id = ++b->n_locations;

	proto_uint(&s, LOCATION_ID, id);
	proto_uint(&s, LOCATION_MAPPING, m ? m->id : 0);
	proto_uint(&s, LOCATION_ADDRESS, (m ? m->base : 0) + physical->offset);
	for (size_t i = 0; i < n; i++)
		line_emit(b, &s, &b->f->frames[frames[i]]);
	proto_bytes(&b->out, PROFILE_LOCATION, s.buf, s.len);
	return id;
}

static uint32_t location_get(struct builder *b, const uint32_t *frames, size_t n)
{
	struct chain *c;

	HASH_FIND(hh, b->chains, frames, n * sizeof(*frames), c);
	if (c)
		return c->id;
	c = mem_alloc(sizeof(*c));
	c->frames = mem_array(n, sizeof(*frames));
	memcpy(c->frames, frames, n * sizeof(*frames));
	c->id = location_emit(b, frames, n);
	HASH_ADD_KEYPTR(hh, b->chains, c->frames, n * sizeof(*frames), c);
	return c->id;
}

/* The location whose innermost frame is this node's, and (in `above`) the node to go on from. */
static uint32_t location_at(struct builder *b, uint32_t node)
{
	const struct fold *f = b->f;
	cleanup_free uint32_t *frames = NULL;
	size_t n = 0, cap = 0;
	uint32_t at = node;

	if (b->location[node])
		return b->location[node];
	for (;;) {
		const struct fold_frame *fr = &f->frames[f->nodes[at].frame];
		uint32_t up = f->nodes[at].parent;

		mem_grow(frames, n, cap);
		frames[n++] = f->nodes[at].frame;
		at = up;
		if (!fr->inlined || !up || f->frames[f->nodes[up].frame].origin == FOLD_GROUP)
			break;
	}
	b->above[node] = at;
	b->location[node] = location_get(b, frames, n);
	return b->location[node];
}

static uint32_t location_none(struct builder *b)
{
	cleanup_strbuf struct strbuf s = STRBUF_INIT, line = STRBUF_INIT;

	if (b->no_stack)
		return b->no_stack;
	b->no_stack = ++b->n_locations;
	proto_uint(&line, LINE_FUNCTION, function_id(b, "[no stack]", ""));
	proto_uint(&s, LOCATION_ID, b->no_stack);
	proto_bytes(&s, LOCATION_LINE, line.buf, line.len);
	proto_bytes(&b->out, PROFILE_LOCATION, s.buf, s.len);
	return b->no_stack;
}

/* --- samples --- */

static void label(struct builder *b, struct strbuf *sample, const char *key, const char *str,
		  uint64_t num)
{
	cleanup_strbuf struct strbuf m = STRBUF_INIT;

	if (str && !*str)
		return;
	proto_uint(&m, LABEL_KEY, string_id(b, key));
	if (str)
		proto_uint(&m, LABEL_STR, string_id(b, str));
	else
		proto_uint(&m, LABEL_NUM, num);
	proto_bytes(sample, SAMPLE_LABEL, m.buf, m.len);
}

/* Of two kinds in one file the one of the smaller number comes first. */
static bool with_first(const struct fold *f)
{
	return f->kind->with && f->kind->with < f->kind->kind;
}

/* A kind that only counts has one number. */
static bool only_counts(const struct store_kind_info *k)
{
	return !strcmp(k->pprof_n, k->pprof_value);
}

/* What is subtracted is negative. */
static void pair_add(struct strbuf *packed, const struct store_kind_info *k, bool base, uint64_t n,
		     uint64_t value)
{
	proto_varint(packed, base ? -n : n);
	if (!only_counts(k))
		proto_varint(packed, base ? -value : value);
}

static void values_add(struct strbuf *packed, const struct fold *f, const struct fold_leaf *leaf)
{
	const struct fold_with with = f->with ? f->with[leaf - f->leaves] : (struct fold_with){0};

	if (with_first(f))
		pair_add(packed, store_kind_info(f->kind->with), leaf->base, with.samples, with.ns);
	pair_add(packed, f->kind, leaf->base, leaf->samples, leaf->ns);
	if (f->kind->with && !with_first(f))
		pair_add(packed, store_kind_info(f->kind->with), leaf->base, with.samples, with.ns);
}

struct told_label {
	struct builder *b;
	struct strbuf *sample;
};

static void label_told(void *ctx, const char *key, const char *text, int64_t number,
		       const char *unit)
{
	const struct told_label *t = ctx;
	cleanup_strbuf struct strbuf m = STRBUF_INIT;

	proto_uint(&m, LABEL_KEY, string_id(t->b, key));
	if (text)
		proto_uint(&m, LABEL_STR, string_id(t->b, text));
	else
		proto_uint(&m, LABEL_NUM, (uint64_t)number);
	if (!text && *unit)
		proto_uint(&m, LABEL_UNIT, string_id(t->b, unit));
	proto_bytes(t->sample, SAMPLE_LABEL, m.buf, m.len);
}

static void labels_add(struct builder *b, struct strbuf *s, const struct fold_leaf *leaf)
{
	const struct fold *f = b->f;
	const struct fold_process *p = &f->processes[leaf->process];

	label(b, s, "pprof::base", leaf->base ? "true" : "", 0);
	if (f->kind->sized && leaf->label)
		label(b, s, "bytes", NULL, leaf->label);
	label(b, s, "pid", NULL, p->pid);
	label(b, s, "tid", NULL, leaf->tid);
	label(b, s, "thread", leaf->thread ? leaf->thread : "", 0);
	label(b, s, "comm", p->comm, 0);
	label(b, s, "container", p->container, 0);
	label(b, s, "container_id", p->container_id, 0);
	labels_each(leaf->labels, label_told, &(struct told_label){b, s});
}

static void sample_emit(struct builder *b, const struct fold_leaf *leaf)
{
	const struct fold *f = b->f;
	cleanup_strbuf struct strbuf s = STRBUF_INIT, packed = STRBUF_INIT;
	uint32_t node = leaf->node;

	while (node && f->frames[f->nodes[node].frame].origin != FOLD_GROUP) {
		proto_varint(&packed, location_at(b, node));
		node = b->above[node];
	}
	if (!packed.len)
		proto_varint(&packed, location_none(b));
	proto_bytes(&s, SAMPLE_LOCATION, packed.buf, packed.len);
	strbuf_reset(&packed);
	values_add(&packed, f, leaf);
	proto_bytes(&s, SAMPLE_VALUE, packed.buf, packed.len);
	if (!b->bare)
		labels_add(b, &s, leaf);
	proto_bytes(&b->out, PROFILE_SAMPLE, s.buf, s.len);
}

static void comments_emit(struct builder *b)
{
	const struct fold *f = b->f;
	cleanup_strbuf struct strbuf packed = STRBUF_INIT, text = STRBUF_INIT;

	strbuf_addf(&text, "sonde %s profile of %s, kernel %s", f->kind->name,
		    f->host ? f->host : "?", f->kernel ? f->kernel : "?");
	proto_varint(&packed, string_id(b, strbuf_str(&text)));
	for (size_t i = 0; i < f->n_losses; i++) {
		strbuf_reset(&text);
		strbuf_addf(&text, "lost %llu samples: %s", (unsigned long long)f->losses[i].n,
			    f->losses[i].reason);
		proto_varint(&packed, string_id(b, strbuf_str(&text)));
	}
	proto_bytes(&b->out, PROFILE_COMMENT, packed.buf, packed.len);
}

static const char *pprof_unit(enum store_unit u)
{
	return u == STORE_TIME ? "nanoseconds" : u == STORE_BYTES ? "bytes" : "count";
}

static void sample_types(struct builder *b, const struct store_kind_info *k)
{
	value_type(b, PROFILE_SAMPLE_TYPE, k->pprof_n, pprof_unit(k->unit_n));
	if (!only_counts(k))
		value_type(b, PROFILE_SAMPLE_TYPE, k->pprof_value, pprof_unit(k->unit_value));
}

/* As Go's own: of memory the rate of the sampling; what counts each event has a period of one. */
static void period_emit(struct builder *b)
{
	const struct store_kind_info *k = b->f->kind;
	bool cpu = k->kind == STORE_KIND_CPU;

	if (cpu)
		value_type(b, PROFILE_PERIOD_TYPE, k->pprof_value, pprof_unit(k->unit_value));
	else if (k->sized)
		value_type(b, PROFILE_PERIOD_TYPE, "space", "bytes");
	else
		value_type(b, PROFILE_PERIOD_TYPE, k->pprof_n, pprof_unit(k->unit_n));
	proto_uint(&b->out, PROFILE_PERIOD, cpu || k->sized ? b->f->period_ns : 1);
}

static void head_emit(struct builder *b)
{
	const struct fold *f = b->f;

	string_id(b, ""); /* index 0, by the format */
	if (with_first(f))
		sample_types(b, store_kind_info(f->kind->with));
	sample_types(b, f->kind);
	if (f->kind->with && !with_first(f))
		sample_types(b, store_kind_info(f->kind->with));
	period_emit(b);
	proto_uint(&b->out, PROFILE_DEFAULT_TYPE,
		   string_id(b, f->unit == f->kind->unit_value ? f->kind->pprof_value :
								 f->kind->pprof_n));
	proto_uint(&b->out, PROFILE_TIME, (uint64_t)f->from_ns);
	proto_uint(&b->out, PROFILE_DURATION,
		   f->to_ns > f->from_ns ? (uint64_t)(f->to_ns - f->from_ns) : 0);
	comments_emit(b);
}

static void builder_release(struct builder *b)
{
	struct text *t, *t2;
	struct module *m, *m2;
	struct chain *c, *c2;

	HASH_ITER (hh, b->texts, t, t2) {
		HASH_DEL(b->texts, t);
		free(t->str);
		free(t);
	}
	HASH_ITER (hh, b->modules, m, m2) {
		HASH_DEL(b->modules, m);
		free(m->key);
		free(m);
	}
	HASH_ITER (hh, b->chains, c, c2) {
		HASH_DEL(b->chains, c);
		free(c->frames);
		free(c);
	}
	idmap_release(&b->functions);
	idmap_release(&b->first_lines);
	strbuf_release(&b->out);
	strbuf_release(&b->strings);
	free(b->module_of);
	free(b->location);
	free(b->above);
}

/* --- the file --- */

static void gzip_add(struct gzip *g, const struct strbuf *s, int flush)
{
	unsigned char buf[1 << 16];
	size_t n;

	g->z.next_in = (unsigned char *)s->buf;
	g->z.avail_in = (uInt)s->len;
	do {
		if (g->error)
			return;
		g->z.next_out = buf;
		g->z.avail_out = sizeof(buf);
		deflate(&g->z, flush);
		n = sizeof(buf) - g->z.avail_out;
		if (fwrite(buf, 1, n, g->out) != n)
			g->error = -EIO;
	} while (!g->z.avail_out);
}

#define AT_ONCE (1u << 20) /* bytes of the message that wait for gzip */

static void passed_on(struct builder *b, struct strbuf *s)
{
	if (!b->gzip || s->len < AT_ONCE)
		return;
	gzip_add(b->gzip, s, Z_NO_FLUSH);
	strbuf_reset(s);
}

/* What gzip did not take yet is in `out` and `strings`. */
static void encode(struct builder *b)
{
	const struct fold *f = b->f;

	b->module_of = mem_array(f->n_frames + 1, sizeof(struct module *));
	b->location = mem_array(f->n_nodes + 1, sizeof(uint32_t));
	b->above = mem_array(f->n_nodes + 1, sizeof(uint32_t));
	head_emit(b);
	modules_collect(b);
	modules_emit(b);
	for (size_t i = 0; i < f->n_leaves; i++) {
		sample_emit(b, &f->leaves[i]);
		passed_on(b, &b->out);
		passed_on(b, &b->strings); /* their order is what counts, not their place */
	}
	strbuf_add(&b->out, b->strings.buf, b->strings.len);
}

static void encode_whole(const struct fold *f, bool bare, struct strbuf *out)
{
	struct builder b = {.f = f, .bare = bare};

	encode(&b);
	strbuf_add(out, b.out.buf, b.out.len);
	builder_release(&b);
}

void pprof_encode(const struct fold *f, struct strbuf *out)
{
	encode_whole(f, false, out);
}

void pprof_encode_bare(const struct fold *f, struct strbuf *out)
{
	encode_whole(f, true, out);
}

#define GZIP_WINDOW (15 + 16) /* zlib: the largest window, with a gzip header */

int pprof_write(const struct fold *f, FILE *out)
{
	struct gzip g = {.out = out};
	struct builder b = {.f = f, .gzip = &g};

	if (deflateInit2(&g.z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	encode(&b);
	gzip_add(&g, &b.out, Z_FINISH);
	builder_release(&b);
	deflateEnd(&g.z);
	return g.error;
}
