/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets_records: one collection's records. Known buckets are sorted by address; neighbours make
 * one span, spans make one batch, and a batch is one vectored read: cycle, spans, cycle. So each
 * batch shows whether the cycle changed while it was read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/goheap/buckets_parts.h"
#include "schema/base/cleanup.h"

#define BATCH_BYTES (512u << 10)
/* bytes between two buckets that are cheaper to read than to leave out */
#define SPAN_GAP 1024u
#define TRIES    4u
/* up to this many half-written records of a batch are read again alone; above that, the whole batch
 * is */
#define BAD_ONE_BY_ONE 32u
/* a batch in which the cycle always changes is halved, down to this */
#define SPLIT_TO 16u
/* buckets that cannot be read any more: then the process is not what it was */
#define LOST_MAX      256u
#define COUNT_MAX     (1ull << 48)
#define LOGICAL_STACK UINT64_MAX

/* ---- one record ---- */

enum verdict { SOUND, TORN, SUSPECT };

/* The four parts: active, future[3]. */
static void amounts_read(uint32_t record_len, const uint8_t *record, uint64_t size,
			 struct bucket_amounts *parts)
{
	uint64_t counts[8];

	if (record_len == BUCKET_RECORD_LONG) {
		memcpy(parts, record, BUCKET_RECORD_LONG);
		return;
	}
	memcpy(counts, record, sizeof(counts));
	for (unsigned i = 0; i < 4; i++)
		parts[i] = (struct bucket_amounts){.allocs = counts[2 * i],
						   .frees = counts[2 * i + 1],
						   .alloc_bytes = counts[2 * i] * size,
						   .free_bytes = counts[2 * i + 1] * size};
}

static bool amounts_agree(const struct bucket_amounts *a, uint64_t size)
{
	return a->alloc_bytes == a->allocs * size && a->free_bytes == a->frees * size &&
	       a->allocs < COUNT_MAX && a->frees < COUNT_MAX;
}

static bool amounts_none(const struct bucket_amounts *a)
{
	return !(a->allocs | a->frees | a->alloc_bytes | a->free_bytes);
}

static bool parts_agree(const struct bucket_amounts *parts, uint64_t size)
{
	for (unsigned i = 0; i < 4; i++)
		if (!amounts_agree(&parts[i], size))
			return false;
	return true;
}

bool bucket_record_parse(const void *record, uint32_t record_len, uint64_t size, struct bucket *out)
{
	struct bucket_amounts parts[4];

	if (record_len != BUCKET_RECORD_LONG && record_len != BUCKET_RECORD_SHORT)
		return false;
	amounts_read(record_len, record, size, parts);
	if (!parts_agree(parts, size))
		return false;
	out->active = parts[0];
	memcpy(out->future, parts + 1, sizeof(out->future));
	return true;
}

/* SUSPECT: in the moment of its publication by a call of MemProfile, which sets no flag. */
static enum verdict memory_judge(const struct buckets *b, const uint8_t *record, uint64_t size,
				 uint32_t cycle)
{
	struct bucket_amounts parts[4];

	amounts_read(b->record_len, record, size, parts);
	if (!parts_agree(parts, size))
		return TORN;
	if (!b->layout.cycle || amounts_none(&parts[1 + (cycle >> 1) % 3]))
		return SOUND;
	return cycle & 1 ? TORN : SUSPECT;
}

/* cycle << 1 | flushed. */
static uint32_t cycle_of(const struct buckets *b, const uint8_t *bytes)
{
	uint32_t word;

	memcpy(&word, bytes, 4);
	return b->layout.old_cycle ? word << 1 | (bytes[4] & 1) : word;
}

/* ---- a batch ---- */

struct batch {
	uint8_t *buf;           /* own; BATCH_BYTES */
	uint64_t before, after; /* the cycle's bytes */
	struct buckets_range ranges[BUCKETS_RANGES_MAX];
	uint32_t first_of[BUCKETS_RANGES_MAX]; /* of each range that is a span: its first bucket */
	size_t count;
	size_t spans;        /* which of `ranges` is the first span */
	uint32_t start, end; /* buckets */
	uint32_t cycle;
};

static void batch_build(const struct buckets *b, struct batch *t, uint32_t start, uint32_t limit,
			bool join)
{
	const struct buckets_range cycle = {b->layout.cycle, &t->before,
					    b->layout.old_cycle ? 5 : 4};
	size_t used = 0;

	t->start = t->end = start;
	t->count = t->spans = 0;
	if (cycle.addr)
		t->ranges[t->count++] = cycle;
	t->spans = t->count;
	for (; t->end < limit; t->end++) {
		const struct bucket_known *k = &b->known[t->end];
		const size_t len = BUCKET_HEAD + k->depth * 8ul + bucket_record_len(b, k);
		struct buckets_range *last = t->count > t->spans ? &t->ranges[t->count - 1] : NULL;
		const uint64_t gap = last ? k->addr - last->addr - last->len : 0;

		if (last && join && k->addr >= last->addr + last->len && gap <= SPAN_GAP &&
		    used + gap + len <= BATCH_BYTES) {
			last->len += gap + len;
			used += gap + len;
			continue;
		}
		if (t->count == BUCKETS_RANGES_MAX - 1 || used + len > BATCH_BYTES)
			break;
		t->first_of[t->count] = t->end;
		t->ranges[t->count++] = (struct buckets_range){k->addr, t->buf + used, len};
		used += len;
	}
	if (cycle.addr) {
		t->ranges[t->count] = cycle;
		t->ranges[t->count++].to = &t->after;
	}
}

/* Position of bucket i in the buffer; advances `span`. */
static const uint8_t *batch_at(const struct buckets *b, const struct batch *t, uint32_t i,
			       size_t *span)
{
	const size_t end = t->count - t->spans; /* one range of the cycle before, then one after */

	while (*span + 1 < end && t->first_of[*span + 1] <= i)
		++*span;
	return (const uint8_t *)t->ranges[*span].to + (b->known[i].addr - t->ranges[*span].addr);
}

static enum verdict batch_judge(const struct buckets *b, const struct batch *t, uint32_t i,
				const uint8_t *at)
{
	const struct bucket_known *k = &b->known[i];

	if (k->kind != BUCKETS_MEMORY)
		return SOUND;
	return memory_judge(b, at + BUCKET_HEAD + k->depth * 8ul, k->size, t->cycle);
}

static uint32_t batch_bad(const struct buckets *b, const struct batch *t)
{
	uint32_t bad = 0;
	size_t span = t->spans;

	for (uint32_t i = t->start; i < t->end; i++)
		bad += batch_judge(b, t, i, batch_at(b, t, i, &span)) != SOUND;
	return bad;
}

enum outcome { READ, CHANGING, FAILED };

/* FAILED: *got ranges could be read. CHANGING: the cycle was another after it, each time. */
static enum outcome batch_read(struct buckets *b, struct batch *t, struct buckets_sum *sum,
			       long *got)
{
	for (unsigned try = 0; try < TRIES; try++) {
		*got = buckets_read_ranges(b, t->ranges, t->count, sum);
		if (*got != (long)t->count)
			return FAILED;
		if (b->layout.cycle && cycle_of(b, (const uint8_t *)&t->before) !=
					       cycle_of(b, (const uint8_t *)&t->after)) {
			sum->torn += t->end - t->start;
			continue;
		}
		t->cycle = cycle_of(b, (const uint8_t *)&t->before);
		if (try == TRIES - 1 || batch_bad(b, t) <= BAD_ONE_BY_ONE)
			return READ;
		sum->torn += t->end - t->start;
	}
	return CHANGING;
}

/* One record read again, into the batch. Two equal readings are believed of a suspect one. */
static bool bucket_again(struct buckets *b, const struct batch *t, uint32_t i, uint8_t *at,
			 uint32_t *cycle, struct buckets_sum *sum)
{
	const struct bucket_known *k = &b->known[i];
	uint8_t *record = at + BUCKET_HEAD + k->depth * 8ul;
	uint64_t before = 0, after = 0;
	const size_t len = b->layout.old_cycle ? 5 : 4, spare = b->layout.cycle ? 0 : 1;
	uint8_t last[BUCKET_RECORD_LONG];
	const struct buckets_range all[] = {
		{b->layout.cycle, &before, len},
		{k->addr + BUCKET_HEAD + k->depth * 8ul, record, b->record_len},
		{b->layout.cycle, &after, len}};
	const size_t count = 3 - 2 * spare;

	*cycle = t->cycle;
	for (unsigned try = 0; try < TRIES; try++) {
		enum verdict v;

		sum->torn++;
		memcpy(last, record, b->record_len);
		if (buckets_read_ranges(b, all + spare, count, sum) != (long)count)
			return false;
		*cycle = cycle_of(b, (const uint8_t *)&before);
		if (*cycle != cycle_of(b, (const uint8_t *)&after))
			continue;
		v = memory_judge(b, record, k->size, *cycle);
		if (v == SOUND || (v == SUSPECT && !memcmp(last, record, b->record_len)))
			return true;
	}
	return false;
}

/* ---- telling ---- */

/* Bits of a float64 that is no tiny fraction, or, before Go 1.17, an int64. */
static double count_of(uint64_t bits)
{
	double d;

	if (bits < 1ull << 52)
		return (double)bits;
	memcpy(&d, &bits, 8);
	return d >= 0 && d < 1e18 ? d : 0;
}

static void bucket_make(const struct buckets *b, const struct bucket_known *k, const uint8_t *at,
			uint32_t cycle, struct bucket *out)
{
	const uint8_t *record = at + BUCKET_HEAD + k->depth * 8ul;
	uint64_t words[2];

	*out = (struct bucket){.index = k->index,
			       .fresh = k->fresh,
			       .kind = k->kind,
			       .addr = k->addr,
			       .record = k->addr + BUCKET_HEAD + k->depth * 8ul,
			       .record_len = bucket_record_len(b, k),
			       .size = k->size,
			       .pcs = (const uint64_t *)(const void *)(at + BUCKET_HEAD),
			       .depth = k->depth,
			       .cycle = cycle >> 1,
			       .cycle_known = b->layout.cycle};
	if (k->kind == BUCKETS_MEMORY) {
		bucket_record_parse(record, b->record_len, k->size, out);
		return;
	}
	if (out->depth && out->pcs[0] == LOGICAL_STACK) {
		out->pcs++;
		out->depth--;
	}
	memcpy(words, record, sizeof(words));
	out->count = count_of(words[0]);
	out->ticks = (int64_t)words[1];
}

struct telling {
	int (*each)(void *ctx, const struct bucket *bucket);
	void *ctx;
	bool published; /* any of them has something published */
};

static int batch_tell(struct buckets *b, struct batch *t, struct telling *tell,
		      struct buckets_sum *sum)
{
	size_t span = t->spans;
	int rc = 0;

	for (uint32_t i = t->start; i < t->end && !rc; i++) {
		struct bucket_known *k = &b->known[i];
		uint8_t *at = (uint8_t *)batch_at(b, t, i, &span);
		uint32_t cycle = t->cycle;
		struct bucket_amounts a;
		struct bucket_head h;
		struct bucket bucket;

		memcpy(&h, at, sizeof(h));
		if (h.kind != k->kind || h.hash != k->hash || h.depth != k->depth ||
		    h.size != k->size) {
			sum->state[0] = BUCKETS_GONE;
			return 0;
		}
		if (batch_judge(b, t, i, at) != SOUND && !bucket_again(b, t, i, at, &cycle, sum)) {
			sum->dropped++;
			continue;
		}
		bucket_make(b, k, at, cycle, &bucket);
		a = bucket_published(&bucket);
		tell->published |= a.allocs || a.frees;
		rc = tell->each(tell->ctx, &bucket);
		k->fresh = false;
	}
	return rc;
}

/* ---- all batches ---- */

/* Something could not be read: batches end before it, then it is read alone, then it is left out.
 * Returns where to go on. */
static uint32_t batch_shrink(const struct batch *t, long got, bool *join, uint32_t *limit,
			     struct buckets_sum *sum)
{
	const size_t bad = (size_t)got;

	/* the cycle itself */
	if (bad < t->spans || bad >= t->count || (t->spans && bad == t->count - 1)) {
		sum->state[0] = BUCKETS_GONE;
		return t->end;
	}
	if (bad > t->spans) {
		*limit = t->first_of[bad];
		return t->start;
	}
	if (*join) {
		*join = false;
		return t->start;
	}
	sum->dropped++;
	if (sum->dropped >= LOST_MAX)
		sum->state[0] = BUCKETS_GONE;
	return t->start + 1;
}

static int batches_run(struct buckets *b, struct batch *t, struct telling *tell,
		       struct buckets_sum *sum)
{
	uint32_t at = 0, limit = b->count;
	bool join = true, first = true;
	int rc = 0;

	while (at < b->count && !rc && sum->state[0] == BUCKETS_OK) {
		enum outcome o;
		long got = 0;

		batch_build(b, t, at, limit, join);
		o = batch_read(b, t, sum, &got);
		if (o == FAILED) {
			if (sum->state[0] == BUCKETS_OK)
				at = batch_shrink(t, got, &join, &limit, sum);
			limit = limit > at ? limit : b->count;
			continue;
		}
		if (o == CHANGING && t->end - t->start > SPLIT_TO) {
			limit = at + (t->end - t->start) / 2;
			continue;
		}
		if (o == CHANGING)
			sum->dropped += t->end - t->start;
		else
			rc = batch_tell(b, t, tell, sum);
		if (first)
			sum->cycle_first = t->cycle;
		first = false;
		sum->cycle_last = t->cycle;
		at = t->end;
		limit = b->count;
		join = true;
	}
	return rc;
}

int buckets_records(struct buckets *b, int (*each)(void *ctx, const struct bucket *bucket),
		    void *ctx, struct buckets_sum *sum)
{
	struct telling tell = {.each = each, .ctx = ctx};
	cleanup_free struct batch *t = calloc(1, sizeof(*t));
	cleanup_free uint8_t *buf = aligned_alloc(16, BATCH_BYTES);
	int rc;

	if (!t || !buf)
		return -ENOMEM;
	t->buf = buf;
	rc = batches_run(b, t, &tell, sum);
	sum->cycle_known = b->layout.cycle;
	sum->nothing_published = !tell.published && b->counts[BUCKETS_MEMORY];
	return rc;
}
