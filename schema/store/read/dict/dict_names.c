/* SPDX-License-Identifier: Apache-2.0 */
/* dict_names: images, functions and frames of a dictionary; see dict_rows.h. Missing rows stay
 * zeroed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "schema/store/read/dict/dict_rows.h"

struct function {
	const char *name, *file;
	uint32_t line;
};

struct functions {
	struct function *items;
	size_t n;
	const char **source; /* by source.id: many functions share one */
	size_t n_sources;
};

static void image_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->images[id] = (struct store_image_row){
		.kind = (enum store_image_kind)dict_rows_id(r, 1, STORE_IMAGE_SCRIPT_END),
		.name = dict_rows_text(s, r, 2),
		.path = dict_rows_text(s, r, 3),
		.build_id = dict_rows_text(s, r, 4),
		.interpreter = "",
	};
	if (s->images[id].kind >= STORE_IMAGE_SCRIPT)
		s->images[id].interpreter = dict_rows_text(s, r, 5);
}

static void source_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct functions *f = ctx;

	f->source[id] = dict_rows_text(s, r, 1);
}

/* Its file is in the table of sources, or in its own row. */
static void function_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct functions *f = ctx;
	const char *file = f->source[dict_rows_id(r, 4, f->n_sources)];

	f->items[id] =
		(struct function){dict_rows_text(s, r, 1), file ? file : dict_rows_text(s, r, 3),
				  dict_rows_u32(r, 2)};
}

#define FUNCTIONS "id, name, line, file, source"
#define FRAMES    "id, image, offset, function, line, flags, outer"

static int functions_room(struct store_segment *s, struct functions *f, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM function", &f->n, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM source", &f->n_sources, e);
	if (rc)
		return rc;
	f->items = mem_array(f->n, sizeof(*f->items));
	f->source = mem_array(f->n_sources, sizeof(*f->source));
	return 0;
}

static int load_functions(struct store_segment *s, struct functions *f, struct err *e)
{
	int rc = functions_room(s, f, e);

	if (!rc)
		rc = dict_rows_each(s, "id, path", "source", f->n_sources, source_row, f, e);
	if (!rc)
		rc = dict_rows_each(s, FUNCTIONS, "function", f->n, function_row, f, e);
	return rc;
}

static const char *unnamed(struct store_segment *s, uint32_t image, uint64_t offset)
{
	const char *module = image ? s->images[image].name : "";
	char hex[24];
	char *name;
	const char *kept;
	size_t len;

	len = (size_t)snprintf(hex, sizeof(hex), "+0x%llx", (unsigned long long)offset);
	if (!*module)
		module = "[unknown]";
	name = mem_alloc(strlen(module) + len + 1);
	memcpy(name, module, strlen(module));
	memcpy(name + strlen(module), hex, len + 1);
	kept = dict_rows_keep(&s->strings, name, strlen(name));
	free(name);
	return kept;
}

/* `n`: slots of the table. */
static struct store_frame_row frame_of(struct store_segment *s, const struct dict_row *r,
				       const struct functions *fs, size_t n)
{
	uint32_t function = dict_rows_id(r, 3, fs->n);
	const struct function *fn = &fs->items[function];
	struct store_frame_row f = {
		.image = dict_rows_id(r, 1, s->dict.n_images),
		.offset = (uint64_t)dict_rows_int(r, 2),
		.line = dict_rows_u32(r, 4),
		.outer = dict_rows_id(r, 6, n),
		.inlined = dict_rows_int(r, 5) & 1,
		.folded = dict_rows_int(r, 5) & 2,
	};
	bool named = fn->name && *fn->name;

	f.function = named ? function : 0;
	f.name = named ? fn->name : unnamed(s, f.image, f.offset);
	f.file = named ? fn->file : "";
	f.function_line = named ? fn->line : 0;
	return f;
}

static void frame_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	s->frames[id] = frame_of(s, r, ctx, s->dict.n_frames);
}

int dict_images_load(struct store_segment *s, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM image", &s->dict.n_images, e);

	if (rc)
		return rc;
	s->images = mem_array(s->dict.n_images, sizeof(*s->images));
	for (size_t i = 0; i < s->dict.n_images; i++)
		s->images[i] = (struct store_image_row){.name = "", .path = "", .build_id = ""};
	return dict_rows_each(s, "id, kind, name, path, build_id, key", "image", s->dict.n_images,
			      image_row, NULL, e);
}

static const struct store_frame_row NOWHERE = {.name = "[unknown]", .file = ""};

int dict_names_load(struct store_segment *s, struct err *e)
{
	struct functions f = {0};
	int rc = dict_images_load(s, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM frame", &s->dict.n_frames, e);
	if (!rc)
		s->frames = mem_array(s->dict.n_frames, sizeof(*s->frames));
	for (size_t i = 0; !rc && i < s->dict.n_frames; i++)
		s->frames[i] = NOWHERE;
	if (!rc)
		rc = load_functions(s, &f, e);
	if (!rc)
		rc = dict_rows_each(s, FRAMES, "frame", s->dict.n_frames, frame_row, &f, e);
	free(f.items);
	free(f.source);
	return rc;
}

/* --- some of them --- */

struct some {
	struct functions f;
	struct dict_one frames, functions, sources;
	size_t n_ids;       /* slots of the table */
	struct idmap place; /* id -> where it is among the frames */
	size_t cap;
	uint32_t at, outer; /* the frame that is read: its place, the one around it */
	int rc;
	struct err *e;
};

/* The file that a function is in. */
static void source_ref(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct some *x = ctx;
	uint32_t source = dict_rows_id(r, 4, x->f.n_sources);

	if (source && !x->f.source[source])
		x->rc = dict_one_row(s, &x->sources, source, source_row, &x->f, x->e);
	if (!x->rc)
		function_row(s, r, id, &x->f);
}

/* Its function first. */
static void frame_some_row(struct store_segment *s, const struct dict_row *r, uint32_t id,
			   void *ctx)
{
	struct some *x = ctx;
	uint32_t function = dict_rows_id(r, 3, x->f.n);

	(void)id;
	if (function && !x->f.items[function].name)
		x->rc = dict_one_row(s, &x->functions, function, source_ref, x, x->e);
	s->frames[x->at] = frame_of(s, r, &x->f, x->n_ids);
	x->outer = s->frames[x->at].outer;
	s->frames[x->at].outer = 0; /* until that one has a place */
}

static uint32_t frame_place(struct store_segment *s, struct some *x, uint32_t id, bool *fresh)
{
	uint64_t *place = idmap_ref(&x->place, id, fresh);

	if (*fresh) {
		mem_grow(s->frames, s->dict.n_frames, x->cap);
		*place = s->dict.n_frames;
		s->frames[s->dict.n_frames++] = NOWHERE;
	}
	return (uint32_t)*place;
}

/* A frame, and those around it; *place: where it is. */
static int frame_load(struct store_segment *s, struct some *x, uint32_t frame, uint32_t *place,
		      struct err *e)
{
	bool fresh = true;
	int rc = 0;

	*place = 0;
	for (uint32_t inner = 0; !rc && frame && fresh; frame = x->outer) {
		x->at = frame_place(s, x, frame, &fresh);
		if (inner)
			s->frames[inner].outer = x->at;
		else
			*place = x->at;
		inner = x->at;
		x->outer = 0;
		if (!fresh)
			break;
		rc = dict_one_row(s, &x->frames, frame, frame_some_row, x, e);
		if (!rc)
			rc = x->rc;
	}
	return rc;
}

static int some_open(struct store_segment *s, struct some *x, struct err *e)
{
	int rc = dict_one_open(s, &x->frames, "SELECT " FRAMES " FROM frame WHERE id = ?1", e);

	if (!rc)
		rc = dict_one_open(s, &x->functions,
				   "SELECT " FUNCTIONS " FROM function WHERE id = ?1", e);
	return rc ? rc :
		    dict_one_open(s, &x->sources, "SELECT id, path FROM source WHERE id = ?1", e);
}

static void some_close(struct some *x)
{
	dict_one_close(&x->frames);
	dict_one_close(&x->functions);
	dict_one_close(&x->sources);
	idmap_release(&x->place);
	free(x->f.items);
	free(x->f.source);
}

int dict_frames_some(struct store_segment *s, const struct dict_nodes *nodes, struct err *e)
{
	struct some x = {.n_ids = nodes->n_frames, .e = e};
	int rc = functions_room(s, &x.f, e);
	uint32_t *frame = s->tree.frame;
	bool fresh;

	s->dict.n_frames = 0;
	frame_place(s, &x, 0, &fresh);
	if (!rc)
		rc = some_open(s, &x, e);
	for (size_t i = 1; !rc && i < s->tree.n; i++)
		if (nodes->kept[i] == DICT_NODE_NAMED)
			rc = frame_load(s, &x, frame[i] < x.n_ids ? frame[i] : 0, &frame[i], e);
	for (size_t i = 1; !rc && i < s->tree.n; i++) {
		uint32_t image = frame[i] < x.n_ids ? nodes->script[frame[i]] : 0;

		if (nodes->kept[i] == DICT_NODE_NAMED)
			continue;
		frame[i] = frame_place(s, &x, frame[i] < x.n_ids ? frame[i] : 0, &fresh);
		if (fresh)
			s->frames[frame[i]].image = image;
	}
	some_close(&x);
	return rc;
}
