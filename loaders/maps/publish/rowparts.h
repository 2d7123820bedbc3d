/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowparts: loads and frees the rows of a set that is published in parts (rowsets.h;
 * probes/lib/tables.h, 5).
 */
#ifndef SONDE_MAPS_ROWPARTS_H
#define SONDE_MAPS_ROWPARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/maps/publish/rowsets.h"

/* Read what the probes have marked in the set since the last call: loaded parts were used at
 * now_ns, missing ones go to `wanted` (room for part_count). Returns how many. */
uint32_t rowparts_look(struct rowset *set, uint64_t now_ns, uint32_t *wanted);
/* Elements that a part needs. */
uint32_t rowparts_elements(const struct unwind_section *s, uint32_t part);
/* Was the set made from these rows? */
bool rowparts_match(const struct rowsets *rs, const struct rowset *set,
		    const struct unwind_section *s);
/* `s` matches, and is sound. used_ns: when it was requested, 0: never. 0; -ENOSPC: no room; -errno:
 * the map cannot be written. A loaded part is left alone. */
int rowparts_make(struct rowsets *rs, struct rowset *set, const struct unwind_section *s,
		  uint32_t part, uint64_t used_ns);
/* Its room is free after the grace. A missing part is fine. */
void rowparts_drop(struct rowsets *rs, struct rowset *set, uint32_t part, uint64_t now_ns);
/* Not used since `before_ns`, nor right now? false: it is not loaded. */
bool rowparts_idle(const struct rowset *set, uint32_t part, uint64_t before_ns);

#endif
