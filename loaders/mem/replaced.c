/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/mem/replaced.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define NEIGHBOURS 32 /* that are compared */

static int by_page(const void *a, const void *b)
{
	const struct held_page *x = a, *y = b;

	return x->page < y->page ? -1 : x->page > y->page;
}

static int by_age(const void *a, const void *b)
{
	const struct held_page *x = a, *y = b;

	return x->time_ns < y->time_ns ? 1 : x->time_ns > y->time_ns ? -1 : 0;
}

/* Of some neighbours, youngest first, those for which there is room: together they represent `span`
 * pages at most, and a quarter more by chance. One that moved needs a place of which younger ones
 * have not taken half. Returns how many, in front. */
static size_t youngest(struct held_page *pages, size_t n, uint64_t span)
{
	uint64_t sum = 0;
	size_t left = 0;

	qsort(pages, n, sizeof(*pages), by_age);
	for (size_t i = 0; i < n; i++) {
		struct held_page *at = &pages[i];

		if (sum > (at->changed ? span / 2 : span + span / 4))
			continue;
		sum += at->pages;
		pages[left++] = *at;
	}
	return left;
}

/* The exact ones of n sorted pages, in front: each represents what lies there itself, so of several
 * samples of one place the youngest is right. Returns how many; *others: how many follow them. */
static size_t exact_first(struct held_page *pages, size_t n, size_t *others)
{
	struct held_page *rest = mem_array(n + 1, sizeof(*rest));
	size_t exact = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		const struct held_page *at = &pages[i];

		if (!at->exact)
			rest[left++] = *at;
		else if (!exact || pages[exact - 1].page + pages[exact - 1].pages <= at->page)
			pages[exact++] = *at;
		else if (pages[exact - 1].time_ns < at->time_ns)
			pages[exact - 1] = *at;
	}
	memcpy(pages + exact, rest, left * sizeof(*rest));
	free(rest);
	*others = left;
	return exact;
}

void replaced_sort(struct held_page *pages, size_t n)
{
	if (n)
		qsort(pages, n, sizeof(*pages), by_page);
}

size_t replaced_drop(struct held_page *pages, size_t n)
{
	size_t others, left, end;

	replaced_sort(pages, n);
	left = exact_first(pages, n, &others);
	end = left + others;
	for (size_t i = left; i < end;) {
		size_t k = end - i < 2 * NEIGHBOURS ? end - i : NEIGHBOURS;
		struct held_page *at = &pages[i];
		uint64_t span =
			(i + k < end ? at[k].page : at[k - 1].page + at[k - 1].pages) - at->page;

		i += k;
		k = youngest(at, k, span);
		memmove(&pages[left], at, k * sizeof(*at));
		left += k;
	}
	return left;
}
