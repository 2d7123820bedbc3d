/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scripts: the script frames of threads, by loaders/lib/runtimes. The indexes of the files in which
 * their native frames lie tell which of them contain a runtime.
 */
#ifndef SONDE_PSTACK_SCRIPTS_H
#define SONDE_PSTACK_SCRIPTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/runtimes/script.h"

#define SCRIPTS_RUNTIMES_MAX 4 /* in one stack */

/* A native stack as walk.h has it; of each frame its stack pointer too. */
struct scripts_native {
	const uint64_t *frames, *sp;
	size_t n;
	bool complete;
	/* Leaves the first `keep` frames, and unwinds on from these registers: `frames`, `sp`, `n`
	 * and `complete` are new. */
	void (*resume)(void *ctx, struct scripts_native *native, size_t keep,
		       const struct runtime_follow *from);
	void *ctx;
	uint64_t fs_base;
	uint32_t tid;
	uint64_t futex; /* on which it waits; 0: on none */
};

/* Appends to `out`; *gil: if the runtime has one. The state of a process is kept for its next
 * thread, until scripts_forget. */
void scripts_walk(struct hostmaps *hm, struct hostmaps_process *p, struct scripts_native *native,
		  uint64_t time_ns, struct script_stack *out, enum runtime_gil *gil);
/* Threads may have started and ended since. */
void scripts_forget(void);

#endif
