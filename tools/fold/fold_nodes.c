/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/fold_parts.h"
#include "tools/fold/ranking/memsite.h"

#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"
#include "schema/base/strbuf.h"

/* one in this many stacks is remembered by group, so that its nodes are found again quickly */
#define WAYMARK 16

/* --- frames --- */

static enum fold_origin origin_of(const struct store_image_row *image, bool named)
{
	if (image->kind >= STORE_IMAGE_SCRIPT)
		return FOLD_SCRIPT;
	switch (image->kind) {
	case STORE_IMAGE_KERNEL:
	case STORE_IMAGE_MODULE:
	case STORE_IMAGE_BPF:
		return FOLD_KERNEL;
	case STORE_IMAGE_JIT:
		return FOLD_JIT;
	case STORE_IMAGE_UNKNOWN:
		return named ? FOLD_NATIVE : FOLD_UNKNOWN;
	default:
		return FOLD_NATIVE;
	}
}

/* The dictionary has a path once. */
static const char *path_text(struct folding *f, const char *raw)
{
	struct seg_path *p = &f->seg_path[(uintptr_t)raw / 16 % FOLD_PATHS];

	if (p->raw != raw)
		*p = (struct seg_path){raw, fold_text(f->b, raw)};
	return p->text;
}

/* What a function is called, and its file, as the fold's own strings. */
static struct seg_function function_of(struct folding *f, const struct store_frame_row *row)
{
	struct seg_function *known = &f->seg_function[row->function], fn = *known;

	if (fn.name)
		return fn;
	fn = (struct seg_function){fold_text(f->b, row->name),
				   path_text(f, row->file ? row->file : "")};
	if (row->function)
		*known = fn;
	return fn;
}

/* "name", or "name (file.c:12)" */
static const char *frame_name(struct folding *f, const struct store_frame_row *row,
			      const struct seg_function *fn)
{
	const char *slash;
	cleanup_strbuf struct strbuf s = STRBUF_INIT;

	if (!f->opts.lines || !row->line || !*row->file)
		return fn->name;
	slash = strrchr(row->file, '/');
	strbuf_addf(&s, "%s (%s:%u)", row->name, slash && slash[1] ? slash + 1 : row->file,
		    row->line);
	return fold_text(f->b, strbuf_str(&s));
}

/* An image with its strings as the fold's own. */
static const struct store_image_row *image_of(struct folding *f, uint32_t id)
{
	static const struct store_image_row none = {"", "", "", "", STORE_IMAGE_UNKNOWN};
	const struct store_image_row *row =
		id && id < f->dict->n_images ? &f->dict->images[id] : &none;
	struct store_image_row *image = &f->seg_image[row == &none ? 0 : id];

	if (!image->name)
		*image = (struct store_image_row){
			.name = fold_text(f->b, row->name ? row->name : ""),
			.path = fold_text(f->b, row->path ? row->path : ""),
			.build_id = fold_text(f->b, row->build_id ? row->build_id : ""),
			.kind = row->kind,
		};
	return image;
}

static uint32_t frame_from(struct folding *f, uint32_t id)
{
	const struct store_frame_row *row = &f->dict->frames[id];
	const struct store_image_row *image = image_of(f, row->image);
	const struct seg_function fn = function_of(f, row);
	struct fold_frame new = {
		.name = frame_name(f, row, &fn),
		.module = image->name,
		.module_path = image->path,
		.build_id = image->build_id,
		.file = fn.file,
		.line = row->line,
		.function_line = row->function_line,
		.offset = row->offset,
		.named = row->function != 0,
		.inlined = row->inlined,
		.origin = origin_of(image, row->function != 0),
		.runtime = image->kind >= STORE_IMAGE_SCRIPT ?
				   (uint8_t)(image->kind - STORE_IMAGE_SCRIPT) :
				   0,
	};

	return (f->opts.flat      ? fold_add_named :
		f->opts.functions ? fold_add_function :
				    fold_add_frame)(f->b, &new);
}

uint32_t fold_frame_of(struct folding *f, uint32_t id)
{
	if (!f->seg_frame[id])
		f->seg_frame[id] = frame_from(f, id) + 1;
	return f->seg_frame[id] - 1;
}

/* --- nodes --- */

static bool known_node(const struct folding *f, uint32_t group, uint32_t stack, uint64_t *node)
{
	if (f->seg_plain[stack] && f->seg_group[stack] == group) {
		*node = f->seg_plain[stack];
		return true;
	}
	return group && stack % WAYMARK == 0 &&
	       idmap_get(&f->seg_node, (uint64_t)group << 32 | stack, node);
}

bool fold_leaves_out(const struct folding *f, uint32_t stack)
{
	return (f->seg_hidden && f->seg_hidden[stack]) ||
	       (f->opts.no_inline && f->dict->frames[f->dict->stack_frame[stack]].inlined);
}

uint32_t fold_child_of(struct folding *f, uint32_t parent, uint32_t stack)
{
	uint32_t frame = f->dict->stack_frame[stack];

	return fold_leaves_out(f, stack) ? parent :
					   fold_child(f->b, parent, fold_frame_of(f, frame));
}

static bool made_by_script(enum store_image_kind kind)
{
	return kind >= STORE_IMAGE_SCRIPT || kind == STORE_IMAGE_JIT;
}

uint32_t *fold_script_stacks(const struct store_dict *d)
{
	for (size_t i = 0; i < d->n_images; i++)
		if (made_by_script(d->images[i].kind))
			return mem_array(d->n_stacks + 1, sizeof(uint32_t));
	return NULL;
}

static bool is_script(struct folding *f, uint32_t stack)
{
	const uint32_t id = f->dict->stack_frame[stack];
	uint32_t frame;

	if (!made_by_script(image_of(f, f->dict->frames[id].image)->kind) ||
	    fold_leaves_out(f, stack))
		return false;
	frame = fold_frame_of(f, id);
	return memsite_script(&f->pub->frames[frame]);
}

/* 0: none. */
static uint32_t script_of(struct folding *f, uint32_t stack)
{
	uint32_t at = stack, found;

	while (at && !f->seg_script[at] && !is_script(f, at))
		at = f->dict->stack_parent[at];
	found = !at ? UINT32_MAX : f->seg_script[at] ? f->seg_script[at] : at;
	for (; stack != at; stack = f->dict->stack_parent[stack])
		f->seg_script[stack] = found;
	if (at)
		f->seg_script[at] = found;
	return found == UINT32_MAX ? 0 : found;
}

uint32_t fold_leaf_of_stack(struct folding *f, uint32_t stack)
{
	const uint32_t first = stack;

	if (f->seg_plain[first])
		return f->seg_plain[first] - 1;
	if (f->seg_script && script_of(f, stack))
		stack = script_of(f, stack);
	while (stack && fold_leaves_out(f, stack))
		stack = f->dict->stack_parent[stack];
	f->seg_plain[first] = stack ? fold_child_of(f, 0, stack) + 1 : 1;
	return f->seg_plain[first] - 1;
}

uint32_t fold_innermost(struct folding *f, uint32_t group, uint32_t stack)
{
	while (stack && fold_leaves_out(f, stack))
		stack = f->dict->stack_parent[stack];
	return stack ? fold_child_of(f, group, stack) : group;
}

/* Walks up to the nearest ancestor that is known, then down again. */
static uint32_t node_of_path(struct folding *f, uint32_t group, uint32_t stack)
{
	cleanup_free uint32_t *path = NULL;
	size_t n = 0, cap = 0;
	uint64_t node = group;

	for (uint32_t s = stack; s; s = f->dict->stack_parent[s]) {
		if (known_node(f, group, s, &node))
			break;
		mem_grow(path, n, cap);
		path[n++] = s;
	}
	while (n--) {
		node = fold_child_of(f, (uint32_t)node, path[n]);
		if (group && path[n] % WAYMARK == 0)
			idmap_set(&f->seg_node, (uint64_t)group << 32 | path[n], node);
		f->seg_plain[path[n]] = (uint32_t)node;
		f->seg_group[path[n]] = group;
	}
	return (uint32_t)node;
}

uint32_t fold_node_of_stack(struct folding *f, uint32_t group, uint32_t stack)
{
	bool fresh;
	uint64_t *node;

	if (!group)
		return node_of_path(f, group, stack);
	node = idmap_ref(&f->seg_leaf, (uint64_t)group << 32 | stack, &fresh);
	if (fresh)
		*node = node_of_path(f, group, stack);
	return (uint32_t)*node;
}
