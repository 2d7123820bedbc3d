/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slots: histograms in powers of two: slot n counts values of 2^n to 2^(n+1)-1, slot 0 also 0, the
 * last one all that are larger. */
#ifndef SONDE_PROBES_SLOTS_BPF_H
#define SONDE_PROBES_SLOTS_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#define SLOTS 32

static __always_inline __u32 slot_of(__u64 v)
{
	__u32 slot = 0;

	if (v >> 32)
		return SLOTS - 1;
	if (v >> 16) {
		v >>= 16;
		slot += 16;
	}
	if (v >> 8) {
		v >>= 8;
		slot += 8;
	}
	if (v >> 4) {
		v >>= 4;
		slot += 4;
	}
	if (v >> 2) {
		v >>= 2;
		slot += 2;
	}
	if (v >> 1)
		slot += 1;
	return slot;
}

#endif
