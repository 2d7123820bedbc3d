/* SPDX-License-Identifier: Apache-2.0 */
/* idtable: a small table from 64-bit ids to 32-bit values (a statement's number to its operation).
 * Bounded: when it is full, it is emptied. */
#ifndef SONDE_PROTOCOLS_IDTABLE_H
#define SONDE_PROTOCOLS_IDTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IDTABLE_MAX 4096

struct idtable {
	struct idtable_entry {
		uint64_t id;
		uint32_t value; /* 0: empty */
	} * entries;
	uint32_t n, cap;
};

void idtable_put(struct idtable *m, uint64_t id, uint32_t value); /* value 0: away with it */
uint32_t idtable_get(const struct idtable *m, uint64_t id);       /* 0: it is not there */
void idtable_release(struct idtable *m);
/* An id for a text. */
uint64_t idtable_text(const void *text, size_t n);

#endif
