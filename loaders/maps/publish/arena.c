/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/maps/publish/arena.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

void arena_init(struct arena *a, uint32_t first, uint32_t end, uint64_t grace_ns)
{
	*a = (struct arena){.grace_ns = grace_ns};
	if (first >= end)
		return;
	mem_grow(a->free, a->n_free, a->cap_free);
	a->free[a->n_free++] = (struct arena_range){first, end - first};
}

void arena_release(struct arena *a)
{
	free(a->free);
	free(a->held);
	*a = (struct arena){0};
}

static void free_insert(struct arena *a, size_t i, struct arena_range r)
{
	mem_grow(a->free, a->n_free, a->cap_free);
	memmove(a->free + i + 1, a->free + i, (a->n_free - i) * sizeof(*a->free));
	a->free[i] = r;
	a->n_free++;
}

static void free_remove(struct arena *a, size_t i)
{
	a->n_free--;
	memmove(a->free + i, a->free + i + 1, (a->n_free - i) * sizeof(*a->free));
}

/* The first free range that begins behind `first`. */
static size_t behind(const struct arena *a, uint32_t first)
{
	size_t lo = 0, hi = a->n_free;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (a->free[mid].first > first)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

bool arena_take(struct arena *a, uint32_t n, uint32_t *first)
{
	for (size_t i = 0; i < a->n_free && n; i++) {
		struct arena_range *r = &a->free[i];

		if (r->n < n)
			continue;
		*first = r->first;
		r->first += n;
		r->n -= n;
		if (!r->n)
			free_remove(a, i);
		a->used += n;
		return true;
	}
	return false;
}

bool arena_fits(const struct arena *a, uint32_t n)
{
	for (size_t i = 0; i < a->n_free; i++)
		if (a->free[i].n >= n)
			return true;
	return false;
}

bool arena_take_at(struct arena *a, uint32_t first, uint32_t n)
{
	size_t i = behind(a, first);
	struct arena_range r, rest;

	if (!i || !n)
		return false;
	r = a->free[i - 1];
	if (first - r.first >= r.n || r.n - (first - r.first) < n)
		return false;
	rest = (struct arena_range){first + n, r.n - (first - r.first) - n};
	a->free[i - 1].n = first - r.first;
	if (rest.n)
		free_insert(a, i, rest);
	if (!a->free[i - 1].n)
		free_remove(a, i - 1);
	a->used += n;
	return true;
}

void arena_give(struct arena *a, uint32_t first, uint32_t n, uint64_t now_ns)
{
	if (!n)
		return;
	mem_grow(a->held, a->n_held, a->cap_held);
	a->held[a->n_held++] = (struct arena_held){{first, n}, now_ns};
	a->used -= n;
	a->held_elements += n;
}

/* Put back, grown together with the neighbours. */
static void set_free(struct arena *a, struct arena_range r)
{
	size_t i = behind(a, r.first);

	if (i < a->n_free && r.first + r.n == a->free[i].first) {
		r.n += a->free[i].n;
		free_remove(a, i);
	}
	if (i && a->free[i - 1].first + a->free[i - 1].n == r.first)
		a->free[i - 1].n += r.n;
	else
		free_insert(a, i, r);
}

bool arena_is_over(const struct arena *a, size_t i, uint64_t now_ns)
{
	return now_ns >= a->held[i].since_ns && now_ns - a->held[i].since_ns >= a->grace_ns;
}

void arena_tick(struct arena *a, uint64_t now_ns)
{
	size_t k = 0;

	while (k < a->n_held && arena_is_over(a, k, now_ns)) {
		a->held_elements -= a->held[k].range.n;
		set_free(a, a->held[k++].range);
	}
	a->n_held -= k;
	if (k)
		memmove(a->held, a->held + k, a->n_held * sizeof(*a->held));
}
