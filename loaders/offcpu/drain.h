/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain: stores the program's sums, which it reads from time to time (every second or every few).
 * Sums only grow, so the difference to the previous reading is stored; those of who ran while
 * another waited are taken out. Of who woke whom, pairs that did not meet since the last reading
 * are taken out where the map is half full: their slots are free after one more reading, for a
 * thread may still have one at hand. Entries of ended threads are removed after one more reading:
 * nothing is added to them any more; drain_thread knows their identity for DRAIN_KEPT_NS more. At
 * the end, current states are counted up to the end, and marked as unfinished.
 */
#ifndef SONDE_OFFCPU_DRAIN_H
#define SONDE_OFFCPU_DRAIN_H

#include <linux/types.h>
#include <stdint.h>

#include "probes/offcpu.h"
#include "schema/base/idmap.h"

struct family_host;
struct rest;

#define DRAIN_KEPT_NS   15000000000 /* JOIN_PATIENCE_NS */
#define DRAIN_KEPT_MOST 16384       /* ended threads: 2 MB */

struct drain_maps {
	/* descriptors */
	int threads, who, totals, wakes, culprits, free_slots, free_steps, free_wakes;
	struct offcpu_sum *sums; /* the array of that name, mapped; borrowed */
	uint32_t n_sums;
	struct offcpu_steps *steps; /* the same */
	uint32_t n_steps;
	struct offcpu_count *wake_sums; /* the same */
	uint32_t n_wake_sums;
	uint32_t *wake_turn; /* the program's */
	struct rest *rest;   /* borrowed */
};

struct drain {
	struct drain_maps maps;
	struct idmap who;          /* thread's id -> struct drain_who * */
	struct idmap sums, counts; /* hash of a key -> struct drain_sum *, struct drain_count *: as
				      read last */
	struct offcpu_steps *seen; /* as read last, of the first n_seen */
	uint32_t n_seen;
	struct drain_count **evicted; /* taken out by the last reading, of threads that go on */
	size_t n_evicted, cap_evicted;
	uint64_t pairs_lost; /* that were read, of a thread that is not known any more */
	uint32_t turn;       /* readings so far */
	int64_t read_ns;     /* boot clock: when the last one was */
};

void drain_init(struct drain *d, const struct drain_maps *maps, int64_t begin_ns);
void drain_release(struct drain *d);
/* `reading` is the number of the slot with the longest stretches since the last reading. */
void drain_read(struct drain *d, struct family_host *h, uint32_t reading, int64_t now_ns);
/* Only who ran while another waited, between two of these: their map fills. */
void drain_culprits(struct drain *d, struct family_host *h, int64_t now_ns);
/* After detach, behind the last drain_read: what still lasts. */
void drain_unfinished(struct drain *d, struct family_host *h, int64_t now_ns);

/* The store's id of the thread with the program's id `id`, also of one that came after the last
 * reading; 0: not known. */
uint32_t drain_thread(struct drain *d, struct family_host *h, uint64_t id);

#endif
