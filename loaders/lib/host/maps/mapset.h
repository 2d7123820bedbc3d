/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapset: what is mapped where in one process, now and a short while ago. The kernel does not
 * report munmap: a later mapping replaces what it overlaps, from its time on; the replaced part
 * stays in the history with the time it ended.
 *
 * `image` belongs to the caller and is never dereferenced. A zeroed struct is a valid empty set.
 */
#ifndef SONDE_HOST_MAPSET_H
#define SONDE_HOST_MAPSET_H

#include <stddef.h>
#include <stdint.h>

#define MAPSET_NEVER UINT64_MAX

struct mapping {
	uint64_t start, end; /* [start, end) */
	uint64_t offset;     /* of `start` within the file */
	uint64_t from_ns,
		to_ns; /* valid from (inclusive) to (exclusive); to MAPSET_NEVER: still valid */
	void *image;
};

struct mapset {
	struct mapping *now; /* by start, no overlap */
	size_t n_now, cap_now;
	struct mapping *old; /* in the order they ended */
	size_t n_old, cap_old;
};

void mapset_release(struct mapset *s);
/* [start, end) shows `image` from `offset` on, since time_ns. keep: move what it replaces to the
 * history. An empty or inverted range changes nothing. If the range shows the same already it keeps
 * its older time. */
void mapset_put(struct mapset *s, uint64_t start, uint64_t end, uint64_t offset, void *image,
		uint64_t time_ns, int keep);
/* All mappings end at time_ns (exec, or not confirmed after a loss). */
void mapset_end(struct mapset *s, uint64_t time_ns, int keep);
/* The mapping that held `addr` at time_ns; NULL: none known. */
const struct mapping *mapset_find(const struct mapset *s, uint64_t addr, uint64_t time_ns);
/* Copies what `src` holds now into `dst` (empty), as of time_ns. */
void mapset_copy(struct mapset *dst, const struct mapset *src, uint64_t time_ns);
/* Drop history that ended before time_ns. */
void mapset_forget(struct mapset *s, uint64_t time_ns);

#endif
