/* SPDX-License-Identifier: Apache-2.0 */
/*
 * entries: the BPF hash `processes` (probes/lib/tables.h, 4) as sonde-maps writes it. The kernel
 * writes there too: at a fork it copies the parent's entry (probes/maps.bpf.c).
 *
 * An entry, and its slice, outlives its process for a while: a large process takes long to exit,
 * and samples of the exit have stacks. A new process with the same pid is distinguished by its
 * start time.
 */
#ifndef SONDE_MAPS_ENTRIES_H
#define SONDE_MAPS_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <linux/types.h>

#include "loaders/maps/publish/slices.h"
#include "probes/lib/tables.h"

/* Less than TABLES_GRACE_NS: the kernel's copies of an entry must be gone before the slice that it
 * points to. */
#define ENTRIES_KEEP_NS 500000000ull

struct leaving {
	uint32_t tgid;
	uint64_t start_ns, due_ns;
	struct slice *slice; /* NULL: its entry is a copy made by the kernel */
};

struct entries {
	int fd; /* borrowed */
	struct slices *slices;
	struct leaving *leaving;
	size_t n_leaving, cap_leaving;
	uint64_t refused; /* entries without room */
	bool told;
};

void entries_init(struct entries *e, int fd, struct slices *slices);
void entries_release(struct entries *e, uint64_t now_ns);
/* 0 or -errno: no room, or no such map. */
int entries_put(struct entries *e, uint32_t tgid, const struct tables_process *value,
		uint64_t now_ns);
/* The process ended at exit_ns; takes its slice's reference (may be NULL). */
void entries_leave(struct entries *e, uint32_t tgid, uint64_t start_ns, struct slice *slice,
		   uint64_t exit_ns);
void entries_remove(struct entries *e, uint32_t tgid, uint64_t start_ns);
/* Removes the entries whose time is over. */
void entries_tick(struct entries *e, uint64_t now_ns);
/* Removes all entries that `keep` rejects. Returns how many. */
size_t entries_sweep(struct entries *e,
		     bool (*keep)(void *ctx, uint32_t tgid, const struct tables_process *value),
		     void *ctx);
/* Calls a function for each. */
void entries_each(struct entries *e,
		  void (*look)(void *ctx, uint32_t tgid, const struct tables_process *value),
		  void *ctx);
bool entries_is_leaving(const struct entries *e, uint32_t tgid, uint64_t start_ns);

#endif
