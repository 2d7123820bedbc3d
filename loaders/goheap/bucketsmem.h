/* SPDX-License-Identifier: Apache-2.0 */
/* bucketsmem: the memory of a live process, for buckets.h. Needs the right to trace it
 * (CAP_SYS_PTRACE); never stops it. */
#ifndef SONDE_GOHEAP_BUCKETSMEM_H
#define SONDE_GOHEAP_BUCKETSMEM_H

#include "loaders/goheap/buckets.h"

struct bucketsmem {
	int32_t pid;
};

/* Borrows `m` for as long as the result is used. The pid may be reused by another process: the
 * caller watches for its end; a failed read is reported as BUCKETS_GONE. */
struct buckets_memory bucketsmem_init(struct bucketsmem *m, int32_t pid);

#endif
