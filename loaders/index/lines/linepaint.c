/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linepaint: see the header. One sweep over the addresses. The ranges that hold the present address
 * stand in a heap whose top is the one told last; what has ended is thrown away when it comes to
 * the top. So the cost is n log n, however the ranges lie.
 */
#include "loaders/index/lines/linepaint.h"

#include <errno.h>
#include <stdlib.h>

#include "schema/base/cleanup.h"

struct heap {
	const struct lineset_range_record **at; /* at[0] has the highest order */
	size_t count;
};

static void heap_push(struct heap *h, const struct lineset_range_record *r)
{
	size_t i = h->count++;

	for (; i && h->at[(i - 1) / 2]->order < r->order; i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = r;
}

static void heap_pop(struct heap *h)
{
	const struct lineset_range_record *r = h->at[--h->count];
	size_t i = 0;

	for (size_t child = 1; child < h->count; child = 2 * i + 1) {
		if (child + 1 < h->count && h->at[child + 1]->order > h->at[child]->order)
			child++;
		if (h->at[child]->order < r->order)
			break;
		h->at[i] = h->at[child];
		i = child;
	}
	h->at[i] = r;
}

static int by_address(const void *a, const void *b)
{
	const struct lineset_range_record *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

int linepaint(struct lineset_range_record *ranges, size_t count,
	      int (*row)(void *ctx, uint32_t addr, uint32_t node), void *ctx)
{
	cleanup_free const struct lineset_range_record **places =
		calloc(count + 1, sizeof(*places));
	struct heap h = {.at = places};
	uint32_t at = 0;
	int rc = 0;

	if (!places)
		return -ENOMEM;
	if (count)
		qsort(ranges, count, sizeof(*ranges), by_address);
	for (size_t i = 0; !rc && (i < count || h.count);) {
		if (!h.count)
			at = ranges[i].lo;
		while (i < count && ranges[i].lo <= at)
			heap_push(&h, &ranges[i++]);
		while (h.count && h.at[0]->hi <= at)
			heap_pop(&h);
		rc = row(ctx, at, h.count ? h.at[0]->node : 0);
		if (h.count)
			at = i < count && ranges[i].lo < h.at[0]->hi ? ranges[i].lo : h.at[0]->hi;
	}
	return rc;
}
