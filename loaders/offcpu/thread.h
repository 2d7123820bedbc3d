/* SPDX-License-Identifier: Apache-2.0 */
/* thread: the name and number under which a thread is stored. With long buckets (FAMILY_ALWAYS_S),
 * threads of one name in a process are one, without a number; a process's first thread stays on its
 * own. */
#ifndef SONDE_OFFCPU_THREAD_H
#define SONDE_OFFCPU_THREAD_H

#include "loaders/lib/bpf/family.h"
#include "loaders/lib/host/names/naming.h"

/* `tid` comes as the thread's own and goes as the one to store; 0: several. */
static inline void thread_told(const struct family_host *h, const struct naming_result *named,
			       const char comm[STACK_COMM_LEN], uint32_t tgid,
			       char out[STACK_COMM_LEN + 1], uint32_t *tid)
{
	naming_thread(named, comm, out, tid);
	if (h->bucket_s >= FAMILY_ALWAYS_S && *tid != tgid)
		*tid = 0;
}

#endif
