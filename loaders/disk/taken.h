/* SPDX-License-Identifier: Apache-2.0 */
/* taken: what is taken out of a map of sums: those of the epochs that are over, heaviest first. */
#ifndef SONDE_DISK_TAKEN_H
#define SONDE_DISK_TAKEN_H

#include <stddef.h>
#include <stdint.h>

struct bpf_map;

struct taken_place {
	uint64_t weight;
	size_t i;
};

struct taken {                                 /* the caller fills in the first five */
	size_t key_size, value_size, epoch_at; /* epoch_at: where it is in a key */
	uint32_t epoch;                        /* this one and earlier ones */
	uint64_t (*weight)(const void *value);
	uint8_t *keys, *values;
	struct taken_place *order;
	size_t n, cap_keys, cap_values, cap;
};

/* Reads and deletes. Release in any case. */
void taken_read(struct taken *t, const struct bpf_map *map);
void taken_release(struct taken *t);
/* Borrowed. */
const void *taken_key(const struct taken *t, size_t nth);
const void *taken_value(const struct taken *t, size_t nth);

#endif
