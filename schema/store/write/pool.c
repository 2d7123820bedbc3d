/* SPDX-License-Identifier: Apache-2.0 */
/* pool: chunks of 64, 128, 256, ... elements. */
#include "schema/store/write/pool.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

void pool_init(struct pool *p, size_t elem)
{
	*p = (struct pool){.elem = elem};
}

void pool_release(struct pool *p)
{
	for (int k = 0; k < POOL_CHUNKS; k++)
		free(p->chunk[k]);
	pool_init(p, p->elem);
}

uint32_t pool_add(struct pool *p)
{
	uint32_t i = ++p->n;
	int k = 25 - __builtin_clz(i + 64);

	if (!p->chunk[k]) {
		p->chunk[k] = mem_array((size_t)64 << k, p->elem);
		p->bytes += ((size_t)64 << k) * p->elem;
	}
	return i;
}
