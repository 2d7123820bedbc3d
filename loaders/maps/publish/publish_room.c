/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish_room: which files get room for their rows when there is not enough for all.
 *
 * 1. A file in use replaces files that were not used for IDLE_NS, or never within TRIAL_NS; among
 *    these it picks adjacent ones, so that the fewest rows go. The replaced files are PENDING
 *    again, in their slots, until they are used.
 * 2. For a file that has not been used yet it only frees files that no process maps.
 * 3. It makes room for one file at a time, the longest waiting first, and no other file may take
 *    that room. A file that does not get enough room within CLAIM_NS lets the next one try.
 * 4. Parts of large files are freed too; those in use are loaded again elsewhere (publish_hot.c).
 * 5. A file without room is PENDING: the loader unwinds its stacks later.
 */
#include "loaders/maps/publish/private.h"

#include <utlist.h>

#include "loaders/maps/publish/rowparts.h"
#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"
#include "schema/base/clock.h"
#include "schema/base/log.h"

#define COUNT_NS (NSEC_PER_SEC / 5)
#define SWEEP_NS (5 * NSEC_PER_SEC)
#define IDLE_NS  (10 * NSEC_PER_SEC)
#define TRIAL_NS (2 * NSEC_PER_SEC)
#define RETRY_NS NSEC_PER_SEC
#define CLAIM_NS (5 * NSEC_PER_SEC)

/* ---- use ---- */

void publish_disclaim(struct publish *pub, const struct pimage *pi)
{
	if (pub->claimant == pi)
		pub->claimant = NULL;
}

bool publish_is_used(const struct publish *pub, const struct pimage *pi)
{
	return pi->slot && __atomic_load_n(&pub->maps->images[pi->slot].used, __ATOMIC_RELAXED);
}

static void clear_used(const struct publish *pub, const struct pimage *pi)
{
	__atomic_store_n(&pub->maps->images[pi->slot].used, 0, __ATOMIC_RELAXED);
}

/* Counts how many processes map each file; at most every COUNT_NS. */
void publish_count_users(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi;

	if (now_ns - pub->counted_ns < COUNT_NS)
		return;
	pub->counted_ns = now_ns;
	DL_FOREACH (pub->open, pi)
		pi->users = 0;
	DL_FOREACH (pub->settled, pi)
		pi->users = 0;
	for (struct proc *p = pub->world->procs; p; p = p->hh.next)
		for (size_t i = 0; i < p->maps.n_now; i++) {
			struct mimage *img = p->maps.now[i].image;

			if (img && img->published)
				img->published->users++;
		}
}

/* Notes which files were used since the last call. */
void publish_sweep_use(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi;

	if (now_ns - pub->swept_ns < SWEEP_NS)
		return;
	pub->swept_ns = now_ns;
	DL_FOREACH (pub->settled, pi) {
		if (!publish_is_used(pub, pi))
			continue;
		pi->used_ns = now_ns;
		clear_used(pub, pi);
	}
}

/* ---- room ---- */

void publish_evict(struct publish *pub, struct pimage *pi, uint64_t now_ns)
{
	publish_hot_close(pi);
	slots_set_state(&pub->slots, pi->slot, TABLES_IMAGE_PENDING);
	clear_used(pub, pi);
	rowsets_put(&pub->rowsets, pi->rows, now_ns);
	pi->rows = NULL;
	pi->evicted_ns = now_ns;
	publish_set_state(pub, pi, TABLES_IMAGE_PENDING);
	pub->evicted++;
}

bool publish_is_idle(const struct publish *pub, const struct pimage *pi, bool for_used,
		     uint64_t now_ns)
{
	if (pi->state != TABLES_IMAGE_READY || publish_is_used(pub, pi))
		return false;
	if (!for_used)
		return !pi->users;
	return pi->used_ns ? now_ns - pi->used_ns > IDLE_NS : now_ns - pi->ready_ns > TRIAL_NS;
}

/* Rows are idle if all files that have them are. For a file in use, single parts always count as
 * idle: they are loaded again elsewhere when a probe asks for them. */
static void mark_idle(const struct publish *pub, bool for_used, uint64_t now_ns)
{
	struct rowset *set;
	struct pimage *pi;

	DL_FOREACH (pub->rowsets.all, set)
		for (uint32_t k = 0; k < set->part_count; k++)
			set->parts[k].idle = for_used;

	DL_FOREACH (pub->settled, pi)
		if (pi->rows)
			pi->rows->idle = true;
	DL_FOREACH (pub->settled, pi)
		if (pi->rows && !publish_is_idle(pub, pi, for_used, now_ns))
			pi->rows->idle = false;
}

static void drop_parts(struct publish *pub, uint32_t first, uint32_t end, uint64_t now_ns)
{
	struct rowset *set;

	DL_FOREACH (pub->rowsets.all, set)
		for (uint32_t k = 0; k < set->part_count; k++)
			if (set->parts[k].n && set->parts[k].first < end &&
			    set->parts[k].first + set->parts[k].n > first)
				rowparts_drop(&pub->rowsets, set, k, now_ns);
}

/* Free rows for `pi`; they are available after the grace. false: there is nothing to free. */
static bool make_room(struct publish *pub, const struct pimage *pi, uint64_t now_ns)
{
	struct pimage *old, *next;
	uint32_t first;

	if (!pub->told_rows && publish_is_used(pub, pi)) {
		log_warn("the unwind table is full; unused entries are evicted (raise --rows-mb)");
		pub->told_rows = true;
	}
	publish_count_users(pub, now_ns);
	mark_idle(pub, publish_is_used(pub, pi), now_ns);
	if (!rowsets_window(&pub->rowsets, pi->need, &first))
		return false;
	DL_FOREACH_SAFE (pub->settled, old, next)
		if (old->rows && old->rows->first < first + pi->need &&
		    rowsets_end(old->rows) > first)
			publish_evict(pub, old, now_ns);
	drop_parts(pub, first, first + pi->need, now_ns);
	return true;
}

static void give_up(struct publish *pub, uint64_t now_ns)
{
	pub->claimant->retry_ns = now_ns + 2 * CLAIM_NS;
	pub->claimant = NULL;
}

/* Of the used files without room, the one that has waited longest. */
void publish_choose_claimant(struct publish *pub, uint64_t now_ns)
{
	struct pimage *pi, *best = NULL;

	if (pub->claimant && now_ns - pub->claimed_ns > CLAIM_NS)
		give_up(pub, now_ns);
	if (pub->claimant)
		return;
	DL_FOREACH (pub->open, pi)
		if (pi->need && publish_is_used(pub, pi) && now_ns >= pi->retry_ns &&
		    (!best || pi->waits_ns < best->waits_ns))
			best = pi;
	pub->claimant = best;
	pub->claimed_ns = now_ns;
}

bool publish_is_due(struct publish *pub, struct pimage *pi, uint64_t now_ns)
{
	if (pi->evicted_ns &&
	    (now_ns - pi->evicted_ns < TABLES_GRACE_NS || !publish_is_used(pub, pi)))
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
