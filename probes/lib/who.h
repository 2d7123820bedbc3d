/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* who: a process, as programs that sum by process name it in the keys of their maps. */
#ifndef SONDE_PROBES_WHO_H
#define SONDE_PROBES_WHO_H

#ifndef __bpf__
#include <linux/types.h>
#endif

struct who_id { /* as in stack.h. {0}: none is known, or the map had no room for it */
	__u64 start_ns;
	__u32 tgid, exec_id;
};
_Static_assert(sizeof(struct who_id) == 16, "wire size");

#endif
