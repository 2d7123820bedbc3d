/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/mapread.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define AT_ONCE  1024
#define ENOTSUPP 524 /* the kernel's own */

typedef int batch_fn(int fd, void *in_batch, void *out_batch, void *keys, void *values,
		     __u32 *count, const struct bpf_map_batch_opts *opts);

static int batches(int fd, batch_fn *batch, size_t key_size, size_t value_size, mapread_fn fn,
		   void *ctx)
{
	cleanup_free uint8_t *keys = mem_array(AT_ONCE, key_size),
			     *values = mem_array(AT_ONCE, value_size);
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t cursor = 0, next = 0;
	bool first = true;
	int err = 0;

	while (!err) {
		uint32_t n = AT_ONCE;

		err = batch(fd, first ? NULL : &cursor, &next, keys, values, &n, &opts) ? -errno :
											  0;
		if (err && err != -ENOENT)
			return err;
		for (uint32_t i = 0; i < n; i++)
			fn(ctx, keys + i * key_size, values + i * value_size);
		cursor = next;
		first = false;
	}
	return 0;
}

int mapread_each(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx)
{
	return batches(fd, bpf_map_lookup_batch, key_size, value_size, fn, ctx);
}

int mapread_take(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx)
{
	return batches(fd, bpf_map_lookup_and_delete_batch, key_size, value_size, fn, ctx);
}

/* The kernel stops at a key that is not there: past it goes on. */
void mapread_remove(int fd, size_t key_size, const void *keys, size_t n)
{
	const uint8_t *at = keys;
	LIBBPF_OPTS(bpf_map_batch_opts, opts);

	while (n) {
		uint32_t some = n > AT_ONCE ? AT_ONCE : (uint32_t)n;
		int err = bpf_map_delete_batch(fd, at, &some, &opts);

		if (err)
			some++;
		if (some > n)
			return;
		at += some * key_size;
		n -= some;
	}
}

bool mapread_take_one(int fd, const void *key, void *value)
{
	static bool in_two;

	if (!in_two && !bpf_map_lookup_and_delete_elem(fd, key, value))
		return true;
	if (!in_two && errno != EINVAL && errno != EOPNOTSUPP && errno != ENOTSUPP)
		return false;
	in_two = true;
	return !bpf_map_lookup_elem(fd, key, value) && !bpf_map_delete_elem(fd, key);
}

bool mapread_made(uint32_t *made)
{
	return !made || __atomic_exchange_n(made, 0, __ATOMIC_SEQ_CST);
}

void mapread_more(uint32_t *made)
{
	if (made)
		__atomic_store_n(made, 1, __ATOMIC_SEQ_CST);
}

struct counting {
	mapread_fn fn;
	void *ctx;
	size_t n;
};

static void count(void *ctx, const void *key, const void *value)
{
	struct counting *c = ctx;

	c->n++;
	c->fn(c->ctx, key, value);
}

int mapread_any(uint32_t *made, int fd, size_t key_size, size_t value_size, mapread_fn fn,
		void *ctx)
{
	struct counting c = {fn, ctx, 0};
	int err;

	if (!mapread_made(made))
		return 0;
	err = mapread_each(fd, key_size, value_size, count, &c);
	if (err || c.n)
		mapread_more(made);
	return err;
}

/* ---- sums by epoch ---- */

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
	if ((int32_t)(t->epoch - epoch) < 0) {
		t->left = true;
		return;
	}
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
	if (!mapread_made(t->made))
		return;
	if (mapread_each(fd, t->key_size, t->value_size, take_one, t) || t->left)
		mapread_more(t->made);
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
