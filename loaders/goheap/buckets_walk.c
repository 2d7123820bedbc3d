/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets_walk: finds the buckets by following the lists, and, if the lists have no symbols, by
 * searching the variables. Buckets are allocated one after the other in chunks of 256 KB (one chunk
 * a processor), and the list runs from the newest to the oldest: so a page is read together with
 * those below it, and most steps of a walk read nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "loaders/goheap/buckets_parts.h"
#include "schema/base/cleanup.h"

#define SEARCH_MAX      (64ull << 20) /* bytes of variables that are searched */
#define SEARCH_CHUNK    65536u
#define SEARCH_POINTERS 16384u /* that are followed in one search */
#define SEARCH_WAIT_MAX 64u    /* collections between two searches, at most */

/* ---- pages ---- */

static uint8_t *page_slot(struct bucket_pages *p, uint64_t number)
{
	return p->bytes[number % BUCKETS_PAGES];
}

/* The page, and, as far as they can be read, those below it. */
static bool page_load(struct buckets *b, uint64_t number, struct buckets_sum *sum)
{
	struct buckets_range ranges[BUCKETS_PAGES_READ];
	size_t count = 0;
	long got;

	for (; count < b->pages_read && number > count; count++) {
		const uint64_t n = number - count;

		ranges[count] = (struct buckets_range){n * BUCKETS_PAGE, page_slot(b->pages, n),
						       BUCKETS_PAGE};
		b->pages->number[n % BUCKETS_PAGES] = 0;
	}
	got = buckets_read_ranges(b, ranges, count, sum);
	for (long i = 0; i < got; i++)
		b->pages->number[(number - i) % BUCKETS_PAGES] = number - i;
	return got > 0;
}

bool buckets_pages_read(struct buckets *b, uint64_t addr, void *to, size_t len,
			struct buckets_sum *sum)
{
	uint8_t *out = to;

	if (!b->pages)
		b->pages = calloc(1, sizeof(*b->pages));
	if (!b->pages || addr < BUCKETS_PAGE || addr >= BUCKET_ADDR_MAX)
		return false;
	while (len) {
		const uint64_t number = addr / BUCKETS_PAGE, at = addr % BUCKETS_PAGE;
		const size_t n = len < BUCKETS_PAGE - at ? len : BUCKETS_PAGE - at;

		if (b->pages->number[number % BUCKETS_PAGES] != number &&
		    !page_load(b, number, sum))
			return false;
		memcpy(out, page_slot(b->pages, number) + at, n);
		out += n;
		addr += n;
		len -= n;
	}
	return true;
}

/* ---- a list ---- */

/* Its head and stack read and proven. */
static bool bucket_proven(struct buckets *b, uint64_t addr, enum buckets_kind kind,
			  struct bucket_head *h, struct buckets_sum *sum)
{
	uint64_t pcs[BUCKETS_DEPTH_MAX];

	return !(addr & 7) && buckets_pages_read(b, addr, h, sizeof(*h), sum) &&
	       bucket_head_sound(h, kind) &&
	       buckets_pages_read(b, addr + BUCKET_HEAD, pcs, h->depth * 8, sum) &&
	       bucket_hash(pcs, h->depth, h->size) == h->hash;
}

static int known_add(struct buckets *b, uint64_t addr, const struct bucket_head *h)
{
	if (b->count == b->cap) {
		uint32_t cap = b->cap ? b->cap * 2 : 256;
		struct bucket_known *grown = reallocarray(b->known, cap, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		b->known = grown;
		b->cap = cap;
	}
	b->known[b->count] = (struct bucket_known){.addr = addr,
						   .size = h->size,
						   .hash = h->hash,
						   .index = b->count,
						   .depth = (uint16_t)h->depth,
						   .kind = (uint8_t)h->kind,
						   .fresh = true};
	b->count++;
	b->counts[h->kind]++;
	idmap_set(&b->places, addr, h->kind);
	return 0;
}

int buckets_walk(struct buckets *b, enum buckets_kind kind, uint64_t head, struct buckets_sum *sum)
{
	struct bucket_head h;
	uint32_t again = b->unfinished[kind] ? b->counts[kind] :
					       0; /* known buckets that may be passed again */
	uint64_t met;
	int rc = 0;

	b->pages_read = BUCKETS_PAGES_READ;
	if (!head && b->head[kind])
		sum->state[0] = BUCKETS_GONE;
	for (uint64_t at = head; at && at != b->head[kind] && !rc; at = h.allnext) {
		if (b->count == BUCKETS_MAX) {
			b->broken[kind] = BUCKETS_TOO_MANY;
			break;
		}
		bool known = idmap_get(&b->places, at, &met), pass = known && met == kind && again;

		again -= pass;
		if ((known && !pass) || !bucket_proven(b, at, kind, &h, sum)) {
			if (sum->state[0] == BUCKETS_OK)
				b->broken[kind] =
					b->counts[kind] ? BUCKETS_BROKEN : BUCKETS_UNKNOWN_LAYOUT;
			break;
		}
		if (!known)
			rc = known_add(b, at, &h);
	}
	b->unfinished[kind] = rc;
	if (!rc)
		b->head[kind] = head;
	return rc;
}

/* ---- a search ---- */

bool buckets_wants_search(struct buckets *b)
{
	const uint64_t *heads = b->layout.heads;

	if (!b->layout.search ||
	    (heads[BUCKETS_MEMORY] && heads[BUCKETS_BLOCK] && heads[BUCKETS_MUTEX]))
		return false;
	if (b->search_wait) {
		b->search_wait--;
		return false;
	}
	b->search_step =
		b->search_step < SEARCH_WAIT_MAX ? b->search_step * 2 + 1 : SEARCH_WAIT_MAX;
	b->search_wait = b->search_step;
	return true;
}

/* What a search finds of one kind: 0 nothing, ~0 more than one. */
struct findings {
	uint64_t heads[BUCKETS_KINDS];
	uint32_t pointers; /* followed */
};

static void variable_try(struct buckets *b, uint64_t addr, uint64_t value, struct findings *f,
			 struct buckets_sum *sum)
{
	const struct buckets_layout *l = &b->layout;
	struct bucket_head h;
	uint64_t kind;

	if (value < BUCKETS_PAGE || value & 7 || value >= BUCKET_ADDR_MAX ||
	    (value >= l->search && value - l->search < l->search_len) ||
	    f->pointers == SEARCH_POINTERS)
		return;
	f->pointers++;
	if (!buckets_pages_read(b, value, &h, sizeof(h), sum))
		return;
	kind = h.kind;
	if (kind < BUCKETS_MEMORY || kind >= BUCKETS_KINDS || !h.depth || l->heads[kind] ||
	    !bucket_proven(b, value, (enum buckets_kind)kind, &h, sum))
		return;
	f->heads[kind] = f->heads[kind] ? ~0ull : addr;
}

void buckets_search(struct buckets *b, struct buckets_sum *sum)
{
	const uint64_t end =
		b->layout.search +
		(b->layout.search_len < SEARCH_MAX ? b->layout.search_len : SEARCH_MAX);
	cleanup_free uint64_t *words = malloc(SEARCH_CHUNK);
	struct findings f = {0};

	b->pages_read = 1;
	for (uint64_t at = b->layout.search & ~7ull;
	     words && at < end && sum->state[0] == BUCKETS_OK; at += SEARCH_CHUNK) {
		const size_t len = end - at < SEARCH_CHUNK ? (end - at) & ~7ull : SEARCH_CHUNK;

		if (!buckets_read(b, at, words, len, sum))
			continue;
		for (size_t i = 0; i < len / 8; i++)
			variable_try(b, at + i * 8, words[i], &f, sum);
	}
	for (unsigned kind = BUCKETS_MEMORY; kind < BUCKETS_KINDS; kind++)
		if (f.heads[kind] && f.heads[kind] != ~0ull) {
			b->layout.heads[kind] = f.heads[kind];
			b->searched = true;
		}
	free(b->pages);
	b->pages = NULL;
}
