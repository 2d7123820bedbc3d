/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: which elements of a BPF array are in use. Numbers only: the caller owns the memory. First
 * fit; adjacent free ranges merge. A freed range is unavailable for TABLES_GRACE_NS: a program that
 * has just read a pointer to it may still be reading there.
 */
#ifndef SONDE_MAPS_ARENA_H
#define SONDE_MAPS_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_range {
	uint32_t first, n;
};

struct arena_held {
	struct arena_range range;
	uint64_t since_ns;
};

struct arena {
	struct arena_range *free; /* by first; no two touch */
	size_t n_free, cap_free;
	struct arena_held *held; /* in the order they came */
	size_t n_held, cap_held;
	uint64_t grace_ns;
	uint32_t used, held_elements;
};

/* Elements [first, end) are free. */
void arena_init(struct arena *a, uint32_t first, uint32_t end, uint64_t grace_ns);
void arena_release(struct arena *a);
/* `n` elements (not 0) in a row. false: there is no such gap, *first is untouched. */
bool arena_take(struct arena *a, uint32_t n, uint32_t *first);
/* Is there such a gap? */
bool arena_fits(const struct arena *a, uint32_t n);
/* Exactly these. false: some of them are not free. */
bool arena_take_at(struct arena *a, uint32_t first, uint32_t n);
/* Give back what was taken, whole or in part. Times must not run backwards. */
void arena_give(struct arena *a, uint32_t first, uint32_t n, uint64_t now_ns);
/* Is the grace of held[i] over? */
bool arena_is_over(const struct arena *a, size_t i, uint64_t now_ns);
/* What has been held for the grace is free again. */
void arena_tick(struct arena *a, uint64_t now_ns);

#endif
