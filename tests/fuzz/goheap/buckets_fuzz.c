/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The profile of a process that lies. The input is a script of steps of 4 bytes: build a bucket,
 * overwrite a word, make a hole, collect; so that lists are sound enough to be followed, and then
 * damaged. In every case: few reads, no more buckets than it made, and all results can be read.
 *
 * covers: loaders/goheap/buckets.c loaders/goheap/buckets_walk.c loaders/goheap/buckets_records.c
 *         loaders/goheap/buckets_layout.c
 */
#include "tests/unit/loaders/goheap/fake.h"

#define LEN   (64u << 10)
#define STEPS 256u
#define READS 4000u /* of one collection: 1000 words to search, 200 buckets, each a few times */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static volatile uint64_t sink;

struct told {
	uint32_t count, indexes;
};

static int tell(void *ctx, const struct bucket *b)
{
	struct told *t = ctx;
	const struct bucket_amounts a = bucket_published(b), p = bucket_pending(b);
	uint64_t sum = a.allocs + p.frees;

	for (uint32_t i = 0; i < b->depth; i++)
		sum += b->pcs[i];
	sink += sum;
	t->count++;
	t->indexes = b->index >= t->indexes ? b->index + 1 : t->indexes;
	return sum == 0x123456789; /* who listens may end it */
}

static void step_build(struct fake *f, const uint8_t *s)
{
	const enum buckets_kind kind = BUCKETS_MEMORY + s[1] % 3;
	const uint64_t depth = s[2] == 255 ? 1000 : s[2] % 16;
	uint64_t bucket;

	if (f->used + BUCKET_HEAD + depth * 8 + BUCKET_RECORD_LONG > LEN)
		return;
	f->record_len = s[0] & 0x40 ? BUCKET_RECORD_SHORT : BUCKET_RECORD_LONG;
	bucket = fake_bucket(f, kind, kind == BUCKETS_MEMORY ? s[3] + 1u : 0,
			     s[3] % 8 ? s[3] : UINT64_MAX, depth);
	if (kind == BUCKETS_MEMORY)
		fake_amounts(f, bucket, s[1] / 3 % 4, s[3], s[2] & 3);
}

static void step_change(struct fake *f, const uint8_t *s)
{
	static const uint64_t values[] = {0,
					  1,
					  8,
					  1025,
					  UINT64_MAX,
					  1ull << 40,
					  FAKE_BASE,
					  FAKE_BASE + FAKE_VARS,
					  FAKE_BASE + LEN - 8};
	const uint64_t place = (s[1] | s[2] << 8) % LEN & ~7ull;

	fake_set(f, FAKE_BASE + place,
		 s[3] & 1 ? FAKE_BASE + FAKE_VARS + s[3] * 8u : values[(s[3] >> 1) % 9]);
}

/* What the process does between two reads: the script's bytes, over and over. */
static struct {
	const uint8_t *data;
	size_t len, at;
} during;

static void meanwhile(struct fake *f)
{
	const uint8_t *s = during.data + during.at;

	if (during.len < 4 || f->mark++ % 3)
		return;
	if (s[0] & 0x20)
		fake_set(f, FAKE_CYCLE, s[3]);
	else if (s[0] & 0x10)
		step_change(f, s);
	during.at = (during.at + 4) % (during.len - 3);
}

static void step_collect(struct fake *f, struct buckets *b)
{
	struct told t = {0};
	struct buckets_sum sum;

	f->reads = 0;
	buckets_collect(b, tell, &t, &sum);
	if (f->reads > READS || t.indexes > sum.count[1] + sum.count[2] + sum.count[3] ||
	    t.count > STEPS)
		abort();
	for (unsigned i = 0; i < BUCKETS_KINDS; i++)
		sink += (uintptr_t)buckets_state_text(sum.state[i]);
}

static struct buckets *open_as(struct fake *f, uint8_t how)
{
	const struct buckets_memory m = {fake_read, f};
	struct image_go_record go = {.version = "go1.26", .bss_start = 0x1000, .bss_end = 0x2000};
	struct buckets_layout l;

	if (how & 8)
		memcpy(go.version, how & 16 ? "go1.15" : "go1.27", 7);
	if (how & 32)
		go.version[0] = 0;
	go.variables[IMAGE_GO_MBUCKETS] = how & 1 ? 0 : 0x1008;
	go.variables[IMAGE_GO_BBUCKETS] = how & 1 ? 0 : 0x1010;
	go.variables[IMAGE_GO_XBUCKETS] = how & 1 ? 0 : 0x1018;
	go.variables[how & 4 ? IMAGE_GO_MPROF : IMAGE_GO_MPROF_CYCLE] = how & 2 ? 0 : 0x1040;
	go.variables[IMAGE_GO_MEM_PROFILE_RATE] = how & 64 ? 0 : 0x1048;
	go.variables[IMAGE_GO_TICKS] = 0x1050;
	if (!buckets_layout_make(&go, FAKE_BASE - 0x1000, &l))
		abort();
	return buckets_open(&l, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fake f;
	struct buckets *b;

	if (len < 5)
		return 0;
	f = fake_init(LEN);
	b = open_as(&f, data[0]);
	during.data = data + 1;
	during.len = data[0] & 128 ? len - 1 : 0;
	during.at = 0;
	f.before = meanwhile;
	for (size_t at = 1, n = 0; at + 4 <= len && n < STEPS; at += 4, n++)
		switch (data[at] % 8) {
		case 0:
		case 1:
		case 2:
		case 3:
			step_build(&f, data + at);
			break;
		case 4:
			step_change(&f, data + at);
			break;
		case 5:
			f.hole = FAKE_BASE + (data[at + 1] | data[at + 2] << 8);
			f.hole_len = data[at + 3];
			break;
		case 6:
			f.error = data[at + 1] == 1 ? -EPERM : data[at + 1] == 2 ? -ESRCH : 0;
			break;
		default:
			step_collect(&f, b);
		}
	step_collect(&f, b);
	step_collect(&f, b);
	buckets_close(b);
	free(f.bytes);
	return 0;
}
