/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* disk_sums: what all programs of family disk use: the epoch, how maps are made, and what found
 * no room. */
#ifndef SONDE_PROBES_DISK_SUMS_BPF_H
#define SONDE_PROBES_DISK_SUMS_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#include "probes/disk.h"
#include "probes/lib/slots.bpf.h"
#include "probes/lib/who.bpf.h"

volatile __u32 disk_epoch; /* the loader's */
struct disk_lost disk_lost;
__u32 disk_made[DISK_MADE_N]; /* by enum disk_made; the loader sets it to 0 */

_Static_assert(DISK_SLOTS == SLOTS, "the histograms of slots.bpf.h");

/* From 6.1 on, memory for an entry is taken when it is made (loaders/lib/bpf/load/maproom.h). Not
 * before: the kernel warns in its log of a tracing program that has such a table. */
#define DISK_HASH(name_, most_, key_, value_)    \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, most_);      \
		__type(key, key_);               \
		__type(value, value_);           \
	} name_ SEC(".maps")

/* After an entry was added, or was about to be. It is written even where it is set: a look at it
 * could come before the entry is there for the loader, which has just cleared it. */
static __always_inline void made(enum disk_made which)
{
	*(volatile __u32 *)&disk_made[which] = 1;
}

#endif
