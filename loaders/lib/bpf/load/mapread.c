/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/lib/bpf/load/mapread.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"
#include "schema/base/mem.h"

#define AT_ONCE 1024

int mapread_each(int fd, size_t key_size, size_t value_size, mapread_fn fn, void *ctx)
{
	cleanup_free uint8_t *keys = mem_array(AT_ONCE, key_size),
			     *values = mem_array(AT_ONCE, value_size);
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	uint32_t cursor = 0, next = 0;
	bool first = true;
	int err = 0;

	while (!err) {
		uint32_t n = AT_ONCE;

		err = bpf_map_lookup_batch(fd, first ? NULL : &cursor, &next, keys, values, &n,
					   &opts) ?
			      -errno :
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
