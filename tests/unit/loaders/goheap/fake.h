/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake: memory in place of a process, with lists of buckets in it, for tests of buckets.h.
 * Variables are at FAKE_BASE, buckets follow. `before` is called before each read: a test changes
 * there what the process would have.
 */
#ifndef SONDE_TESTS_GOHEAP_FAKE_H
#define SONDE_TESTS_GOHEAP_FAKE_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/goheap/buckets.h"
#include "loaders/goheap/buckets_parts.h"
#include "schema/base/mem.h"

#define FAKE_BASE    0x7f0000000000ull
#define FAKE_HEAD(k) (FAKE_BASE + 8 * (k)) /* by kind */
#define FAKE_CYCLE   (FAKE_BASE + 64)
#define FAKE_RATE    (FAKE_BASE + 72)
#define FAKE_TICKS   (FAKE_BASE + 80)
#define FAKE_VARS    4096u

struct fake {
	uint8_t *bytes; /* own */
	size_t len, used;
	size_t record_len;
	uint64_t hole, hole_len; /* addresses that cannot be read */
	long error;              /* what every read returns, where not 0 */
	unsigned reads;
	void (*before)(struct fake *f);
	uint64_t mark; /* a test's own */
};

static inline void *fake_at(const struct fake *f, uint64_t addr)
{
	return f->bytes + (addr - FAKE_BASE);
}

static inline void fake_set(struct fake *f, uint64_t addr, uint64_t value)
{
	memcpy(fake_at(f, addr), &value, 8);
}

static inline uint64_t fake_get(const struct fake *f, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, fake_at(f, addr), 8);
	return v;
}

static inline struct fake fake_init(size_t len)
{
	struct fake f = {.bytes = mem_alloc(len),
			 .len = len,
			 .used = FAKE_VARS,
			 .record_len = BUCKET_RECORD_LONG};

	fake_set(&f, FAKE_RATE, 524288);
	fake_set(&f, FAKE_CYCLE, 7 << 1 | 1); /* cycle 7, published */
	return f;
}

static inline bool fake_has(const struct fake *f, uint64_t addr, size_t len)
{
	if (addr < FAKE_BASE || addr - FAKE_BASE > f->len || len > f->len - (addr - FAKE_BASE))
		return false;
	return !f->hole_len || addr + len <= f->hole || addr >= f->hole + f->hole_len;
}

static inline long fake_read(void *ctx, const struct buckets_range *ranges, size_t count)
{
	struct fake *f = ctx;
	long n = 0;

	f->reads++;
	if (f->before)
		f->before(f);
	if (f->error)
		return f->error;
	for (; (size_t)n < count && fake_has(f, ranges[n].addr, ranges[n].len); n++)
		memcpy(ranges[n].to, fake_at(f, ranges[n].addr), ranges[n].len);
	return n;
}

/* A new bucket before the head of its list, with these pcs: first, first + 1, ... Its address. */
static inline uint64_t fake_bucket(struct fake *f, enum buckets_kind kind, uint64_t size,
				   uint64_t first, uint64_t depth)
{
	const uint64_t addr = FAKE_BASE + f->used;
	uint64_t pcs[BUCKETS_DEPTH_MAX];
	struct bucket_head h = {.allnext = fake_get(f, FAKE_HEAD(kind)),
				.kind = kind,
				.size = size,
				.depth = depth};

	for (uint64_t i = 0; i < depth; i++)
		pcs[i] = first + i;
	h.hash = bucket_hash(pcs, depth, size);
	memcpy(fake_at(f, addr), &h, sizeof(h));
	memcpy(fake_at(f, addr + BUCKET_HEAD), pcs, depth * 8);
	f->used +=
		BUCKET_HEAD + depth * 8 + (kind == BUCKETS_MEMORY ? f->record_len : BUCKET_RECORD);
	fake_set(f, FAKE_HEAD(kind), addr);
	return addr;
}

static inline uint64_t fake_record(const struct fake *f, uint64_t bucket)
{
	return bucket + BUCKET_HEAD + fake_get(f, bucket + 40) * 8;
}

/* Part 0: active; 1 to 3: future. */
static inline void fake_amounts(struct fake *f, uint64_t bucket, unsigned part, uint64_t allocs,
				uint64_t frees)
{
	const uint64_t size = fake_get(f, bucket + 32);
	const uint64_t words[] = {allocs, frees, allocs * size, frees * size};
	const size_t len = f->record_len / 4;

	memcpy(fake_at(f, fake_record(f, bucket) + part * len), words, len);
}

static inline struct buckets_layout fake_layout(void)
{
	return (struct buckets_layout){.heads = {0, FAKE_HEAD(1), FAKE_HEAD(2), FAKE_HEAD(3)},
				       .cycle = FAKE_CYCLE,
				       .mem_rate = FAKE_RATE,
				       .ticks = FAKE_TICKS};
}

static inline struct buckets *fake_open(struct fake *f)
{
	const struct buckets_layout l = fake_layout();
	const struct buckets_memory m = {fake_read, f};

	return buckets_open(&l, &m);
}

#endif
