/* SPDX-License-Identifier: Apache-2.0 */
/* amount: stores what a record of the family's programs adds, by its process, thread and stack. */
#ifndef SONDE_MEM_AMOUNT_H
#define SONDE_MEM_AMOUNT_H

#include <linux/types.h>
#include <stdint.h>

#include "loaders/lib/bpf/family.h"
#include "probes/lib/stack.h"
#include "schema/store/model/kinds.h"
#include "schema/store/write/writer.h"

/* `frames`: ev's, n_kernel + n_user. `leaf`: the name of a frame more (amount_frame), NULL: none.
 * `tag`: of the request that the thread served, 0: none.
 * `events`: what it counts as in h->added or h->refused. *named: the names of the record's stack,
 * for the caller. */
void amount_store(struct family_host *h, const struct stack_event *ev, const uint64_t *frames,
		  const char *leaf, enum store_kind kind, const struct store_amount *a,
		  uint64_t tag, uint64_t events, struct naming_result *named);

/* How many of the kernel's frames at the leaf each stack of a program at a tracepoint has: the
 * program that took it, what called that, and the scheduler's own. */
uint16_t amount_leading(struct family_host *h, const struct stack_event *ev,
			const uint64_t *frames);
/* How many of them lead to the page fault that it was in: what allocated, and the path from the
 * exception to it. */
uint16_t amount_fault(struct family_host *h, const struct stack_event *ev, const uint64_t *frames);
/* A frame that no program has, of this name: for memory that no code took. The
 * store's id. */
uint32_t amount_frame(struct store_writer *w, const char *name);

#endif
