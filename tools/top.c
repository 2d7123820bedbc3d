/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/top.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define uthash_fatal(msg) abort()
#include <uthash.h>

#define NO_ROW UINT32_MAX

struct function {
	char *key; /* name, NUL, module */
	uint32_t row;
	UT_hash_handle hh;
};

static char *function_key(const struct fold_frame *fr, size_t *len)
{
	size_t name = strlen(fr->name) + 1, module = strlen(fr->module);
	char *key = mem_alloc(name + module + 1);

	memcpy(key, fr->name, name);
	memcpy(key + name, fr->module, module);
	*len = name + module;
	return key;
}

static void rows_make(struct top *top, const struct flame_tree *t)
{
	struct function *table = NULL, *f, *tmp;
	size_t cap = 0;

	for (size_t i = 0; i < t->n_frames; i++) {
		size_t len;
		char *key;

		top->row_of[i] = NO_ROW;
		if (t->frames[i].origin == FOLD_GROUP)
			continue;
		key = function_key(&t->frames[i], &len);
		HASH_FIND(hh, table, key, len, f);
		if (f) {
			free(key);
		} else {
			f = mem_alloc(sizeof(*f));
			f->key = key;
			f->row = (uint32_t)top->n_rows;
			HASH_ADD_KEYPTR(hh, table, f->key, len, f);
			mem_grow(top->rows, top->n_rows, cap);
			top->rows[top->n_rows++] = (struct top_row){.frame = (uint32_t)i, .inlined = true};
		}
		top->rows[f->row].inlined &= t->frames[i].inlined;
		top->row_of[i] = f->row;
	}
	HASH_ITER(hh, table, f, tmp) {
		HASH_DEL(table, f);
		free(f->key);
		free(f);
	}
}

/* In preorder the subtree of i is [i, end[i]). */
static uint32_t *ends_of(const struct flame_tree *t)
{
	uint32_t *end = mem_array(t->n_nodes + 1, sizeof(*end));

	for (size_t i = t->n_nodes; i-- > 0;) {
		uint32_t parent = t->nodes[i].parent;

		if (end[i] < i + 1)
			end[i] = (uint32_t)i + 1;
		if (end[parent] < end[i])
			end[parent] = end[i];
	}
	return end;
}

static void rows_sum(struct top *top, const struct flame_tree *t)
{
	cleanup_free uint32_t *end = ends_of(t);
	cleanup_free uint32_t *counted = mem_array(top->n_rows + 1, sizeof(*counted)); /* up to this node */

	for (size_t i = 0; i < t->n_nodes; i++) {
		const struct flame_node *n = &t->nodes[i];
		uint32_t row = top->row_of[n->frame];
		struct top_row *r;

		if (row == NO_ROW)
			continue;
		r = &top->rows[row];
		r->self_ns += n->self_ns;
		r->self_samples += n->self_samples;
		if (i < counted[row])
			continue;
		counted[row] = end[i];
		r->total_ns += n->total_ns;
		r->total_samples += n->total_samples;
	}
}

static int hottest_first(const void *a, const void *b, void *ctx)
{
	const struct top_row *x = a, *y = b;
	const struct fold_frame *frames = ctx;

	if (x->self_ns != y->self_ns)
		return x->self_ns < y->self_ns ? 1 : -1;
	if (x->total_ns != y->total_ns)
		return x->total_ns < y->total_ns ? 1 : -1;
	return strcmp(frames[x->frame].name, frames[y->frame].name);
}

void top_init(struct top *top, const struct flame_tree *t)
{
	cleanup_free uint32_t *moved = NULL;
	cleanup_free uint32_t *old = NULL;

	*top = (struct top){.row_of = mem_array(t->n_frames + 1, sizeof(uint32_t))};
	rows_make(top, t);
	rows_sum(top, t);
	old = mem_array(t->n_frames + 1, sizeof(*old)); /* by representative frame: the row before sorting */
	moved = mem_array(top->n_rows + 1, sizeof(*moved));
	for (size_t i = 0; i < top->n_rows; i++)
		old[top->rows[i].frame] = (uint32_t)i;
	if (top->n_rows)
		qsort_r(top->rows, top->n_rows, sizeof(*top->rows), hottest_first, t->frames);
	for (size_t i = 0; i < top->n_rows; i++)
		moved[old[top->rows[i].frame]] = (uint32_t)i;
	for (size_t i = 0; i < t->n_frames; i++)
		if (top->row_of[i] != NO_ROW)
			top->row_of[i] = moved[top->row_of[i]];
}

void top_release(struct top *top)
{
	free(top->rows);
	free(top->row_of);
	*top = (struct top){0};
}
