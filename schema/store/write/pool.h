/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: a growing array whose elements never move, so that one thread may add while another reads
 * elements that it knows of. Index 0 is never given out. Zeroed elements. A pool is zeroed memory
 * plus the element size.
 */
#ifndef SONDE_STORE_WRITE_POOL_H
#define SONDE_STORE_WRITE_POOL_H

#include <stddef.h>
#include <stdint.h>

#define POOL_CHUNKS 26

struct pool {
	size_t elem;
	uint32_t n;               /* next index - 1 */
	size_t bytes;             /* allocated */
	void *chunk[POOL_CHUNKS]; /* chunk k holds 64 << k elements */
};

void pool_init(struct pool *p, size_t elem);
void pool_release(struct pool *p);
uint32_t pool_add(struct pool *p); /* index of a new zeroed element */

static inline void *pool_at(const struct pool *p, uint32_t i)
{
	uint32_t j = i + 64;
	int k = 25 - __builtin_clz(j);

	return (char *)p->chunk[k] + (size_t)(j - (64u << k)) * p->elem;
}

#endif
