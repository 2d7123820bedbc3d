/* SPDX-License-Identifier: Apache-2.0 */
/* Here: the runtime's variables, and the order of one collection. */
#include "loaders/goheap/buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "loaders/goheap/buckets_parts.h"
#include "schema/base/array.h"

#define RATE_MAX      (1ll << 40)
#define TICKS_WAIT_NS 5000000ll
#define CLOCK_TRIES   8u

/* ---- opening ---- */

struct buckets *buckets_open(const struct buckets_layout *layout,
			     const struct buckets_memory *memory)
{
	struct buckets *b = calloc(1, sizeof(*b));

	if (!b)
		return NULL;
	b->layout = *layout;
	b->memory = *memory;
	return b;
}

void buckets_close(struct buckets *b)
{
	if (!b)
		return;
	idmap_release(&b->places);
	free(b->pages);
	free(b->known);
	free(b);
}

/* ---- reading ---- */

long buckets_read_ranges(struct buckets *b, const struct buckets_range *ranges, size_t count,
			 struct buckets_sum *sum)
{
	long n = b->memory.read(b->memory.ctx, ranges, count);

	sum->reads++;
	for (long i = 0; i < n; i++)
		sum->read_bytes += ranges[i].len;
	if (n < 0)
		sum->state[0] = n == -EPERM || n == -EACCES ? BUCKETS_UNREADABLE : BUCKETS_GONE;
	return n;
}

bool buckets_read(struct buckets *b, uint64_t addr, void *to, size_t len, struct buckets_sum *sum)
{
	return buckets_read_ranges(b, &(struct buckets_range){addr, to, len}, 1, sum) == 1;
}

/* ---- a bucket ---- */

/* As runtime.stkbucket computes it. */
uint64_t bucket_hash(const uint64_t *pcs, size_t depth, uint64_t size)
{
	uint64_t h = 0;

	for (size_t i = 0; i < depth; i++) {
		h += pcs[i];
		h += h << 10;
		h ^= h >> 6;
	}
	h += size;
	h += h << 10;
	h ^= h >> 6;
	h += h << 3;
	return h ^ h >> 11;
}

bool bucket_head_sound(const struct bucket_head *h, enum buckets_kind kind)
{
	return h->kind == kind && h->depth <= BUCKETS_DEPTH_MAX && h->size < BUCKET_SIZE_MAX &&
	       (kind == BUCKETS_MEMORY) == (h->size != 0) && !(h->allnext & 7) &&
	       h->allnext < BUCKET_ADDR_MAX;
}

uint32_t bucket_record_len(const struct buckets *b, const struct bucket_known *k)
{
	return k->kind == BUCKETS_MEMORY ? b->record_len : BUCKET_RECORD;
}

/* ---- the runtime's variables ---- */

struct variables {
	uint64_t heads[BUCKETS_KINDS];
	int64_t mem_rate;
	uint64_t block_rate, mutex_rate;
	uint64_t ticks[3]; /* startTicks, startTime, val */
};

/* Each that has an address; one that cannot be read is 0, as if it had none. */
static bool variables_read(struct buckets *b, struct variables *v, struct buckets_sum *sum)
{
	const struct buckets_layout *l = &b->layout;
	const size_t started = l->ticks_started ? 0 : 2; /* from which of ticks[] on */
	const struct buckets_range all[] = {
		{l->heads[BUCKETS_MEMORY], &v->heads[BUCKETS_MEMORY], 8},
		{l->heads[BUCKETS_BLOCK], &v->heads[BUCKETS_BLOCK], 8},
		{l->heads[BUCKETS_MUTEX], &v->heads[BUCKETS_MUTEX], 8},
		{l->mem_rate, &v->mem_rate, 8},
		{l->block_rate, &v->block_rate, 8},
		{l->mutex_rate, &v->mutex_rate, 8},
		{l->ticks ? l->ticks - (2 - started) * 8 : 0, &v->ticks[started],
		 (3 - started) * 8},
	};
	const size_t n = ARRAY_SIZE(all);
	struct buckets_range wanted[ARRAY_SIZE(all)];
	size_t count = 0, at = 0;

	memset(v, 0, sizeof(*v));
	v->mem_rate = -1;
	for (size_t i = 0; i < n; i++)
		if (all[i].addr)
			wanted[count++] = all[i];
	while (at < count) {
		long got = buckets_read_ranges(b, wanted + at, count - at, sum);

		if (got < 0)
			return false;
		at += (size_t)got + 1;
	}
	return true;
}

/* ---- the CPU's ticks ---- */

/* Ticks and nanoseconds of the same moment: of some tries the one that took least, for between the
 * two readings another thread may have the CPU. Without a counter that the runtime, too, would use:
 * 0. */
static void clocks_read(uint64_t *clocks)
{
	clocks[0] = clocks[1] = 0;
#ifdef __x86_64__
	uint64_t least = UINT64_MAX;

	for (unsigned i = 0; i < CLOCK_TRIES; i++) {
		const uint64_t before = __rdtsc();
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		const uint64_t took = __rdtsc() - before;
		if (took >= least)
			continue;
		least = took;
		clocks[0] = before + took / 2;
		clocks[1] = (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
	}
#endif
}

/* As runtime.ticksPerSecond computes it (Go 1.22 on), which too waits so long. 0: too early. */
static double ticks_since(const uint64_t *began)
{
	uint64_t now[2];

	clocks_read(now);
	if (now[0] <= began[0] || now[1] <= began[1] || now[1] - began[1] < TICKS_WAIT_NS)
		return 0;
	return (double)(now[0] - began[0]) * 1e9 / (double)(now[1] - began[1]);
}

/* For programs that keep no such beginning, or hide it: measured once for all of them. */
static double ticks_measured(void)
{
	static double measured;
	uint64_t began[2];

	clocks_read(began);
	while (measured <= 0 && began[0]) {
		nanosleep(&(struct timespec){.tv_nsec = TICKS_WAIT_NS}, NULL);
		measured = ticks_since(began);
	}
	return measured;
}

static void variables_tell(const struct buckets *b, const struct variables *v,
			   struct buckets_sum *sum)
{
	double ticks = (double)v->ticks[2];

	sum->mem_rate_known = b->layout.mem_rate && v->mem_rate >= 0 && v->mem_rate < RATE_MAX;
	sum->mem_rate = sum->mem_rate_known ? v->mem_rate : 0;
	sum->block_rate = v->block_rate;
	sum->mutex_rate = v->mutex_rate;
	if (!v->ticks[2] && b->layout.ticks && b->layout.ticks_started && v->ticks[0])
		ticks = ticks_since(v->ticks);
	if (ticks <= 0 && (v->heads[BUCKETS_BLOCK] || v->heads[BUCKETS_MUTEX]))
		ticks = ticks_measured();
	sum->ticks_per_second = ticks > 1e6 && ticks < 1e11 ? ticks : 0;
}

/* ---- a collection ---- */

static int by_address(const void *a, const void *b)
{
	const uint64_t x = ((const struct bucket_known *)a)->addr,
		       y = ((const struct bucket_known *)b)->addr;

	return x < y ? -1 : x > y;
}

/* Condition 2: how long are memory records? false: as no Go does it that is known. */
static bool record_measure(struct buckets *b)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i + 1 < b->count; i++) {
		const struct bucket_known *k = &b->known[i];
		const uint64_t distance =
			b->known[i + 1].addr - k->addr - BUCKET_HEAD - k->depth * 8ul;

		if (k->kind == BUCKETS_MEMORY && distance < least)
			least = distance;
	}
	b->record_len = b->layout.record_len ? b->layout.record_len : BUCKET_RECORD_LONG;
	if (least >= b->record_len && (b->layout.record_len || least > BUCKET_RECORD_LONG))
		return true;
	b->record_len = (uint32_t)least;
	return least == BUCKET_RECORD_SHORT || least == BUCKET_RECORD_LONG;
}

static int lists_walk(struct buckets *b, const struct variables *v, struct buckets_sum *sum)
{
	const uint32_t before = b->count;
	int rc = 0;

	for (unsigned kind = BUCKETS_MEMORY;
	     kind < BUCKETS_KINDS && !rc && sum->state[0] == BUCKETS_OK; kind++) {
		if (b->layout.heads[kind])
			rc = buckets_walk(b, kind, v->heads[kind], sum);
		else
			sum->state[kind] = BUCKETS_NOT_FOUND;
	}
	free(b->pages);
	b->pages = NULL;
	sum->fresh = b->count - before;
	if (sum->fresh) {
		qsort(b->known, b->count, sizeof(*b->known), by_address);
		if (!record_measure(b))
			b->broken[BUCKETS_MEMORY] = BUCKETS_UNKNOWN_LAYOUT;
	}
	return rc;
}

/* Nothing there: because there is nothing, or because it is off? */
static void states_settle(const struct buckets *b, struct buckets_sum *sum)
{
	for (unsigned kind = BUCKETS_MEMORY; kind < BUCKETS_KINDS; kind++) {
		sum->count[kind] = b->counts[kind];
		if (sum->state[kind] == BUCKETS_OK && !b->counts[kind])
			sum->state[kind] = BUCKETS_EMPTY;
		if (b->broken[kind])
			sum->state[kind] = b->broken[kind];
	}
	if (sum->mem_rate_known && !sum->mem_rate &&
	    (sum->state[BUCKETS_MEMORY] <= BUCKETS_EMPTY ||
	     sum->state[BUCKETS_MEMORY] == BUCKETS_NOT_FOUND))
		sum->state[BUCKETS_MEMORY] = BUCKETS_OFF;
	sum->found_by_search = b->searched;
}

int buckets_collect(struct buckets *b, int (*each)(void *ctx, const struct bucket *bucket),
		    void *ctx, struct buckets_sum *sum)
{
	struct variables v;
	int rc = 0;

	*sum = (struct buckets_sum){0};
	if (sum->state[0] == BUCKETS_OK && buckets_wants_search(b))
		buckets_search(b, sum);
	if (sum->state[0] == BUCKETS_OK && variables_read(b, &v, sum)) {
		variables_tell(b, &v, sum);
		rc = lists_walk(b, &v, sum);
	}
	if (!rc && sum->state[0] == BUCKETS_OK &&
	    b->broken[BUCKETS_MEMORY] != BUCKETS_UNKNOWN_LAYOUT)
		rc = buckets_records(b, each, ctx, sum);
	states_settle(b, sum);
	return rc;
}
