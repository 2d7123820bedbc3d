/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/taken.h"

#include <stdlib.h>
#include <string.h>

#include "loaders/lib/bpf/load/mapread.h"
#include "schema/base/mem.h"

static void *grow(uint8_t *list, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return list;
	*cap = *cap ? *cap * 2 : 64;
	return mem_realloc(list, *cap * size);
}

static void take_one(void *ctx, const void *key, const void *value)
{
	struct taken *t = ctx;
	uint32_t epoch;

	memcpy(&epoch, (const uint8_t *)key + t->epoch_at, sizeof(epoch));
	if ((int32_t)(t->epoch - epoch) < 0)
		return;
	t->keys = grow(t->keys, t->n, &t->cap_keys, t->key_size);
	t->values = grow(t->values, t->n, &t->cap_values, t->value_size);
	mem_grow(t->order, t->n, t->cap);
	memcpy(t->keys + t->n * t->key_size, key, t->key_size);
	memcpy(t->values + t->n * t->value_size, value, t->value_size);
	t->order[t->n] = (struct taken_place){t->weight(value), t->n};
	t->n++;
}

static int heavier(const void *a, const void *b)
{
	const struct taken_place *x = a, *y = b;

	return x->weight < y->weight ? 1 : x->weight > y->weight ? -1 : 0;
}

void taken_take(struct taken *t, int fd)
{
	mapread_each(fd, t->key_size, t->value_size, take_one, t);
	mapread_remove(fd, t->key_size, t->keys, t->n);
	if (t->n)
		qsort(t->order, t->n, sizeof(*t->order), heavier);
}

const void *taken_key(const struct taken *t, size_t nth)
{
	return t->keys + t->order[nth].i * t->key_size;
}

const void *taken_value(const struct taken *t, size_t nth)
{
	return t->values + t->order[nth].i * t->value_size;
}

void taken_release(struct taken *t)
{
	free(t->keys);
	free(t->values);
	free(t->order);
}
