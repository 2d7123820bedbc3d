/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowparts: the rows of a set that is published in parts (rowsets.h; probes/lib/tables.h, 5): made,
 * dropped, asked for.
 */
#ifndef SONDE_MAPS_ROWPARTS_H
#define SONDE_MAPS_ROWPARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/maps/publish/rowsets.h"

/* Take what the probes have asked of the set since the last time: parts that are there were used at
 * now_ns, those that are not go to `wanted` (room for part_count). Returns how many. */
uint32_t rowparts_look(struct rowset *set, uint64_t now_ns, uint32_t *wanted);
/* Elements that a part takes. */
uint32_t rowparts_elements(const struct unwind_section *s, uint32_t part);
/* Are these the rows that the set was made of? */
bool rowparts_match(const struct rowsets *rs, const struct rowset *set,
		    const struct unwind_section *s);
/* `s` matches, and is sound. used_ns: when it was asked for, 0: never. 0; -ENOSPC: there is no
 * room; -errno: the map cannot be written. One that is there stays. */
int rowparts_make(struct rowsets *rs, struct rowset *set, const struct unwind_section *s,
		  uint32_t part, uint64_t used_ns);
/* Its room is free after the grace. One that is not there is fine. */
void rowparts_drop(struct rowsets *rs, struct rowset *set, uint32_t part, uint64_t now_ns);
/* Not used since `before_ns`, nor right now? false: it is not there. */
bool rowparts_idle(const struct rowset *set, uint32_t part, uint64_t before_ns);

#endif
