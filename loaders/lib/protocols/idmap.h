/* SPDX-License-Identifier: Apache-2.0 */
/* idmap: a small table from 64-bit ids to 32-bit values (a statement's number to its operation). Bounded: when it is full it begins anew. */
#ifndef SONDE_PROTOCOLS_IDMAP_H
#define SONDE_PROTOCOLS_IDMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDMAP_MAX 4096

struct idmap {
	struct idmap_entry {
		uint64_t id;
		uint32_t value;   /* 0: empty */
	} *entries;
	uint32_t n, cap;
};

void idmap_put(struct idmap *m, uint64_t id, uint32_t value); /* value 0: away with it */
uint32_t idmap_get(const struct idmap *m, uint64_t id);       /* 0: it is not there */
void idmap_release(struct idmap *m);
/* An id for a text. */
uint64_t idmap_text(const void *text, size_t n);

#endif
