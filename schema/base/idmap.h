/* SPDX-License-Identifier: Apache-2.0 */
/*
 * idmap: 64-bit key -> 64-bit value, open addressing, for hot tables of many millions of look-ups.
 * Key 0 is allowed. A zeroed struct is a valid empty map. Values are copied; nothing is owned
 * beyond the table.
 */
#ifndef SONDE_BASE_IDMAP_H
#define SONDE_BASE_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct idmap {
	struct idmap_slot *slots;
	size_t cap; /* power of two, or 0 */
	size_t n;
};

struct idmap_slot {
	uint64_t key;
	uint64_t value;
	uint8_t used;
};

void idmap_release(struct idmap *m);
void idmap_reserve(
	struct idmap *m,
	size_t n); /* reserves address space for n keys; memory is used as keys are added */
void idmap_clear(struct idmap *m); /* keeps the memory */
bool idmap_get(const struct idmap *m, uint64_t key, uint64_t *value);
/* Finds a key or adds it (*fresh: added, value 0) in one look-up. Valid
 * until the map changes. */
uint64_t *idmap_ref(struct idmap *m, uint64_t key, bool *fresh);
void idmap_set(struct idmap *m, uint64_t key, uint64_t value);
bool idmap_del(struct idmap *m, uint64_t key); /* false: was not there */

#endif
