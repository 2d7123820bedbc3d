/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots: the BPF array `images` (probes/lib/tables.h, 4): one slot for each file. A freed slot is
 * PENDING at once; after the grace it is FREE and can be used again.
 */
#ifndef SONDE_MAPS_SLOTS_H
#define SONDE_MAPS_SLOTS_H

#include <stdint.h>

#include <linux/types.h>

#include "loaders/maps/publish/arena.h"
#include "probes/lib/tables.h"

struct slots {
	struct tables_image *memory; /* the array's, borrowed */
	struct arena arena;          /* of slots; slot 0 is never used */
};

void slots_init(struct slots *s, struct tables_image *memory, uint64_t grace_ns);
void slots_release(struct slots *s);
/* A slot with the content `as`. 0: none is free. */
uint32_t slots_get(struct slots *s, const struct tables_image *as);
/* Rewrite a slot; the state is written last. */
void slots_set(struct slots *s, uint32_t slot, const struct tables_image *as);
void slots_set_state(struct slots *s, uint32_t slot, enum tables_image_state state);
void slots_put(struct slots *s, uint32_t slot, uint64_t now_ns); /* 0 is fine */
void slots_tick(struct slots *s, uint64_t now_ns);

#endif
