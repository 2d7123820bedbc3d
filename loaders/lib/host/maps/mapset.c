/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted array: a process has tens of executable mappings, rarely thousands. */
#include "loaders/lib/host/maps/mapset.h"

#include <stdlib.h>
#include <string.h>

#include "schema/base/mem.h"

#define HISTORY_MAX 8192 /* a process that maps faster loses its oldest history */

void mapset_release(struct mapset *s)
{
	free(s->now);
	free(s->old);
	*s = (struct mapset){0};
}

/* Index of the first mapping that ends after `addr`. */
static size_t first_after(const struct mapset *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n_now;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->now[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

static void history_add(struct mapset *s, struct mapping m, uint64_t to_ns)
{
	if (m.from_ns >= to_ns)
		return;
	if (s->n_old >= HISTORY_MAX) {
		memmove(s->old, s->old + HISTORY_MAX / 2, HISTORY_MAX / 2 * sizeof(*s->old));
		s->n_old = HISTORY_MAX / 2;
	}
	mem_grow(s->old, s->n_old, s->cap_old);
	m.to_ns = to_ns;
	s->old[s->n_old++] = m;
}

/* The part of `m` within [start, end). */
static struct mapping cut(struct mapping m, uint64_t start, uint64_t end)
{
	if (start > m.start) {
		m.offset += start - m.start;
		m.start = start;
	}
	if (end < m.end)
		m.end = end;
	return m;
}

static void insert_at(struct mapset *s, size_t i, struct mapping m)
{
	mem_grow(s->now, s->n_now, s->cap_now);
	memmove(s->now + i + 1, s->now + i, (s->n_now - i) * sizeof(*s->now));
	s->now[i] = m;
	s->n_now++;
}

void mapset_put(struct mapset *s, uint64_t start, uint64_t end, uint64_t offset, void *image,
		uint64_t time_ns, int keep)
{
	struct mapping m = {.start = start,
			    .end = end,
			    .offset = offset,
			    .image = image,
			    .from_ns = time_ns,
			    .to_ns = MAPSET_NEVER};
	size_t i = first_after(s, start), j = i;
	struct mapping head = {0}, tail = {0};

	if (start >= end)
		return;
	if (i < s->n_now && s->now[i].start <= start && s->now[i].end >= end &&
	    s->now[i].image == image && s->now[i].offset + (start - s->now[i].start) == offset)
		return;
	for (; j < s->n_now && s->now[j].start < end; j++) {
		struct mapping old = s->now[j];

		if (old.start < start)
			head = cut(old, old.start, start);
		if (old.end > end)
			tail = cut(old, end, old.end);
		if (keep)
			history_add(s, cut(old, start, end), time_ns);
	}
	if (i < j)
		memmove(s->now + i, s->now + j, (s->n_now - j) * sizeof(*s->now));
	s->n_now -= j - i;
	if (tail.end)
		insert_at(s, i, tail);
	insert_at(s, i, m);
	if (head.end)
		insert_at(s, i, head);
}

void mapset_end(struct mapset *s, uint64_t time_ns, int keep)
{
	for (size_t i = 0; keep && i < s->n_now; i++)
		history_add(s, s->now[i], time_ns);
	s->n_now = 0;
}

const struct mapping *mapset_find(const struct mapset *s, uint64_t addr, uint64_t time_ns)
{
	size_t i = first_after(s, addr);

	if (i < s->n_now && s->now[i].start <= addr && s->now[i].from_ns <= time_ns)
		return &s->now[i];
	for (size_t k = s->n_old; k-- > 0;) {
		const struct mapping *m = &s->old[k];

		if (m->to_ns <= time_ns)
			return NULL; /* in the order they ended: all earlier ones ended before, too
				      */
		if (m->start <= addr && addr < m->end && m->from_ns <= time_ns)
			return m;
	}
	return NULL;
}

void mapset_copy(struct mapset *dst, const struct mapset *src, uint64_t time_ns)
{
	if (!src->n_now)
		return;
	dst->now = mem_array(src->n_now, sizeof(*dst->now));
	memcpy(dst->now, src->now, src->n_now * sizeof(*dst->now));
	dst->n_now = dst->cap_now = src->n_now;
	for (size_t i = 0; i < dst->n_now; i++)
		dst->now[i].from_ns = time_ns;
}

void mapset_forget(struct mapset *s, uint64_t time_ns)
{
	size_t k = 0;

	while (k < s->n_old && s->old[k].to_ns < time_ns)
		k++;
	if (!k)
		return;
	memmove(s->old, s->old + k, (s->n_old - k) * sizeof(*s->old));
	s->n_old -= k;
	if (!s->n_old) {
		free(s->old);
		s->old = NULL;
		s->cap_old = 0;
	}
}
