/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/flame_rows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

static int by_owner(const void *a, const void *b, void *ctx)
{
	const struct fold *f = ctx;
	const struct fold_leaf *x = &f->leaves[*(const uint32_t *)a], *y = &f->leaves[*(const uint32_t *)b];

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->thread == y->thread ? 0 : strcmp(x->thread, y->thread);
}

static int by_place(const void *a, const void *b)
{
	const struct flame_row *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->owner != y->owner)
		return x->owner < y->owner ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

/* One row a leaf, its owner numbered. */
static void rows_make(struct flame_rows *r, const struct fold *f, const struct flame_tree *t)
{
	const bool counted = f->unit == f->kind->unit_n; /* what is drawn is how many */
	cleanup_free uint32_t *order = mem_array(f->n_leaves + 1, sizeof(*order));

	r->rows = mem_array(f->n_leaves + 1, sizeof(*r->rows));
	r->owners = mem_array(f->n_leaves + 1, sizeof(*r->owners));
	for (size_t i = 0; i < f->n_leaves; i++)
		order[i] = (uint32_t)i;
	qsort_r(order, f->n_leaves, sizeof(*order), by_owner, (void *)f);
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *leaf = &f->leaves[order[i]];

		if (!i || by_owner(&order[i - 1], &order[i], (void *)f))
			r->owners[r->n_owners++] = (struct flame_owner){leaf->process, leaf->tid, leaf->thread};
		r->rows[r->n_rows++] = (struct flame_row){t->node_of[leaf->node], (uint32_t)r->n_owners - 1, leaf->slice,
							  leaf->samples, counted ? leaf->samples : leaf->ns};
	}
}

/* Rows of one place become one; they must be in order. */
static void rows_join(struct flame_rows *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		if (n && !by_place(&r->rows[n - 1], &r->rows[i])) {
			r->rows[n - 1].n += r->rows[i].n;
			r->rows[n - 1].value += r->rows[i].value;
		} else {
			r->rows[n++] = r->rows[i];
		}
	}
	r->n_rows = n;
}

static void slots_halve(struct flame_rows *r)
{
	for (size_t i = 0; i < r->n_rows; i++)
		r->rows[i].slot /= 2;
	r->n_slots = (r->n_slots + 1) / 2;
	r->slot_ns *= 2;
	rows_join(r);
}

void flame_rows_init(struct flame_rows *r, const struct fold *f, const struct flame_tree *t, size_t max_rows)
{
	*r = (struct flame_rows){.f = f, .n_slots = (uint32_t)f->n_slices};
	if (f->n_slices) {
		r->slots_from_ns = f->slices[0].from_ns;
		r->slot_ns = f->slices[0].to_ns - f->slices[0].from_ns;
	}
	rows_make(r, f, t);
	qsort(r->rows, r->n_rows, sizeof(*r->rows), by_place);
	rows_join(r);
	while (r->n_rows > max_rows && r->n_slots > 1)
		slots_halve(r);
}

void flame_rows_release(struct flame_rows *r)
{
	free(r->rows);
	free(r->owners);
	*r = (struct flame_rows){0};
}
