/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/slots.h"

void slots_init(struct slots *s, struct tables_image *memory, uint64_t grace_ns)
{
	s->memory = memory;
	arena_init(&s->arena, 1, TABLES_IMAGES, grace_ns);
}

void slots_release(struct slots *s)
{
	arena_release(&s->arena);
}

void slots_set_state(struct slots *s, uint32_t slot, enum tables_image_state state)
{
	__atomic_store_n(&s->memory[slot].state, (uint32_t)state, __ATOMIC_RELEASE);
}

void slots_set(struct slots *s, uint32_t slot, const struct tables_image *as)
{
	struct tables_image *m = &s->memory[slot];

	m->id = as->id;
	m->page_first = as->page_first;
	m->page_count = as->page_count;
	m->ext_first = as->ext_first;
	m->ext_count = as->ext_count;
	m->row_first = as->row_first;
	m->row_count = as->row_count;
	m->use_first = as->use_first;
	m->runtime = as->runtime;
	m->used = as->used;
	slots_set_state(s, slot, as->state);
}

uint32_t slots_get(struct slots *s, const struct tables_image *as)
{
	uint32_t slot = 0;

	if (!arena_take(&s->arena, 1, &slot))
		return 0;
	slots_set(s, slot, as);
	return slot;
}

void slots_put(struct slots *s, uint32_t slot, uint64_t now_ns)
{
	if (!slot)
		return;
	slots_set_state(
		s, slot,
		TABLES_IMAGE_PENDING); /* FREE would mean to a late reader that there is no file */
	arena_give(&s->arena, slot, 1, now_ns);
}

void slots_tick(struct slots *s, uint64_t now_ns)
{
	for (size_t i = 0; i < s->arena.n_held && arena_is_over(&s->arena, i, now_ns); i++)
		slots_set_state(s, s->arena.held[i].range.first, TABLES_IMAGE_FREE);
	arena_tick(&s->arena, now_ns);
}
