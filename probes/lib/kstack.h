/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kstack: where the kernel keeps the tables that its stacks are unwound by (kstack.bpf.h). Read by
 * BPF programs and loaders. The BPF side includes probes/lib/kern.h before it, user space
 * <linux/types.h>.
 */
#ifndef SONDE_PROBES_KSTACK_H
#define SONDE_PROBES_KSTACK_H

#ifndef __bpf__
#include <linux/types.h>
#endif

#define KSTACK_ENTRIES_MAX (1u << 22)
#define KSTACK_KNOWN_BITS  9 /* addresses remembered on each CPU */

struct kstack_tables {
	__u64 text; /* the kernel's own text */
	__u64 text_bytes;
	__u64 ips;     /* __start_orc_unwind_ip */
	__u64 entries; /* __start_orc_unwind */
	__u64 hook;    /* kretprobes replace return addresses by this one; 0: no kretprobes */
	__u32 count;   /* entries; 0: not known. Written last */
	__u32 pad;
};
_Static_assert(sizeof(struct kstack_tables) == 48, "wire size");

#endif
