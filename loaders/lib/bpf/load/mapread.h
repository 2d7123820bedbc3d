/* SPDX-License-Identifier: Apache-2.0 */
/* mapread: every entry of a BPF hash, a thousand at a time. What comes or goes meanwhile may be
 * seen or not. */
#ifndef SONDE_BPF_MAPREAD_H
#define SONDE_BPF_MAPREAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*mapread_fn)(void *ctx, const void *key, const void *value);
/* Takes `n` keys out, each of key_size; those that are not there any more are passed over. */
void mapread_remove(int fd, size_t key_size, const void *keys, size_t n);
/* 0 or -errno. `fn` may delete entries: each is a copy. */
int mapread_each(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx);

/* Takes one entry out, `value` is its. false: it is not there. Another thread or program may change
 * it in between before 5.14, since when the kernel does both at once. */
bool mapread_take(int fd, const void *key, void *value);

/*
 * Maps that are empty most often: a walk through all buckets finds nothing. The programs set
 * `*made` to 1 after they have added an entry; it is cleared before the map is read.
 */

/* Is there anything to read? Clears it. NULL: there may be. */
bool mapread_made(uint32_t *made);
/* There is more to read next time. */
void mapread_more(uint32_t *made);
/* mapread_each, if anything was added since it was empty. 0 or -errno. */
int mapread_any(uint32_t *made, int fd, size_t key_size, size_t value_size, mapread_fn fn,
		void *ctx);

/* ---- sums by epoch ---- */

/* What is taken out of a hash of sums: those of epochs that are over (probes/disk.h says what an
 * epoch is), the heaviest first. */
struct taken_place {
	uint64_t weight;
	size_t i;
};

struct taken {                                 /* the caller sets the first six */
	size_t key_size, value_size, epoch_at; /* epoch_at: where a __u32 is in a key */
	uint32_t epoch;                        /* this one and earlier ones */
	uint64_t (*weight)(const void *value);
	uint32_t *made; /* see mapread_made; NULL: it is read whether it has entries or not */
	bool left;      /* some are of a later epoch */
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
