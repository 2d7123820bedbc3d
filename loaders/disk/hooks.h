/* SPDX-License-Identifier: Apache-2.0 */
/* hooks: the programs of family disk: loaded and attached, each that a kernel has no place for left
 * out, and the epochs of their sums. */
#ifndef SONDE_DISK_HOOKS_H
#define SONDE_DISK_HOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/bpf/load/mapread.h"
#include "probes/disk.h"

struct disk_bpf;
struct bpf_link;
struct bpf_map;
struct ring_buffer;

#define HOOKS_LINKS 128

typedef void (*hooks_held_fn)(void *ctx, const struct disk_held *h);
typedef void (*hooks_slow)(void *ctx, const struct disk_slow *r);

struct hooks {
	struct disk_bpf *skel;
	struct bpf_link *links[HOOKS_LINKS];
	size_t n;
	struct bpf_link *held; /* NULL: this kernel has no such programs */
	struct ring_buffer *ring;
	hooks_slow slow;
	void *ctx;
	bool files; /* fsync, opens and locks, too */
	bool calls; /* reads and writes, too */
};

struct hooks_wanted {
	bool files; /* fsync, opens and locks */
	bool calls; /* reads and writes of files */
};

/* `slow` is called by hooks_read. What this kernel refuses is left out, if the rest can do without.
 */
int hooks_open(struct hooks *k, const struct family_config *c, struct hooks_wanted wanted,
	       hooks_slow slow, void *ctx, struct err *e);
struct bpf_object *hooks_object(const struct hooks *k);
int hooks_attach(struct hooks *k, struct err *e);
/* From now on one read or write of a file in 4^step is looked at, and counts for all of these. */
void hooks_reduce(struct hooks *k, uint32_t step);
/* No program runs any more; the sums can still be read. */
void hooks_detach(struct hooks *k);
void hooks_close(struct hooks *k);

/* Which tracepoint tells who asks: block_io_start (from 6.5 on). */
bool hooks_tells_start(void);

/* Do single slow requests have the stack of who waits for them? (from 6.2 on) */
bool hooks_tells_stack(void);

/* Can reads and writes of files be seen? (from 5.12 on) And those by io_uring? (from 6.0 on) */
bool hooks_tells_calls(void);
bool hooks_tells_ring(void);

/* For mapread_made; borrowed. */
uint32_t *hooks_made(const struct hooks *k, enum disk_made which);

/* There is nothing to read in any map of sums, and no call waits. */
bool hooks_quiet(const struct hooks *k);

/* Single requests that wait in the ring. */
void hooks_read(struct hooks *k);
/* Each request that is not known to have ended. 0 or -errno. */
int hooks_asked(struct hooks *k, mapread_fn fn, void *ctx);
/* Each call that waits for a disk and has not returned. 0 or -errno. */
int hooks_syncing(struct hooks *k, mapread_fn fn, void *ctx);
/* Each wait for a lock of a file that is not over. 0 or -errno. */
int hooks_locking(struct hooks *k, mapread_fn fn, void *ctx);
/* That thread does not wait for a lock any more, as it did since `begin_ns`, and no program saw the
 * end: the wait is lost. One that began since is left. */
void hooks_locking_over(struct hooks *k, uint64_t thread, uint64_t begin_ns);
/* The sums of files, those that found no room there, and the names of files; borrowed. */
struct hooks_files {
	const struct bpf_map *sums, *rest, *names;
	uint32_t *sums_made, *rest_made; /* see mapread_made */
};
struct hooks_files hooks_files(const struct hooks *k);
/* Each descriptor of each process that is of a deleted file on a disk. 0 or -errno. */
int hooks_held(struct hooks *k, hooks_held_fn fn, void *ctx);
/* The programs go on in the next epoch; returns the one that is over. Some may still be adding to
 * it for a moment. */
uint32_t hooks_epoch_end(struct hooks *k);
/* The search for the slowest request of each device begins again. */
void hooks_slowest_reset(struct hooks *k);
void hooks_lost(const struct hooks *k, struct disk_lost *out);

#endif
