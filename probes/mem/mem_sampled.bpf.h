/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mem_sampled: processes with samples, whose new mappings are reported. */
#ifndef SONDE_PROBES_MEM_SAMPLED_BPF_H
#define SONDE_PROBES_MEM_SAMPLED_BPF_H

#include "probes/lib/kern.h"

#include <bpf/bpf_helpers.h>

#define MEM_VM_SHARED 0x8 /* of vm_flags */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, __u8);
} sampled SEC(".maps");

static __always_inline void mem_sampled_note(__u32 tgid)
{
	__u8 yes = 1;

	if (!bpf_map_lookup_elem(&sampled, &tgid))
		bpf_map_update_elem(&sampled, &tgid, &yes, BPF_ANY);
}

#endif
