/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: one thread's user stack: its registers from the iterator, its memory by process_vm_readv,
 * mappings and rows from sonde-maps. Frames are addresses as in probes/lib/stack.h, leaf first.
 */
#ifndef SONDE_PSTACK_WALK_H
#define SONDE_PSTACK_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loaders/lib/host/maps/hostmaps.h"
#include "loaders/lib/runtimes/script.h"
#include "loaders/pstack/snapshot.h"
#include "probes/lib/stack.h"

struct walk {
	uint64_t *frames; /* allocated; NULL: empty */
	uint64_t *sp;     /* each one's stack pointer; allocated */
	size_t n;
	enum stack_end end;
	struct script_stack scripts;
	enum runtime_gil gil;
	bool pending; /* an index was not there yet that this stack needs */
};

/* *out is zeroed, or as an earlier walk left it. `process` NULL: there is nothing to begin with.
 * time_ns: boot clock; the mappings that held then. */
void walk_thread(struct hostmaps *hm, struct hostmaps_process *process,
		 const struct pstack_record *thread, uint64_t time_ns, struct walk *out);
/* The script frames of a thread that was walked, and has not run since. */
void walk_scripts(struct hostmaps *hm, struct hostmaps_process *process,
		  const struct pstack_record *thread, uint64_t time_ns, struct walk *w);
void walk_clear(struct walk *w);

#endif
