/* SPDX-License-Identifier: Apache-2.0 */
/* taken: what is taken out of a hash of sums: those of epochs that are over (probes/disk.h says
 * what an epoch is), the heaviest first. */
#ifndef SONDE_BPF_TAKEN_H
#define SONDE_BPF_TAKEN_H

#include <stddef.h>
#include <stdint.h>

struct taken_place {
	uint64_t weight;
	size_t i;
};

struct taken {                                 /* the caller sets the first five */
	size_t key_size, value_size, epoch_at; /* epoch_at: where a __u32 is in a key */
	uint32_t epoch;                        /* this one and earlier ones */
	uint64_t (*weight)(const void *value);
	uint8_t *keys, *values;
	struct taken_place *order;
	size_t n, cap_keys, cap_values, cap;
};

/* From the map with this descriptor. */
void taken_take(struct taken *t, int fd);
/* Borrowed, until taken_release; nth < n. */
const void *taken_key(const struct taken *t, size_t nth);
const void *taken_value(const struct taken *t, size_t nth);
void taken_release(struct taken *t);

#endif
