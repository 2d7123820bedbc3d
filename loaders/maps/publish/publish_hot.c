/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish_hot: loads the rows of large files in parts, as they are used.
 *
 * 1. A new file gets all its parts, one after the other, while less than 15/16 of `rows` is in use.
 * 2. A missing part that a probe asks for is loaded at the next tick. Until then the loader unwinds
 *    such stacks with the whole index: a missing part costs time, but no frame. Its neighbours are
 *    loaded too while there is room beyond the reserve, since calls stay close together.
 * 3. When less than 1/RESERVE of `rows` is free, it frees parts that were not used for IDLE_NS, or
 *    never, the longest unused first, until twice that is free. If a requested part still has no
 *    room, it also frees undivided files that are idle (publish_room.c, 1). Freed room is available
 *    after the grace, so it makes room once in that time. While all parts are in use it frees
 *    nothing: files do not take turns.
 * 4. The index stays open for a while: requests for parts come in bursts.
 */
#include "loaders/maps/publish/private.h"

#include <stdlib.h>
#include <utlist.h>

#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/publish/rowparts.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define IDLE_NS (10 * NSEC_PER_SEC)
#define OPEN_NS (5 * NSEC_PER_SEC)
/* a quick tick's length, about: it is read more often while programs start */
#define LOOK_NS (90 * NSEC_PER_SEC / 1000)
#define RESERVE 32u
#define NEAR    2u

void publish_hot_fill(struct publish *pub, struct rowset *set, const struct unwind_section *s)
{
	const struct arena *a = &pub->rowsets.arena;
	const uint64_t most = (uint64_t)pub->maps->n_rows / 16 * 15;

	for (uint32_t k = 0; k < set->part_count; k++) {
		if ((uint64_t)a->used + a->held_elements + rowparts_elements(s, k) > most)
			return;
		tablemaps_hold(pub->maps);
		if (rowparts_make(&pub->rowsets, set, s, k, 0))
			return;
	}
}

/* ---- room ---- */

struct candidate {
	struct rowset *set;
	uint32_t part;
	uint64_t used_ns;
};

static int by_use(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	return x->used_ns < y->used_ns ? -1 : x->used_ns > y->used_ns;
}

static struct candidate *candidates(const struct publish *pub, uint64_t now_ns, size_t *n)
{
	struct candidate *v = NULL;
	struct rowset *set;
	size_t cap = 0;

	*n = 0;
	DL_FOREACH (pub->rowsets.all, set)
		for (uint32_t k = 0; k < set->part_count; k++) {
			if (!set->parts[k].n || !rowparts_idle(set, k, now_ns - IDLE_NS))
				continue;
			mem_grow(v, *n, cap);
			v[(*n)++] = (struct candidate){set, k, set->parts[k].used_ns};
		}
	if (*n)
		qsort(v, *n, sizeof(*v), by_use);
	return v;
}

/* Parts for `most` elements, and files for `need` of them. */
static void make_room(struct publish *pub, uint64_t need, uint64_t most, uint64_t now_ns)
{
	cleanup_free struct candidate *v = NULL;
	struct pimage *pi, *next;
	uint64_t got = 0;
	size_t n;

	if (now_ns - pub->hot_room_ns < TABLES_GRACE_NS)
		return;
	pub->hot_room_ns = now_ns;
	v = candidates(pub, now_ns, &n);
	for (size_t i = 0; i < n && got < most; i++) {
		got += v[i].set->parts[v[i].part].n;
		rowparts_drop(&pub->rowsets, v[i].set, v[i].part, now_ns);
		pub->evicted++;
	}
	DL_FOREACH_SAFE (pub->settled, pi, next)
		if (got < need && pi->rows && !pi->rows->part_count &&
		    publish_is_idle(pub, pi, true, now_ns)) {
			got += rowsets_end(pi->rows) - pi->rows->first;
			publish_evict(pub, pi, now_ns);
		}
}

/* ---- what is asked for ---- */

/* Its rows are checked when it is opened: all of a large file's take milliseconds. */
static bool open_index(struct publish *pub, struct pimage *pi, struct unwind_section *s)
{
	const bool was_open = pi->index;
	const void *data;
	size_t size;

	if (!was_open && indexer_open_rows(pub->indexer, pi->img, &pi->index)) {
		indexer_ahead(pub->indexer, pi->img); /* it went from the cache */
		return false;
	}
	if (!image_unwind(pi->index, &data, &size) || unwind_section_open(s, data, size) ||
	    !rowparts_match(&pub->rowsets, pi->rows, s))
		return false;
	pi->index_sound = was_open ? pi->index_sound : rowsets_sound(s);
	return pi->index_sound;
}

static uint32_t room(const struct publish *pub)
{
	return pub->maps->n_rows - pub->rowsets.arena.used;
}

static void bring_near(struct publish *pub, struct rowset *set, const struct unwind_section *s,
		       uint32_t part)
{
	uint32_t end = part + NEAR + 1 < set->part_count ? part + NEAR + 1 : set->part_count;

	for (uint32_t k = part > NEAR ? part - NEAR : 0; k < end; k++)
		if (room(pub) < 2 * (pub->maps->n_rows / RESERVE) ||
		    rowparts_make(&pub->rowsets, set, s, k, 0))
			return;
}

/* Elements that found no room. */
static uint64_t bring(struct publish *pub, struct pimage *pi, const uint32_t *wanted, uint32_t n,
		      uint64_t now_ns)
{
	struct unwind_section s;
	uint64_t need = 0;

	if (!open_index(pub, pi, &s))
		return 0;
	pi->index_ns = now_ns;
	for (uint32_t i = 0; i < n; i++)
		if (rowparts_make(&pub->rowsets, pi->rows, &s, wanted[i], now_ns))
			need += rowparts_elements(&s, wanted[i]);
	for (uint32_t i = 0; i < n; i++)
		bring_near(pub, pi->rows, &s, wanted[i]);
	return need;
}

void publish_hot_close(struct pimage *pi)
{
	image_close(pi->index);
	pi->index = NULL;
}

void publish_hot_tick(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi;
	uint64_t need = 0, free;

	if (now_ns - pub->hot_look_ns < LOOK_NS)
		return;
	pub->hot_look_ns = now_ns;
	DL_FOREACH (pub->settled, pi) {
		cleanup_free uint32_t *wanted = NULL;
		uint32_t n;

		if (pi->index && now_ns - pi->index_ns > OPEN_NS)
			publish_hot_close(pi);
		if (!pi->rows || !pi->rows->part_count || pi->rows->looked_ns == now_ns)
			continue;
		pi->rows->looked_ns = now_ns;
		wanted = mem_array(pi->rows->part_count, sizeof(*wanted));
		n = rowparts_look(pi->rows, now_ns, wanted);
		if (n)
			need += bring(pub, pi, wanted, n, now_ns);
	}
	free = room(pub);
	if (need || free < pub->maps->n_rows / RESERVE)
		make_room(pub, need,
			  need + 2 * (uint64_t)pub->maps->n_rows / RESERVE - (need ? 0 : free),
			  now_ns);
}
