/* SPDX-License-Identifier: Apache-2.0 */
#include "loaders/goheap/site.h"

/* A count of the runtime as a whole number; an invalid one is 0. */
static uint64_t whole(double v)
{
	return v >= 0 && v < 9e18 ? (uint64_t)v : 0;
}

static void raise_to(uint64_t *now, uint64_t v)
{
	if (v > *now)
		*now = v;
}

static void read_waits(struct site *s, const struct bucket *b, double ns_per_tick)
{
	raise_to(&s->allocs, whole(b->count));
	raise_to(&s->frees, whole((double)b->ticks * ns_per_tick));
}

static void read_memory(struct site *s, const struct bucket *b)
{
	struct bucket_amounts published = bucket_published(b), pending = bucket_pending(b);

	s->allocs = published.allocs;
	s->frees = published.frees;
	s->allocs_later = pending.allocs;
	s->frees_later = pending.frees;
}

void site_read(struct site *s, const struct bucket *b, double ns_per_tick)
{
	s->kind = (uint8_t)b->kind;
	s->record = b->record;
	s->record_len = b->record_len;
	s->size = b->size;
	s->read = true;
	if (b->kind == BUCKETS_MEMORY)
		read_memory(s, b);
	else
		read_waits(s, b, ns_per_tick);
}

static struct site_amounts counter_of(const struct site *s)
{
	struct site_amounts a;

	if (s->kind != BUCKETS_MEMORY)
		return (struct site_amounts){s->allocs, s->frees};
	a.n = s->allocs + s->allocs_later;
	if (__builtin_mul_overflow(a.n, s->size, &a.value))
		a.value = UINT64_MAX;
	return a;
}

void site_base(struct site *s)
{
	site_counted(s);
}

void site_leave_out(struct site *s, uint64_t n)
{
	uint64_t allocs = s->allocs + s->allocs_later, frees = s->frees + s->frees_later;
	uint64_t standing = allocs > frees ? allocs - frees : 0;

	if (n >= site_since(s).n) {
		site_counted(s);
	} else {
		s->counted_n += n;
		s->counted_value += n * s->size;
	}
	s->left_out = n < standing - (s->left_out < standing ? s->left_out : standing) ?
			      s->left_out + n :
			      standing;
}

struct site_amounts site_since(const struct site *s)
{
	struct site_amounts now = counter_of(s);

	if (now.n < s->counted_n || now.value < s->counted_value)
		return (struct site_amounts){0};
	return (struct site_amounts){now.n - s->counted_n, now.value - s->counted_value};
}

void site_counted(struct site *s)
{
	struct site_amounts now = counter_of(s);

	raise_to(&s->counted_n, now.n);
	raise_to(&s->counted_value, now.value);
}

struct site_amounts site_standing(const struct site *s, bool nothing_published)
{
	uint64_t allocs = s->allocs + (nothing_published ? s->allocs_later : 0);
	uint64_t frees = s->frees + (nothing_published ? s->frees_later : 0) + s->left_out;
	struct site_amounts a = {0};

	if (s->kind != BUCKETS_MEMORY || allocs <= frees)
		return a;
	a.n = allocs - frees;
	if (__builtin_mul_overflow(a.n, s->size, &a.value))
		a.value = UINT64_MAX;
	return a;
}

bool site_has_news(const struct site *s, bool nothing_published, uint64_t segment)
{
	uint64_t standing = site_standing(s, nothing_published).n;

	if (!s->told_in) /* whether anything is published is known when all was read */
		return s->allocs || s->allocs_later;
	return site_since(s).n || (s->told_in == segment ? standing != s->standing : standing != 0);
}
