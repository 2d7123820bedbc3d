/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slices: the sets of mappings in the BPF array `mappings` (probes/lib/tables.h, 4). Equal sets are
 * stored once, however many processes have them: each holds a reference. A slice never changes: a
 * process whose mappings change gets another slice.
 */
#ifndef SONDE_MAPS_SLICES_H
#define SONDE_MAPS_SLICES_H

#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "loaders/maps/publish/arena.h"

struct slice {
	uint64_t hash;
	uint32_t first; /* element of `mappings` */
	uint32_t count; /* mappings */
	uint32_t refs;
	UT_hash_handle hh;
};

struct slices {
	uint64_t *memory; /* the array's, borrowed */
	struct arena arena;
	struct slice *by_hash;
};

/* Elements a slice of `count` mappings takes. */
size_t slices_words(uint32_t count);
void slices_init(struct slices *s, uint64_t *memory, uint32_t elements, uint64_t grace_ns);
void slices_release(struct slices *s);
/* The slice with these slices_words(count) elements, count not 0; put it back with slices_put.
 * NULL: there is no room. */
struct slice *slices_get(struct slices *s, const uint64_t *words, uint32_t count);
/* What a predecessor has written there. NULL: not within the array, or partly taken. */
struct slice *slices_get_at(struct slices *s, uint32_t first, uint32_t count);
void slices_put(struct slices *s, struct slice *slice, uint64_t now_ns);

#endif
