/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rowsets: the unwind rows in the BPF array `rows` (probes/lib/tables.h, 3 to 5): pages, rules,
 * extensions and rows of one file as one piece. Equal pieces are stored once, whichever files they
 * come from (two containers' libc). A set never changes.
 *
 * Of a file with ROWSETS_PARTS_MIN rows or more, the piece has pages, rules, extensions and the
 * bytes that mark the parts in use. Its rows are loaded and freed by part (rowparts.h).
 */
#ifndef SONDE_MAPS_ROWSETS_H
#define SONDE_MAPS_ROWSETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/unwind/unwind.h"
#include "loaders/maps/publish/arena.h"
#include "loaders/maps/publish/tablemaps.h"
#include "probes/lib/tables.h"

#define ROWSETS_PARTS_MIN 65536u /* 256 KiB of rows */

struct rowpart {
	uint32_t first, n; /* elements; n 0: no rows, or not loaded */
	bool here;
	bool idle;        /* the caller's mark, as that of a set */
	uint64_t used_ns; /* last seen in use, or requested; 0: never */
};

struct rowset {
	uint32_t first; /* element of `rows` */
	uint32_t page_count, rule_count, ext_count, row_count;
	uint32_t refs;
	bool idle;                   /* the caller's mark, for rowsets_window */
	uint32_t use_first;          /* as in struct tables_image; 0: in one piece */
	struct rowpart *parts;       /* own */
	uint32_t part_count;         /* 0: in one piece */
	uint64_t content;            /* a hash, if it is in parts; 0: a predecessor's */
	struct tablemaps_window use; /* the bytes, while it is in parts */
	uint64_t looked_ns;          /* the caller's */
	struct rowset *prev, *next;
};

struct rowsets {
	const struct tablemaps *maps;
	struct arena arena;
	struct rowset *all;
	uint32_t parts_min; /* rows */
};

void rowsets_init(struct rowsets *rs, const struct tablemaps *maps, uint64_t grace_ns);
void rowsets_release(struct rowsets *rs);
/* Elements that it needs as one piece. */
uint32_t rowsets_elements(const struct rowsets *rs, const struct unwind_section *s);
/* Does every page point into the rows, every page and row to an existing rule, every rule to an
 * existing extension? */
bool rowsets_sound(const struct unwind_section *s);
/* A reference to a set with these rows; a new one in parts has no part loaded. -ENOSPC: no gap is
 * large enough now; -errno: the map cannot be written. */
int rowsets_get(struct rowsets *rs, const struct unwind_section *s, struct rowset **out);
/* What a predecessor wrote at as->first, with these counts and as->use_first: becomes a set, unless
 * there is one. NULL: not within the array, or partly taken. */
struct rowset *rowsets_get_at(struct rowsets *rs, const struct rowset *as);
void rowsets_put(struct rowsets *rs, struct rowset *set, uint64_t now_ns); /* NULL is fine */

/* The range of `n` elements that costs the least: free, being freed, or held by idle sets or parts.
 * false: every range has something in use. */
bool rowsets_window(const struct rowsets *rs, uint32_t n, uint32_t *first);
uint32_t rowsets_end(const struct rowset *set); /* first element after its one piece */

#endif
