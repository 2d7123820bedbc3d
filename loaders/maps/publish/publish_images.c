/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish_images: the rows of each file.
 *
 * 1. A file gets a slot in state PENDING as soon as it is known. If the cache has its index, its
 *    rows are published at once. If not, its index is requested when the file has been mapped for
 *    AGE_NS or has a sample; files that most processes map come first.
 * 2. The distance between a mapping and its rows is not known before the index is there. So READY
 *    is another slot, and each process that maps the file gets a new slice: a program that still
 *    reads the old slice finds PENDING, never rows at a wrong distance.
 * 3. If `rows` is full: publish_room.c.
 */
#include "loaders/maps/publish/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "loaders/maps/indexing/indexer.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"
#include "probes/lib/stack.h"
#include "schema/base/cleanup.h"
#include "schema/base/clock.h"
#include "schema/base/mem.h"

#define AGE_NS (NSEC_PER_SEC / 5)
#define ASK_NS (NSEC_PER_SEC / 5)
/* Between two looks at all files, unless one has come: while programs start, the side-band is read
 * every few milliseconds. A probe asks for rows no more often (TABLES_WANTED_ROWS_NS). */
#define LOOK_NS (NSEC_PER_SEC / 25)

static void image_close_(struct image **img)
{
	image_close(*img);
}

#define cleanup_image __attribute__((cleanup(image_close_)))

/* ---- come and go ---- */

/* The image id in its frames. Beyond two million files, later ones have addresses in their frames
 * (0). */
static uint32_t frame_id(const struct mimage *img)
{
	return img->id <= FRAME_IMAGE_MAX ? img->id : 0;
}

void publish_image_new(struct publish *pub, struct mimage *img)
{
	struct tables_image as = {.state = TABLES_IMAGE_PENDING, .id = frame_id(img)};
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
	pub->news = true;
	__atomic_store_n(&pub->maps->state->last_image, img->id, __ATOMIC_RELAXED);
}

static bool is_open(const struct pimage *pi)
{
	return pi->state == TABLES_IMAGE_PENDING;
}

void publish_image_gone(struct publish *pub, struct mimage *img)
{
	struct pimage *pi = img->published;
	uint64_t now = (uint64_t)clock_boot_ns();

	if (!pub || !pi)
		return;
	img->published = NULL;
	publish_disclaim(pub, pi);
	publish_hot_close(pi);
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

	DL_FOREACH_SAFE (*list, pi, next) {
		pi->img->published = NULL;
		publish_hot_close(pi);
		DL_DELETE(*list, pi);
		free(pi);
	}
}

void publish_images_release(struct publish *pub)
{
	release_list(&pub->open);
	release_list(&pub->settled);
}

void publish_set_state(struct publish *pub, struct pimage *pi, enum tables_image_state state)
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
	publish_disclaim(pub, pi);
	if (pi->slot)
		slots_set_state(&pub->slots, pi->slot, TABLES_IMAGE_REFUSED);
	publish_set_state(pub, pi, TABLES_IMAGE_REFUSED);
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
	const uint32_t ext_first = set->first + set->page_count + set->rule_count;
	struct tables_image as = {.state = TABLES_IMAGE_READY,
				  .id = frame_id(pi->img),
				  .page_first = set->first,
				  .page_count = set->page_count,
				  .ext_first = ext_first,
				  .ext_count = set->ext_count,
				  .row_first = set->use_first ? 0 : ext_first + 2 * set->ext_count,
				  .row_count = set->row_count,
				  .use_first = set->use_first,
				  .runtime = pi->runtime};

	if (pi->evicted_ns) {
		slots_set(&pub->slots, pi->slot, &as);
	} else {
		slots_put(&pub->slots, pi->slot, now_ns);
		pi->slot = slots_get(&pub->slots, &as);
		pi->moved = pub->any_moved = true;
	}
	pi->rows = set;
	pi->ready_ns = now_ns;
	pi->used_ns = 0;
	pi->need = 0;
	publish_disclaim(pub, pi);
	publish_set_state(pub, pi, TABLES_IMAGE_READY);
}

/* Opens the image's index and its rows. false: the image is settled in another way, or not now. */
static bool open_rows(struct publish *pub, struct pimage *pi, struct image **index,
		      struct unwind_section *s)
{
	const void *data;
	size_t size;

	if (indexer_open_rows(pub->indexer, pi->img, index)) {
		pi->asked = false;
		return false;
	}
	if (!image_unwind(*index, &data, &size) || unwind_section_open(s, data, size) ||
	    !s->page_count || !rowsets_sound(s) ||
	    rowsets_elements(&pub->rowsets, s) > pub->maps->n_rows) {
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
		pi->need = rowsets_elements(&pub->rowsets, &s);
		return;
	}
	if (rc) {
		refuse(pub, pi);
		return;
	}
	if (set->refs == 1)
		publish_hot_fill(pub, set, &s);
	pi->text_base = s.text_base;
	pi->runtime = publish_runtime(pub, index, s.text_base);
	pi->process_flags = publish_process_flags(index);
	pi->n_segments = (uint32_t)image_exec_segments(index, pi->segments, PIMAGE_SEGMENTS);
	set_ready(pub, pi, set, now_ns);
}

/* ---- ticks ---- */

static bool is_library(const struct pimage *pi)
{
	return strstr(pi->img->path, ".so") || pi->img->kind == MP_IMAGE_VDSO;
}

/* Files with samples, then those that most processes map; libraries before programs. */
static int by_use(const void *a, const void *b)
{
	const struct pimage *x = *(struct pimage *const *)a, *y = *(struct pimage *const *)b;

	if (x->sampled != y->sampled)
		return x->sampled ? -1 : 1;
	if (x->users != y->users)
		return x->users > y->users ? -1 : 1;
	return is_library(y) - is_library(x);
}

static void sort_by_use(struct publish *pub, struct pimage **list, size_t n, uint64_t now_ns)
{
	if (n < 2)
		return;
	publish_count_users(pub, now_ns);
	for (size_t i = 0; i < n; i++)
		list[i]->sampled = publish_is_used(pub, list[i]);
	qsort(list, n, sizeof(*list), by_use);
}

/* files at once: for fewer, mapping each piece is cheaper than all rows (tablemaps.h), 21 MB of
 * page tables */
#define HOLD_FROM 4

static void take_all(struct publish *pub, struct pimage **ready, size_t n, uint64_t now_ns)
{
	uint64_t began = (uint64_t)clock_cpu_ns();

	if (n >= HOLD_FROM)
		tablemaps_hold(pub->maps);
	sort_by_use(pub, ready, n, now_ns);
	for (size_t i = 0; i < n; i++)
		take_rows(pub, ready[i], now_ns);
	pub->rows_cpu_ns += (uint64_t)clock_cpu_ns() - began;
}

static void look_at_open(struct publish *pub, uint64_t now_ns)
{
	cleanup_free struct pimage **ready = NULL;
	size_t n = 0, cap = 0;
	struct pimage *pi, *next;

	publish_choose_claimant(pub, now_ns);
	DL_FOREACH_SAFE (pub->open, pi, next) {
		if (pi->img->state == IMAGE_REFUSED) {
			refuse(pub, pi);
		} else if (pi->img->state == IMAGE_READY && publish_is_due(pub, pi, now_ns)) {
			mem_grow(ready, n, cap);
			ready[n++] = pi;
		}
	}
	if (n)
		take_all(pub, ready, n, now_ns);
}

/* Processes that map a file which moved to another slot get a new slice. */
static void tell_users(struct publish *pub)
{
	struct pimage *pi;

	if (!pub->any_moved)
		return;
	pub->any_moved = false;
	for (struct proc *p = pub->world->procs; p; p = p->hh.next)
		for (size_t i = 0; i < p->maps.n_now; i++) {
			const struct mimage *img = p->maps.now[i].image;

			if (img && img->published && img->published->moved) {
				world_set_changed(pub->world, p);
				break;
			}
		}
	DL_FOREACH (pub->settled, pi)
		pi->moved = false;
}

static bool may_ask(const struct publish *pub, const struct pimage *pi, uint64_t now_ns)
{
	return !pi->asked && pi->img->state == IMAGE_PENDING &&
	       (now_ns - pi->since_ns > AGE_NS || pi->img->kind == MP_IMAGE_VDSO ||
		publish_is_used(pub, pi));
}

static void ask(struct publish *pub, uint64_t now_ns)
{
	cleanup_free struct pimage **list = NULL;
	size_t n = 0, cap = 0;
	struct pimage *pi;

	DL_FOREACH (pub->open, pi) {
		if (!may_ask(pub, pi, now_ns))
			continue;
		mem_grow(list, n, cap);
		list[n++] = pi;
	}
	if (!n || now_ns - pub->asked_ns < ASK_NS)
		return;
	pub->asked_ns = now_ns;
	publish_count_users(pub, now_ns);
	sort_by_use(pub, list, n, now_ns);
	for (size_t i = 0; i < n; i++) {
		if (!list[i]->users)
			continue;
		list[i]->asked = true;
		indexer_ahead(pub->indexer, list[i]->img);
	}
}

void publish_news(struct publish *pub)
{
	if (pub)
		pub->news = true;
}

void publish_images_tick(struct publish *pub, uint64_t now_ns)
{
	if (!pub->news && now_ns - pub->images_look_ns < LOOK_NS)
		return;
	pub->news = false;
	pub->images_look_ns = now_ns;
	publish_sweep_use(pub, now_ns);
	ask(pub, now_ns);
	look_at_open(pub, now_ns);
	publish_hot_tick(pub, now_ns);
	tablemaps_let_go(pub->maps);
	tell_users(pub);
}
