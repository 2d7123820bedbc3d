/* SPDX-License-Identifier: Apache-2.0 */
/* otlpdict: see the header. Field numbers are those of opentelemetry-proto 1.8's profiles.proto. */
#include "export/push/otlp/otlpdict.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/array.h"
#include "schema/base/cleanup.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/base/proto.h"
#include "schema/base/runtimes.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

enum table {
	MAPPINGS = 1,
	LOCATIONS = 2,
	FUNCTIONS = 3,
	LINKS = 4,
	TEXTS = 5,
	ATTRIBUTES = 6,
	STACKS = 7,
	TABLES_END
};
enum {
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTES = 5,
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_NAME = 1,
	FUNCTION_FILE = 3,
	FUNCTION_LINE = 4,
	STACK_LOCATIONS = 1,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	VALUE_TEXT = 1
};

struct key { /* bytes -> index in a table */
	uint8_t *bytes;
	uint32_t index;
	UT_hash_handle hh;
};

struct otlpdict {
	const struct fold *f;
	struct strbuf
		out; /* of all tables: fields may come in any order, those of one table in theirs */
	uint32_t n[TABLES_END];
	struct key *texts, *chains;
	struct idmap functions, mappings, attributes; /* two indexes of texts -> index */
	uint32_t *location, *above, *stack;           /* by node, as in pprof.c; 0: not made yet */
	uint32_t no_stack;
};

static uint32_t row_add(struct otlpdict *d, enum table table, const struct strbuf *row)
{
	proto_bytes(&d->out, table, row->buf ? row->buf : "", row->len);
	return d->n[table]++;
}

/* true: it is new, and *k has to get its index. */
static bool key_find(struct key **all, const void *bytes, size_t len, struct key **k)
{
	HASH_FIND(hh, *all, bytes, len, *k);
	if (*k)
		return false;
	*k = mem_alloc(sizeof(**k));
	(*k)->bytes = mem_alloc(len + 1);
	memcpy((*k)->bytes, bytes, len);
	HASH_ADD_KEYPTR(hh, *all, (*k)->bytes, len, *k);
	return true;
}

static void keys_free(struct key **all)
{
	struct key *k, *next;

	HASH_ITER (hh, *all, k, next) {
		HASH_DEL(*all, k);
		free(k->bytes);
		free(k);
	}
}

uint32_t otlpdict_text(struct otlpdict *d, const char *text)
{
	struct key *k;

	if (key_find(&d->texts, text, strlen(text), &k)) {
		k->index = d->n[TEXTS]++;
		proto_bytes(&d->out, TEXTS, text, strlen(text));
	}
	return k->index;
}

struct otlpdict *otlpdict_new(const struct fold *f)
{
	struct otlpdict *d = mem_alloc(sizeof(*d));
	const struct strbuf none = STRBUF_INIT;

	d->f = f;
	d->location = mem_array(f->n_nodes + 1, sizeof(*d->location));
	d->above = mem_array(f->n_nodes + 1, sizeof(*d->above));
	d->stack = mem_array(f->n_nodes + 1, sizeof(*d->stack));
	otlpdict_text(d, "");
	for (enum table t = MAPPINGS; t < TABLES_END; t++)
		if (t != TEXTS)
			row_add(d, t, &none);
	return d;
}

void otlpdict_free(struct otlpdict *d)
{
	if (!d)
		return;
	keys_free(&d->texts);
	keys_free(&d->chains);
	idmap_release(&d->functions);
	idmap_release(&d->mappings);
	idmap_release(&d->attributes);
	strbuf_release(&d->out);
	free(d->location);
	free(d->above);
	free(d->stack);
	free(d);
}

size_t otlpdict_size(const struct otlpdict *d)
{
	return d->out.len;
}

void otlpdict_write(const struct otlpdict *d, struct strbuf *out)
{
	strbuf_add(out, d->out.buf, d->out.len);
}

/* --- attributes, mappings, functions --- */

static uint32_t attribute(struct otlpdict *d, const char *key, const char *text)
{
	struct strbuf row cleanup_strbuf = STRBUF_INIT, value cleanup_strbuf = STRBUF_INIT;
	uint32_t key_at = otlpdict_text(d, key);
	bool fresh;
	uint64_t *at =
		idmap_ref(&d->attributes, (uint64_t)key_at << 32 | otlpdict_text(d, text), &fresh);

	if (!fresh)
		return (uint32_t)*at;
	proto_bytes(&value, VALUE_TEXT, text, strlen(text));
	proto_uint(&row, ATTRIBUTE_KEY, key_at);
	proto_bytes(&row, ATTRIBUTE_VALUE, value.buf, value.len);
	return (uint32_t)(*at = row_add(d, ATTRIBUTES, &row));
}

static void attribute_add(struct otlpdict *d, struct strbuf *row, unsigned field, const char *key,
			  const char *text)
{
	struct strbuf packed cleanup_strbuf = STRBUF_INIT;

	if (!*text)
		return;
	proto_varint(&packed, attribute(d, key, text));
	proto_bytes(row, field, packed.buf, packed.len);
}

static uint32_t mapping(struct otlpdict *d, const struct fold_frame *fr)
{
	const char *path = *fr->module_path ? fr->module_path : fr->module;
	struct strbuf row cleanup_strbuf = STRBUF_INIT;
	uint32_t text = otlpdict_text(d, path);
	uint64_t *at;
	bool fresh;

	if (!*path || fr->origin == FOLD_GROUP)
		return 0;
	at = idmap_ref(&d->mappings, (uint64_t)text << 32 | otlpdict_text(d, fr->build_id), &fresh);
	if (!fresh)
		return (uint32_t)*at;
	proto_uint(&row, MAPPING_FILENAME, text);
	attribute_add(d, &row, MAPPING_ATTRIBUTES, "process.executable.build_id.gnu", fr->build_id);
	return (uint32_t)(*at = row_add(d, MAPPINGS, &row));
}

static uint32_t function(struct otlpdict *d, const char *name, const char *file, uint32_t line)
{
	struct strbuf row cleanup_strbuf = STRBUF_INIT;
	uint32_t name_at = otlpdict_text(d, name), file_at = otlpdict_text(d, file);
	bool fresh;
	uint64_t *at = idmap_ref(&d->functions, (uint64_t)name_at << 32 | file_at, &fresh);

	if (!fresh)
		return (uint32_t)*at;
	proto_uint(&row, FUNCTION_NAME, name_at);
	proto_uint(&row, FUNCTION_FILE, file_at);
	proto_uint(&row, FUNCTION_LINE, line);
	return (uint32_t)(*at = row_add(d, FUNCTIONS, &row));
}

/* --- locations and stacks --- */

/* As the conventions name them; "" of what they have no word for. */
static const char *frame_type(const struct fold_frame *fr)
{
	static const char *const runtimes[][2] = {{"python", "cpython"},
						  {"ruby", "ruby"},
						  {"php", "php"},
						  {"javascript", "v8js"},
						  {"java", "jvm"}};

	if (fr->origin == FOLD_KERNEL || fr->origin == FOLD_NATIVE || fr->origin == FOLD_GO)
		return fr->origin == FOLD_KERNEL ? "kernel" :
		       fr->origin == FOLD_GO     ? "go" :
						   "native";
	for (size_t i = 0; fr->origin == FOLD_SCRIPT && i < ARRAY_SIZE(runtimes); i++)
		if (!strcmp(runtimes[i][0], runtime_name(fr->runtime)))
			return runtimes[i][1];
	return "";
}

static void line_add(struct otlpdict *d, struct strbuf *row, const struct fold_frame *fr)
{
	struct strbuf line cleanup_strbuf = STRBUF_INIT;

	proto_uint(&line, LINE_FUNCTION, function(d, fr->name, fr->file, fr->function_line));
	proto_uint(&line, LINE_LINE, fr->line);
	proto_bytes(row, LOCATION_LINES, line.buf, line.len);
}

/* Frames of one location, the innermost first. */
static uint32_t location_of(struct otlpdict *d, const uint32_t *frames, size_t n)
{
	const struct fold_frame *physical = &d->f->frames[frames[n - 1]];
	struct strbuf row cleanup_strbuf = STRBUF_INIT;
	struct key *k;

	if (!key_find(&d->chains, frames, n * sizeof(*frames), &k))
		return k->index;
	proto_uint(&row, LOCATION_MAPPING, mapping(d, physical));
	proto_uint(&row, LOCATION_ADDRESS, physical->offset);
	for (size_t i = 0; i < n; i++)
		line_add(d, &row, &d->f->frames[frames[i]]);
	attribute_add(d, &row, LOCATION_ATTRIBUTES, "profile.frame.type", frame_type(physical));
	return k->index = row_add(d, LOCATIONS, &row);
}

/* The location whose innermost frame is this node's; d->above[node] is the node to go on from. */
static uint32_t location_at(struct otlpdict *d, uint32_t node)
{
	const struct fold *f = d->f;
	cleanup_free uint32_t *frames = NULL;
	size_t n = 0, cap = 0;
	uint32_t at = node;
	bool more = true;

	if (d->location[node])
		return d->location[node];
	while (more) {
		const struct fold_frame *fr = &f->frames[f->nodes[at].frame];

		mem_grow(frames, n, cap);
		frames[n++] = f->nodes[at].frame;
		at = f->nodes[at].parent;
		more = fr->inlined && at;
	}
	d->above[node] = at;
	return d->location[node] = location_of(d, frames, n);
}

static uint32_t stack_none(struct otlpdict *d)
{
	static const struct fold_frame none = {.name = "[no stack]",
					       .module = "",
					       .module_path = "",
					       .build_id = "",
					       .file = "",
					       .origin = FOLD_UNKNOWN};
	struct strbuf row cleanup_strbuf = STRBUF_INIT, packed cleanup_strbuf = STRBUF_INIT;

	if (d->no_stack)
		return d->no_stack;
	line_add(d, &row, &none);
	proto_varint(&packed, row_add(d, LOCATIONS, &row));
	strbuf_reset(&row);
	proto_bytes(&row, STACK_LOCATIONS, packed.buf, packed.len);
	return d->no_stack = row_add(d, STACKS, &row);
}

uint32_t otlpdict_stack(struct otlpdict *d, uint32_t node)
{
	struct strbuf row cleanup_strbuf = STRBUF_INIT, packed cleanup_strbuf = STRBUF_INIT;

	if (!node)
		return stack_none(d);
	if (d->stack[node])
		return d->stack[node];
	for (uint32_t at = node; at; at = d->above[at])
		proto_varint(&packed, location_at(d, at));
	proto_bytes(&row, STACK_LOCATIONS, packed.buf, packed.len);
	return d->stack[node] = row_add(d, STACKS, &row);
}
