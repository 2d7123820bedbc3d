/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowsets: the unwind rows in the BPF array `rows` (probes/tables.h, 3 and 4): pages, rules, extensions and rows of one file in
 * one piece. Equal ones stand there once, whichever files they come from (two containers' libc). A set is never
 * changed.
 */
#ifndef SONDE_MAPS_ROWSETS_H
#define SONDE_MAPS_ROWSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/unwind.h"
#include "loaders/maps/arena.h"

struct tablemaps;

struct rowset {
	uint32_t first; /* element of `rows` */
	uint32_t page_count, rule_count, ext_count, row_count;
	uint32_t refs;
	bool idle; /* the caller's mark, for rowsets_window */
	struct rowset *prev, *next;
};

struct rowsets {
	const struct tablemaps *maps;
	struct arena arena;
	struct rowset *all;
};

void rowsets_init(struct rowsets *rs, const struct tablemaps *maps, uint64_t grace_ns);
void rowsets_release(struct rowsets *rs);
/* Elements it takes. */
uint32_t rowsets_elements(const struct unwind_section *s);
/* Does every page point into the rows, and every page and row at a rule, every rule at an extension that is there? */
bool rowsets_sound(const struct unwind_section *s);
/* A reference to a set with these rows. -ENOSPC: there is no gap that large now; -errno: the map cannot be written. */
int rowsets_get(struct rowsets *rs, const struct unwind_section *s, struct rowset **out);
/* What a predecessor has written at `first`: a set if there is none yet. NULL: not within the array, or partly taken. */
struct rowset *rowsets_get_at(struct rowsets *rs, uint32_t first, uint32_t page_count, uint32_t rule_count,
			      uint32_t ext_count, uint32_t row_count);
void rowsets_put(struct rowsets *rs, struct rowset *set, uint64_t now_ns); /* NULL is fine */

/* The place for `n` elements that costs the fewest: it may be free, being given back, or an idle set's. false: there is
 * none, or not without one that is not idle. */
bool rowsets_window(const struct rowsets *rs, uint32_t n, uint32_t *first);
uint32_t rowsets_end(const struct rowset *set); /* first element behind it */

#endif
