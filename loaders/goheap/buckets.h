/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buckets: reads the profiles that Go's runtime keeps in a process: memory, block and mutex. Only
 * reads; knows no process: memory comes through a small vtable (bucketsmem.h has the one over
 * process_vm_readv). One `struct buckets` is one process from its start, or exec, to its end.
 *
 * What the memory contains (src/runtime/mprof.go, Go 1.15 to 1.27, 64 bit; little endian words of 8
 * bytes):
 *   head     runtime.mbuckets, bbuckets, xbuckets: each points to the newest bucket of its kind, 0:
 *            none yet
 *   bucket   +0 next in the hash chain, +8 allnext (the next older one of its kind), +16 kind (1
 *            memory, 2 block, 3 mutex), +24 hash, +32 size (bytes of one object; 0 for block and
 *            mutex), +40 depth, +48 depth times pc, then the record
 *   record   memory, 128 bytes: active, future[3], each {allocs, frees, alloc_bytes, free_bytes};
 *            Go 1.27 on, 64 bytes: the same without the bytes, which are size times as many
 *            block and mutex, 16 bytes: count (float64; int64 before Go 1.17), CPU ticks
 *   cycle    runtime.mProfCycle, u32: cycle << 1 | flushed (Go 1.19 on); before, runtime.mProf: u32
 *            cycle, u8 flushed
 * 1. A bucket never moves, never goes, and of it only the record changes. New ones are put before
 *    the head.
 * 2. hash is a function of pcs and size (buckets.c); only a place whose hash is right is taken for
 *    a bucket. So the unknown layout of a later Go is recognized, and no garbage is read. Buckets
 *    are allocated one after the other: the smallest distance between two gives the size of a
 *    record. If none are adjacent, the Go version gives it.
 * 3. What runtime.MemProfile says of a bucket is active + future[cycle % 3] (the second is 0 but
 *    for the moment between the end of a collection and its publication). The other two are
 *    pending: allocations since, and frees found by the running sweep. Where all of active is 0 (no
 *    garbage collection yet), it says the sum of all.
 * 4. alloc_bytes = allocs * size and free_bytes = frees * size in each part, where it has these;
 *    otherwise the record was caught half written. So was one with future[cycle % 3] not 0 though
 *    `flushed` is set, and one whose cycle was another after it was read. Such are read again, a
 *    few times; then they are left out of this collection, and counted.
 *
 * Stacks: leaf first, return addresses: look up pc - 1. Memory: one pc for each logical frame: take
 * the innermost function at pc - 1 and expand no inlined calls. Block and mutex: from Go 1.23 on
 * one for each physical frame (there are inlined calls to expand), but logical ones where they were
 * unwound without frame pointers, and the first few where frames were skipped: as
 * runtime.CallersFrames does, expand the calls inlined at a pc unless the next pc is the place of
 * the outer function of that very call. (The runtime's mark ~0 for logical stacks is cut off here.)
 *
 * Cost: a steady collection re-reads known buckets by vectored reads of up to 512 KB, neighbours
 * together, and follows pointers only through what is new. Memory: 40 bytes a bucket, and the
 * buffers, about 1 MB while collecting.
 */
#ifndef SONDE_GOHEAP_BUCKETS_H
#define SONDE_GOHEAP_BUCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "schema/image/format.h"

#define BUCKETS_MAX        100000u /* of one process, all kinds together */
#define BUCKETS_DEPTH_MAX  1024u   /* the runtime's own limit */
#define BUCKETS_RANGES_MAX 1024u   /* of one call of `read` */

/* ---- the process's memory ---- */

struct buckets_range {
	uint64_t addr;
	void *to;
	size_t len;
};

struct buckets_memory {
	/* Reads ranges in order, and stops at the first that cannot be read completely. Returns how
	 * many were read completely (0: not even the first; that is the system's -EFAULT), or
	 * -errno: -ESRCH the process has ended, -EPERM. */
	long (*read)(void *ctx, const struct buckets_range *ranges, size_t count);
	void *ctx;
};

/* ---- where things are ---- */

enum buckets_kind { BUCKETS_MEMORY = 1, BUCKETS_BLOCK = 2, BUCKETS_MUTEX = 3, BUCKETS_KINDS };

/* Addresses in the process; 0: not known. */
struct buckets_layout {
	uint64_t heads[BUCKETS_KINDS]; /* by enum buckets_kind; [0] is not used */
	uint64_t cycle;                /* mProfCycle, or with old_cycle mProf */
	bool old_cycle;
	uint64_t mem_rate, block_rate,
		mutex_rate;          /* MemProfileRate, blockprofilerate, mutexprofilerate */
	uint64_t ticks;              /* runtime.ticks.val */
	bool ticks_started;          /* 0 before the clocks began (Go 1.22 on) */
	uint32_t record_len;         /* of a memory record, by the version; 0: not known */
	uint64_t search, search_len; /* variables: searched for list heads that have no symbol */
};

/* From the index's record and the process's load bias (address - the file's own). false: nothing to
 * go by. */
bool buckets_layout_make(const struct image_go_record *go, uint64_t bias,
			 struct buckets_layout *out);

/* ---- what is read ---- */

struct bucket_amounts {
	uint64_t allocs, frees, alloc_bytes, free_bytes;
};

/* One bucket as it was read. Borrowed: during the call only. */
struct bucket {
	uint32_t index; /* from 0, fixed as long as `struct buckets` lives: a key for arrays of the
			   caller */
	bool fresh;     /* was not in any collection before */
	enum buckets_kind kind;
	uint64_t addr;       /* of the bucket in the process */
	uint64_t record;     /* of its record: what a last look at a kill has to read */
	uint32_t record_len; /* 128, 64, or, block and mutex, 16 */
	uint64_t size;       /* bytes of one object */
	const uint64_t *pcs; /* leaf first; see above */
	uint32_t depth;
	/* memory */
	struct bucket_amounts active, future[3];
	uint32_t cycle; /* without the flag; meaningless unless the sum's cycle_known */
	bool cycle_known;
	/* block, mutex */
	double count;
	int64_t ticks;
};

/* A memory record's bytes, `record_len` of them, into active and future[]. false: half written
 * (condition 4). */
bool bucket_record_parse(const void *record, uint32_t record_len, uint64_t size,
			 struct bucket *out);

/* Published and pending parts by condition 3, less its last sentence (struct
 * buckets_sum.nothing_published). */
struct bucket_amounts bucket_published(const struct bucket *b);
struct bucket_amounts bucket_pending(const struct bucket *b);

enum buckets_state {
	BUCKETS_OK,
	BUCKETS_EMPTY,     /* profiling is on, or may be; nothing was sampled yet */
	BUCKETS_OFF,       /* MemProfileRate is 0: only earlier records are reported (a few, of the
			      runtime's start) */
	BUCKETS_NOT_FOUND, /* no address of a list, and none found by search */
	BUCKETS_UNKNOWN_LAYOUT, /* a head points to what is no bucket */
	BUCKETS_UNREADABLE,     /* no right to read this process */
	BUCKETS_GONE,           /* it ended, or is another program now */
	BUCKETS_BROKEN,   /* a list that runs in a circle, or leads astray: what was sound of it is
			     given */
	BUCKETS_TOO_MANY, /* more than BUCKETS_MAX: only the first ones are reported */
	BUCKETS_STATES
};
/* For people: "memory profiling is off in this program". */
const char *buckets_state_text(enum buckets_state s);

struct buckets_sum {
	enum buckets_state state[BUCKETS_KINDS]; /* by kind; [0]: the process as a whole (OK,
						    UNREADABLE, GONE) */
	uint32_t count[BUCKETS_KINDS];           /* buckets known, by kind */
	uint32_t fresh, torn, dropped; /* torn: read again; dropped: not in this collection */
	bool nothing_published; /* condition 3, last sentence: published is published + pending */
	bool cycle_known;       /* false: published is active alone */
	uint32_t cycle_first, cycle_last;     /* raw, with the flag */
	bool mem_rate_known, found_by_search; /* searched: heads were found by what they point to */
	int64_t mem_rate;                     /* bytes a sample, now */
	uint64_t block_rate, mutex_rate;      /* 0: off, or not known */
	double ticks_per_second; /* as the runtime itself divides; if that is not found and there
				    are ticks to divide, measured here; 0: unknown */
	uint32_t reads;          /* calls of `read` */
	uint64_t read_bytes;
};

/* ---- reading ---- */

struct buckets; /* opaque */

/* `layout` and `memory` are copied. NULL: no memory. */
struct buckets *buckets_open(const struct buckets_layout *layout,
			     const struct buckets_memory *memory);
void buckets_close(struct buckets *b);

/* Reads all buckets: calls `each` for every bucket that was read consistently, in order of address.
 * 0, -ENOMEM, or the value of `each` that is not 0 (which stops it). All other failures are in
 * *sum, which is always set. Once state[0] is not BUCKETS_OK, or after an exec, close it and open
 * another. */
int buckets_collect(struct buckets *b, int (*each)(void *ctx, const struct bucket *bucket),
		    void *ctx, struct buckets_sum *sum);

#endif
