// SPDX-License-Identifier: Apache-2.0
/*
 * publish_images: the rows of each file.
 *
 * 1. A file has a slot in state PENDING from when it is known. What is in the cache is published at once. What is not is
 *    asked of the indexer when it has been mapped for AGE_NS; those that most processes map come first.
 * 2. Where its rows lie relative to a mapping is not known before its index is. So READY is another slot, and who maps
 *    the file gets a new slice: a program that still reads the old slice finds PENDING, never rows at a wrong distance.
 * 3. `rows` is full: a file that is used takes the place of some that were never used or not for IDLE_NS: those that lie
 *    so that the fewest rows have to go. They are PENDING again, in their slots, until they are used. For a file that
 *    nobody has used yet only what no process maps is given back. Room is made for one after the other, the longest waiting first, and
 *    nobody else takes of it; one for whom none comes together in CLAIM_NS lets the next one try. What finds no room is
 *    PENDING: its stacks are unwound later, by the loader.
 */
#include "loaders/maps/publish_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

#include "loaders/maps/indexer.h"
#include "loaders/maps/tablemaps.h"
#include "loaders/maps/world.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"
#include "schema/base/mem.h"

#define AGE_NS   (NSEC_PER_SEC / 5)
#define COUNT_NS (NSEC_PER_SEC / 5)
#define SWEEP_NS (5 * NSEC_PER_SEC)
#define IDLE_NS  (10 * NSEC_PER_SEC)
#define TRIAL_NS (2 * NSEC_PER_SEC) /* what is READY is given so long to be used for the first time */
#define RETRY_NS NSEC_PER_SEC
#define CLAIM_NS (5 * NSEC_PER_SEC)

static void image_close_(struct image **img)
{
	image_close(*img);
}

#define cleanup_image __attribute__((cleanup(image_close_)))

/* ---- come and go ---- */

void publish_image_new(struct publish *pub, struct mimage *img)
{
	struct tables_image as = {.state = TABLES_IMAGE_PENDING, .id = img->id};
	struct pimage *pi;

	if (!pub)
		return;
	pi = mem_alloc(sizeof(*pi));
	pi->img = img;
	pi->slot = slots_get(&pub->slots, &as);
	pi->state = TABLES_IMAGE_PENDING;
	pi->since_ns = (uint64_t)clock_boot_ns();
	img->published = pi;
	DL_APPEND(pub->open, pi);
	__atomic_store_n(&pub->maps->state->last_image, img->id, __ATOMIC_RELAXED);
}

static bool is_open(const struct pimage *pi)
{
	return pi->state == TABLES_IMAGE_PENDING;
}

static void disclaim(struct publish *pub, const struct pimage *pi)
{
	if (pub->claimant == pi)
		pub->claimant = NULL;
}

void publish_image_gone(struct publish *pub, struct mimage *img)
{
	struct pimage *pi = img->published;
	uint64_t now = (uint64_t)clock_boot_ns();

	if (!pub || !pi)
		return;
	img->published = NULL;
	disclaim(pub, pi);
	slots_put(&pub->slots, pi->slot, now);
	rowsets_put(&pub->rowsets, pi->rows, now);
	if (is_open(pi))
		DL_DELETE(pub->open, pi);
	else
		DL_DELETE(pub->settled, pi);
	free(pi);
}

static void release_list(struct pimage **list)
{
	struct pimage *pi, *next;

	DL_FOREACH_SAFE(*list, pi, next) {
		pi->img->published = NULL;
		DL_DELETE(*list, pi);
		free(pi);
	}
}

void publish_images_release(struct publish *pub)
{
	release_list(&pub->open);
	release_list(&pub->settled);
}

static void set_state(struct publish *pub, struct pimage *pi, enum tables_image_state state)
{
	bool was_open = is_open(pi);

	pi->state = state;
	if (was_open == is_open(pi))
		return;
	if (was_open) {
		DL_DELETE(pub->open, pi);
		DL_APPEND(pub->settled, pi);
	} else {
		DL_DELETE(pub->settled, pi);
		DL_APPEND(pub->open, pi);
	}
}

static void refuse(struct publish *pub, struct pimage *pi)
{
	disclaim(pub, pi);
	if (pi->slot)
		slots_set_state(&pub->slots, pi->slot, TABLES_IMAGE_REFUSED);
	set_state(pub, pi, TABLES_IMAGE_REFUSED);
}

/* ---- use ---- */

static bool is_used(const struct publish *pub, const struct pimage *pi)
{
	return pi->slot && __atomic_load_n(&pub->maps->images[pi->slot].used, __ATOMIC_RELAXED);
}

static void clear_used(const struct publish *pub, const struct pimage *pi)
{
	__atomic_store_n(&pub->maps->images[pi->slot].used, 0, __ATOMIC_RELAXED);
}

/* How many processes map each; not more often than COUNT_NS. */
static void count_users(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi;

	if (now_ns - pub->counted_ns < COUNT_NS)
		return;
	pub->counted_ns = now_ns;
	DL_FOREACH(pub->open, pi)
		pi->users = 0;
	DL_FOREACH(pub->settled, pi)
		pi->users = 0;
	for (struct proc *p = pub->world->procs; p; p = p->hh.next)
		for (size_t i = 0; i < p->maps.n_now; i++) {
			struct mimage *img = p->maps.now[i].image;

			if (img && img->published)
				img->published->users++;
		}
	for (struct proc *p = pub->world->procs; p; p = p->hh.next)
		for (size_t i = 0; i < p->n_pending; i++)
			if (p->pending[i].image && p->pending[i].image->published)
				p->pending[i].image->published->users++;
}

/* Who was used since the last look. */
static void sweep(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi;

	if (now_ns - pub->swept_ns < SWEEP_NS)
		return;
	pub->swept_ns = now_ns;
	DL_FOREACH(pub->settled, pi) {
		if (!is_used(pub, pi))
			continue;
		pi->used_ns = now_ns;
		clear_used(pub, pi);
	}
}

/* ---- room ---- */

static void evict(struct publish *pub, struct pimage *pi, uint64_t now_ns)
{
	slots_set_state(&pub->slots, pi->slot, TABLES_IMAGE_PENDING);
	clear_used(pub, pi);
	rowsets_put(&pub->rowsets, pi->rows, now_ns);
	pi->rows = NULL;
	pi->evicted_ns = now_ns;
	set_state(pub, pi, TABLES_IMAGE_PENDING);
	pub->evicted++;
}

static bool is_idle(const struct publish *pub, const struct pimage *pi, bool for_used, uint64_t now_ns)
{
	if (pi->state != TABLES_IMAGE_READY || is_used(pub, pi))
		return false;
	if (!for_used)
		return !pi->users;
	return pi->used_ns ? now_ns - pi->used_ns > IDLE_NS : now_ns - pi->ready_ns > TRIAL_NS;
}

/* Rows are idle if all files that have them are. */
static void mark_idle(const struct publish *pub, bool for_used, uint64_t now_ns)
{
	struct pimage *pi;

	DL_FOREACH(pub->settled, pi)
		if (pi->rows)
			pi->rows->idle = true;
	DL_FOREACH(pub->settled, pi)
		if (pi->rows && !is_idle(pub, pi, for_used, now_ns))
			pi->rows->idle = false;
}

/* Give rows back for `pi`; they can be taken after the grace. false: there are none to give. */
static bool make_room(struct publish *pub, const struct pimage *pi, uint64_t now_ns)
{
	struct pimage *old, *next;
	uint32_t first;

	if (!pub->told_rows)
		log_warn("the rows of all files do not fit (--rows-mb): the least used are given back");
	pub->told_rows = true;
	count_users(pub, now_ns);
	mark_idle(pub, is_used(pub, pi), now_ns);
	if (!rowsets_window(&pub->rowsets, pi->need, &first))
		return false;
	DL_FOREACH_SAFE(pub->settled, old, next)
		if (old->rows && old->rows->first < first + pi->need && rowsets_end(old->rows) > first)
			evict(pub, old, now_ns);
	return true;
}

/* ---- rows ---- */

bool publish_row_distance(const struct pimage *pi, const struct mapping *m, uint64_t *out)
{
	uint64_t vaddr;

	if (!image_exec_vaddr(pi->segments, pi->n_segments, m->offset, m->end - m->start, &vaddr))
		return false;
	*out = vaddr - pi->text_base - m->start;
	return true;
}

static void set_ready(struct publish *pub, struct pimage *pi, struct rowset *set, uint64_t now_ns)
{
	struct tables_image as = {.state = TABLES_IMAGE_READY,
				  .id = pi->img->id,
				  .page_first = set->first,
				  .page_count = set->page_count,
				  .ext_first = set->first + set->page_count,
				  .ext_count = set->ext_count,
				  .row_first = set->first + set->page_count + 2 * set->ext_count,
				  .row_count = set->row_count};

	if (pi->evicted_ns) {
		slots_set(&pub->slots, pi->slot, &as);
	} else {
		slots_put(&pub->slots, pi->slot, now_ns);
		pi->slot = slots_get(&pub->slots, &as);
		pi->moved = true;
	}
	pi->rows = set;
	pi->ready_ns = now_ns;
	pi->used_ns = 0;
	pi->need = 0;
	disclaim(pub, pi);
	set_state(pub, pi, TABLES_IMAGE_READY);
}

/* The index of the image, and its rows in it. false: it is settled otherwise, or another time. */
static bool open_rows(struct publish *pub, struct pimage *pi, struct image **index, struct unwind_section *s)
{
	cleanup_fd int fd = indexer_open(pub->indexer, pi->img);
	const void *data;
	size_t size;

	if (fd < 0) {
		pi->asked = false;
		return false;
	}
	if (image_open_fd(fd, index, NULL)) {
		indexer_want(pub->indexer, pi->img, true);
		return false;
	}
	if (!image_unwind(*index, &data, &size) || unwind_section_open(s, data, size) || !s->row_count ||
	    !rowsets_sound(s) || rowsets_elements(s) > pub->maps->n_rows) {
		refuse(pub, pi);
		return false;
	}
	return true;
}

static void take_rows(struct publish *pub, struct pimage *pi, uint64_t now_ns)
{
	cleanup_image struct image *index = NULL;
	struct unwind_section s = {0};
	struct rowset *set;
	int rc;

	if (!open_rows(pub, pi, &index, &s))
		return;
	rc = rowsets_get(&pub->rowsets, &s, &set);
	if (rc == -ENOSPC) {
		pi->waits_ns = pi->need ? pi->waits_ns : now_ns;
		pi->need = rowsets_elements(&s);
		return;
	}
	if (rc) {
		refuse(pub, pi);
		return;
	}
	pi->text_base = s.text_base;
	pi->n_segments = (uint32_t)image_exec_segments(index, pi->segments, PIMAGE_SEGMENTS);
	set_ready(pub, pi, set, now_ns);
}

/* ---- ticks ---- */

static void give_up(struct publish *pub, uint64_t now_ns)
{
	pub->claimant->retry_ns = now_ns + 2 * CLAIM_NS;
	pub->claimant = NULL;
}

/* Among those that are used and find no room, the one that waits longest. */
static void choose_claimant(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi, *best = NULL;

	if (pub->claimant && now_ns - pub->claimed_ns > CLAIM_NS)
		give_up(pub, now_ns);
	if (pub->claimant)
		return;
	DL_FOREACH(pub->open, pi)
		if (pi->need && is_used(pub, pi) && now_ns >= pi->retry_ns && (!best || pi->waits_ns < best->waits_ns))
			best = pi;
	pub->claimant = best;
	pub->claimed_ns = now_ns;
}

static bool is_due(struct publish *pub, struct pimage *pi, uint64_t now_ns)
{
	if (pi->evicted_ns && (now_ns - pi->evicted_ns < TABLES_GRACE_NS || !is_used(pub, pi)))
		return false;
	if (pub->claimant && pub->claimant != pi)
		return false;
	if (!pi->need || arena_fits(&pub->rowsets.arena, pi->need))
		return true;
	if (pub->claimant != pi && now_ns < pi->retry_ns)
		return false;
	pi->retry_ns = now_ns + RETRY_NS;
	if (!make_room(pub, pi, now_ns) && pub->claimant == pi)
		give_up(pub, now_ns);
	return false;
}

static void look_at_open(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi, *next;

	choose_claimant(pub, now_ns);
	DL_FOREACH_SAFE(pub->open, pi, next) {
		if (pi->img->state == IMAGE_REFUSED)
			refuse(pub, pi);
		else if (pi->img->state == IMAGE_READY && is_due(pub, pi, now_ns))
			take_rows(pub, pi, now_ns);
	}
}

/* Who maps a file that moved to another slot gets a new slice. */
static void tell_users(struct publish *pub)
{
	bool any = false;
	struct pimage *pi;

	DL_FOREACH(pub->settled, pi)
		any |= pi->moved;
	for (struct proc *p = any ? pub->world->procs : NULL; p; p = p->hh.next)
		for (size_t i = 0; i < p->maps.n_now; i++) {
			const struct mimage *img = p->maps.now[i].image;

			if (img && img->published && img->published->moved) {
				world_set_changed(pub->world, p);
				break;
			}
		}
	DL_FOREACH(pub->settled, pi)
		pi->moved = false;
}

static bool is_library(const struct pimage *pi)
{
	return strstr(pi->img->path, ".so") || pi->img->kind == MP_IMAGE_VDSO;
}

/* Most used first; libraries first. */
static int by_use(const void *a, const void *b)
{
	const struct pimage *x = *(struct pimage *const *)a, *y = *(struct pimage *const *)b;

	if (x->users != y->users)
		return x->users > y->users ? -1 : 1;
	return is_library(y) - is_library(x);
}

static bool may_ask(const struct pimage *pi, uint64_t now_ns)
{
	return !pi->asked && pi->img->state == IMAGE_PENDING &&
	       (now_ns - pi->since_ns > AGE_NS || pi->img->kind == MP_IMAGE_VDSO);
}

static void ask(struct publish *pub, uint64_t now_ns)
{
	cleanup_free struct pimage **list = NULL;
	size_t n = 0, cap = 0;
	struct pimage *pi;

	DL_FOREACH(pub->open, pi) {
		if (!may_ask(pi, now_ns))
			continue;
		mem_grow(list, n, cap);
		list[n++] = pi;
	}
	if (!n || now_ns - pub->asked_ns < COUNT_NS)
		return;
	pub->asked_ns = now_ns;
	count_users(pub, now_ns);
	qsort(list, n, sizeof(*list), by_use);
	for (size_t i = 0; i < n && list[i]->users; i++) {
		list[i]->asked = true;
		indexer_ahead(pub->indexer, list[i]->img);
	}
}

void publish_images_tick(struct publish *pub, uint64_t now_ns)
{
	sweep(pub, now_ns);
	ask(pub, now_ns);
	look_at_open(pub, now_ns);
	tell_users(pub);
}
