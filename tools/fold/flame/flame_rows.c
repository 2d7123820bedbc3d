/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/fold/flame/flame_rows.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/hash.h"
#include "schema/base/idmap.h"
#include "schema/base/mem.h"

/* The place of a row, as its three numbers in order of weight. */
enum { PLACE_NODE, PLACE_OWNER, PLACE_SLOT };

static uint32_t place_of(const struct flame_row *r, int which)
{
	return which == PLACE_NODE ? r->node : which == PLACE_OWNER ? r->owner : r->slot;
}

static bool same_place(const struct flame_row *x, const struct flame_row *y)
{
	return x->node == y->node && x->owner == y->owner && x->slot == y->slot;
}

static bool rows_ordered(const struct flame_rows *r, int which)
{
	for (size_t i = 1; i < r->n_rows; i++)
		if (place_of(&r->rows[i - 1], which) > place_of(&r->rows[i], which))
			return false;
	return true;
}

/* Stable sort by one number below `below`: counting instead of comparing, since there may be half a
 * million. */
static void rows_sort_by(struct flame_rows *r, int which, size_t below)
{
	cleanup_free size_t *first = NULL;
	struct flame_row *to = r->spare;

	if (rows_ordered(r, which))
		return;
	first = mem_array(below + 1, sizeof(*first));
	for (size_t i = 0; i < r->n_rows; i++)
		first[place_of(&r->rows[i], which) + 1]++;
	for (size_t i = 1; i <= below; i++)
		first[i] += first[i - 1];
	for (size_t i = 0; i < r->n_rows; i++)
		to[first[place_of(&r->rows[i], which)]++] = r->rows[i];
	r->spare = r->rows;
	r->rows = to;
}

/* Names of threads are one copy each within a fold: equal ones are the same pointer. */
static uint32_t owner_of(struct flame_rows *r, struct idmap *known, const struct fold_leaf *leaf)
{
	uint64_t key = hash_u64(hash_u64(hash_u64(HASH_SEED, leaf->process), leaf->tid),
				(uintptr_t)leaf->thread),
		 i;

	for (; idmap_get(known, key, &i); key = hash_u64(key, 1)) {
		const struct flame_owner *o = &r->owners[i];

		if (o->process == leaf->process && o->tid == leaf->tid && o->thread == leaf->thread)
			return (uint32_t)i;
	}
	idmap_set(known, key, r->n_owners);
	r->owners[r->n_owners] = (struct flame_owner){leaf->process, leaf->tid, leaf->thread};
	return (uint32_t)r->n_owners++;
}

enum side { SIDE_ANY, SIDE_BASE, SIDE_OTHER };

/* One row a leaf, its owner numbered; its node is still the fold's. */
static void rows_make(struct flame_rows *r, const struct fold *f, enum side side)
{
	const bool counted = f->unit == f->kind->unit_n; /* what is drawn is how many */
	struct idmap known = {0};

	r->rows = mem_array(f->n_leaves + 1, sizeof(*r->rows));
	r->owners = mem_array(f->n_leaves + 1, sizeof(*r->owners));
	for (size_t i = 0; i < f->n_leaves; i++) {
		const struct fold_leaf *leaf = &f->leaves[i];

		if (side != SIDE_ANY && leaf->base != (side == SIDE_BASE))
			continue;
		r->rows[r->n_rows++] = (struct flame_row){
			.node = leaf->node,
			.owner = owner_of(r, &known, leaf),
			.slot = r->n_slots ? leaf->slice : 0,
			.n = leaf->samples,
			.value = counted ? leaf->samples : leaf->ns,
		};
	}
	idmap_release(&known);
}

/* Rows of one place become one; they must be in order. */
static void rows_join(struct flame_rows *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->n_rows; i++) {
		if (n && same_place(&r->rows[n - 1], &r->rows[i])) {
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
	for (uint32_t i = 0; i < r->n_slots; i++) {
		uint64_t covered = r->covered_ns[i];

		r->covered_ns[i] = 0;
		r->covered_ns[i / 2] += covered;
	}
	for (size_t i = 0; i < r->n_rows; i++)
		r->rows[i].slot /= 2;
	r->n_slots = (r->n_slots + 1) / 2;
	r->slot_ns *= 2;
	rows_join(r);
}

static void slots_init(struct flame_rows *r, const struct fold *f)
{
	r->n_slots = (uint32_t)f->n_slices;
	r->covered_ns = mem_array(f->n_slices + 1, sizeof(*r->covered_ns));
	for (size_t i = 0; i < f->n_slices; i++)
		r->covered_ns[i] = f->slices[i].covered_ns;
	if (!f->n_slices)
		return;
	/* the first slice may begin before a bucket does, the last one ends with the range: those
	 * between say the grid */
	r->slots_from_ns =
		f->n_slices > 1 ? f->slices[1].from_ns - f->slice_ns : f->slices[0].from_ns;
	r->slot_ns = f->slice_ns;
}

/* In order of owner and slot. */
static void rows_begin(struct flame_rows *r, const struct fold *f, enum side side)
{
	rows_make(r, f, side);
	r->spare = mem_array(r->n_rows + 1, sizeof(*r->spare));
	rows_sort_by(r, PLACE_SLOT, r->n_slots ? r->n_slots : 1);
	rows_sort_by(r, PLACE_OWNER, r->n_owners + 1);
}

void flame_rows_begin(struct flame_rows *r, const struct fold *f)
{
	*r = (struct flame_rows){.f = f};
	slots_init(r, f);
	rows_begin(r, f, SIDE_ANY);
}

void flame_rows_begin_side(struct flame_rows *r, const struct fold *both,
			   const struct flame_rows_side *side)
{
	*r = (struct flame_rows){.f = both, .means = side->means};
	if (!side->means)
		slots_init(r, side->f);
	rows_begin(r, both, side->base ? SIDE_BASE : SIDE_OTHER);
}

void flame_rows_end(struct flame_rows *r, const struct flame_tree *t, size_t max_rows)
{
	for (size_t i = 0; i < r->n_rows; i++)
		r->rows[i].node = t->node_of[r->rows[i].node];
	rows_sort_by(r, PLACE_NODE, t->n_nodes + 1);
	free(r->spare);
	r->spare = NULL;
	rows_join(r);
	while (r->n_rows > max_rows && r->n_slots > 1)
		slots_halve(r);
	for (size_t i = 0; r->means && i < r->n_rows; i++) {
		r->rows[i].n /= r->means;
		r->rows[i].value /= r->means;
	}
}

void flame_rows_release(struct flame_rows *r)
{
	free(r->rows);
	free(r->spare);
	free(r->owners);
	free(r->covered_ns);
	*r = (struct flame_rows){0};
}
