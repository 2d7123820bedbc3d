/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* demo: what the program of family demo and its loader share. */
#ifndef SONDE_PROBES_DEMO_H
#define SONDE_PROBES_DEMO_H

#ifndef __bpf__
#include <linux/types.h>
#endif

struct demo_process { /* key of the maps `faults` and `told` */
	__u64 start_ns;
	__u32 tgid, pad;
};
_Static_assert(sizeof(struct demo_process) == 16, "wire size");

#endif
