/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish_take: takes over the tables of a predecessor that died. The probes keep using them: each
 * entry is valid as of the time it names, and image ids are not reused. So nothing is overwritten
 * until all running processes have been published again; then the leftovers are freed, with the
 * usual grace. Rows that are needed again are recognised by their content and stay where they are.
 */
#include "loaders/maps/publish/private.h"

#include <stdlib.h>

#include "loaders/maps/publish/tablemaps.h"
#include "loaders/maps/world/world.h"
#include "schema/base/mem.h"

struct heir_slot {
	uint32_t slot;
	struct rowset *rows;
};

struct heir {
	struct heir_slot *slots;
	size_t n_slots, cap_slots;
	struct slice **slices; /* one reference for each entry */
	size_t n_slices, cap_slices;
};

/* Rows that lie as we would have laid them. */
static struct rowset *take_rows(struct publish *pub, const struct tables_image *m)
{
	const uint32_t rule_first = m->page_first + m->page_count,
		       behind = m->ext_first + 2 * m->ext_count;

	if (m->state != TABLES_IMAGE_READY || m->ext_first < rule_first ||
	    (m->use_first ? m->use_first != behind || m->row_first : m->row_first != behind))
		return NULL;
	return rowsets_get_at(&pub->rowsets,
			      &(struct rowset){.first = m->page_first,
					       .page_count = m->page_count,
					       .rule_count = m->ext_first - rule_first,
					       .ext_count = m->ext_count,
					       .row_count = m->row_count,
					       .use_first = m->use_first});
}

static void take_slot(struct publish *pub, struct heir *h, uint32_t slot)
{
	struct heir_slot s = {.slot = slot};

	if (!arena_take_at(&pub->slots.arena, slot, 1))
		return;
	s.rows = take_rows(pub, &pub->maps->images[slot]);
	if (!s.rows && pub->maps->images[slot].state == TABLES_IMAGE_READY)
		slots_set_state(&pub->slots, slot, TABLES_IMAGE_PENDING);
	mem_grow(h->slots, h->n_slots, h->cap_slots);
	h->slots[h->n_slots++] = s;
}

static void take_entry(void *ctx, uint32_t tgid, const struct tables_process *value)
{
	struct publish *pub = ctx;
	struct heir *h = pub->heir;
	struct slice *slice = slices_get_at(&pub->slices, value->first, value->count);

	if (!slice) {
		entries_remove(&pub->entries, tgid, value->start_ns);
		return;
	}
	mem_grow(h->slices, h->n_slices, h->cap_slices);
	h->slices[h->n_slices++] = slice;
}

void publish_take_over(struct publish *pub)
{
	pub->heir = mem_alloc(sizeof(*pub->heir));
	for (uint32_t slot = 1; slot < TABLES_IMAGES; slot++)
		if (pub->maps->images[slot].state != TABLES_IMAGE_FREE)
			take_slot(pub, pub->heir, slot);
	entries_each(&pub->entries, take_entry, pub);
}

void publish_let_go(struct publish *pub, uint64_t now_ns)
{
	struct heir *h = pub->heir;

	if (!h)
		return;
	pub->heir = NULL;
	for (size_t i = 0; i < h->n_slices; i++)
		slices_put(&pub->slices, h->slices[i], now_ns);
	for (size_t i = 0; i < h->n_slots; i++) {
		slots_put(&pub->slots, h->slots[i].slot, now_ns);
		rowsets_put(&pub->rowsets, h->slots[i].rows, now_ns);
	}
	free(h->slices);
	free(h->slots);
	free(h);
}
