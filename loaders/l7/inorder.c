/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/l7/inorder.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define KEEP_BYTES (1u << 20) /* a larger buffer is freed when it is empty */

void inorder_release(struct inorder *h)
{
	free(h->bytes);
	free(h->records);
	*h = (struct inorder){0};
}

void inorder_put(struct inorder *h, const void *record, size_t size, int64_t at_ns)
{
	size_t room = (size + 7) & ~(size_t)7;

	if (h->len + room > h->cap) {
		h->cap = (h->cap ? h->cap * 2 : 65536) + room;
		h->bytes = mem_realloc(h->bytes, h->cap);
	}
	mem_grow(h->records, h->n, h->cap_records);
	memcpy(h->bytes + h->len, record, size);
	h->records[h->n++] = (struct inorder_record){
		.at_ns = at_ns, .at = (uint32_t)h->len, .size = (uint32_t)size};
	h->len += room;
}

static int earlier(const void *a, const void *b)
{
	const struct inorder_record *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool in_order(const struct inorder *h)
{
	for (size_t i = 1; i < h->n; i++)
		if (h->records[i].at_ns < h->records[i - 1].at_ns)
			return false;
	return true;
}

/* What is left moves to the front, in its order. */
static void pack(struct inorder *h, size_t from)
{
	uint8_t *old = h->bytes;
	struct inorder rest = {0};

	for (size_t i = from; i < h->n; i++)
		inorder_put(&rest, old + h->records[i].at, h->records[i].size, h->records[i].at_ns);
	if (!rest.n && h->cap <= KEEP_BYTES) {
		h->n = h->len = 0;
		return;
	}
	inorder_release(h);
	*h = rest;
}

void inorder_take(struct inorder *h, int64_t until_ns,
		  void (*take)(void *ctx, const void *record, size_t size), void *ctx)
{
	size_t i = 0;

	if (!h->n)
		return;
	if (!in_order(h))
		qsort(h->records, h->n, sizeof(*h->records), earlier);
	for (; i < h->n && h->records[i].at_ns < until_ns; i++)
		take(ctx, h->bytes + h->records[i].at, h->records[i].size);
	if (i)
		pack(h, i);
}
