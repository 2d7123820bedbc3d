/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hold: each record is an 8-byte head (its size) and its bytes, padded to 8. A record never wraps:
 * when the end of the buffer is too short for it, a head of HOLD_SKIP says that the rest is empty,
 * and the record begins at 0.
 */
#include "loaders/lib/bpf/run/hold.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define HOLD_FIRST      (64u << 10)
#define HOLD_RECORD_MAX (64u << 10)
#define HOLD_SKIP       UINT64_MAX
#define HEAD            sizeof(uint64_t)

static size_t padded(size_t size)
{
	return HEAD + ((size + 7) & ~(size_t)7);
}

static uint64_t head_at(const struct hold *h, size_t at)
{
	uint64_t v;

	memcpy(&v, h->buf + at, HEAD);
	return v;
}

static void head_put(struct hold *h, size_t at, uint64_t v)
{
	memcpy(h->buf + at, &v, HEAD);
}

void hold_init(struct hold *h, size_t max_bytes)
{
	*h = (struct hold){.max = max_bytes};
}

void hold_release(struct hold *h)
{
	free(h->buf);
	*h = (struct hold){.max = h->max};
}

/* Find `need` adjacent bytes at the tail; writes the skip mark if they are at 0. */
static bool place(struct hold *h, size_t need, size_t *at)
{
	size_t tail, end;

	if (!h->cap || h->used + need > h->cap)
		return false;
	tail = (h->head + h->used) & (h->cap - 1);
	end = h->cap - tail;
	if (tail < h->head || end >= need) {
		*at = tail;
		return true;
	}
	if (h->used + end + need > h->cap)
		return false;
	head_put(h, tail, HOLD_SKIP);
	h->used += end;
	*at = 0;
	return true;
}

/* Move everything to the start of a buffer twice as large. */
static int grow(struct hold *h)
{
	struct hold to = {.max = h->max, .cap = h->cap ? h->cap * 2 : HOLD_FIRST};
	const void *record;
	size_t size, at;

	if (to.cap > h->max)
		return -ENOBUFS;
	to.buf = mem_array(to.cap, 1);
	while ((record = hold_peek(h, &size))) {
		place(&to, padded(size), &at);
		head_put(&to, at, size);
		memcpy(to.buf + at + HEAD, record, size);
		to.used += padded(size);
		to.n++;
		hold_pop(h);
	}
	free(h->buf);
	*h = to;
	return 0;
}

int hold_push(struct hold *h, const void *record, size_t size)
{
	size_t at;

	if (size > HOLD_RECORD_MAX - HEAD)
		return -EMSGSIZE;
	while (!place(h, padded(size), &at)) {
		int err = grow(h);

		if (err)
			return err;
	}
	head_put(h, at, size);
	memcpy(h->buf + at + HEAD, record, size);
	h->used += padded(size);
	h->n++;
	return 0;
}

const void *hold_peek(const struct hold *h, size_t *size)
{
	size_t at = h->head;

	if (!h->n)
		return NULL;
	if (head_at(h, at) == HOLD_SKIP)
		at = 0;
	*size = (size_t)head_at(h, at);
	return h->buf + at + HEAD;
}

void hold_pop(struct hold *h)
{
	size_t step;

	if (!h->n)
		return;
	if (head_at(h, h->head) == HOLD_SKIP) {
		h->used -= h->cap - h->head;
		h->head = 0;
	}
	step = padded((size_t)head_at(h, h->head));
	h->head = (h->head + step) & (h->cap - 1);
	h->used -= step;
	if (--h->n)
		return;
	h->head = h->used = 0;
	if (h->cap > 4 * HOLD_FIRST) { /* after a burst, free the memory */
		free(h->buf);
		h->buf = NULL;
		h->cap = 0;
	}
}
