/* SPDX-License-Identifier: Apache-2.0 */
/* dict_names: images, functions and frames of a dictionary; see dict_rows.h. Missing rows stay zeroed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"
#include "schema/store/read/dict_rows.h"

struct function {
	const char *name, *file;
	uint32_t line;
};

struct functions {
	struct function *items;
	size_t n;
	const char **source;   /* by source.id: many functions share one */
	size_t n_sources;
};

static void image_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	(void)ctx;
	s->images[id] = (struct store_image_row){
		.kind = (enum store_image_kind)dict_rows_id(r, 1, STORE_IMAGE_SCRIPT_END),
		.name = dict_rows_text(s, r, 2), .path = dict_rows_text(s, r, 3), .build_id = dict_rows_text(s, r, 4), .interpreter = "",
	};
	if (s->images[id].kind >= STORE_IMAGE_SCRIPT)
		s->images[id].interpreter = dict_rows_text(s, r, 5);
}

static void source_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct functions *f = ctx;

	f->source[id] = dict_rows_text(s, r, 1);
}

/* Its file stands in the table of sources, or with it. */
static void function_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	struct functions *f = ctx;
	const char *file = f->source[dict_rows_id(r, 4, f->n_sources)];

	f->items[id] = (struct function){dict_rows_text(s, r, 1), file ? file : dict_rows_text(s, r, 3), dict_rows_u32(r, 2)};
}

static int load_functions(struct store_segment *s, struct functions *f, struct err *e)
{
	int rc = dict_rows_slots(s, "SELECT max(id) FROM function", &f->n, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM source", &f->n_sources, e);
	if (rc)
		return rc;
	f->items = mem_array(f->n, sizeof(*f->items));
	f->source = mem_array(f->n_sources, sizeof(*f->source));
	rc = dict_rows_each(s, "id, path", "source", f->n_sources, source_row, f, e);
	if (!rc)
		rc = dict_rows_each(s, "id, name, line, file, source", "function", f->n, function_row, f, e);
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

static void frame_row(struct store_segment *s, const struct dict_row *r, uint32_t id, void *ctx)
{
	const struct functions *fs = ctx;
	uint32_t function = dict_rows_id(r, 3, fs->n);
	const struct function *fn = &fs->items[function];
	struct store_frame_row f = {
		.image = dict_rows_id(r, 1, s->dict.n_images),
		.offset = (uint64_t)dict_rows_int(r, 2),
		.line = dict_rows_u32(r, 4),
		.outer = dict_rows_id(r, 6, s->dict.n_frames),
		.inlined = dict_rows_int(r, 5) & 1,
		.folded = dict_rows_int(r, 5) & 2,
	};
	bool named = fn->name && *fn->name;

	f.function = named ? function : 0;
	f.name = named ? fn->name : unnamed(s, f.image, f.offset);
	f.file = named ? fn->file : "";
	f.function_line = named ? fn->line : 0;
	s->frames[id] = f;
}

int dict_names_load(struct store_segment *s, struct err *e)
{
	struct functions f = {0};
	size_t n_images = 0, n = 0;
	int rc = dict_rows_slots(s, "SELECT max(id) FROM image", &n_images, e);

	if (!rc)
		rc = dict_rows_slots(s, "SELECT max(id) FROM frame", &n, e);
	if (rc)
		return rc;
	s->images = mem_array(n_images, sizeof(*s->images));
	for (size_t i = 0; i < n_images; i++)
		s->images[i] = (struct store_image_row){.name = "", .path = "", .build_id = ""};
	s->frames = mem_array(n, sizeof(*s->frames));
	for (size_t i = 0; i < n; i++)
		s->frames[i] = (struct store_frame_row){.name = "[unknown]", .file = ""};
	s->dict.n_images = n_images;
	s->dict.n_frames = n;
	rc = dict_rows_each(s, "id, kind, name, path, build_id, key", "image", n_images, image_row, NULL, e);
	if (!rc)
		rc = load_functions(s, &f, e);
	if (!rc)
		rc = dict_rows_each(s, "id, image, offset, function, line, flags, outer", "frame", n, frame_row, &f, e);
	free(f.items);
	free(f.source);
	return rc;
}
