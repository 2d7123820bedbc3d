/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/ranking/hotlines.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"
#include "tools/fold/ranking/match.h"

#define NONE UINT32_MAX

struct frame_line {        /* by frame */
	uint32_t function; /* NONE: does not match */
	uint32_t line;     /* index into the function's lines */
};

static uint32_t function_of(struct hotlines *h, struct idmap *known, const struct fold *f,
			    uint32_t frame)
{
	const struct fold_frame *fr = &f->frames[frame];
	uint64_t key = hash_str(hash_str(HASH_SEED, fr->name), fr->module), i;

	for (; idmap_get(known, key, &i); key = hash_u64(key, 1)) {
		const struct fold_frame *other = &f->frames[h->functions[i].frame];

		if (!strcmp(other->name, fr->name) && !strcmp(other->module, fr->module))
			return (uint32_t)i;
	}
	idmap_set(known, key, h->n);
	mem_grow(h->functions, h->n, h->cap);
	h->functions[h->n] = (struct hotfunction){.frame = frame, .inlined = true};
	return (uint32_t)h->n++;
}

static uint32_t line_of(struct hotfunction *fn, const struct fold_frame *fr)
{
	const char *file = fr->line ? fr->file : "";

	for (size_t i = 0; i < fn->n_lines; i++)
		if (fn->lines[i].line == fr->line && !strcmp(fn->lines[i].file, file))
			return (uint32_t)i;
	mem_grow(fn->lines, fn->n_lines, fn->cap_lines);
	fn->lines[fn->n_lines] = (struct hotline){.file = file, .line = fr->line};
	return (uint32_t)fn->n_lines++;
}

static void places_make(struct hotlines *h, const struct fold *f, const uint8_t *hit,
			struct frame_line *places)
{
	struct idmap known = {0};

	for (size_t i = 0; i < f->n_frames; i++) {
		const struct fold_frame *fr = &f->frames[i];
		struct hotfunction *fn;

		places[i].function = NONE;
		if (!hit[i])
			continue;
		places[i].function = function_of(h, &known, f, (uint32_t)i);
		fn = &h->functions[places[i].function];
		fn->inlined &= fr->inlined;
		fn->has_lines |= fr->line != 0;
		places[i].line = line_of(fn, fr);
	}
	idmap_release(&known);
}

/* Is the function, or the very line, already there further out in this stack? */
static void above(const struct fold *f, const struct frame_line *places, uint32_t node,
		  bool *function, bool *line)
{
	const struct frame_line *me = &places[f->nodes[node].frame];

	*function = *line = false;
	while (!*line && (node = f->nodes[node].parent)) {
		const struct frame_line *p = &places[f->nodes[node].frame];

		*function |= p->function == me->function;
		*line |= p->function == me->function && p->line == me->line;
	}
}

static void node_add(struct hotlines *h, const struct fold *f, const struct frame_line *places,
		     uint32_t node)
{
	const struct fold_node *n = &f->nodes[node];
	const struct frame_line *p = &places[n->frame];
	struct hotfunction *fn = &h->functions[p->function];
	struct hotline *l = &fn->lines[p->line];
	bool function, line;

	above(f, places, node, &function, &line);
	fn->self_ns += n->self_ns;
	fn->self_samples += n->self_samples;
	l->self_ns += n->self_ns;
	l->self_samples += n->self_samples;
	if (!function) {
		fn->total_ns += n->total_ns;
		fn->total_samples += n->total_samples;
	}
	if (!line) {
		l->total_ns += n->total_ns;
		l->total_samples += n->total_samples;
	}
}

static int by_place(const void *a, const void *b)
{
	const struct hotline *x = a, *y = b;
	int files = strcmp(x->file, y->file);

	if (!x->line != !y->line)
		return x->line ? -1 : 1;
	if (files)
		return files;
	return x->line < y->line ? -1 : x->line > y->line;
}

static int hottest_first(const void *a, const void *b, void *ctx)
{
	const struct hotfunction *x = a, *y = b;
	const struct fold_frame *frames = ctx;

	if (x->has_lines != y->has_lines)
		return x->has_lines ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(frames[x->frame].name, frames[y->frame].name);
}

int hotlines_init(struct hotlines *h, const struct fold *f, const char *text, struct err *e)
{
	cleanup_free uint8_t *hit = mem_array(f->n_frames + 1, 1);
	cleanup_free struct frame_line *places = mem_array(f->n_frames + 1, sizeof(*places));
	int ret = match_functions(f->frames, f->n_frames, text, hit, e);

	if (ret)
		return ret;
	*h = (struct hotlines){0};
	places_make(h, f, hit, places);
	for (size_t i = 1; i < f->n_nodes; i++)
		if (places[f->nodes[i].frame].function != NONE)
			node_add(h, f, places, (uint32_t)i);
	for (size_t i = 0; i < h->n; i++)
		qsort(h->functions[i].lines, h->functions[i].n_lines, sizeof(struct hotline),
		      by_place);
	qsort_r(h->functions, h->n, sizeof(*h->functions), hottest_first, f->frames);
	return 0;
}

void hotlines_release(struct hotlines *h)
{
	for (size_t i = 0; i < h->n; i++)
		free(h->functions[i].lines);
	free(h->functions);
	*h = (struct hotlines){0};
}
