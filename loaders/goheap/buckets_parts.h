/* SPDX-License-Identifier: Apache-2.0 */
/* buckets_parts: what the files of buckets share. */
#ifndef SONDE_GOHEAP_BUCKETS_PARTS_H
#define SONDE_GOHEAP_BUCKETS_PARTS_H

#include "loaders/goheap/buckets.h"
#include "schema/base/idmap.h"

#define BUCKET_HEAD         48u  /* bytes before the pcs */
#define BUCKET_RECORD_LONG  128u /* memory */
#define BUCKET_RECORD_SHORT 64u  /* memory, Go 1.27 on */
#define BUCKET_RECORD       16u  /* block, mutex */
#define BUCKET_SIZE_MAX     (1ull << 40)
#define BUCKET_ADDR_MAX     (1ull << 47)

/* The first 48 bytes of a bucket. */
struct bucket_head {
	uint64_t next, allnext, kind, hash, size, depth;
};

/* What is kept of a known bucket. */
struct bucket_known {
	uint64_t addr;
	uint64_t size; /* of one object */
	uint64_t hash;
	uint32_t index;
	uint16_t depth;
	uint8_t kind;
	bool fresh; /* found by the collection that is running */
};

/* A page of the process, kept while lists are walked. */
#define BUCKETS_PAGE       4096u
#define BUCKETS_PAGES      128u /* cached, by page number */
#define BUCKETS_PAGES_READ 16u  /* that one read asks for: older buckets lie below */

struct bucket_pages {
	uint64_t number[BUCKETS_PAGES]; /* address / BUCKETS_PAGE + 1; 0: empty */
	uint8_t bytes[BUCKETS_PAGES][BUCKETS_PAGE];
};

struct buckets {
	struct buckets_layout layout;
	struct buckets_memory memory;
	struct bucket_known *known; /* own; by address */
	uint32_t count, cap;
	uint32_t counts[BUCKETS_KINDS];
	uint64_t head[BUCKETS_KINDS];   /* the newest known one; 0: none */
	bool unfinished[BUCKETS_KINDS]; /* memory was short: the known list does not reach down to
					   `head` */
	enum buckets_state broken[BUCKETS_KINDS]; /* a list that was found to be: it stays so;
						     BUCKETS_OK: sound */
	struct idmap places;                      /* address -> its kind, of all known ones */
	struct bucket_pages *pages;               /* own; only while walking */
	unsigned pages_read;                      /* at once, up to BUCKETS_PAGES_READ */
	uint32_t record_len;                      /* of memory buckets; 0: not known yet */
	bool searched;                            /* layout.heads come from a search */
	uint32_t search_wait;                     /* collections until the next search */
	uint32_t search_step;
};

/* Read, counted in *sum. True: all of it; false: sum->state[0] says why if it is the process's
 * fault. */
bool buckets_read(struct buckets *b, uint64_t addr, void *to, size_t len, struct buckets_sum *sum);
/* Vectored; as the vtable's `read`. */
long buckets_read_ranges(struct buckets *b, const struct buckets_range *ranges, size_t count,
			 struct buckets_sum *sum);

/* Is it sound, but for its stack and hash? */
bool bucket_head_sound(const struct bucket_head *h, enum buckets_kind kind);
uint64_t bucket_hash(const uint64_t *pcs, size_t depth, uint64_t size);
uint32_t bucket_record_len(const struct buckets *b, const struct bucket_known *k);

/* Follows the list of this kind from `head` to the known buckets, and adds the new ones. 0 or
 * -ENOMEM. */
int buckets_walk(struct buckets *b, enum buckets_kind kind, uint64_t head, struct buckets_sum *sum);
/* List heads without a symbol: searches the variables for pointers to valid buckets. Only from time
 * to time. */
bool buckets_wants_search(struct buckets *b);
void buckets_search(struct buckets *b, struct buckets_sum *sum);
/* Reads pages that were read already in this walk only once. false: not all of it can be read. */
bool buckets_pages_read(struct buckets *b, uint64_t addr, void *to, size_t len,
			struct buckets_sum *sum);
/* Records of all known ones. */
int buckets_records(struct buckets *b, int (*each)(void *ctx, const struct bucket *bucket),
		    void *ctx, struct buckets_sum *sum);

#endif
