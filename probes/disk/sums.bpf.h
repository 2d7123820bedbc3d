/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* disk_sums: what all programs of family disk use: the epoch, slots of histograms, and what
 * found no room. */
#ifndef SONDE_PROBES_DISK_SUMS_BPF_H
#define SONDE_PROBES_DISK_SUMS_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#include "probes/disk.h"
#include "probes/lib/who.bpf.h"

#define BPF_F_NO_PREALLOC 1

volatile __u32 disk_epoch; /* the loader's */
struct disk_lost disk_lost;

static __always_inline __u32 slot_of(__u64 ns)
{
	__u64 us = ns / 1000;
	__u32 slot = 0;

#pragma unroll
	for (int i = 0; i < DISK_SLOTS - 1; i++) {
		us >>= 1;
		slot += us != 0;
	}
	return slot;
}

#endif
