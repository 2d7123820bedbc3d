/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slots: the BPF array `images` (probes/lib/tables.h, 4): one slot for each file. A slot that is
 * given back is PENDING at once and FREE, or somebody else's, after the grace.
 */
#ifndef SONDE_MAPS_SLOTS_H
#define SONDE_MAPS_SLOTS_H

#include <stdint.h>

#include <linux/types.h>

#include "loaders/maps/publish/arena.h"
#include "probes/lib/tables.h"

struct slots {
	struct tables_image *memory; /* the array's, borrowed */
	struct arena arena;          /* of slots; slot 0 is in nobody's hand */
};

void slots_init(struct slots *s, struct tables_image *memory, uint64_t grace_ns);
void slots_release(struct slots *s);
/* A slot that shows `as`. 0: there is none left. */
uint32_t slots_get(struct slots *s, const struct tables_image *as);
/* Write a slot anew, its state last. */
void slots_set(struct slots *s, uint32_t slot, const struct tables_image *as);
void slots_set_state(struct slots *s, uint32_t slot, enum tables_image_state state);
void slots_put(struct slots *s, uint32_t slot, uint64_t now_ns); /* 0 is fine */
void slots_tick(struct slots *s, uint64_t now_ns);

#endif
